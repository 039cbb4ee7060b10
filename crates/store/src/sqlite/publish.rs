//! Writing a revision: one immediate transaction on a connection of its own.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, params};
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::revision::Revision;

use super::live_versions::{LiveVersion, SeenVersions};
use super::{committed, during, history};
use crate::audit::{AuditContext, PublishedChange, log, published_change};
use crate::db::Tx;
use crate::fail_point::FailPoint;
use crate::prepared::{DocumentForm, LiveDigests, PreparedProduct, RecordDigest, VersionId};
use crate::publication::DUPLICATE_PRODUCT;
use crate::record::{
    FetchedText, Moment, OwnText, ProductVisitor, PublishedCounts, PutOutcome, RevisionNote,
    StoredProduct,
};
use crate::values::{self, random_id};
use crate::{Publication, StoreError, texts};

pub(super) const PUBLISHING: &str = "publishing";

/// A publish in progress. Dropping it closes its connection, which rolls back the transaction unless it was committed.
pub(super) struct SqlitePublication {
    pub(super) connection: Connection,
    pub(super) number: u64,
    live_before: u64,
    /// Number of versions that were live before, those of hidden products not included.
    live_versions: u64,
    /// Id of the revision that was live before.
    revision_before: Option<String>,
    counts: PublishedCounts,
    /// Live versions that were read and weren't used since: those of the codes that were asked for last, and of new bases.
    pub(super) known: HashMap<ProductCode, Option<LiveVersion>>,
    seen: SeenVersions,
    /// True if the base of a product changed: that makes a revision, too.
    pub(super) has_bases: bool,
    /// True if there are results of fetching, changes of overrides or digests of records to commit, even if no product changed.
    pub(super) has_others: bool,
}

impl SqlitePublication {
    /// Begins a transaction by the statement `begin`: an immediate one, or a deferred one that only reads.
    pub(super) fn begin(connection: Connection, begin: &str) -> Result<Self, StoreError> {
        // Without a larger cache, pages of indexes would be written and read again for nearly each product of a large load.
        connection
            .execute_batch(&format!(
                "pragma temp_store = memory;
                 pragma cache_size = -65536;
                 {begin};"
            ))
            .map_err(during(PUBLISHING))?;
        let number = connection
            .query_row(
                "select coalesce(max(number), 0) + 1 from revision",
                [],
                |row| row.get(0),
            )
            .map_err(during(PUBLISHING))?;
        let sql = "select (select count(*) from product_version where until_revision is null), \
                      (select count(*) from base_version b where until_revision is null and not exists \
                         (select 1 from product_version v where v.code = b.code and v.until_revision is null)), \
                      revision_id from state";
        let before =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, u64>(1)?, row.get(2)?));
        let before = connection.query_row(sql, [], before);
        let (live_versions, hidden, revision_before) = before.map_err(during(PUBLISHING))?;
        FailPoint::PublishBegun.pass()?;
        Ok(Self {
            connection,
            number,
            live_before: live_versions + hidden,
            live_versions,
            revision_before,
            counts: PublishedCounts::default(),
            known: HashMap::new(),
            seen: SeenVersions::default(),
            has_bases: false,
            has_others: false,
        })
    }

    pub(super) fn execute(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<usize, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map_err(during(PUBLISHING))
    }

    fn finish(&self) -> Result<(), StoreError> {
        let outcome = self.connection.execute_batch("commit");
        committed(outcome, FailPoint::PublishCommitted, PUBLISHING)
    }

    /// Returns the live version of a product.
    fn live_version(&mut self, code: &ProductCode) -> Result<Option<LiveVersion>, StoreError> {
        match self.known.remove(code) {
            Some(known) => Ok(known),
            None => LiveVersion::find(&self.connection, code),
        }
    }

    /// Ends the version of this id. Fails if this publish began it.
    fn end(&mut self, id: i64) -> Result<(), StoreError> {
        self.seen.remove(id);
        let ended = self.execute(
            "update product_version set until_revision = ?1 where id = ?2 and from_revision < ?1",
            (self.number, id),
        )?;
        match ended {
            0 => Err(DUPLICATE_PRODUCT),
            _ => Ok(()),
        }
    }

    /// Returns the live versions that this publish neither began nor kept.
    fn others(&self) -> Result<Vec<(i64, ProductCode)>, StoreError> {
        let ended = self.counts.changed + self.counts.retired;
        if self.seen.count() + ended == self.live_versions {
            return Ok(Vec::new());
        }
        let sql = "select id, code from product_version \
                   where until_revision is null and from_revision < ?";
        let mut statement = self
            .connection
            .prepare_cached(sql)
            .map_err(during(PUBLISHING))?;
        let mut rows = statement.query([self.number]).map_err(during(PUBLISHING))?;
        let mut others = Vec::new();
        while let Some(row) = rows.next().map_err(during(PUBLISHING))? {
            let id = row.get(0).map_err(during(PUBLISHING))?;
            if !self.seen.contains(id) {
                let code: String = row.get(1).map_err(during(PUBLISHING))?;
                others.push((id, values::code(&code)?));
            }
        }
        Ok(others)
    }

    /// Keeps a live version, and notes the record that leads to it.
    fn keep_live(
        &mut self,
        live: LiveVersion,
        record: Option<RecordDigest>,
    ) -> Result<(), StoreError> {
        if record.is_some() && record != live.digests.record {
            self.execute(
                "update product_version set record_digest = ? where id = ?",
                (record.map(|digest| digest.0), live.id),
            )?;
            self.has_others = true;
        }
        self.seen.add(live.id);
        self.counts.unchanged += 1;
        Ok(())
    }

    /// Keeps the live version of a product, if there is one.
    fn keep_version(
        &mut self,
        code: &ProductCode,
        record: Option<RecordDigest>,
    ) -> Result<bool, StoreError> {
        match self.live_version(code)? {
            Some(live) => self.keep_live(live, record).map(|()| true),
            None => Ok(false),
        }
    }

    fn insert(&self, prepared: &PreparedProduct) -> Result<(), StoreError> {
        let [countries, categories] = prepared.lists();
        let StoredProduct {
            code,
            document: _,
            content,
            discount_multiplier,
            is_orderable,
            countries: _,
            categories: _,
            own_texts,
        } = prepared.product();
        self.execute(
            "insert into product_version (code, from_revision, digest, content_start, \
             content_end, discount_multiplier, is_orderable, countries, categories, record_digest) \
             values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                code.as_str(),
                self.number,
                prepared.digest().0,
                content.as_ref().map(|range| range.start),
                content.as_ref().map(|range| range.end),
                discount_multiplier,
                is_orderable,
                countries,
                categories,
                prepared.record().map(|digest| digest.0),
            ],
        )?;
        let id = self.connection.last_insert_rowid();
        self.execute(
            "insert into product_document (product_version_id, document) values (?, ?)",
            (id, prepared.packed()),
        )?;
        FailPoint::PublishDocumentPut.pass()?;
        for OwnText {
            name,
            digest,
            source,
        } in own_texts
        {
            self.execute(
                "insert into product_text (product_version_id, name, digest, source_url) \
                 values (?, ?, ?, ?)",
                params![id, name.as_str(), digest.as_bytes(), source],
            )?;
            FailPoint::PublishProductTextPut.pass()?;
        }
        Ok(())
    }
}

impl Publication for SqlitePublication {
    fn live(&mut self, code: &ProductCode) -> Result<Option<StoredProduct>, StoreError> {
        history::product(&self.connection, code, Moment::Live)
    }

    fn prefetch(&mut self, _codes: &[&ProductCode]) -> Result<(), StoreError> {
        // Products are read when they are needed: that takes microseconds.
        Ok(())
    }

    fn live_digests(
        &mut self,
        codes: &[&ProductCode],
    ) -> Result<Vec<Option<LiveDigests>>, StoreError> {
        self.known.clear();
        let mut digests = Vec::with_capacity(codes.len());
        for code in codes {
            let live = LiveVersion::find(&self.connection, code)?;
            digests.push(live.map(|live| live.digests));
            self.known.insert((*code).clone(), live);
        }
        Ok(digests)
    }

    fn put_text(
        &mut self,
        digest: &TextDigest,
        markdown: &PackedMarkdown,
    ) -> Result<(), StoreError> {
        self.execute(
            "insert into markdown_text (digest, markdown) values (?, ?) on conflict do nothing",
            (digest.as_bytes(), markdown.as_bytes()),
        )?;
        FailPoint::PublishTextPut.pass()?;
        Ok(())
    }

    fn put_fetched(&mut self, fetched: &FetchedText) -> Result<(), StoreError> {
        texts::put_fetched(&mut Tx::sqlite(&self.connection, PUBLISHING), fetched)?;
        FailPoint::PublishFetchedRemembered.pass()?;
        self.has_others = true;
        Ok(())
    }

    fn put_prepared(&mut self, mut product: PreparedProduct) -> Result<PutOutcome, StoreError> {
        let change = match self.live_version(product.code())? {
            Some(live) if live.digests.product == product.digest() => {
                self.keep_live(live, product.record())?;
                return Ok(PutOutcome::Unchanged);
            }
            Some(live) => {
                self.end(live.id)?;
                FailPoint::PublishProductEnded.pass()?;
                self.counts.changed += 1;
                PutOutcome::Changed
            }
            None => {
                self.counts.created += 1;
                PutOutcome::Created
            }
        };
        product.pack(DocumentForm::Packed)?;
        self.insert(&product)?;
        FailPoint::PublishProductPut.pass()?;
        Ok(change)
    }

    fn retire(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        let Some(live) = self.live_version(code)? else {
            return Ok(false);
        };
        self.end(live.id)?;
        FailPoint::PublishProductRetired.pass()?;
        self.counts.retired += 1;
        Ok(true)
    }

    fn keep(&mut self, code: &ProductCode) -> Result<bool, StoreError> {
        self.keep_version(code, None)
    }

    fn keep_loaded(
        &mut self,
        code: &ProductCode,
        record: RecordDigest,
    ) -> Result<bool, StoreError> {
        self.keep_version(code, Some(record))
    }

    fn keep_versions(&mut self, revision: Option<&str>, versions: &[VersionId]) -> bool {
        if revision.is_none() || self.revision_before.as_deref() != revision {
            return false;
        }
        versions.iter().for_each(|version| self.seen.add(version.0));
        self.counts.unchanged += versions.len() as u64;
        true
    }

    fn live_before(&self) -> u64 {
        self.live_before
    }

    fn read_live_before(&mut self, visit: ProductVisitor<'_>) -> Result<(), StoreError> {
        // This publish writes only versions of its own revision.
        let before = Moment::Revision(self.number - 1);
        history::visit_products(&self.connection, before, visit)
    }

    fn retire_others(&mut self) -> Result<Vec<ProductCode>, StoreError> {
        let others = self.others()?;
        // One by one: until a statement ends, SQLite keeps the old content of each changed page in memory.
        let mut codes = Vec::with_capacity(others.len());
        for (id, code) in others {
            self.end(id)?;
            codes.push(code);
        }
        self.known.clear();
        FailPoint::PublishOthersRetired.pass()?;
        self.counts.retired += codes.len() as u64;
        codes.sort();
        Ok(codes)
    }

    fn log(&mut self, context: &AuditContext, change: PublishedChange) -> Result<(), StoreError> {
        log::write(
            &mut Tx::sqlite(&self.connection, "writing the audit log"),
            context,
            vec![published_change(change)],
        )
    }

    fn commit(
        self: Box<Self>,
        now: Timestamp,
        note: &RevisionNote,
    ) -> Result<Option<(Revision, PublishedCounts)>, StoreError> {
        let counts = self.counts;
        if counts.is_unchanged() && !self.has_bases {
            if self.has_others {
                self.finish()?;
            }
            return Ok(None);
        }
        let revision = Revision {
            number: self.number,
            id: random_id()?,
            created_at: now,
        };
        self.execute(
            "insert into revision (number, id, created_at, created, changed, retired, unchanged, \
             published_by, note, source_digest) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                revision.number,
                revision.id,
                now.as_millisecond(),
                counts.created,
                counts.changed,
                counts.retired,
                counts.unchanged,
                note.by,
                note.note,
                note.source_digest,
            ],
        )?;
        FailPoint::PublishRevisionWritten.pass()?;
        self.execute(
            "update state set revision_number = ?, revision_id = ?",
            (revision.number, &revision.id),
        )?;
        FailPoint::PublishStateWritten.pass()?;
        self.finish()?;
        Ok(Some((revision, counts)))
    }
}
