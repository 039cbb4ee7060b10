//! Versions of products, their lives, and their texts.

use rusqlite::{CachedStatement, Row, Transaction};
use serde_json::value::RawValue;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest, TextName};
use vitrine_model::place::Country;

use super::found::{
    CONTENT_RANGE, DOCUMENT, Found, LIFE, PRODUCT_FACTS, TEXT_DIGEST, TEXT_NAME, TEXT_ORPHAN,
    TEXT_REFERENCE, VERSION_DIGEST,
};
use super::{CHECKING, each_row};
use crate::StoreError;
use crate::record::OwnText;
use crate::sqlite::{bytes_32, during, publish};

/// The versions of a code live one after the other, between revisions that are there.
pub(super) fn lives(transaction: &Transaction<'_>, found: &mut Found) -> Result<(), StoreError> {
    let sql = "with life as ( \
                 select code, from_revision, until_revision, \
                        lead(from_revision) over (partition by code order by from_revision, id) \
                        as next_from from product_version) \
               select code, from_revision, until_revision, next_from from life \
               where until_revision <= from_revision \
                  or (next_from is not null \
                      and (until_revision is null or until_revision > next_from))";
    each_row(transaction, sql, |row| {
        let (from, until): (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
        let next: Option<i64> = row.get(3)?;
        let what = match (until, next) {
            (Some(until), _) if until <= from => format!("ends with revision {until} already"),
            (_, next) => format!(
                "still lives when revision {} brings the next",
                next.unwrap_or_default()
            ),
        };
        found.add(&LIFE, version(&lossy(row, 0)?, from), what);
        Ok(())
    })?;
    let sql = "select code, from_revision, until_revision from product_version \
               where from_revision not in (select number from revision) \
                  or until_revision not in (select number from revision)";
    each_row(transaction, sql, |row| {
        let (from, until): (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
        let until = until.map_or_else(String::new, |until| format!(" until {until}"));
        let what = format!("lives from revision {from}{until}, and not all of these are there");
        found.add(&LIFE, version(&lossy(row, 0)?, from), what);
        Ok(())
    })
}

/// How a version is called in a report.
fn version(code: &str, from_revision: i64) -> String {
    format!("product {code} of revision {from_revision}")
}

/// A text for a report; damaged ones too.
fn lossy(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let value = row.get_ref(column)?;
    let bytes = value.as_bytes().unwrap_or(b"?");
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Each version's document, what is kept beside it, and the digest of all that.
pub(super) fn versions(transaction: &Transaction<'_>, found: &mut Found) -> Result<(), StoreError> {
    let sql = "select name, digest, source_url from product_text where product_version_id = ?";
    let mut texts = transaction.prepare_cached(sql).map_err(during(CHECKING))?;
    let sql = "select id, code, from_revision, document, content_start, content_end, \
               discount_multiplier, countries, categories, digest, is_orderable \
               from product_version";
    each_row(transaction, sql, |row| {
        let place = version(&lossy(row, 1)?, row.get(2)?);
        let mut add = |rule, what: &str| found.add(rule, place.clone(), what.to_owned());
        let text = |column: usize| row.get_ref(column).map(|value| value.as_str().ok());
        if let Some(what) = wrong_fact(text(1)?, text(7)?, text(8)?) {
            add(&PRODUCT_FACTS, what);
        }
        let Some(document) = text(3)? else {
            add(&DOCUMENT, "its document isn't UTF-8");
            return Ok(());
        };
        if serde_json::from_str::<&RawValue>(document).is_err() {
            add(&DOCUMENT, "its document isn't JSON");
        }
        if !range_fits(document, row.get(4)?, row.get(5)?) {
            add(
                &CONTENT_RANGE,
                "its content resources don't lie in its document",
            );
        }
        // Without readable texts there is nothing to compare: `text_names` tells of those.
        if let Some(own_texts) = own_texts(&mut texts, row.get(0)?)? {
            let mut parts = [""; 5];
            for (part, column) in parts.iter_mut().zip([1, 3, 6, 7, 8]) {
                *part = text(column)?.unwrap_or_default();
            }
            let is_orderable = row.get_ref(10)?.as_i64().unwrap_or(-1);
            let digest = publish::digest(parts, is_orderable, &own_texts);
            if row.get_ref(9)?.as_bytes().ok() != Some(&digest[..]) {
                add(
                    &VERSION_DIGEST,
                    "it isn't what was loaded: its digest differs",
                );
            }
        }
        Ok(())
    })
}

/// What the catalog's reader would stumble over.
fn wrong_fact(
    code: Option<&str>,
    countries: Option<&str>,
    categories: Option<&str>,
) -> Option<&'static str> {
    let list = |json: Option<&str>| serde_json::from_str::<Vec<String>>(json?).ok();
    let is_country = |country: &String| country.parse::<Country>().is_ok();
    if code.is_none_or(|code| code.parse::<ProductCode>().is_err()) {
        return Some("its code isn't one");
    }
    if !list(countries).is_some_and(|countries| countries.iter().all(is_country)) {
        return Some("its countries aren't a list of countries");
    }
    if list(categories).is_none() {
        return Some("its categories aren't a list");
    }
    None
}

fn range_fits(document: &str, start: Option<i64>, end: Option<i64>) -> bool {
    match (start, end) {
        (None, None) => true,
        (Some(start), Some(end)) => match (usize::try_from(start), usize::try_from(end)) {
            (Ok(start), Ok(end)) => document.get(start..end).is_some(),
            _ => false,
        },
        _ => false,
    }
}

/// The texts of a version; `None` where they can't be read.
fn own_texts(
    statement: &mut CachedStatement<'_>,
    version_id: i64,
) -> rusqlite::Result<Option<Vec<OwnText>>> {
    let mut rows = statement.query([version_id])?;
    let mut texts = Vec::new();
    while let Some(row) = rows.next()? {
        let name = row.get_ref(0)?.as_str().ok().and_then(|n| n.parse().ok());
        let digest = row.get_ref(1)?.as_bytes().ok().map(bytes_32);
        let (Some(name), Some(Ok(digest))) = (name, digest) else {
            return Ok(None);
        };
        texts.push(OwnText {
            name,
            digest: TextDigest::from_bytes(digest),
            source: row.get(2)?,
        });
    }
    Ok(Some(texts))
}

/// Every text of a product is called as texts are, and names a version and a text that are there.
pub(super) fn text_names(
    transaction: &Transaction<'_>,
    found: &mut Found,
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
            let what = format!("belongs to version {id}, which isn't there");
            found.add(&TEXT_REFERENCE, place.clone(), what);
        }
        if !row.get::<_, bool>(5)? {
            let what = format!("its {name} is text {digest}, which isn't there");
            found.add(&TEXT_REFERENCE, place.clone(), what);
        }
        if name.parse::<TextName>().is_err() {
            found.add(&TEXT_NAME, place, format!("has a text named `{name}`"));
        }
        Ok(())
    })
}

/// Every text unpacks, and has the digest that it is kept under.
pub(super) fn texts(transaction: &Transaction<'_>, found: &mut Found) -> Result<(), StoreError> {
    let sql = "select digest, lower(hex(digest)), markdown from text";
    each_row(transaction, sql, |row| {
        let place = format!("text {}", lossy(row, 1)?);
        let packed = PackedMarkdown::from_bytes(row.get_ref(2)?.as_bytes().unwrap_or_default());
        match packed.unpack() {
            Err(_) => found.add(&TEXT_DIGEST, place, "can't be unpacked".to_owned()),
            Ok(markdown) => {
                let digest = TextDigest::of(&markdown);
                if row.get_ref(0)?.as_bytes().ok() != Some(digest.as_bytes()) {
                    found.add(&TEXT_DIGEST, place, format!("holds text {digest}"));
                }
            }
        }
        Ok(())
    })
}

/// What outside addresses gave is there.
pub(super) fn fetched_texts(
    transaction: &Transaction<'_>,
    found: &mut Found,
) -> Result<(), StoreError> {
    let sql = "select url, lower(hex(digest)) from fetched_text \
               where digest not in (select digest from text)";
    each_row(transaction, sql, |row| {
        let place = format!("what was fetched from {}", lossy(row, 0)?);
        let what = format!("is text {}, which isn't there", lossy(row, 1)?);
        found.add(&TEXT_REFERENCE, place, what);
        Ok(())
    })
}

/// Texts that no version names. One that was taken down is kept on purpose: it stays down when it is
/// loaded again.
pub(super) fn orphans(transaction: &Transaction<'_>, found: &mut Found) -> Result<(), StoreError> {
    let sql = "select lower(hex(digest)), length(markdown) from text where taken_down_at is null \
               and digest not in (select digest from product_text)";
    each_row(transaction, sql, |row| {
        let bytes: i64 = row.get(1)?;
        let what = format!("no product names it; it takes {bytes} bytes");
        found.add(&TEXT_ORPHAN, format!("text {}", lossy(row, 0)?), what);
        Ok(())
    })
}
