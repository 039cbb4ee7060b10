//! Requests of keys by day: servers add to them, and delete what is old.

use std::time::Duration;

use jiff::civil::Date;
use vitrine_model::key::KeyRequests;

use crate::StoreError;
use crate::db::{Db, Value, values};
use crate::fail_point::FailPoint;
use crate::record::KeyDay;
use crate::values::key_day;

/// Maximum number of old days deleted at once.
const MAX_DELETED: u32 = 1_000;

/// See [`Store::key_days`](crate::Store::key_days).
pub(crate) fn read(db: Db<'_>, since: Date) -> Result<Vec<KeyDay>, StoreError> {
    let sql = "select day, prefix, requests, charged from vitrine.api_key_day where day >= $1 \
               order by day desc, prefix";
    db.read("reading the days of keys", |tx| {
        tx.rows(sql, values![&since.to_string()], |row| {
            key_day(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)
        })
    })
}

/// See [`Store::add_key_days`](crate::Store::add_key_days).
pub(crate) fn add(db: Db<'_>, days: &[KeyDay], kept_since: Date) -> Result<(), StoreError> {
    if db.is_read_only() {
        return Ok(());
    }
    // In one order: two servers that wait for each other would deadlock.
    let mut days: Vec<&KeyDay> = days.iter().collect();
    days.sort_unstable_by(|a, b| (a.day, &a.prefix).cmp(&(b.day, &b.prefix)));
    let names: Vec<String> = days.iter().map(|one| one.day.to_string()).collect();
    let committed = FailPoint::KeyDaysCommitted;
    db.write_briefly(
        Duration::ZERO,
        committed,
        "writing the days of keys",
        |tx| {
            let rows = days.iter().zip(&names).map(|(one, day)| {
            let KeyRequests { requests, charged } = one.counts;
            [Value::from(day), Value::from(&one.prefix), requests.into(), charged.into()]
        });
        let sql = "insert into vitrine.api_key_day as d (day, prefix, requests, charged) values {} \
                   on conflict (day, prefix) do update set \
                   requests = d.requests + excluded.requests, charged = d.charged + excluded.charged";
        tx.with_rows(sql, &rows.collect::<Vec<_>>())?;
        FailPoint::KeyDaysWritten.pass()?;
        // Those that another server deletes now are left to it.
            let sql = "delete from vitrine.api_key_day where (day, prefix) in \
                   (select day, prefix from vitrine.api_key_day where day < $1 \
                    limit $2 for update skip locked)";
            tx.execute(sql, values![&kept_since.to_string(), MAX_DELETED])
                .map(drop)
        },
    )
}
