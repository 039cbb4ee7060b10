//! API keys: read as a whole, changed in one transaction with their counter.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use vitrine_model::key::{KeyKind, KeyRecord, SecretHash};
use vitrine_model::quota::Quota;

use super::{catalog, committed, during};
use crate::fail_point::FailPoint;
use crate::record::Changes;
use crate::values::{bytes_32, from_millis};
use crate::{KeyDecision, StoreError};

const READING: &str = "reading the keys";
const WRITING: &str = "writing the keys";

/// See [`Store::read_keys`](crate::Store::read_keys).
pub(super) fn read(connection: &mut Connection) -> Result<(Changes, Vec<KeyRecord>), StoreError> {
    let transaction = connection.transaction().map_err(during(READING))?;
    Ok((catalog::changes(&transaction)?, records(&transaction)?))
}

/// See [`Store::change_keys`](crate::Store::change_keys).
pub(super) fn change(
    connection: &mut Connection,
    decide: KeyDecision<'_>,
) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(WRITING))?;
    let changed = decide(&records(&transaction)?);
    if changed.is_empty() {
        return Ok(());
    }
    for record in &changed {
        write(&transaction, record).map_err(during(WRITING))?;
        FailPoint::KeysWritten.pass()?;
    }
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
    patience: Duration,
) -> Result<(), StoreError> {
    // Never waits for a writer: this can be done a little later, looking for revocations can't.
    connection
        .busy_timeout(Duration::ZERO)
        .map_err(during(WRITING))?;
    let outcome = write_uses(connection, uses);
    connection.busy_timeout(patience).map_err(during(WRITING))?;
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

fn write(transaction: &Transaction<'_>, record: &KeyRecord) -> rusqlite::Result<()> {
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
    transaction.execute(
        "insert or replace into api_key (prefix, label, secret_hash, is_test, api_version, \
         quota_requests, quota_seconds, created_at, expires_at, revoked_at, rotated_at) \
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            prefix,
            label,
            secret_hash.as_bytes(),
            *kind == KeyKind::Test,
            api_version,
            quota.map(Quota::requests),
            quota.map(Quota::window_seconds),
            created_at.as_millisecond(),
            expires_at.map(Timestamp::as_millisecond),
            revoked_at.map(Timestamp::as_millisecond),
            rotated_at.map(Timestamp::as_millisecond),
        ],
    )?;
    Ok(())
}

pub(super) fn records(transaction: &Transaction<'_>) -> Result<Vec<KeyRecord>, StoreError> {
    let sql = "select k.prefix, label, secret_hash, is_test, api_version, quota_requests, \
               quota_seconds, created_at, expires_at, revoked_at, rotated_at, last_used_at \
               from api_key k left join api_key_use u on u.prefix = k.prefix \
               order by created_at, k.prefix";
    let mut statement = transaction.prepare_cached(sql).map_err(during(READING))?;
    let mut rows = statement.query([]).map_err(during(READING))?;
    let mut records = Vec::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        records.push(record(row)?);
    }
    Ok(records)
}

fn record(row: &Row<'_>) -> Result<KeyRecord, StoreError> {
    fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, column: usize) -> Result<T, StoreError> {
        row.get(column).map_err(during(READING))
    }
    let hash: Vec<u8> = get(row, 2)?;
    let moment = |column| {
        get::<Option<i64>>(row, column)?
            .map(from_millis)
            .transpose()
    };
    let quota: (Option<u32>, Option<u32>) = (get(row, 5)?, get(row, 6)?);
    let quota = quota
        .0
        .zip(quota.1)
        .map(|(requests, seconds)| Quota::new(requests, seconds))
        .transpose()
        .map_err(|error| StoreError::Damaged(format!("a quota, {error}")))?;
    Ok(KeyRecord {
        prefix: get(row, 0)?,
        label: get(row, 1)?,
        secret_hash: SecretHash::from_bytes(bytes_32(&hash)?),
        kind: if get(row, 3)? {
            KeyKind::Test
        } else {
            KeyKind::Live
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
