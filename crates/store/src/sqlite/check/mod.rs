//! Checks of the file: SQLite's own, then the rules of this crate. All as of one moment, while others write.
//!
//! - `products`: versions of products and their texts

mod products;

use std::error::Error;

use rusqlite::{Connection, Row, Transaction};

use super::{OVERRIDES, assortments, during, is_value_error, keys};
use crate::audit::{Chain, log};
use crate::check::found::{
    API_KEY, BASE, Findings, INTEGRITY, KEY_USE_ORPHAN, REFERENCE, STATE, UNREADABLE, VERSION_SPAN,
};
use crate::check::live_problem;
use crate::db::Tx;
use crate::operators::rows as stored_operators;
use crate::problem::Problem;
use crate::{StoreError, check};

const CHECKING: &str = "checking the store";

/// Schema since which there is an audit log.
const AUDIT_LOG: u32 = 4;

/// Schema since which there are webhook endpoints.
const WEBHOOKS: u32 = 6;

/// Schema since which documents are packed, and bases have the columns of versions.
const PACKED: u32 = super::pack::SCHEMA;

/// Schema since which there are operators.
const OPERATORS: u32 = 9;

/// Checks one part of the store.
type Part = fn(&Transaction<'_>, &mut Findings) -> Result<(), StoreError>;

const PARTS: [Part; 16] = [
    integrity,
    references,
    state,
    counters,
    api_keys,
    assortments,
    webhooks,
    bases,
    operators,
    audit_log,
    version_spans,
    products::versions,
    products::text_names,
    products::texts,
    products::fetched_texts,
    products::orphans,
];

/// See [`Store::check`](crate::Store::check).
pub(super) fn check(connection: &mut Connection) -> Result<Vec<Problem>, StoreError> {
    let transaction = connection.transaction().map_err(during(CHECKING))?;
    let mut found = Findings::default();
    for part in PARTS {
        match part(&transaction, &mut found) {
            // Unreadable data is a finding, too, and the other parts go on.
            Err(StoreError::Damaged(what)) => found.add(&UNREADABLE, "the file".to_owned(), what),
            Err(error) if is_value_error(&error) => {
                let what = error.source().map_or_else(String::new, ToString::to_string);
                found.add(&UNREADABLE, "the file".to_owned(), what);
            }
            outcome => outcome?,
        }
    }
    Ok(found.into_problems())
}

/// Calls `look` with each row of a query.
fn each_row(
    transaction: &Transaction<'_>,
    sql: &str,
    mut look: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<(), StoreError> {
    let mut statement = transaction.prepare(sql).map_err(during(CHECKING))?;
    let mut rows = statement.query([]).map_err(during(CHECKING))?;
    while let Some(row) = rows.next().map_err(during(CHECKING))? {
        look(row).map_err(during(CHECKING))?;
    }
    Ok(())
}

fn integrity(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    each_row(transaction, "pragma integrity_check", |row| {
        let line: String = row.get(0)?;
        if line != "ok" {
            found.add(&INTEGRITY, "the file".to_owned(), line);
        }
        Ok(())
    })
}

fn references(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    each_row(transaction, "pragma foreign_key_check", |row| {
        let (table, row_id, parent): (String, Option<i64>, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        // `state`, `products::text_names` and `products::fetched_texts` report these more precisely.
        if !["state", "product_text", "fetched_text"].contains(&table.as_str()) {
            let place = format!("{table}, row {}", row_id.unwrap_or_default());
            let what = format!("refers to a missing row of {parent}");
            found.add(&REFERENCE, place, what);
        }
        Ok(())
    })
}

fn state(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let mut rows = 0;
    let sql = "select s.revision_number, s.revision_id, r.id \
               from state s left join revision r on r.number = s.revision_number";
    let mut add = |what| found.add(&STATE, "the live revision".to_owned(), what);
    each_row(transaction, sql, |row| {
        rows += 1;
        let live: (Option<i64>, Option<String>) = (row.get(0)?, row.get(1)?);
        let kept_id: Option<String> = row.get(2)?;
        if let Some(what) = live_problem((live.0, live.1.as_deref()), kept_id.as_deref()) {
            add(what);
        }
        Ok(())
    })?;
    let sql = "select oldest_readable, revision_number from state where oldest_readable is not null \
               and (oldest_readable not in (select number from revision) \
                  or oldest_readable > coalesce(revision_number, 0))";
    each_row(transaction, sql, |row| {
        let (oldest, live): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
        let live = live.unwrap_or_default();
        add(format!(
            "is {live}, but all before {oldest} are marked as pruned"
        ));
        Ok(())
    })?;
    if rows != 1 {
        add(format!("has {rows} rows instead of one"));
    }
    Ok(())
}

fn counters(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select texts_counter, keys_counter from state";
    each_row(transaction, sql, |row| {
        check::counters(found, &[("texts", row.get(0)?), ("keys", row.get(1)?)]);
        Ok(())
    })?;
    let sql = "select number, created, changed, retired, unchanged from revision";
    each_row(transaction, sql, |row| {
        let counts = [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
        check::revision_counts(found, row.get(0)?, counts);
        Ok(())
    })
}

/// Returns the schema of the file, which may be a backup by an earlier release.
fn schema(transaction: &Transaction<'_>) -> Result<u32, StoreError> {
    let schema = transaction.query_row("pragma user_version", [], |row| row.get(0));
    schema.map_err(during(CHECKING))
}

fn api_keys(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let schema = schema(transaction)?;
    let keys = keys::keys_sql(schema);
    keys::each(transaction, keys, |prefix, row| match row {
        // An error that isn't about the row's values is about the file.
        Err(error) if !is_value_error(&error) => Err(error),
        row => {
            check::key(found, prefix, row, keys::has_digests(schema));
            Ok(())
        }
    })?;
    let sql = format!(
        "select prefix from ({keys}) where is_test not in (0, 1) \
         or (quota_requests is null) <> (quota_seconds is null)"
    );
    each_row(transaction, &sql, |row| {
        let prefix: String = row.get(0)?;
        let what = "its kind or its quota is invalid".to_owned();
        found.add(&API_KEY, format!("key {prefix}"), what);
        Ok(())
    })?;
    let sql =
        format!("select prefix from api_key_use where prefix not in (select prefix from ({keys}))");
    each_row(transaction, &sql, |row| {
        let prefix: String = row.get(0)?;
        let what = "has a last use, but doesn't exist".to_owned();
        found.add(&KEY_USE_ORPHAN, format!("key {prefix}"), what);
        Ok(())
    })
}

fn assortments(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    if !keys::has_assortments(schema(transaction)?) {
        return Ok(());
    }
    assortments::each(transaction, |place, stored| {
        check::assortment(found, place, stored);
    })?;
    let sql = "select prefix, assortment from assigned_key where revoked_at is null \
               and assortment not in (select name from assortment_version \
                  where replaced_at is null and rules is not null)";
    each_row(transaction, sql, |row| {
        let (prefix, name): (String, String) = (row.get(0)?, row.get(1)?);
        check::key_assortment(found, &prefix, &name);
        Ok(())
    })?;
    let sql = "select prefix from assigned_key where prefix in (select prefix from api_key)";
    each_row(transaction, sql, |row| {
        check::key_twice(found, &row.get::<_, String>(0)?);
        Ok(())
    })?;
    each_row(
        transaction,
        "select assortments_counter from state",
        |row| {
            check::counters(found, &[("assortments", row.get(0)?)]);
            Ok(())
        },
    )
}

fn version_spans(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let versions = ("product_version", &VERSION_SPAN, check::version as _);
    products::spans(transaction, found, versions)
}

/// Checks the operators of the console.
fn operators(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    if schema(transaction)? < OPERATORS {
        return Ok(());
    }
    stored_operators(&mut Tx::sqlite(transaction, CHECKING)).map(|rows| {
        rows.into_iter().for_each(|row| check::operator(found, row));
    })
}

/// Checks the bases of products that overrides alter; what these say is opaque here.
fn bases(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    if schema(transaction)? < OVERRIDES {
        return Ok(());
    }
    match schema(transaction)? >= PACKED {
        true => check::bases(&mut Tx::sqlite(transaction, CHECKING), found)?,
        false => bases_as_json(transaction, found)?,
    }
    products::spans(
        transaction,
        found,
        ("base_version", &BASE, check::base_place),
    )
}

/// Checks the bases of a backup by an earlier release.
fn bases_as_json(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let sql = "select code, from_revision, product, digest, \
                  (select count(*) from base_text where base_version_id = base_version.id) \
               from base_version";
    each_row(transaction, sql, |row| {
        let (code, product): (String, String) = (row.get(0)?, row.get(2)?);
        let place = check::base_place(&code, row.get(1)?);
        let digest: Vec<u8> = row.get(3)?;
        check::base(found, place, (&code, &product), &digest, row.get(4)?);
        Ok(())
    })
}

/// Checks the endpoints of a backup; a store in use has them in a file of their own.
fn webhooks(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    match schema(transaction)? >= WEBHOOKS {
        true => endpoints(transaction, found),
        false => Ok(()),
    }
}

fn endpoints(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    each_row(
        transaction,
        "select id, document from webhook_endpoint",
        |row| {
            let (id, document): (String, String) = (row.get(0)?, row.get(1)?);
            check::webhook(found, &id, &document);
            Ok(())
        },
    )
}

/// Checks the file of the endpoints of a store in use.
pub(super) fn check_webhooks(connection: &mut Connection) -> Result<Vec<Problem>, StoreError> {
    let transaction = connection.transaction().map_err(during(CHECKING))?;
    let mut found = Findings::default();
    integrity(&transaction, &mut found)?;
    endpoints(&transaction, &mut found)?;
    Ok(found.into_problems())
}

fn audit_log(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    if schema(transaction)? < AUDIT_LOG {
        return Ok(());
    }
    let mut chain = Chain::default();
    log::each(&mut Tx::sqlite(transaction, CHECKING), |row| {
        check::audit_entry(found, &mut chain, row);
    })
}
