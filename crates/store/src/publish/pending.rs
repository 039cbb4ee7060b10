//! Write buffer of a publish: many rows are written in one statement, which saves time of SQLite and round trips to
//! PostgreSQL.

use std::collections::BTreeMap;

use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};

use crate::StoreError;
use crate::db::{Tx, Value, values};
use crate::fail_point::FailPoint;
use crate::prepared::PreparedProduct;

/// Maximum size of buffered rows, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Bytes of a version beside its document, about.
const ROW_BYTES: usize = 256;

/// Maximum number of buffered changes of other rows.
const MAX_CHANGES: usize = 10_000;

/// Number of rows that one statement changes: until it ends, SQLite keeps the old content of each changed page in
/// memory.
const BATCH: usize = 500;

/// The live versions of the codes $2 as their bases, from the revision $1 on.
const KEEP_LIVE: &str = "insert into vitrine.product_base (code, version_id, from_revision) \
     select code, id, $1 from vitrine.product_version where code = any($2) and until_revision is null";

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
    /// Codes whose base ends.
    ended_bases: Vec<ProductCode>,
    /// Codes whose live product becomes their base.
    kept_bases: Vec<ProductCode>,
    /// New bases, with the ids of their versions.
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
        self.bytes += ROW_BYTES + product.packed().len();
        self.versions.push((id, product));
    }

    /// Puts the base beside a product, instead of the one before.
    pub(super) fn put_base(&mut self, id: i64, base: PreparedProduct) {
        self.end_base(base.code());
        self.bytes += ROW_BYTES + base.packed().len();
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
        let changes = self.ended.len() + self.ended_bases.len() + self.kept_bases.len();
        self.bytes > MAX_BYTES || changes > MAX_CHANGES
    }

    /// Writes all rows, in a revision. Returns whether bases ended.
    pub(super) fn write(&mut self, tx: &mut Tx<'_>, revision: u64) -> Result<bool, StoreError> {
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
            let sql = "update vitrine.product_base set until_revision = $1 \
                       where code = any($2) and until_revision is null";
            has_ended |= tx.execute(sql, values![revision, &*texts_of(codes)])? > 0;
        }
        // Before their versions end.
        for codes in pending.kept_bases.chunks(BATCH) {
            tx.execute(KEEP_LIVE, values![revision, &*texts_of(codes)])?;
        }
        // Before the new versions: a code has at most one live version.
        for ids in pending.ended.chunks(BATCH) {
            let sql = "update vitrine.product_version set until_revision = $1 where id = any($2)";
            tx.execute(sql, values![revision, ids])?;
        }
        write_versions(tx, (revision, None), &pending.versions)?;
        write_versions(tx, NEVER_SEEN, &pending.bases)?;
        let bases = pending.bases.iter();
        let bases: Vec<[Value<'_>; 3]> = bases
            .map(|(id, base)| [base.code().as_str().into(), (*id).into(), revision.into()])
            .collect();
        let sql = "insert into vitrine.product_base (code, version_id, from_revision) values {}";
        tx.with_rows(sql, &bases)?;
        Ok(has_ended)
    }
}

fn texts_of(codes: &[ProductCode]) -> Vec<&str> {
    codes.iter().map(ProductCode::as_str).collect()
}

/// Revisions of a version that is only a base.
const NEVER_SEEN: (u64, Option<i64>) = (0, Some(0));

fn write_versions(
    tx: &mut Tx<'_>,
    (from, until): (u64, Option<i64>),
    versions: &[(i64, PreparedProduct)],
) -> Result<(), StoreError> {
    if versions.is_empty() {
        return Ok(());
    }
    let table = "vitrine.product_version (id, from_revision, until_revision, code, digest, content_start, \
                 content_end, discount_multiplier, is_orderable, countries, categories)";
    tx.insert_rows(table, |into| {
        versions.iter().try_for_each(|(id, product)| {
            let own = values![*id, from, until];
            into.row(&[&own[..], &product.columns()].concat())
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
            for own in product.own_texts() {
                let digest = own.digest.as_bytes();
                into.row(values![*id, own.name.as_str(), digest, &own.source])?;
                FailPoint::PublishProductTextPut.pass()?;
            }
        }
        Ok(())
    })
}
