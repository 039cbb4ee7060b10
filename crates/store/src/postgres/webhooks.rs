//! Webhook endpoints: rows that deliverers lease by the database's clock. No session lock, so a transaction pooler may stand
//! between.

use tokio_postgres::Row;

use super::lock::{self, Lock};
use super::session::{Param, Session, Typed, count, get, number};
use super::{BEGIN, PostgresStore, READ_TIMEOUT};
use crate::StoreError;
use crate::audit::{AuditContext, log};
use crate::db::Tx;
use crate::fail_point::FailPoint;
use crate::sqlite::{BackedUp, RESTORED};
use crate::webhooks::{
    self, Attempt, Changed, DeliveryUpdate, Endpoint, EndpointChange, LEASE, Lease, NewEndpoint,
    Rows, StoredEndpoint, WebhookState, WebhookStore, Which, from_json, to_json,
};

const READING: &str = "reading the webhooks";
const WRITING: &str = "writing the webhooks";

/// SQL for the database in which the rows are: a replica that takes over has the same, a copy by `pg_restore` another.
const ORIGIN: &str = "(select oid::text from pg_catalog.pg_database where datname = current_database()) \
     || ' ' || (select system_identifier::text from pg_catalog.pg_control_system())";

/// Reason of the status of endpoints in a copy of a database.
const COPIED: &str = "the database is a copy; `vitrine webhooks enable` goes on";

impl PostgresStore {
    /// Runs an operator's change.
    fn change_webhooks<T>(
        &self,
        context: &AuditContext,
        work: impl FnOnce(&mut PostgresRows<'_>) -> Result<Changed<T>, StoreError>,
    ) -> Result<T, StoreError> {
        self.writer()?.transaction(WRITING, BEGIN, |session| {
            lock::take(session, Lock::Keys, self.lock_wait)?;
            pause_copies(session)?;
            let (done, changes) = work(&mut PostgresRows(session))?;
            log::write(
                &mut Tx::postgres(session, "writing the audit log"),
                context,
                changes,
            )?;
            FailPoint::WebhooksWritten.pass()?;
            Ok(done)
        })
    }

    /// Runs a deliverer's work.
    fn deliver<T>(
        &self,
        work: impl FnOnce(&mut PostgresRows<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.quick(|session| {
            session.transaction(WRITING, BEGIN, |session| work(&mut PostgresRows(session)))
        })
    }
}

impl WebhookStore for PostgresStore {
    fn webhook_state(&self) -> Result<WebhookState, StoreError> {
        let sql = format!(
            "select changes, key_fingerprint, origin = {ORIGIN} from vitrine.webhook_state"
        );
        let (state, is_origin) = self.quick(|session| {
            let row = session.row(READING, &sql, &[])?;
            let row = row.ok_or_else(|| StoreError::Damaged("no state of webhooks".to_owned()))?;
            Ok((state(&row)?, get(&row, 2)?))
        })?;
        match is_origin {
            true => Ok(state),
            false => self.writer()?.transaction(WRITING, BEGIN, |session| {
                lock::take(session, Lock::Keys, self.lock_wait)?;
                pause_copies(session)?;
                PostgresRows(session).state()
            }),
        }
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>, StoreError> {
        let rows = self.read(READING, READ_TIMEOUT, |session| {
            PostgresRows(session).read(Which::All)
        })?;
        Ok(rows.into_iter().map(|row| row.endpoint).collect())
    }

    fn endpoint(&self, id: &str) -> Result<Option<Endpoint>, StoreError> {
        let sql = "select document, fence, lease from vitrine.webhook_endpoint where id = $1";
        self.quick(|session| {
            let row = session.row(READING, sql, &[id.param()])?;
            row.map(|row| Ok(stored(&row)?.endpoint)).transpose()
        })
    }

    fn attempts(&self, id: &str) -> Result<Vec<Attempt>, StoreError> {
        let sql = "select document from vitrine.webhook_attempt where endpoint = $1 \
                   order by number desc";
        self.quick(|session| {
            let rows = session.rows(READING, sql, &[id.param()])?;
            rows.iter().map(|row| from_json(get(row, 0)?)).collect()
        })
    }

    fn create_endpoint(
        &self,
        new: &NewEndpoint,
        key_fingerprint: &str,
        context: &AuditContext,
    ) -> Result<(), StoreError> {
        self.change_webhooks(context, |rows| webhooks::create(rows, new, key_fingerprint))
    }

    fn change_endpoint(
        &self,
        id: &str,
        change: &EndpointChange,
        context: &AuditContext,
    ) -> Result<Option<Endpoint>, StoreError> {
        self.change_webhooks(context, |rows| webhooks::change(rows, id, change))
    }

    fn move_endpoints(
        &self,
        from_key: &str,
        to_key: &str,
        context: &AuditContext,
    ) -> Result<u64, StoreError> {
        self.change_webhooks(context, |rows| webhooks::move_all(rows, from_key, to_key))
    }

    fn delete_endpoint(&self, id: &str, context: &AuditContext) -> Result<bool, StoreError> {
        self.change_webhooks(context, |rows| webhooks::delete(rows, id))
    }

    fn take_endpoints(&self, ids: &[String]) -> Result<Vec<(Lease, Endpoint)>, StoreError> {
        self.deliver(|rows| webhooks::take(rows, ids))
    }

    fn update_deliveries(&self, updates: &[DeliveryUpdate]) -> Result<Vec<bool>, StoreError> {
        self.deliver(|rows| webhooks::update(rows, updates))
    }
}

/// Pauses all endpoints if the database is a copy of the one in which they were active: a copy for trying things out tells
/// nobody.
fn pause_copies(session: &mut Session) -> Result<(), StoreError> {
    // Held until the commit, so that one of several processes does it.
    let sql = format!("select origin, {ORIGIN} from vitrine.webhook_state for update");
    let Some(row) = session.row(WRITING, &sql, &[])? else {
        return Ok(());
    };
    let (before, now): (String, String) = (get(&row, 0)?, get(&row, 1)?);
    if before == now {
        return Ok(());
    }
    if !before.is_empty() {
        webhooks::pause_all(&mut PostgresRows(session), COPIED)?;
    }
    let sql = "update vitrine.webhook_state set origin = $1";
    session.execute(WRITING, sql, &[now.param()]).map(drop)
}

/// Replaces all endpoints by those of a backup, paused.
pub(super) fn restore(session: &mut Session, backup: &BackedUp) -> Result<(), StoreError> {
    pause_copies(session)?;
    webhooks::replace(
        &mut PostgresRows(session),
        &backup.endpoints,
        &backup.attempts,
        backup.state.key_fingerprint.clone(),
        RESTORED,
    )
}

/// Rows of the database.
struct PostgresRows<'s>(&'s mut Session);

impl Rows for PostgresRows<'_> {
    fn state(&mut self) -> Result<WebhookState, StoreError> {
        let sql = "select changes, key_fingerprint from vitrine.webhook_state";
        let row = self.0.row(READING, sql, &[])?;
        row.map_or_else(|| Ok(WebhookState::default()), |row| state(&row))
    }

    fn set_state(&mut self, state: &WebhookState) -> Result<(), StoreError> {
        let sql = "update vitrine.webhook_state set changes = $1, key_fingerprint = $2";
        let changes = number(state.changes);
        let values = [changes.param(), state.key_fingerprint.param()];
        self.0.execute(WRITING, sql, &values).map(drop)
    }

    fn read(&mut self, which: Which<'_>) -> Result<Vec<StoredEndpoint>, StoreError> {
        let ids: Vec<&str>;
        let values: [Param<'_>; 1];
        // Rows are locked in one order, since batches of deliverers meet.
        let (rest, values) = match which {
            Which::All => ("order by number", &[][..]),
            Which::These(wanted) => {
                ids = wanted.iter().map(String::as_str).collect();
                values = [ids.param()];
                ("where id = any($1) order by id for update", &values[..])
            }
            Which::Free(wanted) => {
                ids = wanted.iter().map(String::as_str).collect();
                values = [ids.param()];
                let free = "where id = any($1) \
                            and (lease is null or leased_until is null or leased_until <= clock_timestamp()) \
                            order by id for update skip locked";
                (free, &values[..])
            }
        };
        let sql = format!("select document, fence, lease from vitrine.webhook_endpoint {rest}");
        let mut found = Vec::new();
        self.0.each_row(READING, &sql, values, |row| {
            found.push(stored(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    fn insert(&mut self, endpoint: &Endpoint) -> Result<(), StoreError> {
        let sql = "insert into vitrine.webhook_endpoint (id, document) values ($1, $2)";
        let document = to_json(endpoint)?;
        let values = [endpoint.id.param(), document.param()];
        self.0.execute(WRITING, sql, &values).map(drop)
    }

    fn write(&mut self, rows: &[StoredEndpoint]) -> Result<(), StoreError> {
        let ids: Vec<&str> = rows.iter().map(|row| row.endpoint.id.as_str()).collect();
        let documents = rows.iter().map(|row| to_json(&row.endpoint));
        let documents = documents.collect::<Result<Vec<String>, StoreError>>()?;
        let fences: Vec<i64> = rows.iter().map(|row| number(row.fence)).collect();
        // Empty: none. Arrays of texts have no nulls here.
        let leases = rows
            .iter()
            .map(|row| row.lease.as_deref().unwrap_or_default());
        let leases: Vec<&str> = leases.collect();
        let renews: Vec<bool> = rows.iter().map(|row| row.renews).collect();
        let sql = format!(
            "update vitrine.webhook_endpoint e set document = u.document, fence = u.fence, \
               lease = nullif(u.lease, ''), leased_until = case when u.renews \
                  then clock_timestamp() + interval '{} seconds' else e.leased_until end \
             from unnest($1, $2, $3, $4, $5) u (id, document, fence, lease, renews) \
             where e.id = u.id",
            LEASE.as_secs()
        );
        let values = [
            ids.param(),
            documents.param(),
            fences.param(),
            leases.param(),
            renews.param(),
        ];
        self.0.execute(WRITING, &sql, &values).map(drop)
    }

    fn delete(&mut self, ids: &[String]) -> Result<(), StoreError> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        for sql in [
            "delete from vitrine.webhook_endpoint where id = any($1)",
            "delete from vitrine.webhook_attempt where endpoint = any($1)",
        ] {
            self.0.execute(WRITING, sql, &[ids.param()])?;
        }
        Ok(())
    }

    fn add_attempts(&mut self, attempts: &[(&str, &Attempt)], kept: u32) -> Result<(), StoreError> {
        if attempts.is_empty() {
            return Ok(());
        }
        let endpoints: Vec<&str> = attempts.iter().map(|(endpoint, _)| *endpoint).collect();
        let documents = attempts.iter().map(|(_, attempt)| to_json(attempt));
        let documents = documents.collect::<Result<Vec<String>, StoreError>>()?;
        let sql = "insert into vitrine.webhook_attempt (endpoint, number, document) \
                   select u.endpoint, coalesce((select max(number) from vitrine.webhook_attempt a \
                      where a.endpoint = u.endpoint), 0) \
                      + row_number() over (partition by u.endpoint order by u.ordinality), u.document \
                   from unnest($1, $2) with ordinality u (endpoint, document)";
        let values = [endpoints.param(), documents.param()];
        self.0.execute(WRITING, sql, &values)?;
        let sql = "delete from vitrine.webhook_attempt a using \
                   (select endpoint, max(number) - $2 as oldest from vitrine.webhook_attempt \
                      where endpoint = any($1) group by endpoint) u \
                   where a.endpoint = u.endpoint and a.number <= u.oldest";
        let kept = i64::from(kept);
        let values = [endpoints.param(), kept.param()];
        self.0.execute(WRITING, sql, &values).map(drop)
    }
}

fn state(row: &Row) -> Result<WebhookState, StoreError> {
    Ok(WebhookState {
        changes: count(row, 0)?,
        key_fingerprint: get(row, 1)?,
    })
}

fn stored(row: &Row) -> Result<StoredEndpoint, StoreError> {
    Ok(StoredEndpoint {
        endpoint: from_json(get(row, 0)?)?,
        fence: count(row, 1)?,
        lease: get(row, 2)?,
        renews: false,
    })
}
