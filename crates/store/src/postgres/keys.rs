//! API keys: read as a whole, changed in one transaction with their counter.

use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::Row;
use vitrine_model::key::{KeyKind, KeyRecord, SecretHash};
use vitrine_model::quota::Quota;

use super::BEGIN;
use super::catalog;
use super::lock::{self, Lock};
use super::session::{Session, Typed, get};
use super::texts::NOTIFY;
use crate::fail_point::FailPoint;
use crate::record::Changes;
use crate::values::{bytes_32, from_millis};
use crate::{KeyDecision, StoreError};

pub(super) const READING: &str = "reading the keys";
const WRITING: &str = "writing the keys";

/// See [`Store::read_keys`](crate::Store::read_keys).
pub(super) fn read(session: &mut Session) -> Result<(Changes, Vec<KeyRecord>), StoreError> {
    Ok((catalog::changes(session)?, records(session)?))
}

fn records(session: &mut Session) -> Result<Vec<KeyRecord>, StoreError> {
    let sql = "select k.prefix, label, secret_hash, is_test, api_version, quota_requests, \
               quota_seconds, created_at, expires_at, revoked_at, rotated_at, last_used_at \
               from vitrine.api_key k left join vitrine.api_key_use u on u.prefix = k.prefix \
               order by created_at, k.prefix";
    let mut records = Vec::new();
    // However many there are: a limit holds for a few rows at a time.
    session.each_row(READING, sql, &[], |row| {
        records.push(record(row)?);
        Ok(())
    })?;
    Ok(records)
}

/// See [`Store::change_keys`](crate::Store::change_keys).
pub(super) fn change(
    session: &mut Session,
    decide: KeyDecision<'_>,
    patience: Duration,
) -> Result<(), StoreError> {
    session.transaction(WRITING, BEGIN, |session| {
        lock::take(session, Lock::Keys, patience)?;
        let changed = decide(&records(session)?);
        if changed.is_empty() {
            return Ok(());
        }
        for record in &changed {
            write(session, record)?;
            FailPoint::KeysWritten.pass()?;
        }
        session.run(WRITING, COUNT_KEYS)?;
        FailPoint::KeysCounted.pass()?;
        session.run(WRITING, NOTIFY)
    })
}

/// By a random step: a database may fail over to a copy that was behind, where others then change keys. It mustn't
/// come to the same number.
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
    // Of several servers, none waits long for another: this can be done a little later, looking for revocations
    // can't. In one order, so that none waits for another that waits for it.
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

fn write(session: &mut Session, record: &KeyRecord) -> Result<(), StoreError> {
    let KeyRecord {
        prefix,
        label,
        secret_hash,
        kind,
        api_version,
        quota,
        created_at,
        expires_at,
        revoked_at,
        rotated_at,
        last_used_at: _, // written by servers, in a table of its own
    } = record;
    let sql = "insert into vitrine.api_key (prefix, label, secret_hash, is_test, api_version, \
               quota_requests, quota_seconds, created_at, expires_at, revoked_at, rotated_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
               on conflict (prefix) do update set label = excluded.label, \
               secret_hash = excluded.secret_hash, is_test = excluded.is_test, \
               api_version = excluded.api_version, quota_requests = excluded.quota_requests, \
               quota_seconds = excluded.quota_seconds, created_at = excluded.created_at, \
               expires_at = excluded.expires_at, revoked_at = excluded.revoked_at, \
               rotated_at = excluded.rotated_at";
    session
        .execute(
            WRITING,
            sql,
            &[
                prefix.param(),
                label.param(),
                (&secret_hash.as_bytes()[..]).param(),
                (*kind == KeyKind::Test).param(),
                api_version.param(),
                quota.map(|quota| i64::from(quota.requests())).param(),
                quota.map(|quota| i64::from(quota.window_seconds())).param(),
                created_at.as_millisecond().param(),
                expires_at.map(Timestamp::as_millisecond).param(),
                revoked_at.map(Timestamp::as_millisecond).param(),
                rotated_at.map(Timestamp::as_millisecond).param(),
            ],
        )
        .map(drop)
}

fn record(row: &Row) -> Result<KeyRecord, StoreError> {
    let moment = |column| {
        get::<Option<i64>>(row, column)?
            .map(from_millis)
            .transpose()
    };
    let part = |column| {
        let number: Option<i64> = get(row, column)?;
        let part = number.map(u32::try_from).transpose();
        part.map_err(|_| StoreError::Damaged("a quota that is out of range".to_owned()))
    };
    let (requests, seconds): (Option<u32>, Option<u32>) = (part(5)?, part(6)?);
    let quota = requests
        .zip(seconds)
        .map(|(requests, seconds)| Quota::new(requests, seconds))
        .transpose()
        .map_err(|error| StoreError::Damaged(format!("a quota, {error}")))?;
    Ok(KeyRecord {
        prefix: get(row, 0)?,
        label: get(row, 1)?,
        secret_hash: SecretHash::from_bytes(bytes_32(get(row, 2)?)?),
        kind: match get(row, 3)? {
            true => KeyKind::Test,
            false => KeyKind::Live,
        },
        api_version: get(row, 4)?,
        quota,
        created_at: from_millis(get(row, 7)?)?,
        expires_at: moment(8)?,
        revoked_at: moment(9)?,
        rotated_at: moment(10)?,
        last_used_at: moment(11)?,
    })
}
