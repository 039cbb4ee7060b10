//! Checks of versions of products and of their texts.

use rusqlite::{Row, Statement, Transaction};
use vitrine_model::content::TextName;

use super::{CHECKING, OVERRIDES, PACKED, each_row, schema};
use crate::StoreError;
use crate::check::found::{Findings, Rule, TEXT_NAME, TEXT_ORPHAN, TEXT_REFERENCE, VERSION_DIGEST};
use crate::check::{
    overlapping_span, span_queries, span_without_revisions, text_digest, text_rows, version,
    version_facts,
};
use crate::digest;
use crate::document::unpack_into;
use crate::record::OwnText;
use crate::sqlite::during;
use crate::values::own_text;

/// Versions and their documents.
const VERSIONS: &str =
    "product_version v left join product_document d on d.product_version_id = v.id";

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
    let sql = "select name, digest, source_url from product_text where product_version_id = ?";
    let mut texts = transaction.prepare(sql).map_err(during(CHECKING))?;
    let is_packed = schema(transaction)? >= PACKED;
    let (document, from) = match is_packed {
        true => ("d.document", VERSIONS),
        false => ("v.document", "product_version v"),
    };
    let sql = format!(
        "select v.id, code, from_revision, {document}, content_start, content_end, \
         discount_multiplier, countries, categories, digest, is_orderable from {from}"
    );
    let mut unpacked = Vec::new();
    each_row(transaction, &sql, |row| {
        let place = version(&lossy(row, 1)?, row.get(2)?);
        let text = |column: usize| row.get_ref(column).map(|value| value.as_str().ok());
        let document = match is_packed {
            true => {
                let packed = row.get_ref(3)?.as_blob().ok();
                packed.and_then(|packed| unpack_into(packed, &mut unpacked).ok())
            }
            false => text(3)?,
        };
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

/// Returns the texts of a version. The inner error is about their values, after which a check goes on; the outer one is
/// SQLite's.
fn own_texts(
    statement: &mut Statement<'_>,
    version_id: i64,
) -> rusqlite::Result<Result<Vec<OwnText>, StoreError>> {
    let mut rows = statement.query([version_id])?;
    let mut texts = Vec::new();
    while let Some(row) = rows.next()? {
        let name = String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default());
        let digest = row.get_ref(1)?.as_bytes().unwrap_or_default();
        match own_text(&name, digest, row.get(2)?) {
            Ok(text) => texts.push(text),
            Err(damaged) => return Ok(Err(damaged)),
        }
    }
    Ok(Ok(texts))
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
               left join text x on x.digest = t.digest";
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
    let sql = "select digest, lower(hex(digest)), markdown from text";
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
               where digest not in (select digest from text)";
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
    let bases = match schema(transaction)? >= OVERRIDES {
        true => " and digest not in (select digest from base_text)",
        false => "",
    };
    let sql = format!(
        "select lower(hex(digest)), length(markdown) from text where taken_down_at is null \
         and digest not in (select digest from product_text){bases}"
    );
    each_row(transaction, &sql, |row| {
        let bytes: i64 = row.get(1)?;
        let what = format!("is named by no product and takes {bytes} bytes");
        found.add(&TEXT_ORPHAN, format!("text {}", lossy(row, 0)?), what);
        Ok(())
    })
}
