//! Endpoints in backups: the backup of a store has them in tables of its own.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::place::{READING, WRITING, create, open, path, pause_copies};
use super::rows::{self, Which};
use super::{Attempt, Endpoint, WebhookState, from_json, to_json};
use crate::StoreError;
use crate::db::{Tx, values};
use crate::sqlite::during;

/// Endpoints of a backup.
#[derive(Debug, Default)]
pub(crate) struct BackedUp {
    pub(crate) state: WebhookState,
    /// Oldest first.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Oldest first, each with the id of its endpoint.
    pub(crate) attempts: Vec<(String, Attempt)>,
}

/// Reason of the status of restored endpoints.
pub(crate) const RESTORED: &str = "a backup was restored; `vitrine webhooks enable` goes on";

/// Maximum time for another writer of the file.
const WAIT: Duration = Duration::from_secs(5);

/// Writes the endpoints of the SQLite store at `store` into its new backup.
pub(crate) fn write(store: &Path, store_id: &str, backup: &Connection) -> Result<(), StoreError> {
    let path = path(store);
    if !path.exists() {
        return Ok(());
    }
    let mut connection = open(&path, store_id, WAIT)?;
    let transaction = connection.transaction().map_err(during(READING))?;
    let from = &mut Tx::sqlite(&transaction, READING);
    let to = &mut Tx::sqlite(backup, WRITING);
    let state = rows::state(from)?;
    let sql = "insert into vitrine.webhook_state (changes, key_fingerprint) values ($1, $2)";
    to.execute(sql, values![state.changes, &state.key_fingerprint])?;
    let sql = "insert into vitrine.webhook_endpoint (id, document) values ($1, $2)";
    for row in rows::read(from, Which::All)? {
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
        state: rows::state(tx)?,
        attempts: attempts(tx)?,
    })
}

fn attempts(tx: &mut Tx<'_>) -> Result<Vec<(String, Attempt)>, StoreError> {
    let sql = "select endpoint, document from vitrine.webhook_attempt order by endpoint, number";
    tx.rows(sql, &[], |row| Ok((row.get(0)?, from_json(row.get(1)?)?)))
}

/// Pauses the endpoints of the SQLite store at `store`, which are about to be replaced.
pub(crate) fn pause(store: &Path, store_id: &str) -> Result<(), StoreError> {
    match path(store).exists() {
        true => on_file(store, store_id, |tx| rows::pause_all(tx, RESTORED)),
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
    let restored = created.and_then(|()| on_file(store, store_id, |tx| replace(tx, backup)));
    restored.map_err(|source| StoreError::WebhooksNotRestored(Box::new(source)))
}

/// Replaces the endpoints of a PostgreSQL store by those of a backup, paused.
pub(crate) fn restore_in(tx: &mut Tx<'_>, backup: &BackedUp) -> Result<(), StoreError> {
    pause_copies(tx)?;
    replace(tx, backup)
}

fn replace(tx: &mut Tx<'_>, backup: &BackedUp) -> Result<(), StoreError> {
    let fingerprint = backup.state.key_fingerprint.clone();
    rows::replace(
        tx,
        &backup.endpoints,
        &backup.attempts,
        fingerprint,
        RESTORED,
    )
}

fn on_file(
    store: &Path,
    store_id: &str,
    work: impl FnOnce(&mut Tx<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut connection = open(&path(store), store_id, WAIT)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(WRITING))?;
    work(&mut Tx::sqlite(&transaction, WRITING))?;
    transaction.commit().map_err(during(WRITING))
}
