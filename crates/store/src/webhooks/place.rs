//! Places of the rows of endpoints: in PostgreSQL beside the others, in SQLite in a file of their own, since loads hold the
//! store's only writer's lock. A backup of a store has them in tables of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::{
    Attempt, Endpoint, WebhookState, Which, add_attempts, count, delete, from_json, insert,
    pause_all, paused, set_fingerprint, state, to_json,
};
use crate::StoreError;
use crate::audit::{self, AuditContext, Change};
use crate::db::{self, Db, Tx, values, write_quickly};
use crate::fail_point::FailPoint;
use crate::postgres::{BEGIN, Lock};
use crate::sqlite::{Partial, SqliteStore, connect, during, plain_connection, with_ending};

const READING: &str = "reading the webhooks";
const WRITING: &str = "writing the webhooks";

/// Maximum time that a deliverer or a restore waits for another writer of the file.
const WAIT: Duration = Duration::from_secs(5);

/// SQL for the database in which the rows are: a replica that takes over has the same, a copy by `pg_restore` another.
const ORIGIN: &str = "(select oid::text from pg_catalog.pg_database where datname = current_database()) \
     || ' ' || (select system_identifier::text from pg_catalog.pg_control_system())";

/// Reason of the status of restored endpoints.
const RESTORED: &str = "a backup was restored; `vitrine webhooks enable` goes on";

/// Reason of the status of endpoints in a copy of a database.
const COPIED: &str = "the database is a copy; `vitrine webhooks enable` goes on";

/// Returns the path of the file of an SQLite store.
pub(crate) fn path(store: &Path) -> PathBuf {
    with_ending(store, "-webhooks")
}

/// Creates the file, without endpoints.
fn create(path: &Path, store_id: &str) -> Result<(), StoreError> {
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
fn open(path: &Path, store_id: &str, wait: Duration) -> Result<Connection, StoreError> {
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
        Db::Sqlite(store) => on_file(store, |connection| {
            work(&mut Tx::sqlite(connection, READING))
        }),
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
        Db::Sqlite(store) => on_file(store, |connection| {
            db::write(connection, None, WRITING, work)
        }),
        Db::Postgres(store) => write_quickly(store, BEGIN, WRITING, work),
    }
}

/// Runs `work` on the held connection of deliverers and polls to the file; returns the default if there is no file.
fn on_file<T: Default>(
    store: &SqliteStore,
    work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let path = path(&store.path);
    if !path.exists() {
        return Ok(T::default());
    }
    let open = || {
        let connection = open(&path, &store.quick(|store| id(store, "state"))?, WAIT)?;
        // A power failure may lose the last deliveries: they are repeated.
        let set = connection.execute_batch("pragma synchronous = normal");
        set.map_err(during(READING)).map(|()| connection)
    };
    store.webhooks.with(&path, store.stays_open, open, work)
}

/// Runs an operator's change, with its entries for the audit log. In SQLite it is a transaction of the file within one of the
/// store; the file is created if `creates`, otherwise there is nothing to change without one.
pub(super) fn change<T: Default>(
    db: Db<'_>,
    creates: bool,
    context: &AuditContext,
    work: impl FnOnce(&mut Tx<'_>) -> Result<(T, Vec<Change>), StoreError>,
) -> Result<T, StoreError> {
    let Db::Sqlite(store) = db else {
        return db.write(Lock::Keys, FailPoint::WebhooksCommitted, WRITING, |tx| {
            pause_copies(tx)?;
            let (done, changes) = work(tx)?;
            audit::write(tx, context, changes)?;
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
        let committed = Some(FailPoint::WebhooksCommitted);
        let done = db::write(&mut connection, committed, WRITING, |endpoints| {
            let (done, changes) = work(endpoints)?;
            audit::write(tx, context, changes)?;
            FailPoint::WebhooksWritten.pass()?;
            Ok(done)
        })?;
        is_done = true;
        Ok(done)
    });
    // After a failure here the log lacks the entry of a change: better than an entry of none.
    match outcome {
        Err(error) if is_done => Err(StoreError::NotAudited(Box::new(error))),
        outcome => outcome,
    }
}

/// Pauses endpoints that came with a copy of a PostgreSQL database, if they are active.
pub(super) fn pause_copy(db: Db<'_>) -> Result<(), StoreError> {
    let sql = format!("select origin = {ORIGIN} from vitrine.webhook_state");
    match db {
        Db::Postgres(_) if !db.quick(READING, |tx| tx.value(&sql, &[]))? => {
            let committed = FailPoint::WebhooksCommitted;
            db.write(Lock::Keys, committed, WRITING, pause_copies)
        }
        _ => Ok(()),
    }
}

/// Pauses all endpoints if the database is a copy of the one in which they were active: a copy for trying things out notifies
/// nobody.
fn pause_copies(tx: &mut Tx<'_>) -> Result<(), StoreError> {
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

/// Endpoints of a backup.
#[derive(Debug, Default)]
pub(crate) struct BackedUp {
    state: WebhookState,
    /// Oldest first.
    endpoints: Vec<Endpoint>,
    /// Oldest first, each with the id of its endpoint.
    attempts: Vec<(String, Attempt)>,
}

/// Writes the endpoints of the SQLite store at `store` into its new backup.
pub(crate) fn write_backup(
    store: &Path,
    store_id: &str,
    backup: &Connection,
) -> Result<(), StoreError> {
    let path = path(store);
    if !path.exists() {
        return Ok(());
    }
    let mut connection = open(&path, store_id, WAIT)?;
    let transaction = connection.transaction().map_err(during(READING))?;
    let from = &mut Tx::sqlite(&transaction, READING);
    let to = &mut Tx::sqlite(backup, WRITING);
    let state = state(from)?;
    let sql = "insert into vitrine.webhook_state (changes, key_fingerprint) values ($1, $2)";
    to.execute(sql, values![state.changes, &state.key_fingerprint])?;
    let sql = "insert into vitrine.webhook_endpoint (id, document) values ($1, $2)";
    for row in super::read(from, Which::All)? {
        to.execute(sql, values![&row.endpoint.id, &to_json(&row.endpoint)?])?;
    }
    let sql =
        "insert into vitrine.webhook_attempt (endpoint, number, document) values ($1, $2, $3)";
    for (number, (endpoint, attempt)) in attempts(from)?.iter().enumerate() {
        to.execute(sql, values![endpoint, number as u64, &to_json(attempt)?])?;
    }
    Ok(())
}

/// Reads the endpoints of a backup.
pub(crate) fn read_backup(backup: &Connection) -> Result<BackedUp, StoreError> {
    let tx = &mut Tx::sqlite(backup, READING);
    let sql = "select document from vitrine.webhook_endpoint order by rowid";
    Ok(BackedUp {
        endpoints: tx.rows(sql, &[], |row| from_json(row.get(0)?))?,
        state: state(tx)?,
        attempts: attempts(tx)?,
    })
}

fn attempts(tx: &mut Tx<'_>) -> Result<Vec<(String, Attempt)>, StoreError> {
    let sql =
        "select endpoint, document from vitrine.webhook_attempt /*scan*/ order by endpoint, number";
    tx.rows(sql, &[], |row| Ok((row.get(0)?, from_json(row.get(1)?)?)))
}

/// Pauses the endpoints of the SQLite store at `store`, which are about to be replaced.
pub(crate) fn pause(store: &Path, store_id: &str) -> Result<(), StoreError> {
    match path(store).exists() {
        true => write_file(store, store_id, |tx| pause_all(tx, RESTORED)),
        false => Ok(()),
    }
}

/// Replaces the endpoints of the SQLite store at `store` by those of a backup, paused; after everything else.
pub(crate) fn restore_file(
    store: &Path,
    store_id: &str,
    backup: &BackedUp,
) -> Result<(), StoreError> {
    let path = path(store);
    let created = match (path.exists(), backup.endpoints.is_empty()) {
        (false, true) => return Ok(()),
        (false, false) => create(&path, store_id),
        (true, _) => Ok(()),
    };
    let restored = created.and_then(|()| write_file(store, store_id, |tx| replace(tx, backup)));
    restored.map_err(|source| StoreError::WebhooksNotRestored(Box::new(source)))
}

/// Replaces the endpoints of a PostgreSQL store by those of a backup, paused.
pub(crate) fn restore_in(tx: &mut Tx<'_>, backup: &BackedUp) -> Result<(), StoreError> {
    pause_copies(tx)?;
    replace(tx, backup)
}

fn replace(tx: &mut Tx<'_>, backup: &BackedUp) -> Result<(), StoreError> {
    let standing = super::read(tx, Which::All)?.into_iter();
    let ids: Vec<String> = standing.map(|row| row.endpoint.id).collect();
    delete(tx, &ids)?;
    for endpoint in &backup.endpoints {
        insert(tx, &paused(endpoint.clone(), RESTORED))?;
    }
    let attempts = backup.attempts.iter().map(|(id, one)| (&**id, one));
    add_attempts(tx, &attempts.collect::<Vec<_>>())?;
    set_fingerprint(tx, backup.state.key_fingerprint.as_deref())?;
    count(tx)
}

fn write_file(
    store: &Path,
    store_id: &str,
    work: impl FnOnce(&mut Tx<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut connection = open(&path(store), store_id, WAIT)?;
    db::write(&mut connection, None, WRITING, work)
}
