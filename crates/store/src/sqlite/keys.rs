//! API keys: read as a whole, changed in one transaction with their counter.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, Row, ToSql, Transaction, TransactionBehavior, params};
use vitrine_model::key::KeyRecord;

use super::{assortments, committed, during, is_value_error};
use crate::assortment::ensure_live;
use crate::audit::{AuditContext, log, written_keys};
use crate::catalog;
use crate::db::Tx;
use crate::fail_point::FailPoint;
use crate::record::StoreState;
use crate::values::KeyRow;
use crate::{KeyDecision, StoreError};

const READING: &str = "reading the keys";
const WRITING: &str = "writing the keys";

/// Schema that added digests to keys.
const DIGESTS: u32 = 2;

/// Schema that added assortments.
const ASSORTMENTS: u32 = 5;

macro_rules! columns {
    () => {
        "prefix, label, secret_hash, is_test, api_version, quota_requests, quota_seconds, \
         created_at, expires_at, revoked_at, rotated_at, digest"
    };
}

/// Query for the rows of all keys: those with an assortment lie in a table of their own. A key that lies in both has its
/// assortment.
const KEYS: &str = concat!(
    "select ",
    columns!(),
    ", null as assortment from main.api_key where prefix not in (select prefix from main.assigned_key) \
     union all select ",
    columns!(),
    ", assortment from main.assigned_key"
);

/// Returns whether stores of this schema have digests of keys.
pub(super) fn has_digests(schema: u32) -> bool {
    schema >= DIGESTS
}

/// Returns whether stores of this schema have assortments.
pub(super) fn has_assortments(schema: u32) -> bool {
    schema >= ASSORTMENTS
}

/// Returns the query for the rows of all keys in stores of this schema.
pub(super) fn keys_sql(schema: u32) -> &'static str {
    match (has_digests(schema), has_assortments(schema)) {
        (_, true) => KEYS,
        (true, false) => "select *, null as assortment from main.api_key",
        (false, false) => "select *, null as digest, null as assortment from main.api_key",
    }
}

/// See [`Store::read_keys`](crate::Store::read_keys).
pub(super) fn read(
    connection: &mut Connection,
) -> Result<(StoreState, Vec<KeyRecord>), StoreError> {
    let transaction = connection.transaction().map_err(during(READING))?;
    let state = catalog::state(&mut Tx::sqlite(&transaction, READING))?;
    Ok((state, records(&transaction)?))
}

/// See [`Store::change_keys`](crate::Store::change_keys).
pub(super) fn change(
    connection: &mut Connection,
    context: &AuditContext,
    decide: KeyDecision<'_>,
) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(WRITING))?;
    let all = records(&transaction)?;
    let changed = decide(&all);
    if changed.is_empty() {
        return Ok(());
    }
    for record in &changed {
        ensure_live(record, |name| assortments::is_live(&transaction, name))?;
        write(&transaction, record).map_err(during(WRITING))?;
        FailPoint::KeysWritten.pass()?;
    }
    log::write(
        &mut Tx::sqlite(&transaction, "writing the audit log"),
        context,
        written_keys(&all, &changed),
    )?;
    transaction
        .execute(
            "update state set keys_counter = keys_counter + 1 + (random() & 0xffffffff)",
            [],
        )
        .map_err(during(WRITING))?;
    FailPoint::KeysCounted.pass()?;
    committed(transaction.commit(), FailPoint::KeysCommitted, WRITING)
}

/// See [`Store::record_key_use`](crate::Store::record_key_use).
pub(super) fn record_use(
    connection: &mut Connection,
    uses: &[(String, Timestamp)],
    lock_wait: Duration,
) -> Result<(), StoreError> {
    without_waiting(connection, lock_wait, |connection| {
        write_uses(connection, uses)
    })
}

/// Runs `work` without waiting for another writer: what servers write can be done a little later, polling for revocations
/// can't.
pub(super) fn without_waiting(
    connection: &mut Connection,
    lock_wait: Duration,
    work: impl FnOnce(&mut Connection) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    connection
        .busy_timeout(Duration::ZERO)
        .map_err(during(WRITING))?;
    let outcome = work(connection);
    connection
        .busy_timeout(lock_wait)
        .map_err(during(WRITING))?;
    outcome
}

fn write_uses(connection: &mut Connection, uses: &[(String, Timestamp)]) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(WRITING))?;
    for (prefix, used_at) in uses {
        transaction
            .execute(
                "insert into api_key_use values (?1, ?2) on conflict (prefix) \
                 do update set last_used_at = max(last_used_at, excluded.last_used_at)",
                (prefix, used_at.as_millisecond()),
            )
            .map_err(during(WRITING))?;
        FailPoint::KeyUseWritten.pass()?;
    }
    committed(transaction.commit(), FailPoint::KeyUseCommitted, WRITING)
}

/// Writes a key into the table for keys with an assortment or the one for keys without, and deletes it from the other.
fn write(transaction: &Transaction<'_>, record: &KeyRecord) -> rusqlite::Result<()> {
    let row = KeyRow::from(record);
    let (table, other, assortment) = match row.assortment {
        Some(_) => ("assigned_key", "api_key", ", assortment"),
        None => ("api_key", "assigned_key", ""),
    };
    let sql = format!("delete from {other} where prefix = ?");
    transaction.execute(&sql, [&row.prefix])?;
    FailPoint::KeysDeleted.pass()?;
    let digest = row.digest();
    let mut values = params![
        row.prefix,
        row.label,
        row.secret_hash,
        row.is_test,
        row.api_version,
        row.quota_requests,
        row.quota_seconds,
        row.created_at,
        row.expires_at,
        row.revoked_at,
        row.rotated_at,
        digest,
    ]
    .to_vec();
    values.extend(row.assortment.iter().map(|name| name as &dyn ToSql));
    let sql = format!(
        "insert or replace into {table} ({}{assortment}) values ({})",
        columns!(),
        vec!["?"; values.len()].join(", ")
    );
    transaction.execute(&sql, values.as_slice()).map(drop)
}

/// Writes the digest of each key's row as it is now. Rows with unreadable values get none: a check reports them.
pub(super) fn write_digests(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    for row in readable_rows(transaction)? {
        let table = match row.assortment {
            Some(_) => "assigned_key",
            None => "api_key",
        };
        let sql = format!("update main.{table} set digest = ?2 where prefix = ?1");
        let digest = (&row.prefix, row.digest());
        transaction.execute(&sql, digest).map_err(during(WRITING))?;
    }
    Ok(())
}

/// Returns all rows but those with unreadable values.
pub(super) fn readable_rows(transaction: &Transaction<'_>) -> Result<Vec<KeyRow>, StoreError> {
    let mut rows = Vec::new();
    each(transaction, KEYS, |_, row| {
        match row {
            Ok(row) => rows.push(row),
            Err(error) if is_value_error(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    })?;
    Ok(rows)
}

pub(super) fn records(transaction: &Transaction<'_>) -> Result<Vec<KeyRecord>, StoreError> {
    read_records(transaction, KEYS)
}

/// Returns the keys of a store of this schema.
pub(super) fn records_of(
    transaction: &Transaction<'_>,
    schema: u32,
) -> Result<Vec<KeyRecord>, StoreError> {
    read_records(transaction, keys_sql(schema))
}

fn read_records(transaction: &Transaction<'_>, keys: &str) -> Result<Vec<KeyRecord>, StoreError> {
    let mut records = Vec::new();
    each(transaction, keys, |_, row| {
        records.push(row?.try_into()?);
        Ok(())
    })?;
    Ok(records)
}

/// Calls `visit` with the prefix of each key, and with its row or the error of reading it. `keys` is the query for the
/// rows: see [`keys_sql`].
pub(super) fn each(
    transaction: &Transaction<'_>,
    keys: &str,
    mut visit: impl FnMut(&str, Result<KeyRow, StoreError>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = format!(
        "select k.prefix, label, secret_hash, is_test, api_version, quota_requests, \
         quota_seconds, created_at, expires_at, revoked_at, rotated_at, last_used_at, digest, \
         assortment from ({keys}) k left join main.api_key_use u on u.prefix = k.prefix \
         order by created_at, k.prefix"
    );
    let mut statement = transaction.prepare_cached(&sql).map_err(during(READING))?;
    let mut rows = statement.query([]).map_err(during(READING))?;
    while let Some(row) = rows.next().map_err(during(READING))? {
        let prefix = row.get_ref(0).map_err(during(READING))?;
        let prefix = String::from_utf8_lossy(prefix.as_bytes().unwrap_or_default());
        visit(&prefix, key_row(row).map_err(during(READING)))?;
    }
    Ok(())
}

fn key_row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        prefix: row.get(0)?,
        label: row.get(1)?,
        secret_hash: row.get(2)?,
        is_test: row.get(3)?,
        api_version: row.get(4)?,
        quota_requests: row.get(5)?,
        quota_seconds: row.get(6)?,
        created_at: row.get(7)?,
        expires_at: row.get(8)?,
        revoked_at: row.get(9)?,
        rotated_at: row.get(10)?,
        last_used_at: row.get(11)?,
        stored_digest: row.get(12)?,
        assortment: row.get(13)?,
    })
}
