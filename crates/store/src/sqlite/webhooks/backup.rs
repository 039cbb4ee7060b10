//! Endpoints in backups: the backup of a store has them in tables of its own.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Row, TransactionBehavior, params};

use super::rows::{SqliteRows, attempts, read, state};
use super::{READING, WRITING, create, open, path};
use crate::StoreError;
use crate::sqlite::during;
use crate::webhooks::{self, Attempt, Endpoint, WebhookState, from_json, to_json};

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

const ATTEMPTS: &str = "select endpoint, document from webhook_attempt order by endpoint, number";

/// Writes the endpoints of the store at `store` into its new backup.
pub(in crate::sqlite) fn write(
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
    let WebhookState {
        changes,
        key_fingerprint,
    } = state(&transaction)?;
    let sql = "insert into webhook_state (changes, key_fingerprint) values (?, ?)";
    let written = backup.execute(sql, params![changes, key_fingerprint]);
    written.map_err(during(WRITING))?;
    let sql = "insert into webhook_endpoint (id, document) values (?, ?)";
    for (row, _) in read(&transaction, "true order by number", [])? {
        let written = backup.execute(sql, (&row.endpoint.id, to_json(&row.endpoint)?));
        written.map_err(during(WRITING))?;
    }
    let sql = "insert into webhook_attempt (endpoint, number, document) values (?, ?, ?)";
    for (number, (endpoint, attempt)) in attempts(&transaction, ATTEMPTS, [])?.iter().enumerate() {
        let written = backup.execute(sql, (endpoint, number, to_json(attempt)?));
        written.map_err(during(WRITING))?;
    }
    Ok(())
}

/// Reads the endpoints of a backup of the newest schema.
pub(crate) fn read_backup(backup: &Connection) -> Result<BackedUp, StoreError> {
    let sql = "select document from webhook_endpoint order by rowid";
    let mut statement = backup.prepare(sql).map_err(during(READING))?;
    let documents = statement.query_map([], |row: &Row<'_>| row.get::<_, String>(0));
    let mut endpoints = Vec::new();
    for document in documents.map_err(during(READING))? {
        endpoints.push(from_json(&document.map_err(during(READING))?)?);
    }
    Ok(BackedUp {
        state: state(backup)?,
        endpoints,
        attempts: attempts(backup, ATTEMPTS, [])?,
    })
}

/// Pauses the endpoints of the store at `store`, which are about to be replaced.
pub(in crate::sqlite) fn pause(store: &Path, store_id: &str) -> Result<(), StoreError> {
    let path = path(store);
    if !path.exists() {
        return Ok(());
    }
    let mut connection = open(&path, store_id, WAIT)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(WRITING))?;
    webhooks::pause_all(&mut SqliteRows(&transaction), RESTORED)?;
    transaction.commit().map_err(during(WRITING))
}

/// Replaces the endpoints of the store at `store` by those of a backup, paused.
pub(in crate::sqlite) fn restore(
    store: &Path,
    store_id: &str,
    backup: &BackedUp,
) -> Result<(), StoreError> {
    let path = path(store);
    match (path.exists(), backup.endpoints.is_empty()) {
        (false, true) => return Ok(()),
        (false, false) => create(&path, store_id)?,
        (true, _) => {}
    }
    let mut connection = open(&path, store_id, WAIT)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(during(WRITING))?;
    webhooks::replace(
        &mut SqliteRows(&transaction),
        &backup.endpoints,
        &backup.attempts,
        backup.state.key_fingerprint.clone(),
        RESTORED,
    )?;
    transaction.commit().map_err(during(WRITING))
}
