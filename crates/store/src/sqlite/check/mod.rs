//! Checks of the file: SQLite's own, then the rules of this crate. All as of one moment, while others write.
//!
//! - `products`: versions of products and their texts

mod products;

use std::error::Error;

use rusqlite::{Connection, Row, Transaction};

use super::catalog::is_value_error;
use super::{assortments, audit, during, keys, operators as stored_operators};
use crate::audit::Chain;
use crate::check::found::{
    API_KEY, BASE, Findings, INTEGRITY, KEY_USE_ORPHAN, REFERENCE, STATE, UNREADABLE, VERSION_SPAN,
};
use crate::check::live_problem;
use crate::problem::Problem;
use crate::{StoreError, check};

const CHECKING: &str = "checking the store";

/// Checks one part of the store.
type Part = fn(&Transaction<'_>, &mut Findings) -> Result<(), StoreError>;

const PARTS: [Part; 16] = [
    integrity,
    references,
    state,
    counters,
    api_keys,
    assortments,
    endpoints,
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
    let sql = "select texts_counter, keys_counter, assortments_counter from state";
    each_row(transaction, sql, |row| {
        let counters = [
            ("texts", row.get(0)?),
            ("keys", row.get(1)?),
            ("assortments", row.get(2)?),
        ];
        check::counters(found, &counters);
        Ok(())
    })?;
    let sql = "select number, created, changed, retired, unchanged from revision";
    each_row(transaction, sql, |row| {
        let counts = [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
        check::revision_counts(found, row.get(0)?, counts);
        Ok(())
    })
}

fn api_keys(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    keys::each(transaction, |prefix, row| match row {
        // An error that isn't about the row's values is about the file.
        Err(error) if !is_value_error(&error) => Err(error),
        row => {
            check::key(found, prefix, row);
            Ok(())
        }
    })?;
    let sql = "select prefix from api_key where is_test not in (0, 1) \
               or (quota_requests is null) <> (quota_seconds is null)";
    each_row(transaction, sql, |row| {
        let prefix: String = row.get(0)?;
        let what = "its kind or its quota is invalid".to_owned();
        found.add(&API_KEY, format!("key {prefix}"), what);
        Ok(())
    })?;
    let sql = "select prefix from api_key_use where prefix not in (select prefix from api_key)";
    each_row(transaction, sql, |row| {
        let prefix: String = row.get(0)?;
        let what = "has a last use, but doesn't exist".to_owned();
        found.add(&KEY_USE_ORPHAN, format!("key {prefix}"), what);
        Ok(())
    })
}

fn assortments(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    assortments::each(transaction, |place, stored| {
        check::assortment(found, place, stored);
    })?;
    let sql = "select prefix, assortment from api_key where revoked_at is null and assortment is not null \
               and assortment not in (select name from assortment_version \
                  where replaced_at is null and rules is not null)";
    each_row(transaction, sql, |row| {
        let (prefix, name): (String, String) = (row.get(0)?, row.get(1)?);
        check::key_assortment(found, &prefix, &name);
        Ok(())
    })
}

fn version_spans(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    let versions = ("product_version", &VERSION_SPAN, check::version as _);
    products::spans(transaction, found, versions)
}

/// Checks the operators of the console.
fn operators(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    stored_operators::each(transaction, |row| check::operator(found, row))
}

/// Checks the bases of products that overrides alter; what these say is opaque here.
fn bases(transaction: &Transaction<'_>, found: &mut Findings) -> Result<(), StoreError> {
    products::bases(transaction, found)?;
    products::spans(
        transaction,
        found,
        ("base_version", &BASE, check::base_place),
    )
}

/// Checks the endpoints of a backup; a store in use has them in a file of their own.
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
    let mut chain = Chain::default();
    audit::each(transaction, |row| {
        check::audit_entry(found, &mut chain, row);
    })
}
