//! Webhook endpoints, in a file of their own beside the store: loads hold the store's only writer's lock. Leases are by the
//! machine's clock since its start, which nobody sets.
//!
//! - `rows`: rows of the file; `backup`: endpoints in backups

pub(super) mod backup;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::partial::{Partial, with_ending};
use super::{FileId, SqliteStore, audit, committed, during, file_id, open};
use crate::StoreError;
use crate::audit::AuditContext;
use crate::fail_point::FailPoint;
use crate::webhooks::{
    self, Attempt, Changed, DeliveryUpdate, Endpoint, EndpointChange, Lease, NewEndpoint,
    WebhookState, WebhookStore,
};
use rows::{SqliteRows, attempts, read, state};

const READING: &str = "reading the webhooks";
const WRITING: &str = "writing the webhooks";

/// Maximum time that a deliverer waits for another writer of the file.
const DELIVERY_WAIT: Duration = Duration::from_secs(5);

/// Connection of deliverers and polls, opened at the first use.
#[derive(Default)]
pub(super) struct Held(Mutex<Option<(Connection, FileId)>>);

/// Returns the path of the file.
pub(super) fn path(store: &Path) -> PathBuf {
    with_ending(store, "-webhooks")
}

/// Creates the file, without endpoints.
pub(super) fn create(path: &Path, store_id: &str) -> Result<(), StoreError> {
    let partial = Partial::create_beside(path)?;
    let connection = open::plain_connection(partial.path(), Duration::ZERO)?;
    let made = connection
        .execute_batch(include_str!("webhooks.sql"))
        .and_then(|()| {
            let sql = "insert into webhook_state (store_id, changes) values (?, 1)";
            connection.execute(sql, [store_id])
        });
    made.map_err(during(WRITING))?;
    drop(connection);
    partial.place()
}

/// Opens the file, and refuses that of another store.
pub(super) fn open(path: &Path, store_id: &str, wait: Duration) -> Result<Connection, StoreError> {
    let connection = open::connect(path, wait)?;
    match id(&connection, "webhook_state")? == store_id {
        true => Ok(connection),
        false => Err(StoreError::NotAStore {
            place: path.display().to_string(),
            reason: "it has the webhooks of another store; move it away".to_owned(),
        }),
    }
}

/// Returns the id of the store.
pub(super) fn id(connection: &Connection, table: &str) -> Result<String, StoreError> {
    let sql = format!("select store_id from {table}");
    let id = connection.query_row(&sql, [], |row| row.get(0));
    id.map_err(during(READING))
}

impl SqliteStore {
    /// Runs `work` on the file; returns `None` if there is none, since there is no endpoint.
    fn on_webhooks<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let path = path(&self.path);
        let Ok(file) = file_id(&path) else {
            return Ok(None);
        };
        let Held(held) = &self.webhooks;
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_none_or(|(_, opened)| *opened != file) {
            let store = id(&self.quick()?.connection, "state")?;
            let connection = open(&path, &store, DELIVERY_WAIT)?;
            // A power failure may lose the last deliveries: they are repeated.
            let set = connection.execute_batch("pragma synchronous = normal");
            set.map_err(during(READING))?;
            *held = Some((connection, file));
        }
        let Some((connection, _)) = held.as_mut() else {
            return Ok(None);
        };
        let outcome = work(connection);
        if !(self.stays_open && matches!(outcome, Ok(_) | Err(StoreError::Busy { .. }))) {
            *held = None;
        }
        outcome.map(Some)
    }

    /// Runs a deliverer's work in a transaction.
    fn deliver<T: Default>(
        &self,
        work: impl FnOnce(&mut SqliteRows<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = self.on_webhooks(|connection| {
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(during(WRITING))?;
            let done = work(&mut SqliteRows(&transaction))?;
            transaction.commit().map_err(during(WRITING))?;
            Ok(done)
        });
        Ok(done?.unwrap_or_default())
    }

    /// Runs an operator's change: in a transaction of the file, within one of the store, which gets the entries of the audit
    /// log. Creates the file if `creates`; otherwise there is nothing to change without one.
    fn change_webhooks<T: Default>(
        &self,
        creates: bool,
        context: &AuditContext,
        work: impl FnOnce(&mut SqliteRows<'_>) -> Result<Changed<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let path = path(&self.path);
        let writer = &mut self.connect_to_change()?;
        let change = || {
            let main = writer
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(during(WRITING))?;
            let store = id(&main, "state")?;
            match (path.exists(), creates) {
                (true, _) => {}
                (false, true) => create(&path, &store)?,
                (false, false) => return Ok(T::default()),
            }
            let mut connection = open(&path, &store, self.lock_wait)?;
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(during(WRITING))?;
            let (done, changes) = work(&mut SqliteRows(&transaction))?;
            audit::write(&main, context, changes)?;
            FailPoint::WebhooksWritten.pass()?;
            committed(transaction.commit(), FailPoint::WebhooksCommitted, WRITING)?;
            // After a failure here the log lacks the entry of a change: better than an entry of none.
            let logged = committed(main.commit(), FailPoint::WebhooksLogged, WRITING);
            logged.map_err(|error| StoreError::NotAudited(Box::new(error)))?;
            Ok(done)
        };
        self.with_lock_holder(change())
    }
}

impl WebhookStore for SqliteStore {
    fn webhook_state(&self) -> Result<WebhookState, StoreError> {
        let state = self.on_webhooks(|connection| state(connection))?;
        Ok(state.unwrap_or_default())
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>, StoreError> {
        let rows = self.on_webhooks(|connection| read(connection, "true order by number", []))?;
        Ok(rows
            .unwrap_or_default()
            .into_iter()
            .map(|(row, _)| row.endpoint)
            .collect())
    }

    fn endpoint(&self, id: &str) -> Result<Option<Endpoint>, StoreError> {
        let rows = self.on_webhooks(|connection| read(connection, "id = ?", [id]))?;
        Ok(rows.unwrap_or_default().pop().map(|(row, _)| row.endpoint))
    }

    fn attempts(&self, id: &str) -> Result<Vec<Attempt>, StoreError> {
        let sql = "select endpoint, document from webhook_attempt where endpoint = ? \
                   order by number desc";
        let attempts = self.on_webhooks(|connection| attempts(connection, sql, [id]))?;
        let attempts = attempts.unwrap_or_default().into_iter();
        Ok(attempts.map(|(_, attempt)| attempt).collect())
    }

    fn create_endpoint(
        &self,
        new: &NewEndpoint,
        key_fingerprint: &str,
        context: &AuditContext,
    ) -> Result<(), StoreError> {
        self.change_webhooks(true, context, |rows| {
            webhooks::create(rows, new, key_fingerprint)
        })
    }

    fn change_endpoint(
        &self,
        id: &str,
        change: &EndpointChange,
        context: &AuditContext,
    ) -> Result<Option<Endpoint>, StoreError> {
        self.change_webhooks(false, context, |rows| webhooks::change(rows, id, change))
    }

    fn move_endpoints(
        &self,
        from_key: &str,
        to_key: &str,
        context: &AuditContext,
    ) -> Result<u64, StoreError> {
        self.change_webhooks(false, context, |rows| {
            webhooks::move_all(rows, from_key, to_key)
        })
    }

    fn delete_endpoint(&self, id: &str, context: &AuditContext) -> Result<bool, StoreError> {
        self.change_webhooks(false, context, |rows| webhooks::delete(rows, id))
    }

    fn take_endpoints(&self, ids: &[String]) -> Result<Vec<(Lease, Endpoint)>, StoreError> {
        self.deliver(|rows| webhooks::take(rows, ids))
    }

    fn update_deliveries(&self, updates: &[DeliveryUpdate]) -> Result<Vec<bool>, StoreError> {
        self.deliver(|rows| webhooks::update(rows, updates))
    }
}
