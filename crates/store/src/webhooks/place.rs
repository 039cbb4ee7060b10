//! Places of the rows of endpoints: in PostgreSQL beside the others, in SQLite in a file of their own, since loads hold the
//! store's only writer's lock.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::WebhookState;
use super::rows::{Changed, pause_all, state};
use crate::StoreError;
use crate::audit::{AuditContext, log};
use crate::db::{Db, Tx, values, write_quickly};
use crate::fail_point::FailPoint;
use crate::postgres::{BEGIN, Lock};
use crate::sqlite::{
    FileId, Partial, committed, connect, during, file_id, plain_connection, with_ending,
};

pub(super) const READING: &str = "reading the webhooks";
pub(super) const WRITING: &str = "writing the webhooks";

/// Maximum time that a deliverer waits for another writer of the file.
const DELIVERY_WAIT: Duration = Duration::from_secs(5);

/// SQL for the database in which the rows are: a replica that takes over has the same, a copy by `pg_restore` another.
const ORIGIN: &str = "(select oid::text from pg_catalog.pg_database where datname = current_database()) \
     || ' ' || (select system_identifier::text from pg_catalog.pg_control_system())";

/// Reason of the status of endpoints in a copy of a database.
const COPIED: &str = "the database is a copy; `vitrine webhooks enable` goes on";

/// Connection of deliverers and polls to the file, opened at the first use.
#[derive(Default)]
pub(crate) struct Held(Mutex<Option<(Connection, FileId)>>);

/// Returns the path of the file of an SQLite store.
pub(crate) fn path(store: &Path) -> PathBuf {
    with_ending(store, "-webhooks")
}

/// Creates the file, without endpoints.
pub(crate) fn create(path: &Path, store_id: &str) -> Result<(), StoreError> {
    let partial = Partial::create_beside(path)?;
    let connection = plain_connection(partial.path(), Duration::ZERO)?;
    let made = connection.execute_batch(include_str!("../sqlite/webhooks.sql"));
    made.map_err(during(WRITING))?;
    let sql = "insert into vitrine.webhook_state (store_id, changes) values ($1, 1)";
    Tx::sqlite(&connection, WRITING).execute(sql, values![store_id])?;
    drop(connection);
    partial.place()
}

/// Opens the file, and refuses that of another store.
pub(crate) fn open(path: &Path, store_id: &str, wait: Duration) -> Result<Connection, StoreError> {
    let connection = connect(path, wait)?;
    match id(&connection, "webhook_state")? == store_id {
        true => Ok(connection),
        false => Err(StoreError::NotAStore {
            place: path.display().to_string(),
            reason: "it has the webhooks of another store; move it away".to_owned(),
        }),
    }
}

/// Returns the id of the store.
pub(crate) fn id(connection: &Connection, table: &str) -> Result<String, StoreError> {
    let sql = format!("select store_id from {table}");
    Tx::sqlite(connection, READING).value(&sql, &[])
}

/// Reads rows; the default if there is no file, since there is no endpoint.
pub(super) fn read<T: Default>(
    db: Db<'_>,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match db {
        Db::Sqlite(_) => on_file(db, |connection| work(&mut Tx::sqlite(connection, READING))),
        Db::Postgres(_) => db.quick(READING, work),
    }
}

/// Reads all endpoints: many rows, for which no poll waits.
pub(super) fn read_all<T: Default>(
    db: Db<'_>,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match db {
        Db::Sqlite(_) => read(db, work),
        Db::Postgres(_) => db.read(READING, work),
    }
}

/// Runs a deliverer's work in a transaction.
pub(super) fn deliver<T: Default>(
    db: Db<'_>,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match db {
        Db::Sqlite(_) => on_file(db, |connection| {
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(during(WRITING))?;
            let done = work(&mut Tx::sqlite(&transaction, WRITING))?;
            transaction.commit().map_err(during(WRITING))?;
            Ok(done)
        }),
        Db::Postgres(store) => write_quickly(store, BEGIN, WRITING, work),
    }
}

/// Runs `work` on the held connection to the file; returns the default if there is none.
fn on_file<T: Default>(
    db: Db<'_>,
    work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let Db::Sqlite(store) = db else {
        return Ok(T::default());
    };
    let path = path(&store.path);
    let Ok(file) = file_id(&path) else {
        return Ok(T::default());
    };
    let Held(held) = &store.webhooks;
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
    if held.as_ref().is_none_or(|(_, opened)| *opened != file) {
        let store = id(&store.quick()?.connection, "state")?;
        let connection = open(&path, &store, DELIVERY_WAIT)?;
        // A power failure may lose the last deliveries: they are repeated.
        let set = connection.execute_batch("pragma synchronous = normal");
        set.map_err(during(READING))?;
        *held = Some((connection, file));
    }
    let Some((connection, _)) = held.as_mut() else {
        return Ok(T::default());
    };
    let outcome = work(connection);
    if !(store.stays_open && matches!(outcome, Ok(_) | Err(StoreError::Busy { .. }))) {
        *held = None;
    }
    outcome
}

/// Runs an operator's change, with its entries for the audit log. In SQLite it is a transaction of the file within one of the
/// store; the file is created if `creates`, otherwise there is nothing to change without one.
pub(super) fn change<T: Default>(
    db: Db<'_>,
    creates: bool,
    context: &AuditContext,
    work: impl FnOnce(&mut Tx<'_>) -> Result<Changed<T>, StoreError>,
) -> Result<T, StoreError> {
    let Db::Sqlite(store) = db else {
        return db.write(Lock::Keys, FailPoint::WebhooksCommitted, WRITING, |tx| {
            pause_copies(tx)?;
            let (done, changes) = work(tx)?;
            log::write(tx, context, changes)?;
            FailPoint::WebhooksWritten.pass()?;
            Ok(done)
        });
    };
    let path = path(&store.path);
    let logged = FailPoint::WebhooksLogged;
    let mut is_done = false;
    let outcome = db.write(Lock::Keys, logged, WRITING, |tx| {
        let store_id: String = tx.value("select store_id from vitrine.state", &[])?;
        match (path.exists(), creates) {
            (true, _) => {}
            (false, true) => create(&path, &store_id)?,
            (false, false) => return Ok(T::default()),
        }
        let mut connection = open(&path, &store_id, store.lock_wait)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(during(WRITING))?;
        let (done, changes) = work(&mut Tx::sqlite(&transaction, WRITING))?;
        log::write(tx, context, changes)?;
        FailPoint::WebhooksWritten.pass()?;
        committed(transaction.commit(), FailPoint::WebhooksCommitted, WRITING)?;
        is_done = true;
        Ok(done)
    });
    // After a failure here the log lacks the entry of a change: better than an entry of none.
    match outcome {
        Err(error) if is_done => Err(StoreError::NotAudited(Box::new(error))),
        outcome => outcome,
    }
}

/// Reads the state. Endpoints that came with a copy of a PostgreSQL database are paused first.
pub(super) fn state_of(db: Db<'_>) -> Result<WebhookState, StoreError> {
    if let Db::Postgres(_) = db {
        let sql = format!("select origin = {ORIGIN} from vitrine.webhook_state");
        if !db.quick(READING, |tx| tx.value(&sql, &[]))? {
            return db.write(Lock::Keys, FailPoint::WebhooksCommitted, WRITING, |tx| {
                pause_copies(tx)?;
                state(tx)
            });
        }
    }
    read(db, state)
}

/// Pauses all endpoints if the database is a copy of the one in which they were active: a copy for trying things out notifies
/// nobody.
pub(crate) fn pause_copies(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    // Held until the commit, so that one of several processes does it.
    let sql = format!("select origin, {ORIGIN} from vitrine.webhook_state for update");
    let origins = tx.row(&sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some((before, now)): Option<(String, String)> = origins else {
        return Ok(());
    };
    if before == now {
        return Ok(());
    }
    if !before.is_empty() {
        pause_all(tx, COPIED)?;
    }
    let sql = "update vitrine.webhook_state set origin = $1";
    tx.execute(sql, values![&now]).map(drop)
}
