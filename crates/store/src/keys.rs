//! API keys: read as a whole or as far as they changed, changed in one transaction with their counter; and their requests by
//! day.
//!
//! The audit log says which keys changed: each change of a key has an entry in it, in the same transaction, and the digest
//! of an entry stands for all entries up to it.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use vitrine_model::key::{KeyRecord, KeyRequests};

use crate::StoreError;
use crate::assortment::is_live;
use crate::audit::{self, AuditContext, AuditPosition, written_keys};
use crate::catalog::state;
use crate::db::{Row, Tx, Value, values};
use crate::fail_point::FailPoint;
use crate::postgres::Lock;
use crate::record::{KeyDay, StoreState};
use crate::values::{KeyRow, key_day, random_step};

const READING: &str = "reading the keys";
const WRITING: &str = "writing the keys";

/// Maximum number of changed keys that are read by their prefixes; beyond it, all keys are read.
const MAX_CHANGED: u32 = 1_000;

/// Maximum number of old days deleted at once.
const MAX_DELETED_DAYS: u32 = 1_000;

/// Columns of a key, in the order of [`key_row`].
const COLUMNS: &str = "prefix, label, secret_hash, is_test, api_version, quota_requests, \
    quota_seconds, assortment, created_at, expires_at, revoked_at, rotated_at, digest";

impl crate::Store {
    /// Returns all keys, oldest first.
    pub fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.db().quick_rows(READING, records)
    }

    /// Returns the keys that changed since an earlier read, or all keys if that read isn't of this store's past.
    pub fn read_keys(&self, since: Option<&AuditPosition>) -> Result<KeysRead, StoreError> {
        self.db().quick_rows(READING, |tx| read(tx, since))
    }

    /// Reads keys and writes the records that `decide` returns, in one transaction, with an entry in the audit log for each
    /// that differs. Given `names`, only keys are read that have one as their prefix or label, or share the label of one
    /// that has.
    ///
    /// # Errors
    ///
    /// If a key that isn't revoked would have an assortment that isn't live ([`StoreError::NoAssortment`]), or the store
    /// can't be written.
    pub fn change_keys(
        &self,
        context: &AuditContext,
        names: Option<&[&str]>,
        decide: KeyDecision<'_>,
    ) -> Result<(), StoreError> {
        let committed = FailPoint::KeysCommitted;
        self.db().write(Lock::Keys, committed, WRITING, |tx| {
            let known = match names {
                Some(names) => named(tx, names)?,
                None => records(tx)?,
            };
            let changed = decide(&known);
            if changed.is_empty() {
                return Ok(());
            }
            let prefixes = changed.iter().map(|record| &*record.prefix);
            let before = with_prefixes(tx, &prefixes.collect::<Vec<_>>())?;
            for record in &changed {
                if let Some(name) = &record.assortment
                    && record.revoked_at.is_none()
                    && !is_live(tx, name)?
                {
                    return Err(StoreError::NoAssortment { name: name.clone() });
                }
                write(tx, &record.into())?;
                FailPoint::KeysWritten.pass()?;
            }
            audit::write(tx, context, written_keys(&before, &changed))?;
            count(tx)?;
            FailPoint::KeysCounted.pass()?;
            tx.notify()
        })
    }

    /// Records the last use of keys. This doesn't change [`state`](Self::state). Fails at once with
    /// [`StoreError::Busy`] while another process writes: try again later.
    pub fn record_key_use(&self, uses: &[(String, Timestamp)]) -> Result<(), StoreError> {
        let mut uses: Vec<(String, i64)> = (uses.iter())
            .map(|(prefix, at)| (prefix.clone(), at.as_millisecond()))
            .collect();
        // In one order: two servers that wait for each other would deadlock.
        uses.sort_unstable();
        self.write_at_once(FailPoint::KeyUseCommitted, WRITING, |tx| {
            write_uses(tx, &uses)?;
            FailPoint::KeyUseWritten.pass()
        })
    }

    /// Adds requests to the days of keys, and deletes some of the days before `kept_since`, in one transaction. This doesn't
    /// change [`state`](Self::state). Fails at once with [`StoreError::Busy`] while another process writes: try again later.
    pub fn add_key_days(&self, days: &[KeyDay], kept_since: Date) -> Result<(), StoreError> {
        let mut days: Vec<(String, &KeyDay)> =
            days.iter().map(|day| (day.day.to_string(), day)).collect();
        // In one order, likewise.
        days.sort_unstable_by(|(a, one), (b, other)| (a, &one.prefix).cmp(&(b, &other.prefix)));
        let rows = days.iter().map(|(day, one)| {
            let KeyRequests { requests, charged } = one.counts;
            [
                day.into(),
                (&one.prefix).into(),
                requests.into(),
                charged.into(),
            ]
        });
        let rows: Vec<[Value<'_>; 4]> = rows.collect();
        let doing = "writing the days of keys";
        self.write_at_once(FailPoint::KeyDaysCommitted, doing, |tx| {
            let sql = "insert into vitrine.api_key_day as d (day, prefix, requests, charged) \
                       values {} on conflict (day, prefix) do update \
                       set requests = d.requests + excluded.requests, \
                           charged = d.charged + excluded.charged";
            tx.with_rows(sql, &rows)?;
            FailPoint::KeyDaysWritten.pass()?;
            // Those that another server deletes now are left to it.
            let sql = "delete from vitrine.api_key_day where (day, prefix) in \
                       (select day, prefix from vitrine.api_key_day where day < $1 \
                        limit $2 for update skip locked)";
            let kept_since = kept_since.to_string();
            tx.execute(sql, values![&kept_since, MAX_DELETED_DAYS])
                .map(drop)
        })
    }

    /// Writes what servers record, unless this is a replica.
    fn write_at_once(
        &self,
        committed: FailPoint,
        doing: &'static str,
        work: impl FnOnce(&mut Tx<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match self.db() {
            db if db.is_read_only() => Ok(()),
            db => db.write_briefly(Duration::ZERO, committed, doing, work),
        }
    }

    /// Returns the requests of all keys on the days since `since`, newest day first, then by prefix.
    pub fn key_days(&self, since: Date) -> Result<Vec<KeyDay>, StoreError> {
        let sql = "select day, prefix, requests, charged from vitrine.api_key_day \
                   where day >= $1 order by day desc, prefix";
        self.db().read("reading the days of keys", |tx| {
            tx.rows(sql, values![&since.to_string()], |row| {
                key_day(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)
            })
        })
    }
}

/// Returns the records to write, given those that were read: new ones, and changed ones with the prefix that they had.
pub type KeyDecision<'a> = &'a mut dyn FnMut(&[KeyRecord]) -> Vec<KeyRecord>;

/// Keys of one moment.
#[derive(Debug, Clone)]
pub struct KeysRead {
    /// [`state`](crate::Store::state) of that moment.
    pub state: StoreState,
    /// Position of that moment, for the next read.
    pub position: AuditPosition,
    /// True if `records` are all keys, false if they are those that changed since an earlier read.
    pub is_whole: bool,
    /// Keys, oldest first.
    pub records: Vec<KeyRecord>,
}

/// Returns the keys that changed since a position, or all keys.
pub(crate) fn read(tx: &mut Tx<'_>, since: Option<&AuditPosition>) -> Result<KeysRead, StoreError> {
    let changed = match since {
        Some(since) => audit::keys_since(tx, since, MAX_CHANGED)?,
        None => None,
    };
    let records = match &changed {
        Some(prefixes) => {
            let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
            with_prefixes(tx, &prefixes)?
        }
        None => records(tx)?,
    };
    Ok(KeysRead {
        state: state(tx)?,
        position: audit::position(tx)?,
        is_whole: changed.is_none(),
        records,
    })
}

/// Returns all keys, oldest first.
pub(crate) fn records(tx: &mut Tx<'_>) -> Result<Vec<KeyRecord>, StoreError> {
    let rows = rows(tx)?.into_iter();
    rows.map(|(_, row)| row?.try_into()).collect()
}

/// Returns the keys with these prefixes, oldest first.
fn with_prefixes(tx: &mut Tx<'_>, prefixes: &[&str]) -> Result<Vec<KeyRecord>, StoreError> {
    if prefixes.is_empty() {
        return Ok(Vec::new());
    }
    let sql = select("where prefix = any($1)");
    tx.rows(&sql, values![prefixes], |row| key_row(row)?.try_into())
}

/// Returns the keys with one of these names as their prefix or label, and those that share a label with one, oldest first.
fn named(tx: &mut Tx<'_>, names: &[&str]) -> Result<Vec<KeyRecord>, StoreError> {
    // PostgreSQL refuses texts with zero bytes; no key has one.
    let names: Vec<&str> = (names.iter().copied())
        .filter(|name| !name.contains('\0'))
        .collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "select label from vitrine.api_key where prefix = any($1)";
    let labels: Vec<String> = tx.rows(sql, values![&names[..]], |row| row.get(0))?;
    let labels: Vec<&str> = (labels.iter().map(String::as_str))
        .chain(names.iter().copied())
        .collect();
    let sql = select("where prefix = any($1) or label = any($2)");
    let values = values![&names[..], &labels[..]];
    tx.rows(&sql, values, |row| key_row(row)?.try_into())
}

/// Writes the digest of each key's row, after a restore changed columns of some. All rows must be readable.
pub(crate) fn renew_digests(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    for (_, row) in rows(tx)? {
        let row = row?;
        if row.stored_digest != row.digest() {
            write(tx, &row)?;
        }
    }
    Ok(())
}

/// A key's prefix, and its row or the error of reading it.
type PrefixAndRow = (String, Result<KeyRow, StoreError>);

/// Returns the rows of all keys, oldest first.
pub(crate) fn rows(tx: &mut Tx<'_>) -> Result<Vec<PrefixAndRow>, StoreError> {
    let sql = select("/*scan*/");
    tx.rows(&sql, &[], |row| Ok((row.lossy(0)?, key_row(row))))
}

/// Returns the SQL for the rows that a condition selects, oldest first.
fn select(condition: &str) -> String {
    format!(
        "select {COLUMNS}, last_used_at from vitrine.api_key \
         left join vitrine.api_key_use using (prefix) {condition} order by created_at, prefix"
    )
}

/// Increments the counter of keys by a random step: after a failover to a replica that lagged, where keys are changed then,
/// it mustn't reach the same number.
pub(crate) fn count(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let sql = "update vitrine.state set keys_counter = keys_counter + $1";
    tx.execute(sql, values![random_step()?]).map(drop)
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
    let assigned = COLUMNS.split(", ");
    let assigned = assigned.map(|column| format!("{column} = excluded.{column}"));
    let assigned: Vec<String> = assigned.collect();
    let sql = format!(
        "insert into vitrine.api_key ({COLUMNS}) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
         on conflict (prefix) do update set {}",
        assigned.join(", ")
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
