//! Write buffer of a publish: many rows are written in one statement, which saves time of SQLite and round trips to
//! PostgreSQL.

use std::collections::{BTreeMap, BTreeSet};

use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};

use crate::StoreError;
use crate::base::texts_json;
use crate::db::{Tx, Value, values};
use crate::fail_point::FailPoint;
use crate::prepared::{PreparedProduct, RecordDigest};

/// Maximum size of buffered rows, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Maximum number of buffered changes of other rows.
const MAX_CHANGES: usize = 10_000;

/// Number of rows that one statement changes: until it ends, SQLite keeps the old content of each changed page in
/// memory.
const BATCH: usize = 500;

/// The live products of the codes $3 as their bases, with ids from $2 on, from the revision $1 on.
const KEEP_LIVE: &str = "insert into vitrine.base_version (id, code, from_revision, digest, \
        content_start, content_end, discount_multiplier, is_orderable, countries, categories, own_texts, document) \
     select $2 + row_number() over (order by v.code) - 1, v.code, $1, v.digest, \
        v.content_start, v.content_end, v.discount_multiplier, v.is_orderable, v.countries, v.categories, \
        coalesce((select json_agg(json_build_object('name', t.name, 'digest', encode(t.digest, 'hex'), \
           'source', t.source_url))::text from vitrine.product_text t where t.product_version_id = v.id), '[]'), \
        d.document \
     from vitrine.product_version v \
     join vitrine.product_document d on d.product_version_id = v.id \
     where v.code = any($3) and v.until_revision is null";

/// The texts of these bases, whose ids are from $1 on and below $2.
const KEEP_LIVE_TEXTS: &str = "insert into vitrine.base_text (base_version_id, digest) \
     select distinct b.id, t.digest from vitrine.base_version b \
     /*sqlite cross*/ join vitrine.product_version v on v.code = b.code and v.until_revision is null \
     /*sqlite cross*/ join vitrine.product_text t on t.product_version_id = v.id \
     where b.id >= $1 and b.id < $2";

/// Rows to write.
#[derive(Default)]
pub(super) struct Pending {
    /// Bytes of all rows.
    bytes: usize,
    /// New texts, in the order in which they are written: two writers of texts that wait for each other would deadlock.
    texts: BTreeMap<TextDigest, PackedMarkdown>,
    /// Ids of versions that end.
    ended: Vec<i64>,
    /// New versions, with their ids.
    versions: Vec<(i64, PreparedProduct)>,
    /// Ids of versions, and the records that lead to them.
    records: Vec<(i64, RecordDigest)>,
    /// Codes whose base ends.
    ended_bases: Vec<ProductCode>,
    /// Codes whose live product becomes their base.
    kept_bases: Vec<ProductCode>,
    /// New bases, with their ids.
    bases: Vec<(i64, PreparedProduct)>,
}

impl Pending {
    pub(super) fn put_text(&mut self, digest: &TextDigest, markdown: &PackedMarkdown) {
        if self.texts.insert(*digest, markdown.clone()).is_none() {
            self.bytes += markdown.as_bytes().len();
        }
    }

    pub(super) fn end(&mut self, id: i64) {
        self.ended.push(id);
    }

    pub(super) fn put(&mut self, id: i64, product: PreparedProduct) {
        self.bytes += product.product().document.len();
        self.versions.push((id, product));
    }

    pub(super) fn note_record(&mut self, id: i64, record: RecordDigest) {
        self.records.push((id, record));
    }

    /// Puts the base beside a product, instead of the one before.
    pub(super) fn put_base(&mut self, id: i64, base: PreparedProduct) {
        self.end_base(base.code());
        self.bytes += base.product().document.len();
        self.bases.push((id, base));
    }

    /// Puts the live product of a code beside it, as its base.
    pub(super) fn keep_live_as_base(&mut self, code: &ProductCode) {
        self.kept_bases.push(code.clone());
    }

    pub(super) fn end_base(&mut self, code: &ProductCode) {
        self.ended_bases.push(code.clone());
    }

    /// Returns whether the buffer is to be written.
    pub(super) fn is_full(&self) -> bool {
        let changes =
            self.ended.len() + self.records.len() + self.ended_bases.len() + self.kept_bases.len();
        self.bytes > MAX_BYTES || changes > MAX_CHANGES
    }

    /// Writes all rows, in a revision. `next_base_id` is the id of the next base. Returns whether bases ended.
    pub(super) fn write(
        &mut self,
        tx: &mut Tx<'_>,
        revision: u64,
        next_base_id: &mut i64,
    ) -> Result<bool, StoreError> {
        let pending = std::mem::take(self);
        let texts = pending.texts.iter();
        let texts: Vec<[Value<'_>; 2]> = texts
            .map(|(digest, text)| [digest.as_bytes().into(), text.as_bytes().into()])
            .collect();
        let sql =
            "insert into vitrine.markdown_text (digest, markdown) values {} on conflict do nothing";
        tx.with_rows(sql, &texts)?;
        let mut has_ended = false;
        for codes in pending.ended_bases.chunks(BATCH) {
            let sql = "update vitrine.base_version set until_revision = $1 \
                       where code = any($2) and until_revision is null";
            has_ended |= tx.execute(sql, values![revision, &*texts_of(codes)])? > 0;
        }
        // Before their versions end.
        for codes in pending.kept_bases.chunks(BATCH) {
            let first = *next_base_id;
            let kept = tx.execute(KEEP_LIVE, values![revision, first, &*texts_of(codes)])?;
            *next_base_id += i64::try_from(kept).unwrap_or(i64::MAX);
            tx.execute(KEEP_LIVE_TEXTS, values![first, *next_base_id])?;
        }
        // Before the new versions: a code has at most one live version.
        for ids in pending.ended.chunks(BATCH) {
            let sql = "update vitrine.product_version set until_revision = $1 where id = any($2)";
            tx.execute(sql, values![revision, ids])?;
        }
        write_versions(tx, revision, &pending.versions)?;
        write_bases(tx, revision, &pending.bases)?;
        let records = pending.records.iter();
        let records: Vec<[Value<'_>; 2]> = records
            .map(|(id, record)| [(*id).into(), (&record.0).into()])
            .collect();
        let sql = "update vitrine.product_version as v set record_digest = r.column2 \
                   from (values {}) as r where v.id = r.column1";
        tx.with_rows(sql, &records)?;
        Ok(has_ended)
    }
}

fn texts_of(codes: &[ProductCode]) -> Vec<&str> {
    codes.iter().map(ProductCode::as_str).collect()
}

/// Returns the values of the columns that versions and bases share.
fn columns(product: &PreparedProduct) -> [Value<'_>; 8] {
    let [countries, categories] = product.lists();
    let stored = product.product();
    let content = stored.content.as_ref();
    let place = |place: usize| i64::try_from(place).unwrap_or(i64::MAX);
    [
        stored.code.as_str().into(),
        product.digest_bytes().into(),
        content.map(|range| place(range.start)).into(),
        content.map(|range| place(range.end)).into(),
        (&stored.discount_multiplier).into(),
        stored.is_orderable.into(),
        countries.into(),
        categories.into(),
    ]
}

fn write_versions(
    tx: &mut Tx<'_>,
    revision: u64,
    versions: &[(i64, PreparedProduct)],
) -> Result<(), StoreError> {
    if versions.is_empty() {
        return Ok(());
    }
    let table = "vitrine.product_version (id, from_revision, record_digest, code, digest, content_start, \
                 content_end, discount_multiplier, is_orderable, countries, categories)";
    tx.insert_rows(table, |into| {
        versions.iter().try_for_each(|(id, product)| {
            let record = product.record();
            let record = record.as_ref().map(|digest| &digest.0[..]);
            let own = values![*id, revision, record];
            into.row(&[&own[..], &columns(product)].concat())
        })
    })?;
    let table = "vitrine.product_document (product_version_id, document)";
    tx.insert_rows(table, |into| {
        versions.iter().try_for_each(|(id, product)| {
            into.row(values![*id, product.packed()])?;
            FailPoint::PublishDocumentPut.pass()
        })
    })?;
    let table = "vitrine.product_text (product_version_id, name, digest, source_url)";
    tx.insert_rows(table, |into| {
        for (id, product) in versions {
            for own in &product.product().own_texts {
                let digest = own.digest.as_bytes();
                into.row(values![*id, own.name.as_str(), digest, &own.source])?;
                FailPoint::PublishProductTextPut.pass()?;
            }
        }
        Ok(())
    })
}

fn write_bases(
    tx: &mut Tx<'_>,
    revision: u64,
    bases: &[(i64, PreparedProduct)],
) -> Result<(), StoreError> {
    if bases.is_empty() {
        return Ok(());
    }
    let table = "vitrine.base_version (id, from_revision, own_texts, document, code, digest, content_start, \
                 content_end, discount_multiplier, is_orderable, countries, categories)";
    tx.insert_rows(table, |into| {
        bases.iter().try_for_each(|(id, base)| {
            let own_texts = texts_json(&base.product().own_texts)?;
            let own = values![*id, revision, &own_texts, base.packed()];
            into.row(&[&own[..], &columns(base)].concat())
        })
    })?;
    let table = "vitrine.base_text (base_version_id, digest)";
    tx.insert_rows(table, |into| {
        for (id, base) in bases {
            let texts = base.product().own_texts.iter();
            let digests: BTreeSet<&TextDigest> = texts.map(|own| &own.digest).collect();
            for digest in digests {
                into.row(values![*id, digest.as_bytes()])?;
            }
        }
        Ok(())
    })
}
