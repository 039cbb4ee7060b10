//! API keys: read as a whole, changed in one transaction with their counter.

use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::key::KeyRecord;

use crate::assortment::{self, ensure_live};
use crate::audit::{AuditContext, log, written_keys};
use crate::catalog::state;
use crate::db::{Db, Row, Tx, Value, values};
use crate::fail_point::FailPoint;
use crate::postgres::Lock;
use crate::record::StoreState;
use crate::values::{KeyRow, random_step};
use crate::{KeyDecision, StoreError};

const READING: &str = "reading the keys";
const WRITING: &str = "writing the keys";

/// Columns of a key, in the order of [`key_row`].
const COLUMNS: &str = "prefix, label, secret_hash, is_test, api_version, quota_requests, \
    quota_seconds, assortment, created_at, expires_at, revoked_at, rotated_at, digest";

/// See [`Store::read_keys`](crate::Store::read_keys).
pub(crate) fn read(db: Db<'_>) -> Result<(StoreState, Vec<KeyRecord>), StoreError> {
    db.quick_rows(READING, |tx| Ok((state(tx)?, records(tx)?)))
}

/// Returns all keys, oldest first.
pub(crate) fn records(tx: &mut Tx<'_>) -> Result<Vec<KeyRecord>, StoreError> {
    let mut records = Vec::new();
    each(tx, |_, row| {
        records.push(row?.try_into()?);
        Ok(())
    })?;
    Ok(records)
}

/// Returns all keys but those with unreadable values.
pub(crate) fn readable_records(tx: &mut Tx<'_>) -> Result<Vec<KeyRecord>, StoreError> {
    let mut records = Vec::new();
    each(tx, |_, row| {
        records.extend(row.and_then(KeyRecord::try_from).ok());
        Ok(())
    })?;
    Ok(records)
}

/// Writes the digest of each key's row, after a restore changed columns of some. All rows must be readable.
pub(crate) fn renew_digests(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let mut changed = Vec::new();
    each(tx, |_, row| {
        let row = row?;
        changed.extend((row.stored_digest != row.digest()).then_some(row));
        Ok(())
    })?;
    changed.iter().try_for_each(|row| write(tx, row))
}

/// Calls `visit` with the prefix of each key, and with its row or the error of reading it.
pub(crate) fn each(
    tx: &mut Tx<'_>,
    mut visit: impl FnMut(&str, Result<KeyRow, StoreError>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = format!(
        "select {COLUMNS}, last_used_at from vitrine.api_key \
         left join vitrine.api_key_use using (prefix) order by created_at, prefix"
    );
    tx.each(&sql, &[], |row| visit(&row.lossy(0)?, key_row(row)))
}

/// See [`Store::change_keys`](crate::Store::change_keys).
pub(crate) fn change(
    db: Db<'_>,
    context: &AuditContext,
    decide: KeyDecision<'_>,
) -> Result<(), StoreError> {
    db.write(Lock::Keys, FailPoint::KeysCommitted, WRITING, |tx| {
        let all = records(tx)?;
        let changed = decide(&all);
        if changed.is_empty() {
            return Ok(());
        }
        for record in &changed {
            ensure_live(record, |name| assortment::is_live(tx, name))?;
            write(tx, &record.into())?;
            FailPoint::KeysWritten.pass()?;
        }
        log::write(tx, context, written_keys(&all, &changed))?;
        count(tx)?;
        FailPoint::KeysCounted.pass()?;
        tx.notify()
    })
}

/// Increments the counter of keys by a random step: after a failover to a replica that lagged, where keys are changed then,
/// it mustn't reach the same number.
pub(crate) fn count(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let sql = "update vitrine.state set keys_counter = keys_counter + $1";
    tx.execute(sql, values![random_step()?]).map(drop)
}

/// See [`Store::record_key_use`](crate::Store::record_key_use).
pub(crate) fn record_use(db: Db<'_>, uses: &[(String, Timestamp)]) -> Result<(), StoreError> {
    if db.is_read_only() {
        return Ok(());
    }
    // In one order: two servers that wait for each other would deadlock.
    let mut uses: Vec<&(String, Timestamp)> = uses.iter().collect();
    uses.sort_unstable();
    let uses = uses
        .iter()
        .map(|(prefix, at)| (prefix.clone(), at.as_millisecond()));
    let uses: Vec<(String, i64)> = uses.collect();
    db.write_briefly(Duration::ZERO, FailPoint::KeyUseCommitted, WRITING, |tx| {
        write_uses(tx, &uses)?;
        FailPoint::KeyUseWritten.pass()?;
        Ok(())
    })
}

/// Writes last uses that are later than the stored ones, one of each key.
pub(crate) fn write_uses(tx: &mut Tx<'_>, uses: &[(String, i64)]) -> Result<(), StoreError> {
    let rows = uses
        .iter()
        .map(|(prefix, at)| [Value::from(prefix), (*at).into()]);
    let sql = "insert into vitrine.api_key_use as u (prefix, last_used_at) values {} \
               on conflict (prefix) do update \
               set last_used_at = greatest(u.last_used_at, excluded.last_used_at)";
    tx.with_rows(sql, &rows.collect::<Vec<_>>())
}

fn write(tx: &mut Tx<'_>, row: &KeyRow) -> Result<(), StoreError> {
    let sql = format!(
        "insert into vitrine.api_key ({COLUMNS}) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
         on conflict (prefix) do update set {}",
        assigned(COLUMNS)
    );
    let digest = row.digest();
    let values = values![
        &row.prefix,
        &row.label,
        &row.secret_hash,
        row.is_test,
        &row.api_version,
        row.quota_requests,
        row.quota_seconds,
        &row.assortment,
        row.created_at,
        row.expires_at,
        row.revoked_at,
        row.rotated_at,
        &digest,
    ];
    tx.execute(&sql, values).map(drop)
}

/// Returns SQL that sets these columns to the values of the row that can't be inserted.
fn assigned(columns: &str) -> String {
    let set = |column: &str| format!("{column} = excluded.{column}");
    columns.split(", ").map(set).collect::<Vec<_>>().join(", ")
}

fn key_row(row: &Row<'_>) -> Result<KeyRow, StoreError> {
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
