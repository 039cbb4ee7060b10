//! Checks of versions of products and of their texts.

use rusqlite::{Row, Transaction};
use vitrine_model::content::TextName;

use super::each_row;
use crate::StoreError;
use crate::check::found::{
    self, Findings, Rule, TEXT_NAME, TEXT_ORPHAN, TEXT_REFERENCE, VERSION_DIGEST,
};
use crate::check::{
    base_facts, base_place, overlapping_span, span_queries, span_without_revisions, text_digest,
    text_rows, version, version_facts,
};
use crate::digest;
use crate::document::unpack_into;
use crate::prepared::PreparedProduct;
use crate::sqlite::catalog::VERSIONS;
use crate::sqlite::history::{self, BASE, own_texts, prepare_texts};

/// Checks that spans of a code don't overlap, and begin and end with existing revisions: in a table, by its rule and the place of
/// its rows.
pub(super) fn spans(
    transaction: &Transaction<'_>,
    found: &mut Findings,
    (table, rule, place): (&str, &'static Rule, fn(&str, i64) -> String),
) -> Result<(), StoreError> {
    let [overlapping, without_revisions] = span_queries(table, "revision");
    each_row(transaction, &overlapping, |row| {
        let (from, until): (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
        let next: Option<i64> = row.get(3)?;
        let what = overlapping_span(from, until, next);
        found.add(rule, place(&lossy(row, 0)?, from), what);
        Ok(())
    })?;
    each_row(transaction, &without_revisions, |row| {
        let (from, until): (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
        let what = span_without_revisions(from, until);
        found.add(rule, place(&lossy(row, 0)?, from), what);
        Ok(())
    })
}

/// Returns a text for a report, even if it isn't UTF-8.
fn lossy(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let value = row.get_ref(column)?;
    let bytes = value.as_bytes().unwrap_or(b"?");
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Checks each version's document, the columns beside it, and the digest of all.
pub(super) fn versions(
    transaction: &Transaction<'_>,
    found: &mut Findings,
) -> Result<(), StoreError> {
    let mut texts = prepare_texts(transaction)?;
    let sql = format!(
        "select v.id, code, from_revision, d.document, content_start, content_end, \
         discount_multiplier, countries, categories, digest, is_orderable from {VERSIONS}"
    );
    let mut unpacked = Vec::new();
    each_row(transaction, &sql, |row| {
        let place = version(&lossy(row, 1)?, row.get(2)?);
        let text = |column: usize| row.get_ref(column).map(|value| value.as_str().ok());
        let document = history::packed(row, 3)
            .and_then(|packed| unpack_into(packed, &mut unpacked))
            .ok();
        let facts = [text(1)?, text(7)?, text(8)?];
        let range = match document {
            Some(_) => (row.get(4)?, row.get(5)?),
            None => (None, None),
        };
        version_facts(found, &place, facts, document, range);
        let Some(document) = document else {
            return Ok(());
        };
        // Unreadable texts are reported by `text_names`.
        if let Ok(own_texts) = own_texts(&mut texts, row.get(0)?)? {
            let column = |column| text(column).map(Option::unwrap_or_default);
            let parts = [column(1)?, document, column(6)?, column(7)?, column(8)?];
            let is_orderable = row.get_ref(10)?.as_i64().unwrap_or(-1);
            let digest = digest::digest(parts, is_orderable, &own_texts);
            if row.get_ref(9)?.as_bytes().ok() != Some(&digest[..]) {
                let what = "isn't what was loaded: its digest doesn't match".to_owned();
                found.add(&VERSION_DIGEST, place, what);
            } else if range != (None, None) {
                text_rows(found, &place, document, &own_texts);
            }
        }
        Ok(())
    })
}

/// Checks the bases of products: their columns, the digest of these, and the texts that are kept for them.
pub(super) fn bases(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = format!(
        "select {BASE}, digest, from_revision, \
            (select count(*) from base_text where base_version_id = base_version.id) \
         from base_version"
    );
    each_row(transaction, &sql, |row| {
        let place = base_place(&lossy(row, 1)?, row.get(11)?);
        let read = history::base_row(row, &lossy(row, 9)?).and_then(PreparedProduct::new);
        let base = match read {
            Ok(base) => base,
            Err(error) => {
                found.add(&found::BASE, place, error.to_string());
                return Ok(());
            }
        };
        let is_intact = row.get_ref(10)?.as_bytes().ok() == Some(&base.digest().0[..]);
        base_facts(found, place, base.product(), is_intact, row.get(12)?);
        Ok(())
    })
}

/// Checks that texts of products have valid names, and belong to an existing version and an existing text.
pub(super) fn text_names(
    transaction: &Transaction<'_>,
    found: &mut Findings,
) -> Result<(), StoreError> {
    let sql = "select t.name, lower(hex(t.digest)), t.product_version_id, v.code, \
                      v.from_revision, x.digest is not null \
               from product_text t \
               left join product_version v on v.id = t.product_version_id \
               left join markdown_text x on x.digest = t.digest";
    each_row(transaction, sql, |row| {
        let (name, digest) = (lossy(row, 0)?, lossy(row, 1)?);
        let from: Option<i64> = row.get(4)?;
        let place = match from {
            Some(from) => version(&lossy(row, 3)?, from),
            None => format!("text {digest}"),
        };
        if from.is_none() {
            let id: i64 = row.get(2)?;
            let what = format!("belongs to version {id}, which doesn't exist");
            found.add(&TEXT_REFERENCE, place.clone(), what);
        }
        if !row.get::<_, bool>(5)? {
            let what = format!("its {name} is text {digest}, which doesn't exist");
            found.add(&TEXT_REFERENCE, place.clone(), what);
        }
        if name.parse::<TextName>().is_err() {
            found.add(
                &TEXT_NAME,
                place,
                format!("has a text with the unknown name `{name}`"),
            );
        }
        Ok(())
    })
}

/// Checks that each text unpacks, and that its digest is the one that it is stored under.
pub(super) fn texts(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select digest, lower(hex(digest)), markdown from markdown_text";
    each_row(transaction, sql, |row| {
        let digest = row.get_ref(0)?.as_bytes().unwrap_or_default();
        let markdown = row.get_ref(2)?.as_bytes().unwrap_or_default();
        text_digest(found, &lossy(row, 1)?, digest, markdown);
        Ok(())
    })
}

/// Checks that fetched texts exist.
pub(super) fn fetched_texts(
    transaction: &Transaction<'_>,
    found: &mut Findings,
) -> Result<(), StoreError> {
    let sql = "select url, lower(hex(digest)) from fetched_text \
               where digest not in (select digest from markdown_text)";
    each_row(transaction, sql, |row| {
        let place = format!("the text fetched from {}", lossy(row, 0)?);
        let what = format!("is text {}, which doesn't exist", lossy(row, 1)?);
        found.add(&TEXT_REFERENCE, place, what);
        Ok(())
    })
}

/// Reports texts that no version names. Texts that were taken down are kept on purpose: they are still down if they are
/// loaded again.
pub(super) fn orphans(
    transaction: &Transaction<'_>,
    found: &mut Findings,
) -> Result<(), StoreError> {
    let sql = "select lower(hex(digest)), length(markdown) from markdown_text where taken_down_at is null \
               and digest not in (select digest from product_text) \
               and digest not in (select digest from base_text)";
    each_row(transaction, sql, |row| {
        let bytes: i64 = row.get(1)?;
        let what = format!("is named by no product and takes {bytes} bytes");
        found.add(&TEXT_ORPHAN, format!("text {}", lossy(row, 0)?), what);
        Ok(())
    })
}
