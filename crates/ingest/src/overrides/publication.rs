//! A publish of bases: what it puts is what loads bring, and the store gets the effective products with their bases beside
//! them. So loads, mirrors and rollbacks needn't know of overrides.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::revision::Revision;
use vitrine_store::audit::{AuditContext, PublishedChange};
use vitrine_store::prepared::{PreparedProduct, ProductDigest};
use vitrine_store::record::{
    FetchedText, Moment, ProductVisitor, PublishedCounts, PutOutcome, RevisionNote, StoredProduct,
};
use vitrine_store::{Ineffective, Publication, Publish, Store, StoreError};

use super::Override;
use super::effect::effect;
use super::ineffective::hiding;

/// Number of products that are put together.
const BATCH: usize = 500;

/// Begins a publish of bases.
///
/// # Errors
///
/// As [`Store::publish`], or if an override is damaged.
pub fn publish(store: &Store) -> Result<Box<dyn Publication + '_>, StoreError> {
    on(store, store.publish()?)
}

/// Begins a publish of bases that is only planned: see [`Store::dry_run`].
///
/// # Errors
///
/// As [`Store::dry_run`], or if an override is damaged.
pub fn dry_run(store: &Store) -> Result<Box<dyn Publication + '_>, StoreError> {
    on(store, store.dry_run()?)
}

fn on<'s>(
    store: &'s Store,
    mut inner: Box<Publish>,
) -> Result<Box<dyn Publication + 's>, StoreError> {
    let active = Override::read_active(inner.open_overrides()?)?;
    let overridden = inner.overridden()?;
    let hidden = overridden.iter().filter(|product| product.is_hidden);
    Ok(Box::new(BasePublication {
        hidden: hidden.map(|product| product.code.clone()).collect(),
        overridden: overridden.into_iter().map(|one| one.code).collect(),
        bases: HashMap::new(),
        seen: HashSet::new(),
        ineffective: BTreeMap::new(),
        store,
        inner,
        active,
    }))
}

/// Puts the base of a revision, and retires all else: under the current overrides, that is the catalog after a rollback. Returns
/// whether the revision exists.
///
/// # Errors
///
/// If the store can't be read or written, or the revision was pruned ([`StoreError::Pruned`]).
pub fn restore(
    store: &Store,
    publication: &mut dyn Publication,
    number: u64,
) -> Result<bool, StoreError> {
    let is_there = in_batches(store, number, |few| {
        let codes: Vec<&ProductCode> = few.iter().map(|product| &product.code).collect();
        publication.prefetch(&codes)?;
        (few.iter()).try_for_each(|product| publication.put(product).map(drop))
    })?;
    if is_there {
        publication.retire_others()?;
    }
    Ok(is_there)
}

/// Calls `take` with the products that loads had brought by a revision, some at a time. Returns whether the revision exists.
///
/// # Errors
///
/// As [`restore`], or if `take` fails.
pub(super) fn in_batches(
    store: &Store,
    number: u64,
    mut take: impl FnMut(&[StoredProduct]) -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let (mut few, mut failure) = (Vec::new(), None);
    // Outside of a publish's transaction: a revision never changes.
    let found = store.read_base(Moment::Revision(number), &mut |base| {
        few.push(base);
        if few.len() < BATCH {
            return Ok(());
        }
        let taken = take(&few);
        few.clear();
        taken.map_err(|error| {
            failure = Some(error);
            "stopped".into()
        })
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let is_there = found?.is_some();
    take(&few)?;
    Ok(is_there)
}

/// A publish of bases in progress.
struct BasePublication<'s> {
    store: &'s Store,
    inner: Box<Publish>,
    /// Active overrides, in the order of their numbers.
    active: Vec<Override>,
    /// Products that clients didn't see before.
    hidden: HashSet<ProductCode>,
    /// Products with a base beside them, as this publish leaves them.
    overridden: HashSet<ProductCode>,
    /// Bases of products that were announced.
    bases: HashMap<ProductCode, StoredProduct>,
    /// Overridden products that were put or kept.
    seen: HashSet<ProductCode>,
    /// Changes that overrides hide.
    ineffective: BTreeMap<u64, u64>,
}

impl BasePublication<'_> {
    /// Returns the base beside a product, from before this publish.
    fn base(&mut self, code: &ProductCode) -> Result<Option<StoredProduct>, StoreError> {
        if !self.overridden.contains(code) {
            return Ok(None);
        }
        match self.bases.get(code) {
            Some(base) => Ok(Some(base.clone())),
            None => Ok(self.inner.bases(&[code])?.pop()),
        }
    }

    /// Reads the bases beside these products, to be used next.
    fn fetch_bases(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError> {
        let overridden: Vec<&ProductCode> = (codes.iter().copied())
            .filter(|code| self.overridden.contains(*code))
            .collect();
        if overridden.iter().all(|code| self.bases.contains_key(*code)) {
            return Ok(());
        }
        let bases = self.inner.bases(&overridden)?.into_iter();
        self.bases = bases.map(|base| (base.code.clone(), base)).collect();
        Ok(())
    }

    /// Counts the retirement of a product that clients don't see.
    fn count_hidden_retirement(&mut self, code: &ProductCode) -> Result<(), StoreError> {
        if !self.hidden.contains(code) {
            return Ok(());
        }
        let Some(base) = self.base(code)? else {
            return Ok(());
        };
        let effect = effect(&base, &self.active).map_err(|error| damaged(&error))?;
        let fields = effect.map(|effect| effect.fields).unwrap_or_default();
        if let Some(number) = fields.get("visible").and_then(BTreeSet::last) {
            *self.ineffective.entry(*number).or_default() += 1;
        }
        Ok(())
    }
}

pub(super) fn damaged(error: &anyhow::Error) -> StoreError {
    StoreError::Damaged(format!("{error:#}"))
}

impl Publication for BasePublication<'_> {
    fn live(&mut self, code: &ProductCode) -> Result<Option<StoredProduct>, StoreError> {
        match self.base(code)? {
            Some(base) => Ok(Some(base)),
            None => self.inner.live(code),
        }
    }

    fn prefetch(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError> {
        self.fetch_bases(codes)?;
        self.inner.prefetch(codes)
    }

    fn live_digests(
        &mut self,
        codes: &[&ProductCode],
    ) -> Result<Vec<Option<ProductDigest>>, StoreError> {
        self.fetch_bases(codes)?;
        let mut digests = self.inner.live_digests(codes)?;
        for (code, digest) in codes.iter().zip(&mut digests) {
            if let Some(base) = self.base(code)? {
                *digest = Some(ProductDigest::of(&base)?);
            }
        }
        Ok(digests)
    }

    fn live_codes(&mut self) -> Result<Vec<ProductCode>, StoreError> {
        self.inner.live_codes()
    }

    fn put_text(
        &mut self,
        digest: &TextDigest,
        markdown: &PackedMarkdown,
    ) -> Result<(), StoreError> {
        self.inner.put_text(digest, markdown)
    }

    fn put_fetched(&mut self, fetched: &FetchedText) -> Result<(), StoreError> {
        self.inner.put_fetched(fetched)
    }

    fn put_prepared(&mut self, prepared: PreparedProduct) -> Result<PutOutcome, StoreError> {
        let product = match self.active.is_empty() && self.overridden.is_empty() {
            true => return self.inner.put_prepared(prepared),
            false => &prepared.product()?,
        };
        let effect = effect(product, &self.active).map_err(|error| damaged(&error))?;
        if effect.is_none() && !self.overridden.contains(&product.code) {
            return self.inner.put_prepared(prepared);
        }
        let before = self.live(&product.code)?;
        let outcome = match &before {
            None => PutOutcome::Created,
            Some(before) if before == product => PutOutcome::Unchanged,
            Some(_) => PutOutcome::Changed,
        };
        if outcome != PutOutcome::Unchanged {
            let hiding = hiding(before.as_ref(), (product, effect.as_ref()), &self.active)
                .map_err(|error| damaged(&error))?;
            for number in hiding {
                *self.ineffective.entry(number).or_default() += 1;
            }
        }
        let Some(effect) = effect else {
            self.overridden.remove(&product.code);
            self.inner.end_base(&product.code)?;
            self.inner.put_prepared(prepared)?;
            return Ok(outcome);
        };
        if !self.seen.insert(product.code.clone()) {
            return Err(vitrine_store::DUPLICATE_PRODUCT);
        }
        let code = product.code.clone();
        if self.overridden.insert(code.clone()) || outcome != PutOutcome::Unchanged {
            self.inner.put_base(prepared)?;
        }
        match &effect.product {
            Some(effective) => self.inner.put(effective).map(drop)?,
            None => self.inner.retire(&code).map(drop)?,
        }
        Ok(outcome)
    }

    fn retire(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        self.count_hidden_retirement(code)?;
        let was_overridden = self.overridden.remove(code);
        if was_overridden {
            self.inner.end_base(code)?;
        }
        Ok(self.inner.retire(code)? || was_overridden)
    }

    fn keep(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        let is_overridden = self.overridden.contains(code);
        if is_overridden {
            self.seen.insert(code.clone());
        }
        Ok(self.inner.keep(code)? || is_overridden)
    }

    fn live_before(&self) -> u64 {
        self.inner.live_before()
    }

    fn read_live_before(&mut self, visit: ProductVisitor<'_>) -> Result<(), StoreError> {
        if self.overridden.is_empty() && self.active.is_empty() {
            return self.inner.read_live_before(visit);
        }
        // Not within this transaction, so as it was before.
        self.store.read_base(Moment::Live, visit).map(drop)
    }

    fn retire_others(&mut self) -> Result<Vec<ProductCode>, StoreError> {
        let mut codes = self.inner.retire_others()?;
        let others = self.overridden.difference(&self.seen).cloned();
        for code in others.collect::<Vec<_>>() {
            self.count_hidden_retirement(&code)?;
            self.overridden.remove(&code);
            self.inner.end_base(&code)?;
            codes.push(code);
        }
        codes.sort_unstable();
        codes.dedup();
        Ok(codes)
    }

    fn ineffective(&self) -> Vec<Ineffective> {
        let of = |(number, changes): (&u64, &u64)| Ineffective {
            override_number: *number,
            changes: *changes,
        };
        self.ineffective.iter().map(of).collect()
    }

    fn log(&mut self, context: &AuditContext, change: PublishedChange) -> Result<(), StoreError> {
        self.inner.log(context, change)
    }

    fn commit(
        self: Box<Self>,
        now: Timestamp,
        note: &RevisionNote,
    ) -> Result<Option<(Revision, PublishedCounts)>, StoreError> {
        self.inner.commit(now, note)
    }
}
