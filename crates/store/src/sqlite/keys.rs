//! API keys: read as a whole, changed in one transaction with their counter.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use vitrine_model::key::KeyRecord;

use super::catalog::is_value_error;
use super::{assortments, audit, catalog, committed, during};
use crate::assortment::ensure_live;
use crate::audit::{AuditContext, written_keys};
use crate::fail_point::FailPoint;
use crate::record::StoreState;
use crate::values::KeyRow;
use crate::{KeyDecision, StoreError};

const READING: &str = "reading the keys";
const WRITING: &str = "writing the keys";

/// Columns of a key, in the order of [`key_row`]; the last use is in a table of its own.
const COLUMNS: &str = "prefix, label, secret_hash, is_test, api_version, quota_requests, quota_seconds, assortment, \
                       created_at, expires_at, revoked_at, rotated_at, digest";

/// See [`Store::read_keys`](crate::Store::read_keys).
pub(super) fn read(
    connection: &mut Connection,
) -> Result<(StoreState, Vec<KeyRecord>), StoreError> {
    let transaction = connection.transaction().map_err(during(READING))?;
    Ok((catalog::state(&transaction)?, records(&transaction)?))
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
        write(&transaction, &record.into()).map_err(during(WRITING))?;
        FailPoint::KeysWritten.pass()?;
    }
    audit::write(&transaction, context, written_keys(&all, &changed))?;
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

fn write(transaction: &Transaction<'_>, row: &KeyRow) -> rusqlite::Result<()> {
    let sql = format!(
        "insert or replace into main.api_key ({COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    );
    let values = params![
        row.prefix,
        row.label,
        row.secret_hash,
        row.is_test,
        row.api_version,
        row.quota_requests,
        row.quota_seconds,
        row.assortment,
        row.created_at,
        row.expires_at,
        row.revoked_at,
        row.rotated_at,
        row.digest(),
    ];
    transaction.prepare_cached(&sql)?.execute(values).map(drop)
}

/// Writes the digest of each key's row, after a restore changed columns of some. All rows must be readable.
pub(super) fn renew_digests(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let mut changed = Vec::new();
    each(transaction, |_, row| {
        let row = row?;
        changed.extend((row.stored_digest != row.digest()).then_some(row));
        Ok(())
    })?;
    (changed.iter()).try_for_each(|row| write(transaction, row).map_err(during(WRITING)))
}

/// Returns all keys but those with unreadable values.
pub(super) fn readable_records(
    transaction: &Transaction<'_>,
) -> Result<Vec<KeyRecord>, StoreError> {
    let mut records = Vec::new();
    each(transaction, |_, row| {
        match row {
            Ok(row) => records.extend(KeyRecord::try_from(row)),
            Err(error) if is_value_error(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    })?;
    Ok(records)
}

/// Returns all keys, oldest first.
pub(super) fn records(transaction: &Transaction<'_>) -> Result<Vec<KeyRecord>, StoreError> {
    let mut records = Vec::new();
    each(transaction, |_, row| {
        records.push(row?.try_into()?);
        Ok(())
    })?;
    Ok(records)
}

/// Calls `visit` with the prefix of each key, and with its row or the error of reading it.
pub(super) fn each(
    transaction: &Transaction<'_>,
    mut visit: impl FnMut(&str, Result<KeyRow, StoreError>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = format!(
        "select {COLUMNS}, last_used_at from main.api_key left join main.api_key_use using (prefix) \
         order by created_at, prefix"
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
        assortment: row.get(7)?,
        created_at: row.get(8)?,
        expires_at: row.get(9)?,
        revoked_at: row.get(10)?,
        rotated_at: row.get(11)?,
        stored_digest: row.get(12)?,
        last_used_at: row.get(13)?,
    })
}
