//! Writing a revision: one transaction on a connection of its own.
//!
//! Products are read, compared and put at memory speed: live ones are fetched in batches ([`Publication::prefetch`]),
//! and changes are buffered.
//!
//! - `live`: live products; `pending`: the buffer; `overrides`: overrides, and the bases of products

mod live;
mod overrides;
mod pending;

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::revision::Revision;

use self::live::{Live, VersionSet, live_of};
use self::pending::Pending;
use crate::audit::{self, AuditContext, PublishedChange, published_change};
use crate::db::{Db, References, Writer, values};
use crate::fail_point::FailPoint;
use crate::postgres::Lock;
use crate::prepared::{PreparedProduct, ProductDigest};
use crate::publication::DUPLICATE_PRODUCT;
use crate::record::{
    FetchedText, Moment, ProductVisitor, PublishedCounts, PutOutcome, RevisionNote, StoredProduct,
};
use crate::values::{code, random_id};
use crate::{Publication, StoreError, moments, texts};

const PUBLISHING: &str = "publishing";

/// Maximum number of cached products.
const MAX_CACHED: usize = 2_000;

/// Number of products fetched in one statement.
const BATCH: usize = 500;

/// Maximum time that a publish waits for another writer of the audit log.
const LOG_WAIT: Duration = Duration::from_secs(30);

/// A publish in progress. Dropping it closes its connection, which rolls back the transaction unless it was committed.
pub struct Publish {
    writer: Writer,
    /// Number of the revision that it makes.
    number: u64,
    /// Ids of this publish's first version, and of its next one.
    first_id: i64,
    next_id: i64,
    /// Number of products that were live before, hidden ones included.
    live_before: u64,
    /// Number of versions that were live before.
    live_versions: u64,
    counts: PublishedCounts,
    /// True if the base of a product changed: that makes a revision, too.
    has_bases: bool,
    /// True if there are results of fetching or changes of overrides to commit, even if no product changed.
    has_others: bool,
    /// Live versions that were put or kept as they are.
    seen: VersionSet,
    /// Versions that this publish ended.
    ended: VersionSet,
    /// Cache of live products, as this publish leaves them; `None` for codes that aren't live.
    cache: HashMap<ProductCode, Option<Live>>,
    pending: Pending,
    purpose: Purpose,
}

/// Purpose of a publish.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Commit,
    /// Only to plan: it reads one state of the store, writes nothing, and neither waits for writers nor keeps them waiting.
    Plan,
}

const PLANNED: StoreError = StoreError::Unsupported("a dry run writes nothing");

/// Part of live products that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Digests,
    Product,
}

impl Publish {
    /// See [`Store::publish`](crate::Store::publish).
    pub(crate) fn begin(db: Db<'_>) -> Result<Self, StoreError> {
        db.begin_write(Lock::Catalog, References::Checked, PUBLISHING, |writer| {
            let begun = Self::begun(writer, Purpose::Commit)?;
            FailPoint::PublishBegun.pass()?;
            Ok(begun)
        })
    }

    /// See [`Store::dry_run`](crate::Store::dry_run).
    pub(crate) fn plan(db: Db<'_>) -> Result<Self, StoreError> {
        Self::begun(db.begin_read(PUBLISHING)?, Purpose::Plan)
    }

    fn begun(mut writer: Writer, purpose: Purpose) -> Result<Self, StoreError> {
        let sql = "select (select coalesce(max(number), 0) + 1 from vitrine.revision), \
                       (select coalesce(max(id), 0) + 1 from vitrine.product_version), \
                       (select count(*) from vitrine.product_version /*scan*/ where until_revision is null), \
                       (select count(*) from vitrine.product_base b where until_revision is null \
                          and not exists (select 1 from vitrine.product_version v \
                             where v.code = b.code and v.until_revision is null))";
        let begun = writer.tx().row(sql, &[], |row| {
            let ids = (row.count(0)?, row.get(1)?);
            Ok((ids, row.count(2)?, row.count(3)?))
        })?;
        let ((number, next_id), live_versions, hidden) = begun.unwrap_or_default();
        Ok(Self {
            writer,
            number,
            first_id: next_id,
            next_id,
            live_before: live_versions + hidden,
            live_versions,
            counts: PublishedCounts::default(),
            has_bases: false,
            has_others: false,
            seen: VersionSet::default(),
            ended: VersionSet::default(),
            cache: HashMap::new(),
            pending: Pending::default(),
            purpose,
        })
    }

    /// Writes the buffer.
    fn send(&mut self) -> Result<(), StoreError> {
        if self.purpose == Purpose::Plan {
            self.pending = Pending::default();
            return Ok(());
        }
        self.has_bases |= self.pending.write(&mut self.writer.tx(), self.number)?;
        Ok(())
    }

    fn refuse_in_a_plan(&self) -> Result<(), StoreError> {
        match self.purpose {
            Purpose::Commit => Ok(()),
            Purpose::Plan => Err(PLANNED),
        }
    }

    fn send_if_full(&mut self) -> Result<(), StoreError> {
        match self.pending.is_full() {
            true => self.send(),
            false => Ok(()),
        }
    }

    /// Loads a part of the live products of these codes into the cache.
    fn fetch_all(&mut self, codes: &[&ProductCode], part: Part) -> Result<(), StoreError> {
        (codes.chunks(BATCH)).try_for_each(|codes| self.fetch(codes, part))
    }

    /// As [`fetch_all`](Self::fetch_all), for at most [`BATCH`] codes: all of them are in the cache afterwards.
    fn fetch(&mut self, codes: &[&ProductCode], part: Part) -> Result<(), StoreError> {
        let is_missing = |code: &&&ProductCode| !self.cache.contains_key(**code);
        let mut missing: Vec<&ProductCode> = codes.iter().filter(is_missing).copied().collect();
        if !missing.is_empty() {
            if self.cache.len() + missing.len() > MAX_CACHED {
                // Evicted products are read from the database again, so they must be there.
                self.send()?;
                self.cache.clear();
                missing = codes.to_vec();
            }
            let texts: Vec<&str> = missing.iter().map(|code| code.as_str()).collect();
            let live = live_of(&mut self.writer.tx(), &texts)?;
            let live = live.into_iter().map(|(code, live)| (code, Some(live)));
            self.cache.extend(live);
            for code in missing {
                if !self.cache.contains_key(code) {
                    self.cache.insert(code.clone(), None);
                }
            }
        }
        match part {
            Part::Digests => Ok(()),
            Part::Product => self.fetch_products(codes),
        }
    }

    /// Loads the products of live versions in the cache.
    fn fetch_products(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError> {
        let mut missing = Vec::new();
        let mut is_pending = false;
        for code in codes {
            if let Some(Some(live)) = self.cache.get(*code)
                && live.product.is_none()
            {
                missing.push(code.as_str());
                is_pending |= live.id >= self.first_id;
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        if is_pending {
            self.send()?;
        }
        let products = moments::products_of(&mut self.writer.tx(), &missing, Moment::Live)?;
        for product in products {
            if let Some(Some(live)) = self.cache.get_mut(&product.code) {
                live.product = Some(product);
            }
        }
        Ok(())
    }

    /// Returns id and digest of the live version of a product.
    fn live_version(
        &mut self,
        code: &ProductCode,
    ) -> Result<Option<(i64, ProductDigest)>, StoreError> {
        self.fetch(&[code], Part::Digests)?;
        let live = self.cache.get(code).and_then(Option::as_ref);
        Ok(live.map(|live| (live.id, live.digest)))
    }

    /// Ends the version of this id. Fails if this publish began it.
    fn end(&mut self, id: i64) -> Result<(), StoreError> {
        if id >= self.first_id || self.ended.contains(id) {
            return Err(DUPLICATE_PRODUCT);
        }
        self.seen.remove(id);
        self.ended.add(id);
        self.pending.end(id);
        self.send_if_full()
    }

    /// Returns the live versions that this publish neither began nor kept.
    fn others(&mut self) -> Result<Vec<(ProductCode, i64)>, StoreError> {
        if self.seen.count() + self.ended.count() == self.live_versions {
            return Ok(Vec::new());
        }
        let mut others = Vec::new();
        let (seen, ended) = (&self.seen, &self.ended);
        // By the index of live versions: that of revisions has the whole history.
        let sql = "select id, code from vitrine.product_version /*sqlite indexed by live_product*/ /*scan*/ \
                   where until_revision is null and from_revision < $1";
        self.writer.tx().each(sql, values![self.number], |row| {
            let id = row.get(0)?;
            if !seen.contains(id) && !ended.contains(id) {
                others.push((code(row.get(1)?)?, id));
            }
            Ok(())
        })?;
        others.sort_unstable();
        Ok(others)
    }

    /// Keeps the live version of this id.
    fn keep_live(&mut self, id: i64) {
        if id < self.first_id {
            self.seen.add(id);
        }
        self.counts.unchanged += 1;
    }

    fn write_revision(
        &mut self,
        revision: &Revision,
        note: &RevisionNote,
    ) -> Result<(), StoreError> {
        let sql = "insert into vitrine.revision (number, id, created_at, created, changed, retired, \
                   unchanged, published_by, note, source_digest) \
                   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let values = values![
            revision.number,
            &revision.id,
            revision.created_at.as_millisecond(),
            self.counts.created,
            self.counts.changed,
            self.counts.retired,
            self.counts.unchanged,
            &note.by,
            &note.note,
            &note.source_digest,
        ];
        let mut tx = self.writer.tx();
        tx.execute(sql, values)?;
        FailPoint::PublishRevisionWritten.pass()?;
        let sql = "update vitrine.state set revision_number = $1, revision_id = $2";
        tx.execute(sql, values![revision.number, &revision.id])?;
        FailPoint::PublishStateWritten.pass()?;
        tx.notify()
    }
}

impl Publication for Publish {
    fn live(&mut self, code: &ProductCode) -> Result<Option<StoredProduct>, StoreError> {
        self.fetch(&[code], Part::Product)?;
        let live = self.cache.get(code).and_then(Option::as_ref);
        Ok(live.and_then(|live| live.product.clone()))
    }

    fn prefetch(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError> {
        self.fetch_all(codes, Part::Product)
    }

    fn live_digests(
        &mut self,
        codes: &[&ProductCode],
    ) -> Result<Vec<Option<ProductDigest>>, StoreError> {
        let mut digests = Vec::with_capacity(codes.len());
        for codes in codes.chunks(BATCH) {
            self.fetch(codes, Part::Digests)?;
            let live = codes.iter().map(|code| self.cache.get(*code));
            digests.extend(live.map(|live| Some(live?.as_ref()?.digest)));
        }
        Ok(digests)
    }

    fn live_codes(&mut self) -> Result<Vec<ProductCode>, StoreError> {
        let sql = "select code from vitrine.product_version /*sqlite indexed by live_product*/ /*scan*/ \
                       where until_revision is null \
                   union select code from vitrine.product_base /*sqlite indexed by live_base*/ /*scan*/ \
                       where until_revision is null";
        self.writer.tx().rows(sql, &[], |row| code(row.get(0)?))
    }

    fn put_text(
        &mut self,
        digest: &TextDigest,
        markdown: &PackedMarkdown,
    ) -> Result<(), StoreError> {
        self.pending.put_text(digest, markdown);
        FailPoint::PublishTextPut.pass()?;
        self.send_if_full()
    }

    fn put_fetched(&mut self, fetched: &FetchedText) -> Result<(), StoreError> {
        // Its text must be there.
        self.send()?;
        if self.purpose == Purpose::Plan {
            return Ok(());
        }
        texts::put_fetched(&mut self.writer.tx(), fetched)?;
        FailPoint::PublishFetchedRemembered.pass()?;
        self.has_others = true;
        Ok(())
    }

    fn put_prepared(&mut self, product: PreparedProduct) -> Result<PutOutcome, StoreError> {
        let change = match self.live_version(product.code())? {
            Some((id, live)) if live == product.digest() => {
                self.keep_live(id);
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
        let live = Live {
            id: self.next_id,
            digest: product.digest(),
            product: None,
        };
        self.next_id += 1;
        self.cache.insert(product.code().clone(), Some(live));
        self.pending.put(self.next_id - 1, product);
        FailPoint::PublishProductPut.pass()?;
        self.send_if_full()?;
        Ok(change)
    }

    fn retire(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        let Some((id, _)) = self.live_version(code)? else {
            return Ok(false);
        };
        self.end(id)?;
        self.cache.insert(code.clone(), None);
        FailPoint::PublishProductRetired.pass()?;
        self.counts.retired += 1;
        Ok(true)
    }

    fn keep(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        let live = self.live_version(code)?;
        if let Some((id, _)) = live {
            self.keep_live(id);
        }
        Ok(live.is_some())
    }

    fn live_before(&self) -> u64 {
        self.live_before
    }

    fn read_live_before(&mut self, visit: ProductVisitor<'_>) -> Result<(), StoreError> {
        // This publish writes only versions of its own revision.
        let before = Moment::Revision(self.number - 1);
        moments::visit_products(&mut self.writer.tx(), before, visit)
    }

    fn retire_others(&mut self) -> Result<Vec<ProductCode>, StoreError> {
        self.send()?;
        self.cache.clear();
        let mut codes = Vec::new();
        for (code, id) in self.others()? {
            self.end(id)?;
            codes.push(code);
        }
        self.send()?;
        FailPoint::PublishOthersRetired.pass()?;
        self.counts.retired += codes.len() as u64;
        Ok(codes)
    }

    fn log(&mut self, context: &AuditContext, change: PublishedChange) -> Result<(), StoreError> {
        self.refuse_in_a_plan()?;
        let mut tx = self.writer.tx();
        tx.lock(Lock::Keys, LOG_WAIT)?;
        let mut tx = tx.doing("writing the audit log");
        audit::write(&mut tx, context, vec![published_change(change)])
    }

    fn commit(
        mut self: Box<Self>,
        now: Timestamp,
        note: &RevisionNote,
    ) -> Result<Option<(Revision, PublishedCounts)>, StoreError> {
        self.refuse_in_a_plan()?;
        self.send()?;
        let counts = self.counts;
        if counts.is_unchanged() && !self.has_bases {
            if self.has_others {
                self.writer.commit(FailPoint::PublishCommitted)?;
            }
            return Ok(None);
        }
        let revision = Revision {
            number: self.number,
            id: random_id()?,
            created_at: now,
        };
        self.write_revision(&revision, note)?;
        self.writer.commit(FailPoint::PublishCommitted)?;
        Ok(Some((revision, counts)))
    }
}
