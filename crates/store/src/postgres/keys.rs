//! API keys: read as a whole, changed in one transaction with their counter.

use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::Row;
use vitrine_model::key::KeyRecord;

use super::BEGIN;
use super::NOTIFY;
use super::assortments;
use super::lock::{self, Lock};
use super::session::{Session, Typed, get};
use crate::assortment::ensure_live;
use crate::audit::{AuditContext, log, written_keys};
use crate::catalog;
use crate::db::Tx;
use crate::fail_point::FailPoint;
use crate::record::StoreState;
use crate::values::KeyRow;
use crate::{KeyDecision, StoreError};

pub(super) const READING: &str = "reading the keys";
const WRITING: &str = "writing the keys";

macro_rules! columns {
    () => {
        "prefix, label, secret_hash, is_test, api_version, quota_requests, quota_seconds, \
         created_at, expires_at, revoked_at, rotated_at, digest"
    };
}

/// Query for the rows of all keys: those with an assortment lie in a table of their own. A key that lies in both has its
/// assortment.
pub(super) const KEYS: &str = concat!(
    "select ",
    columns!(),
    ", null as assortment from vitrine.api_key \
     where prefix not in (select prefix from vitrine.assigned_key) union all select ",
    columns!(),
    ", assortment from vitrine.assigned_key"
);

/// See [`Store::read_keys`](crate::Store::read_keys).
pub(super) fn read(session: &mut Session) -> Result<(StoreState, Vec<KeyRecord>), StoreError> {
    let state = catalog::state(&mut Tx::postgres(session, READING))?;
    Ok((state, records(session)?))
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
        "select k.prefix, label, secret_hash, is_test, api_version, quota_requests, \
         quota_seconds, created_at, expires_at, revoked_at, rotated_at, last_used_at, digest, \
         assortment from ({KEYS}) k left join vitrine.api_key_use u on u.prefix = k.prefix \
         order by created_at, k.prefix"
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
            write(session, record)?;
            FailPoint::KeysWritten.pass()?;
        }
        log::write(
            &mut Tx::postgres(session, "writing the audit log"),
            context,
            written_keys(&all, &changed),
        )?;
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

/// Writes a key into the table for keys with an assortment or the one for keys without, and deletes it from both before.
fn write(session: &mut Session, record: &KeyRecord) -> Result<(), StoreError> {
    let row = KeyRow::from(record);
    for table in ["api_key", "assigned_key"] {
        let sql = format!("delete from vitrine.{table} where prefix = $1");
        session.execute(WRITING, &sql, &[row.prefix.param()])?;
    }
    FailPoint::KeysDeleted.pass()?;
    let (hash, digest) = (row.secret_hash.as_slice(), row.digest());
    let digest = digest.as_slice();
    let mut values = vec![
        row.prefix.param(),
        row.label.param(),
        hash.param(),
        row.is_test.param(),
        row.api_version.param(),
        row.quota_requests.param(),
        row.quota_seconds.param(),
        row.created_at.param(),
        row.expires_at.param(),
        row.revoked_at.param(),
        row.rotated_at.param(),
        digest.param(),
    ];
    let sql = match &row.assortment {
        None => concat!(
            "insert into vitrine.api_key (",
            columns!(),
            ") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
        ),
        Some(name) => {
            values.push(name.param());
            concat!(
                "insert into vitrine.assigned_key (",
                columns!(),
                ", assortment) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
            )
        }
    };
    session.execute(WRITING, sql, &values).map(drop)
}

/// Writes the digest of a key's row. By itself: the trigger drops the digest of each other change.
fn write_digest(session: &mut Session, row: &KeyRow) -> Result<(), StoreError> {
    let table = match row.assortment {
        Some(_) => "assigned_key",
        None => "api_key",
    };
    let sql = format!("update vitrine.{table} set digest = $2 where prefix = $1");
    let digest = row.digest();
    let digest = digest.as_slice();
    let values = [row.prefix.param(), digest.param()];
    session.execute(WRITING, &sql, &values).map(drop)
}

/// Writes the digest of each key's row as it is now. Rows with unreadable values get none: a check reports them.
pub(super) fn write_digests(session: &mut Session) -> Result<(), StoreError> {
    let rows = readable_rows(session)?;
    rows.iter().try_for_each(|row| write_digest(session, row))
}

/// Returns all rows but those with unreadable values.
pub(super) fn readable_rows(session: &mut Session) -> Result<Vec<KeyRow>, StoreError> {
    let mut rows = Vec::new();
    each(session, |_, row| {
        match row {
            Ok(row) => rows.push(row),
            Err(StoreError::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    })?;
    Ok(rows)
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
        created_at: get(row, 7)?,
        expires_at: get(row, 8)?,
        revoked_at: get(row, 9)?,
        rotated_at: get(row, 10)?,
        last_used_at: get(row, 11)?,
        stored_digest: get::<Option<&[u8]>>(row, 12)?.map(<[u8]>::to_vec),
        assortment: get(row, 13)?,
    })
}
