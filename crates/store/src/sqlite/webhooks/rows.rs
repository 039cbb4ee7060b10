//! Rows of the webhooks' file.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{READING, WRITING};
use crate::StoreError;
use crate::sqlite::during;
use crate::webhooks::{
    Attempt, Endpoint, LEASE, Rows, StoredEndpoint, WebhookState, Which, from_json, to_json,
};

/// Rows of the file.
pub(in crate::sqlite) struct SqliteRows<'t>(pub(super) &'t Transaction<'t>);

impl Rows for SqliteRows<'_> {
    fn state(&mut self) -> Result<WebhookState, StoreError> {
        state(self.0)
    }

    fn set_state(&mut self, state: &WebhookState) -> Result<(), StoreError> {
        let sql = "update webhook_state set changes = ?, key_fingerprint = ?";
        let values = params![state.changes, state.key_fingerprint];
        let written = self.0.execute(sql, values);
        written.map(drop).map_err(during(WRITING))
    }

    fn read(&mut self, which: Which<'_>) -> Result<Vec<StoredEndpoint>, StoreError> {
        let Self(transaction) = self;
        let (ids, only_free) = match which {
            Which::All => {
                let rows = read(transaction, "true order by number", [])?;
                return Ok(rows.into_iter().map(|(row, _)| row).collect());
            }
            Which::These(ids) => (ids, false),
            Which::Free(ids) => (ids, true),
        };
        let clock = Clock::now()?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let rows = read(transaction, "id = ?", [id])?;
            let rows = rows
                .into_iter()
                .filter(|(_, lease)| !only_free || lease.is_over(&clock));
            found.extend(rows.map(|(row, _)| row));
        }
        Ok(found)
    }

    fn insert(&mut self, endpoint: &Endpoint) -> Result<(), StoreError> {
        let sql = "insert into webhook_endpoint (id, document) values (?, ?)";
        let inserted = self.0.execute(sql, (&endpoint.id, to_json(endpoint)?));
        inserted.map(drop).map_err(during(WRITING))
    }

    fn write(&mut self, rows: &[StoredEndpoint]) -> Result<(), StoreError> {
        let clock = Clock::now()?;
        let until = clock.milliseconds + i64::try_from(LEASE.as_millis()).unwrap_or_default();
        let sql = "update webhook_endpoint set document = ?2, fence = ?3, lease = ?4, \
                   leased_until = iif(?5, ?6, leased_until), boot = iif(?5, ?7, boot) where id = ?1";
        let mut statement = self.0.prepare_cached(sql).map_err(during(WRITING))?;
        for row in rows {
            let values = params![
                row.endpoint.id,
                to_json(&row.endpoint)?,
                row.fence,
                row.lease,
                row.renews,
                until,
                clock.boot,
            ];
            statement.execute(values).map_err(during(WRITING))?;
        }
        Ok(())
    }

    fn delete(&mut self, ids: &[String]) -> Result<(), StoreError> {
        for id in ids {
            for sql in [
                "delete from webhook_endpoint where id = ?",
                "delete from webhook_attempt where endpoint = ?",
            ] {
                self.0.execute(sql, [id]).map_err(during(WRITING))?;
            }
        }
        Ok(())
    }

    fn add_attempts(&mut self, attempts: &[(&str, &Attempt)], kept: u32) -> Result<(), StoreError> {
        let Self(transaction) = self;
        let insert = "insert into webhook_attempt (endpoint, number, document) \
                      select ?1, coalesce(max(number), 0) + 1, ?2 from webhook_attempt \
                      where endpoint = ?1 returning number";
        let delete = "delete from webhook_attempt where endpoint = ?1 and number <= ?2";
        let mut insert = transaction
            .prepare_cached(insert)
            .map_err(during(WRITING))?;
        let mut delete = transaction
            .prepare_cached(delete)
            .map_err(during(WRITING))?;
        for (endpoint, attempt) in attempts {
            let number = insert.query_row((endpoint, to_json(attempt)?), |row| row.get(0));
            let number: i64 = number.map_err(during(WRITING))?;
            let deleted = delete.execute((endpoint, number - i64::from(kept)));
            deleted.map_err(during(WRITING))?;
        }
        Ok(())
    }
}

pub(super) fn state(connection: &Connection) -> Result<WebhookState, StoreError> {
    let sql = "select changes, key_fingerprint from webhook_state";
    let read = |row: &Row<'_>| {
        Ok(WebhookState {
            changes: row.get(0)?,
            key_fingerprint: row.get(1)?,
        })
    };
    let found = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([], read).optional());
    Ok(found.map_err(during(READING))?.unwrap_or_default())
}

/// End of a lease.
pub(super) struct LeaseEnd {
    is_leased: bool,
    until: Option<i64>,
    boot: Option<String>,
}

impl LeaseEnd {
    fn is_over(&self, clock: &Clock) -> bool {
        let is_past = self.until.is_none_or(|until| until <= clock.milliseconds);
        !self.is_leased || is_past || self.boot.as_ref() != Some(&clock.boot)
    }
}

pub(super) fn read(
    connection: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<(StoredEndpoint, LeaseEnd)>, StoreError> {
    let sql = format!(
        "select document, fence, lease, leased_until, boot from webhook_endpoint where {rest}"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(during(READING))?;
    let mut rows = statement.query(params).map_err(during(READING))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(during(READING))? {
        found.push(endpoint(row)?);
    }
    Ok(found)
}

fn endpoint(row: &Row<'_>) -> Result<(StoredEndpoint, LeaseEnd), StoreError> {
    let failed = during(READING);
    let document: String = row.get(0).map_err(&failed)?;
    let lease: Option<String> = row.get(2).map_err(&failed)?;
    let end = LeaseEnd {
        is_leased: lease.is_some(),
        until: row.get(3).map_err(&failed)?,
        boot: row.get(4).map_err(&failed)?,
    };
    let stored = StoredEndpoint {
        endpoint: from_json(&document)?,
        fence: row.get(1).map_err(&failed)?,
        lease,
        renews: false,
    };
    Ok((stored, end))
}

/// Returns attempts, each with the id of its endpoint.
pub(super) fn attempts(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<(String, Attempt)>, StoreError> {
    let mut statement = connection.prepare(sql).map_err(during(READING))?;
    let rows = statement.query_map(params, |row| Ok((row.get(0)?, row.get::<_, String>(1)?)));
    let rows = rows.map_err(during(READING))?;
    rows.map(|row| {
        let (endpoint, document) = row.map_err(during(READING))?;
        Ok((endpoint, from_json(&document)?))
    })
    .collect()
}

/// Time since the machine's start.
struct Clock {
    milliseconds: i64,
    /// Random id of the start.
    boot: String,
}

impl Clock {
    fn now() -> Result<Self, StoreError> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let boot = Path::new("/proc/sys/kernel/random/boot_id");
        let read = std::fs::read_to_string(boot).map_err(|source| StoreError::File {
            doing: "read",
            path: boot.to_owned(),
            source,
        });
        Ok(Self {
            milliseconds: now.tv_sec * 1_000 + now.tv_nsec / 1_000_000,
            boot: read?.trim_end().to_owned(),
        })
    }
}
