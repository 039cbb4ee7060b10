//! Writing a revision: one transaction on a connection of its own.
//!
//! Products are read, compared and put at memory speed: live ones are fetched in batches ([`Publication::prefetch`]), and
//! changes are buffered.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::revision::Revision;

use super::lock::{self, Lock};
use super::pending::Pending;
use super::session::{Session, Typed, count, get, number};
use super::{BEGIN, NOTIFY, history};
use crate::audit::{AuditContext, PublishedChange, log, published_change};
use crate::db::Tx;
use crate::fail_point::FailPoint;
use crate::prepared::{LiveDigests, PreparedProduct, ProductDigest};
use crate::publication::DUPLICATE_PRODUCT;
use crate::record::{
    FetchedText, Moment, ProductVisitor, PublishedCounts, PutOutcome, RevisionNote, StoredProduct,
};
use crate::values::{self, random_id};
use crate::{Publication, StoreError, texts};

pub(super) const PUBLISHING: &str = "publishing";

/// Maximum number of cached products.
const MAX_CACHED: usize = 2_000;

/// Number of products fetched in one statement.
pub(super) const BATCH: usize = 500;

/// Maximum time that a publish waits for another writer of the audit log.
const LOG_WAIT: Duration = Duration::from_secs(30);

/// A publish in progress. Dropping it closes its connection, which rolls back the transaction unless it was committed.
pub(super) struct PostgresPublication {
    pub(super) session: Session,
    pub(super) number: u64,
    /// Ids of this publish's first version, and of the next one.
    first_id: i64,
    next_id: i64,
    live_before: u64,
    counts: PublishedCounts,
    /// True if the base of a product changed: that makes a revision, too.
    pub(super) has_bases: bool,
    /// True if there are results of fetching or changes of overrides to commit, even if no product changed.
    pub(super) has_others: bool,
    /// Id of the next base.
    pub(super) next_base_id: i64,
    /// Codes that were put or kept; all others are retired.
    seen: HashSet<ProductCode>,
    /// Cache of live products, as this publish leaves them; `None` for codes that aren't live.
    cache: HashMap<ProductCode, Option<Live>>,
    pub(super) pending: Pending,
}

/// A live product.
struct Live {
    id: i64,
    digests: LiveDigests,
    /// None if only its digest was read.
    product: Option<StoredProduct>,
}

/// Part of live products that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Digest,
    Product,
}

impl Live {
    /// Returns a live product; the digest of its record doesn't matter once it is read.
    fn read(id: i64, digest: ProductDigest, product: StoredProduct) -> Self {
        Self {
            id,
            digests: LiveDigests {
                product: digest,
                record: None,
            },
            product: Some(product),
        }
    }
}

impl PostgresPublication {
    pub(super) fn begin(mut session: Session, lock_wait: Duration) -> Result<Self, StoreError> {
        // Read committed: after the lock is taken, each statement sees what other writers committed.
        session.run(PUBLISHING, BEGIN)?;
        lock::take(&mut session, Lock::Catalog, lock_wait)?;
        Self::begun(session)
    }

    /// Returns the publish of a transaction that has begun, perhaps only to read.
    pub(super) fn begun(mut session: Session) -> Result<Self, StoreError> {
        let sql = "select (select coalesce(max(number), 0) + 1 from vitrine.revision), \
                   (select coalesce(max(id), 0) + 1 from vitrine.product_version), \
                   (select count(*) from vitrine.product_version where until_revision is null) \
                      + (select count(*) from vitrine.base_version b where until_revision is null and not exists \
                         (select 1 from vitrine.product_version v where v.code = b.code and v.until_revision is null)), \
                   (select coalesce(max(id), 0) + 1 from vitrine.base_version)";
        let row = session.row(PUBLISHING, sql, &[])?;
        let row =
            row.ok_or_else(|| StoreError::Damaged("the next revision has no number".to_owned()))?;
        FailPoint::PublishBegun.pass()?;
        Ok(Self {
            number: count(&row, 0)?,
            first_id: get(&row, 1)?,
            next_id: get(&row, 1)?,
            live_before: count(&row, 2)?,
            counts: PublishedCounts::default(),
            has_bases: false,
            has_others: false,
            next_base_id: get(&row, 3)?,
            seen: HashSet::new(),
            cache: HashMap::new(),
            pending: Pending::default(),
            session,
        })
    }

    pub(super) fn send(&mut self) -> Result<(), StoreError> {
        self.pending
            .send(&mut self.session, PUBLISHING, number(self.number))
    }

    /// Loads these codes into the cache.
    fn fetch(&mut self, codes: &[&ProductCode], part: Part) -> Result<(), StoreError> {
        let mut missing: Vec<&ProductCode> = codes.to_vec();
        missing.retain(|code| match self.cache.get(*code) {
            Some(Some(live)) => part == Part::Product && live.product.is_none(),
            Some(None) => false,
            None => true,
        });
        if missing.is_empty() {
            return Ok(());
        }
        if self.cache.len() + missing.len() > MAX_CACHED {
            // Evicted products are read from the database again, so they must be there.
            self.send()?;
            self.cache.clear();
            missing = codes.to_vec();
        }
        let texts: Vec<&str> = missing.iter().map(|code| code.as_str()).collect();
        let session = &mut self.session;
        let live: Vec<(ProductCode, Live)> = match part {
            Part::Digest => (history::live_digests_of(session, &texts)?.into_iter())
                .map(|(id, digests, code)| {
                    let live = Live {
                        id,
                        digests,
                        product: None,
                    };
                    (code, live)
                })
                .collect(),
            Part::Product => (history::products_of(session, &texts, Moment::Live)?.into_iter())
                .map(|(id, digest, product)| {
                    let digest = ProductDigest(digest);
                    (product.code.clone(), Live::read(id, digest, product))
                })
                .collect(),
        };
        let live = live.into_iter().map(|(code, live)| (code, Some(live)));
        self.cache.extend(live);
        for code in missing {
            self.cache.entry(code.clone()).or_insert(None);
        }
        Ok(())
    }

    fn cached(&mut self, code: &ProductCode, part: Part) -> Result<Option<&Live>, StoreError> {
        self.fetch(&[code], part)?;
        Ok(self.cache.get(code).and_then(Option::as_ref))
    }

    /// Ends the version of this id. Fails if this publish began it.
    fn end(&mut self, id: i64) -> Result<(), StoreError> {
        if id >= self.first_id {
            return Err(DUPLICATE_PRODUCT);
        }
        self.pending.end(id);
        if self.pending.is_full() {
            self.send()?;
        }
        Ok(())
    }
}

impl Publication for PostgresPublication {
    fn live(&mut self, code: &ProductCode) -> Result<Option<StoredProduct>, StoreError> {
        let live = self.cached(code, Part::Product)?;
        Ok(live.and_then(|live| live.product.clone()))
    }

    fn prefetch(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError> {
        let mut batches = codes.chunks(BATCH);
        batches.try_for_each(|codes| self.fetch(codes, Part::Product))
    }

    fn live_digests(
        &mut self,
        codes: &[&ProductCode],
    ) -> Result<Vec<Option<LiveDigests>>, StoreError> {
        let mut digests = Vec::with_capacity(codes.len());
        for codes in codes.chunks(BATCH) {
            self.fetch(codes, Part::Digest)?;
            let live = codes.iter().map(|code| self.cache.get(*code));
            digests.extend(live.map(|live| Some(live?.as_ref()?.digests)));
        }
        Ok(digests)
    }

    fn put_text(
        &mut self,
        digest: &TextDigest,
        markdown: &PackedMarkdown,
    ) -> Result<(), StoreError> {
        self.pending.put_text(digest, markdown);
        FailPoint::PublishTextPut.pass()?;
        match self.pending.is_full() {
            true => self.send(),
            false => Ok(()),
        }
    }

    fn put_fetched(&mut self, fetched: &FetchedText) -> Result<(), StoreError> {
        self.send()?;
        texts::put_fetched(&mut Tx::postgres(&mut self.session, PUBLISHING), fetched)?;
        FailPoint::PublishFetchedRemembered.pass()?;
        self.has_others = true;
        Ok(())
    }

    fn put_prepared(&mut self, product: PreparedProduct) -> Result<PutOutcome, StoreError> {
        self.seen.insert(product.code().clone());
        let live = self
            .cached(product.code(), Part::Digest)?
            .map(|live| (live.id, live.digests.product));
        let change = match live {
            Some((_, live_digest)) if live_digest == product.digest() => {
                self.counts.unchanged += 1;
                return Ok(PutOutcome::Unchanged);
            }
            Some((id, _)) => {
                self.end(id)?;
                FailPoint::PublishProductEnded.pass()?;
                self.counts.changed += 1;
                PutOutcome::Changed
            }
            None => {
                self.counts.created += 1;
                PutOutcome::Created
            }
        };
        let id = self.next_id;
        self.next_id += 1;
        let from = number(self.number);
        self.pending.put(id, from, &product);
        let (code, digest) = (product.code().clone(), product.digest());
        let live = Live::read(id, digest, product.into_product());
        self.cache.insert(code, Some(live));
        FailPoint::PublishProductPut.pass()?;
        if self.pending.is_full() {
            self.send()?;
        }
        Ok(change)
    }

    fn retire(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        let Some(id) = self.cached(code, Part::Digest)?.map(|live| live.id) else {
            return Ok(false);
        };
        self.end(id)?;
        self.cache.insert(code.clone(), None);
        FailPoint::PublishProductRetired.pass()?;
        self.counts.retired += 1;
        Ok(true)
    }

    fn keep(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        self.seen.insert(code.clone());
        let is_live = self.cached(code, Part::Digest)?.is_some();
        self.counts.unchanged += u64::from(is_live);
        Ok(is_live)
    }

    fn live_before(&self) -> u64 {
        self.live_before
    }

    fn read_live_before(&mut self, visit: ProductVisitor<'_>) -> Result<(), StoreError> {
        // This publish writes only versions of its own revision.
        let before = Moment::Revision(self.number - 1);
        history::visit_products(&mut self.session, before, visit)
    }

    fn retire_others(&mut self) -> Result<Vec<ProductCode>, StoreError> {
        self.send()?;
        self.cache.clear();
        let mut others = Vec::new();
        let seen = &self.seen;
        let sql = "select id, code from vitrine.product_version where until_revision is null";
        self.session.each_row(PUBLISHING, sql, &[], |row| {
            let code = values::code(get(row, 1)?)?;
            if !seen.contains(&code) {
                others.push((code, get(row, 0)?));
            }
            Ok(())
        })?;
        others.sort_unstable();
        let mut codes = Vec::new();
        for (code, id) in others {
            self.end(id)?;
            codes.push(code);
        }
        self.send()?;
        FailPoint::PublishOthersRetired.pass()?;
        self.counts.retired += codes.len() as u64;
        Ok(codes)
    }

    fn log(&mut self, context: &AuditContext, change: PublishedChange) -> Result<(), StoreError> {
        lock::take(&mut self.session, Lock::Keys, LOG_WAIT)?;
        log::write(
            &mut Tx::postgres(&mut self.session, "writing the audit log"),
            context,
            vec![published_change(change)],
        )
    }

    fn commit(
        mut self: Box<Self>,
        now: Timestamp,
        note: &RevisionNote,
    ) -> Result<Option<(Revision, PublishedCounts)>, StoreError> {
        let counts = self.counts;
        if counts.is_unchanged() && !self.has_bases {
            if self.has_others {
                self.send()?;
                self.session.commit(PUBLISHING)?;
            }
            return Ok(None);
        }
        self.send()?;
        let revision = Revision {
            number: self.number,
            id: random_id()?,
            created_at: now,
        };
        self.write_revision(&revision, note)?;
        FailPoint::PublishRevisionWritten.pass()?;
        let sql = "update vitrine.state set revision_number = $1, revision_id = $2";
        let live_number = number(revision.number);
        let params = &[live_number.param(), revision.id.param()];
        self.session.execute(PUBLISHING, sql, params)?;
        FailPoint::PublishStateWritten.pass()?;
        self.session.run(PUBLISHING, NOTIFY)?;
        self.session.commit(PUBLISHING)?;
        Ok(Some((revision, counts)))
    }
}

impl PostgresPublication {
    fn write_revision(
        &mut self,
        revision: &Revision,
        note: &RevisionNote,
    ) -> Result<(), StoreError> {
        let PublishedCounts {
            created,
            changed,
            retired,
            unchanged,
        } = self.counts;
        let sql = "insert into vitrine.revision (number, id, created_at, created, changed, retired, \
                   unchanged, published_by, note, source_digest) \
                   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        self.session
            .execute(
                PUBLISHING,
                sql,
                &[
                    number(revision.number).param(),
                    revision.id.param(),
                    revision.created_at.as_millisecond().param(),
                    number(created).param(),
                    number(changed).param(),
                    number(retired).param(),
                    number(unchanged).param(),
                    note.by.param(),
                    note.note.param(),
                    note.source_digest.param(),
                ],
            )
            .map(drop)
    }
}
