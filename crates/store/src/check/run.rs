//! Checks of all stored data, as of one moment and while others write. Of an SQLite file also its structure and its references;
//! PostgreSQL checks references itself, and files by its checksums and `pg_amcheck`.

use std::collections::HashMap;

use rusqlite::Connection;
use vitrine_model::content::TextName;

use super::found::{
    API_KEY, BASE, Findings, INTEGRITY, KEY_USE_ORPHAN, MOVE_AND_RESTORE, REFERENCE, RESTORE, Rule,
    STATE, TEXT_NAME, TEXT_ORPHAN, TEXT_REFERENCE, UNREADABLE, VERSION_DIGEST, VERSION_SPAN,
};
use super::{
    base_place, live_problem, overlapping_span, span_queries, span_without_revisions, text_digest,
    text_rows, version, version_facts,
};
use crate::audit::{Chain, log};
use crate::db::{Db, Row, Tx, WORK_TIMEOUT, values};
use crate::document::unpack_into;
use crate::problem::Problem;
use crate::record::OwnText;
use crate::sqlite::during;
use crate::values::own_text;
use crate::{StoreError, assortment, check, digest, keys, operators};

const CHECKING: &str = "checking the store";

/// Number of versions that are checked at once, with their texts.
const BATCH: u32 = 1_000;

/// Checks one part of the store.
type Part = fn(&mut Tx<'_>, &mut Findings) -> Result<(), StoreError>;

/// Parts that both databases have.
const PARTS: [Part; 14] = [
    state,
    counters,
    api_keys,
    assortments,
    endpoints,
    bases,
    operators,
    audit_log,
    version_spans,
    versions,
    text_names,
    texts,
    fetched_texts,
    orphans,
];

/// Checks a PostgreSQL store. See [`Store::check`](crate::Store::check).
pub(crate) fn check(db: Db<'_>) -> Result<Vec<Problem>, StoreError> {
    let mut problems = db.read_within(WORK_TIMEOUT, CHECKING, |tx| {
        parts(tx, "the database", &PARTS).map(Findings::into_problems)
    })?;
    for problem in &mut problems {
        if [RESTORE, MOVE_AND_RESTORE].contains(&problem.advice) {
            problem.advice = "restore the last good dump of the database with `pg_restore`";
        }
    }
    Ok(problems)
}

/// Checks an SQLite file: a store or a backup. A store in use has its endpoints in a file of their own.
pub(crate) fn check_file(connection: &mut Connection) -> Result<Vec<Problem>, StoreError> {
    let all: Vec<Part> = [integrity as Part, references]
        .into_iter()
        .chain(PARTS)
        .collect();
    file(connection, &all)
}

/// Checks the file of the endpoints of an SQLite store in use.
pub(crate) fn check_webhooks(connection: &mut Connection) -> Result<Vec<Problem>, StoreError> {
    file(connection, &[integrity, endpoints])
}

fn file(connection: &mut Connection, all: &[Part]) -> Result<Vec<Problem>, StoreError> {
    let transaction = connection.transaction().map_err(during(CHECKING))?;
    let tx = &mut Tx::sqlite(&transaction, CHECKING);
    parts(tx, "the file", all).map(Findings::into_problems)
}

fn parts(tx: &mut Tx<'_>, place: &str, all: &[Part]) -> Result<Findings, StoreError> {
    let mut found = Findings::default();
    for part in all {
        match part(tx, &mut found) {
            // Unreadable data is a finding, too, and the other parts go on.
            Err(StoreError::Damaged(what)) if tx.is_usable() => {
                found.add(&UNREADABLE, place.to_owned(), what);
            }
            outcome => outcome?,
        }
    }
    Ok(found)
}

fn integrity(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    tx.each("pragma integrity_check", &[], |row| {
        let line = row.lossy(0)?;
        if line != "ok" {
            found.add(&INTEGRITY, "the file".to_owned(), line);
        }
        Ok(())
    })
}

fn references(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    tx.each("pragma foreign_key_check", &[], |row| {
        let (table, row_id): (String, Option<i64>) = (row.get(0)?, row.get(1)?);
        // `state`, `text_names` and `fetched_texts` report these more precisely.
        if !["state", "product_text", "fetched_text"].contains(&table.as_str()) {
            let place = format!("{table}, row {}", row_id.unwrap_or_default());
            let what = format!("refers to a missing row of {}", row.lossy(2)?);
            found.add(&REFERENCE, place, what);
        }
        Ok(())
    })
}

fn state(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let mut rows = 0;
    let mut add = |what| found.add(&STATE, "the live revision".to_owned(), what);
    let sql = "select s.revision_number, s.revision_id, r.id, s.oldest_readable, \
                  s.oldest_readable is not null and s.oldest_readable \
                     not in (select number from vitrine.revision) \
               from vitrine.state s left join vitrine.revision r on r.number = s.revision_number";
    tx.each(sql, &[], |row| {
        rows += 1;
        let number: Option<i64> = row.get(0)?;
        if let Some(what) = live_problem((number, row.get(1)?), row.get(2)?) {
            add(what);
        }
        let (live, oldest) = (number.unwrap_or_default(), row.get::<Option<i64>>(3)?);
        let is_missing: bool = row.get(4)?;
        if let Some(oldest) = oldest.filter(|oldest| *oldest > live || is_missing) {
            add(format!(
                "is {live}, but all before {oldest} are marked as pruned"
            ));
        }
        Ok(())
    })?;
    if rows != 1 {
        add(format!("has {rows} rows instead of one"));
    }
    Ok(())
}

fn counters(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select texts_counter, keys_counter, assortments_counter from vitrine.state";
    tx.each(sql, &[], |row| {
        let counters = [
            ("texts", row.get(0)?),
            ("keys", row.get(1)?),
            ("assortments", row.get(2)?),
        ];
        check::counters(found, &counters);
        Ok(())
    })?;
    let sql = "select number, created, changed, retired, unchanged from vitrine.revision";
    tx.each(sql, &[], |row| {
        let counts = [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
        check::revision_counts(found, row.get(0)?, counts);
        Ok(())
    })
}

fn api_keys(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    keys::each(tx, |prefix, row| {
        check::key(found, prefix, row);
        Ok(())
    })?;
    // SQLite's booleans are numbers.
    let sql = "select prefix from vitrine.api_key where is_test not in (false, true) \
               or (quota_requests is null) <> (quota_seconds is null)";
    tx.each(sql, &[], |row| {
        let what = "its kind or its quota is invalid".to_owned();
        found.add(&API_KEY, format!("key {}", row.lossy(0)?), what);
        Ok(())
    })?;
    let sql = "select prefix from vitrine.api_key_use \
               where prefix not in (select prefix from vitrine.api_key)";
    tx.each(sql, &[], |row| {
        let what = "has a last use, but doesn't exist".to_owned();
        found.add(&KEY_USE_ORPHAN, format!("key {}", row.lossy(0)?), what);
        Ok(())
    })
}

fn assortments(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    assortment::each(tx, |place, stored| check::assortment(found, place, stored))?;
    let sql = "select prefix, assortment from vitrine.api_key \
               where revoked_at is null and assortment is not null \
               and assortment not in (select name from vitrine.assortment_version \
                  where replaced_at is null and rules is not null)";
    tx.each(sql, &[], |row| {
        check::key_assortment(found, row.get(0)?, row.get(1)?);
        Ok(())
    })
}

fn endpoints(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select id, document from vitrine.webhook_endpoint";
    tx.each(sql, &[], |row| {
        check::webhook(found, row.get(0)?, row.get(1)?);
        Ok(())
    })
}

fn operators(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    for row in operators::rows(tx)? {
        check::operator(found, row);
    }
    Ok(())
}

fn audit_log(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let mut chain = Chain::default();
    log::each(tx, |row| check::audit_entry(found, &mut chain, row))
}

fn version_spans(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    spans(
        tx,
        found,
        "select * from vitrine.product_version where from_revision > 0",
        (&VERSION_SPAN, version),
    )
}

/// Checks that spans of a code don't overlap, and begin and end with existing revisions: of the rows of a query, by their
/// rule and their place.
fn spans(
    tx: &mut Tx<'_>,
    found: &mut Findings,
    rows: &str,
    (rule, place): (&'static Rule, fn(&str, i64) -> String),
) -> Result<(), StoreError> {
    let rows = format!("({rows}) spans");
    let [overlapping, without_revisions] = span_queries(&rows, "vitrine.revision");
    tx.each(&overlapping, &[], |row| {
        let from = row.get(1)?;
        let what = overlapping_span(from, row.get(2)?, row.get(3)?);
        found.add(rule, place(&row.lossy(0)?, from), what);
        Ok(())
    })?;
    tx.each(&without_revisions, &[], |row| {
        let from = row.get(1)?;
        let what = span_without_revisions(from, row.get(2)?);
        found.add(rule, place(&row.lossy(0)?, from), what);
        Ok(())
    })
}

/// Checks the bases of products that overrides alter. Their versions are checked as all others; definitions of overrides
/// are opaque here.
fn bases(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select b.code, b.from_revision, b.version_id from vitrine.product_base b \
               left join vitrine.product_version v on v.id = b.version_id and v.code = b.code \
               where v.id is null";
    tx.each(sql, &[], |row| {
        let what = format!(
            "is version {}, which isn't one of the product",
            row.get::<i64>(2)?
        );
        found.add(&BASE, base_place(&row.lossy(0)?, row.get(1)?), what);
        Ok(())
    })?;
    spans(
        tx,
        found,
        "select version_id as id, * from vitrine.product_base",
        (&BASE, base_place),
    )
}

/// Texts of some versions, by the version's id. `None` for a version with an unreadable text, which `text_names` reports.
type TextsOfVersions = HashMap<i64, Option<Vec<OwnText>>>;

fn texts_of(tx: &mut Tx<'_>, after: i64, until: i64) -> Result<TextsOfVersions, StoreError> {
    let sql = "select product_version_id, name, digest, source_url from vitrine.product_text \
               where product_version_id > $1 and product_version_id <= $2";
    let mut texts = TextsOfVersions::new();
    tx.each(sql, values![after, until], |row| {
        let of_version = texts.entry(row.get(0)?).or_insert_with(|| Some(Vec::new()));
        match own_text(&row.lossy(1)?, row.get(2)?, row.get(3)?) {
            Ok(text) => of_version.iter_mut().for_each(|all| all.push(text.clone())),
            Err(_) => *of_version = None,
        }
        Ok(())
    })?;
    Ok(texts)
}

/// Checks each version's document, the columns beside it, and the digest of all.
fn versions(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let end = "select max(id) from (select id from vitrine.product_version where id > $1 \
               order by id limit $2) batch having count(*) > 0";
    let sql = "select id, code, from_revision, document, content_start, content_end, \
                  discount_multiplier, countries, categories, digest, is_orderable \
               from vitrine.product_version \
               left join vitrine.product_document on product_version_id = id \
               where id > $1 and id <= $2";
    let (mut last, mut unpacked) = (i64::MIN, Vec::new());
    while let Some(end) = tx.row(end, values![last, BATCH], |row| row.get(0))? {
        let texts = texts_of(tx, last, end)?;
        tx.each(sql, values![last, end], |row| {
            let own_texts = match texts.get(&row.get::<i64>(0)?) {
                Some(texts) => texts.as_deref(),
                None => Some(&[][..]),
            };
            version_row(row, own_texts, &mut unpacked, found)
        })?;
        last = end;
    }
    Ok(())
}

fn version_row(
    row: &Row<'_>,
    own_texts: Option<&[OwnText]>,
    unpacked: &mut Vec<u8>,
    found: &mut Findings,
) -> Result<(), StoreError> {
    let place = version(&row.lossy(1)?, row.get(2)?);
    let text = |column| row.get::<&str>(column).ok();
    let packed = row.get::<&[u8]>(3);
    let document = packed.and_then(|packed| unpack_into(packed, unpacked)).ok();
    let range = match document {
        Some(_) => (row.get(4)?, row.get(5)?),
        None => (None, None),
    };
    version_facts(found, &place, [text(1), text(7), text(8)], document, range);
    let (Some(document), Some(own_texts)) = (document, own_texts) else {
        return Ok(());
    };
    let column = |column| text(column).unwrap_or_default();
    let parts = [column(1), document, column(6), column(7), column(8)];
    let is_orderable = row.number_or_boolean(10)?;
    let digest = digest::digest(parts, is_orderable, own_texts);
    if row.get::<&[u8]>(9).ok() != Some(&digest[..]) {
        let what = "isn't what was loaded: its digest doesn't match".to_owned();
        found.add(&VERSION_DIGEST, place, what);
    } else if range != (None, None) {
        text_rows(found, &place, document, own_texts);
    }
    Ok(())
}

/// Checks that texts of products have valid names, and belong to an existing version and an existing text.
fn text_names(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select t.name, t.digest, t.product_version_id, v.code, v.from_revision, \
                  x.digest is not null \
               from vitrine.product_text t \
               left join vitrine.product_version v on v.id = t.product_version_id \
               left join vitrine.markdown_text x on x.digest = t.digest";
    tx.each(sql, &[], |row| {
        let (name, digest) = (row.lossy(0)?, hex(row, 1)?);
        let from: Option<i64> = row.get(4)?;
        let place = match from {
            Some(from) => version(&row.lossy(3)?, from),
            None => format!("text {digest}"),
        };
        let mut add = |rule, what| found.add(rule, place.clone(), what);
        if from.is_none() {
            let id: i64 = row.get(2)?;
            add(
                &TEXT_REFERENCE,
                format!("belongs to version {id}, which doesn't exist"),
            );
        }
        if !row.get::<bool>(5)? {
            let what = format!("its {name} is text {digest}, which doesn't exist");
            add(&TEXT_REFERENCE, what);
        }
        if name.parse::<TextName>().is_err() {
            add(
                &TEXT_NAME,
                format!("has a text with the unknown name `{name}`"),
            );
        }
        Ok(())
    })
}

/// Checks that each text unpacks, and that its digest is the one that it is stored under.
fn texts(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select digest, markdown from vitrine.markdown_text";
    tx.each(sql, &[], |row| {
        let digest = row.get(0).unwrap_or_default();
        let markdown = row.get(1).unwrap_or_default();
        text_digest(found, &hex(row, 0)?, digest, markdown);
        Ok(())
    })
}

/// Checks that fetched texts exist.
fn fetched_texts(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select url, digest from vitrine.fetched_text f where not exists \
                  (select 1 from vitrine.markdown_text x where x.digest = f.digest)";
    tx.each(sql, &[], |row| {
        let place = format!("the text fetched from {}", row.lossy(0)?);
        let what = format!("is text {}, which doesn't exist", hex(row, 1)?);
        found.add(&TEXT_REFERENCE, place, what);
        Ok(())
    })
}

/// Reports texts that no version names. Texts that were taken down are kept on purpose: they are still down if they are
/// loaded again.
fn orphans(tx: &mut Tx<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select digest, length(markdown)::bigint from vitrine.markdown_text x \
               where taken_down_at is null and not exists \
                  (select 1 from vitrine.product_text t where t.digest = x.digest)";
    tx.each(sql, &[], |row| {
        let bytes: i64 = row.get(1)?;
        let what = format!("is named by no product and takes {bytes} bytes");
        found.add(&TEXT_ORPHAN, format!("text {}", hex(row, 0)?), what);
        Ok(())
    })
}

/// Returns the hexadecimal digits of a column.
fn hex(row: &Row<'_>, column: usize) -> Result<String, StoreError> {
    let bytes = row.get::<&[u8]>(column)?;
    Ok(vitrine_model::hexadecimal::Hexadecimal(bytes).to_string())
}
