//! API keys: read as a whole, changed in one transaction with their counter.

use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::Row;
use vitrine_model::key::KeyRecord;

use super::BEGIN;
use super::lock::{self, Lock};
use super::session::{Session, Typed, get};
use super::texts::NOTIFY;
use super::{assortments, audit, catalog};
use crate::assortment::ensure_live;
use crate::audit::{AuditContext, written_keys};
use crate::fail_point::FailPoint;
use crate::record::StoreState;
use crate::values::KeyRow;
use crate::{KeyDecision, StoreError};

pub(super) const READING: &str = "reading the keys";
const WRITING: &str = "writing the keys";

/// Columns of a key, in the order of [`key_row`]; the last use is in a table of its own.
const COLUMNS: &str = "prefix, label, secret_hash, is_test, api_version, quota_requests, quota_seconds, assortment, \
                       created_at, expires_at, revoked_at, rotated_at, digest";

/// See [`Store::read_keys`](crate::Store::read_keys).
pub(super) fn read(session: &mut Session) -> Result<(StoreState, Vec<KeyRecord>), StoreError> {
    Ok((catalog::state(session)?, records(session)?))
}

fn records(session: &mut Session) -> Result<Vec<KeyRecord>, StoreError> {
    let mut records = Vec::new();
    each(session, |_, row| {
        records.push(row?.try_into()?);
        Ok(())
    })?;
    Ok(records)
}

/// Calls `visit` with the prefix of each key, and with its row or the error of reading it.
pub(super) fn each(
    session: &mut Session,
    mut visit: impl FnMut(&str, Result<KeyRow, StoreError>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = format!(
        "select {COLUMNS}, last_used_at from vitrine.api_key left join vitrine.api_key_use using (prefix) \
         order by created_at, prefix"
    );
    // The timeout is for a few rows at a time, however many there are.
    session.each_row(READING, &sql, &[], |row| visit(get(row, 0)?, key_row(row)))
}

/// See [`Store::change_keys`](crate::Store::change_keys).
pub(super) fn change(
    session: &mut Session,
    context: &AuditContext,
    decide: KeyDecision<'_>,
    lock_wait: Duration,
) -> Result<(), StoreError> {
    session.transaction(WRITING, BEGIN, |session| {
        lock::take(session, Lock::Keys, lock_wait)?;
        let all = records(session)?;
        let changed = decide(&all);
        if changed.is_empty() {
            return Ok(());
        }
        for record in &changed {
            ensure_live(record, |name| assortments::is_live(session, name))?;
            write(session, &record.into())?;
            FailPoint::KeysWritten.pass()?;
        }
        audit::write(session, context, written_keys(&all, &changed))?;
        session.run(WRITING, COUNT_KEYS)?;
        FailPoint::KeysCounted.pass()?;
        session.run(WRITING, NOTIFY)
    })
}

/// Increments the counter of keys by a random step: after a failover to a replica that lagged, where keys are changed then,
/// it mustn't reach the same number.
pub(super) const COUNT_KEYS: &str = "update vitrine.state \
    set keys_counter = keys_counter + 1 + floor(random() * 4294967296)::bigint";

/// See [`Store::record_key_use`](crate::Store::record_key_use).
pub(super) fn record_use(
    session: &mut Session,
    uses: &[(String, Timestamp)],
) -> Result<(), StoreError> {
    let prefixes: Vec<&str> = uses.iter().map(|(prefix, _)| prefix.as_str()).collect();
    let moments: Vec<i64> = uses
        .iter()
        .map(|(_, moment)| moment.as_millisecond())
        .collect();
    // `lock_timeout`: this can be done a little later, polling for revocations can't. `order by`: two servers that wait for
    // each other would deadlock.
    let sql = "insert into vitrine.api_key_use \
               select prefix, max(used_at) from unnest($1, $2) u (prefix, used_at) \
               group by prefix order by prefix \
               on conflict (prefix) do update \
               set last_used_at = greatest(api_key_use.last_used_at, excluded.last_used_at)";
    let begin = format!("{BEGIN}; set local lock_timeout = 100");
    session.transaction(WRITING, &begin, |session| {
        session.execute(WRITING, sql, &[prefixes.param(), moments.param()])?;
        FailPoint::KeyUseWritten.pass()?;
        Ok(())
    })
}

fn write(session: &mut Session, row: &KeyRow) -> Result<(), StoreError> {
    let set: Vec<String> = (COLUMNS.split(", "))
        .map(|column| format!("{column} = excluded.{column}"))
        .collect();
    let sql = format!(
        "insert into vitrine.api_key ({COLUMNS}) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
         on conflict (prefix) do update set {}",
        set.join(", ")
    );
    let (hash, digest) = (row.secret_hash.as_slice(), row.digest());
    let digest = digest.as_slice();
    let values = [
        row.prefix.param(),
        row.label.param(),
        hash.param(),
        row.is_test.param(),
        row.api_version.param(),
        row.quota_requests.param(),
        row.quota_seconds.param(),
        row.assortment.param(),
        row.created_at.param(),
        row.expires_at.param(),
        row.revoked_at.param(),
        row.rotated_at.param(),
        digest.param(),
    ];
    session.execute(WRITING, &sql, &values).map(drop)
}

/// Writes the digest of each key's row, after a restore changed columns of some. All rows must be readable.
pub(super) fn renew_digests(session: &mut Session) -> Result<(), StoreError> {
    let mut changed = Vec::new();
    each(session, |_, row| {
        let row = row?;
        changed.extend((row.stored_digest != row.digest()).then_some(row));
        Ok(())
    })?;
    changed.iter().try_for_each(|row| write(session, row))
}

/// Returns all keys but those with unreadable values.
pub(super) fn readable_records(session: &mut Session) -> Result<Vec<KeyRecord>, StoreError> {
    let mut records = Vec::new();
    each(session, |_, row| {
        match row {
            Ok(row) => records.extend(KeyRecord::try_from(row)),
            Err(StoreError::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    })?;
    Ok(records)
}

fn key_row(row: &Row) -> Result<KeyRow, StoreError> {
    Ok(KeyRow {
        prefix: get(row, 0)?,
        label: get(row, 1)?,
        secret_hash: get::<&[u8]>(row, 2)?.to_vec(),
        is_test: get(row, 3)?,
        api_version: get(row, 4)?,
        quota_requests: get(row, 5)?,
        quota_seconds: get(row, 6)?,
        assortment: get(row, 7)?,
        created_at: get(row, 8)?,
        expires_at: get(row, 9)?,
        revoked_at: get(row, 10)?,
        rotated_at: get(row, 11)?,
        stored_digest: get::<&[u8]>(row, 12)?.to_vec(),
        last_used_at: get(row, 13)?,
    })
}
