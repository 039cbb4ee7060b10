//! Requests of keys by day: servers add to them, and delete what is old.

use std::time::Duration;

use jiff::civil::Date;
use rusqlite::{Connection, TransactionBehavior};
use vitrine_model::key::KeyRequests;

use super::{committed, during, keys};
use crate::StoreError;
use crate::fail_point::FailPoint;
use crate::record::KeyDay;
use crate::values::{count, key_day};

const READING: &str = "reading the days of keys";
const WRITING: &str = "writing the days of keys";

/// Maximum number of old days deleted at once.
const MAX_DELETED: u32 = 1_000;

/// See [`Store::key_days`](crate::Store::key_days).
pub(super) fn read(connection: &Connection, since: Date) -> Result<Vec<KeyDay>, StoreError> {
    let sql = "select day, prefix, requests, charged from api_key_day where day >= ? \
               order by day desc, prefix";
    let mut statement = connection.prepare(sql).map_err(during(READING))?;
    let mut rows = statement
        .query([since.to_string()])
        .map_err(during(READING))?;
    let mut days = Vec::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        let read = || Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let (day, prefix, requests, charged): (String, _, _, _) =
            read().map_err(during(READING))?;
        days.push(key_day(&day, prefix, requests, charged)?);
    }
    Ok(days)
}

/// See [`Store::add_key_days`](crate::Store::add_key_days).
pub(super) fn add(
    connection: &mut Connection,
    days: &[KeyDay],
    kept_since: Date,
    lock_wait: Duration,
) -> Result<(), StoreError> {
    keys::without_waiting(connection, lock_wait, |connection| {
        write(connection, days, kept_since)
    })
}

fn write(connection: &mut Connection, days: &[KeyDay], kept_since: Date) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(WRITING))?;
    for KeyDay {
        day,
        prefix,
        counts: KeyRequests { requests, charged },
    } in days
    {
        let sql = "insert into api_key_day (day, prefix, requests, charged) values (?, ?, ?, ?) \
                   on conflict (day, prefix) do update set \
                   requests = requests + excluded.requests, charged = charged + excluded.charged";
        let values = (day.to_string(), prefix, count(*requests), count(*charged));
        transaction
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map_err(during(WRITING))?;
        FailPoint::KeyDaysWritten.pass()?;
    }
    let sql = "delete from api_key_day where (day, prefix) in \
               (select day, prefix from api_key_day where day < ? limit ?)";
    transaction
        .execute(sql, (kept_since.to_string(), MAX_DELETED))
        .map_err(during(WRITING))?;
    committed(transaction.commit(), FailPoint::KeyDaysCommitted, WRITING)
}
