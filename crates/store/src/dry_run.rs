//! A publish that is only planned: it reads one state of the store, writes nothing, and neither waits for writers nor keeps them
//! waiting.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::revision::Revision;

use crate::audit::{AuditContext, PublishedChange};
use crate::overrides::{
    NewOverride, OverriddenProduct, OverrideEnd, StorePublication, StoredOverride,
};
use crate::prepared::{PreparedProduct, ProductDigest};
use crate::publication::DUPLICATE_PRODUCT;
use crate::record::{
    FetchedText, ProductVisitor, PublishedCounts, PutOutcome, RevisionNote, StoredProduct,
};
use crate::{Publication, StoreError};

const NOT_COMMITTED: StoreError = StoreError::Unsupported("a dry run writes nothing");

/// A planned publish.
pub(crate) struct DryRun<P> {
    /// Only read.
    inner: P,
    /// Digests of the live products that were asked for last.
    known: HashMap<ProductCode, Option<ProductDigest>>,
    put: HashSet<ProductCode>,
    /// Codes that were put, kept or retired.
    seen: HashSet<ProductCode>,
    /// Number of live products among them.
    seen_live: u64,
}

impl<P: StorePublication> DryRun<P> {
    /// Plans on the state that a publication reads.
    pub(crate) fn new(inner: P) -> Self {
        Self {
            inner,
            known: HashMap::new(),
            put: HashSet::new(),
            seen: HashSet::new(),
            seen_live: 0,
        }
    }

    /// Returns the digests of the live product of a code, which counts as seen.
    fn see(&mut self, code: &ProductCode) -> Result<Option<ProductDigest>, StoreError> {
        let live = match self.known.get(code) {
            Some(known) => *known,
            None => self.inner.live_digests(&[code])?.pop().flatten(),
        };
        if self.seen.insert(code.clone()) {
            self.seen_live += u64::from(live.is_some());
        }
        Ok(live)
    }
}

impl<P: StorePublication> Publication for DryRun<P> {
    fn live(&mut self, code: &ProductCode) -> Result<Option<StoredProduct>, StoreError> {
        self.inner.live(code)
    }

    fn prefetch(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError> {
        self.inner.prefetch(codes)
    }

    fn live_digests(
        &mut self,
        codes: &[&ProductCode],
    ) -> Result<Vec<Option<ProductDigest>>, StoreError> {
        let digests = self.inner.live_digests(codes)?;
        let known = codes.iter().zip(&digests);
        self.known = known.map(|(code, live)| ((*code).clone(), *live)).collect();
        Ok(digests)
    }

    fn live_codes(&mut self) -> Result<Vec<ProductCode>, StoreError> {
        self.inner.live_codes()
    }

    fn put_text(
        &mut self,
        _digest: &TextDigest,
        _markdown: &PackedMarkdown,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_fetched(&mut self, _fetched: &FetchedText) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_prepared(&mut self, product: PreparedProduct) -> Result<PutOutcome, StoreError> {
        let live = self.see(product.code())?;
        if !self.put.insert(product.code().clone()) {
            return Err(DUPLICATE_PRODUCT);
        }
        Ok(match live {
            None => PutOutcome::Created,
            Some(live) if live == product.digest() => PutOutcome::Unchanged,
            Some(_) => PutOutcome::Changed,
        })
    }

    fn retire(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        match self.put.contains(code) {
            true => Err(DUPLICATE_PRODUCT),
            false => Ok(self.see(code)?.is_some()),
        }
    }

    fn keep(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        Ok(self.see(code)?.is_some())
    }

    fn live_before(&self) -> u64 {
        self.inner.live_before()
    }

    fn read_live_before(&mut self, visit: ProductVisitor<'_>) -> Result<(), StoreError> {
        self.inner.read_live_before(visit)
    }

    fn retire_others(&mut self) -> Result<Vec<ProductCode>, StoreError> {
        let mut others = Vec::new();
        if self.seen_live == self.inner.live_before() {
            return Ok(others);
        }
        self.inner.read_live_before(&mut |product| {
            if !self.seen.contains(&product.code) {
                others.push(product.code);
            }
            Ok(())
        })?;
        Ok(others)
    }

    fn log(&mut self, _context: &AuditContext, _change: PublishedChange) -> Result<(), StoreError> {
        Err(NOT_COMMITTED)
    }

    fn commit(
        self: Box<Self>,
        _now: Timestamp,
        _note: &RevisionNote,
    ) -> Result<Option<(Revision, PublishedCounts)>, StoreError> {
        Err(NOT_COMMITTED)
    }
}

impl<P: StorePublication> StorePublication for DryRun<P> {
    fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.inner.now()
    }

    fn open_overrides(&mut self) -> Result<Vec<StoredOverride>, StoreError> {
        self.inner.open_overrides()
    }

    fn add_override(&mut self, _new: &NewOverride) -> Result<u64, StoreError> {
        Err(NOT_COMMITTED)
    }

    fn set_override(&mut self, _number: u64, _end: Option<&OverrideEnd>) -> Result<(), StoreError> {
        Err(NOT_COMMITTED)
    }

    fn overridden(&mut self) -> Result<Vec<OverriddenProduct>, StoreError> {
        self.inner.overridden()
    }

    fn bases(&mut self, codes: &[&ProductCode]) -> Result<Vec<StoredProduct>, StoreError> {
        self.inner.bases(codes)
    }

    fn announce(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError> {
        self.inner.announce(codes)
    }

    fn put_base(&mut self, _base: PreparedProduct) -> Result<(), StoreError> {
        Ok(())
    }

    fn keep_live_as_base(&mut self, _live: &StoredProduct) -> Result<(), StoreError> {
        Ok(())
    }

    fn end_base(&mut self, _code: &ProductCode) -> Result<(), StoreError> {
        Ok(())
    }
}
