//! Requests of keys by day: servers add to them, and delete what is old.

use jiff::civil::Date;

use super::BEGIN;
use super::session::{Session, Typed, get};
use crate::StoreError;
use crate::fail_point::FailPoint;
use crate::record::KeyDay;
use crate::values::{count, key_day};

pub(super) const READING: &str = "reading the days of keys";
const WRITING: &str = "writing the days of keys";

/// Maximum number of old days deleted at once.
const MAX_DELETED: i64 = 1_000;

/// See [`Store::key_days`](crate::Store::key_days).
pub(super) fn read(session: &mut Session, since: Date) -> Result<Vec<KeyDay>, StoreError> {
    let sql = "select day, prefix, requests, charged from vitrine.api_key_day where day >= $1 \
               order by day desc, prefix";
    let (since, mut days) = (since.to_string(), Vec::new());
    session.each_row(READING, sql, &[since.param()], |row| {
        let prefix = get(row, 1)?;
        days.push(key_day(get(row, 0)?, prefix, get(row, 2)?, get(row, 3)?)?);
        Ok(())
    })?;
    Ok(days)
}

/// See [`Store::add_key_days`](crate::Store::add_key_days).
pub(super) fn add(
    session: &mut Session,
    days: &[KeyDay],
    kept_since: Date,
) -> Result<(), StoreError> {
    let names: Vec<String> = days.iter().map(|one| one.day.to_string()).collect();
    let prefixes: Vec<&str> = days.iter().map(|one| one.prefix.as_str()).collect();
    let requests: Vec<i64> = days.iter().map(|one| count(one.counts.requests)).collect();
    let charged: Vec<i64> = days.iter().map(|one| count(one.counts.charged)).collect();
    // `lock_timeout` and `order by`: as in `keys::record_use`.
    let sql = "insert into vitrine.api_key_day as d (day, prefix, requests, charged) \
               select day, prefix, requests, charged \
               from unnest($1, $2, $3, $4) u (day, prefix, requests, charged) order by day, prefix \
               on conflict (day, prefix) do update set requests = d.requests + excluded.requests, \
               charged = d.charged + excluded.charged";
    let begin = format!("{BEGIN}; set local lock_timeout = 100");
    session.transaction(WRITING, &begin, |session| {
        let values = [
            names.param(),
            prefixes.param(),
            requests.param(),
            charged.param(),
        ];
        session.execute(WRITING, sql, &values)?;
        FailPoint::KeyDaysWritten.pass()?;
        // Those that another server deletes now are left to it.
        let sql = "delete from vitrine.api_key_day where (day, prefix) in \
                   (select day, prefix from vitrine.api_key_day where day < $1 \
                    limit $2 for update skip locked)";
        let oldest = kept_since.to_string();
        let values = [oldest.param(), MAX_DELETED.param()];
        session.execute(WRITING, sql, &values).map(drop)
    })
}
