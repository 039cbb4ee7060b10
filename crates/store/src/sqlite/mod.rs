//! The embedded store: one SQLite file in WAL mode, written with `synchronous=FULL`: writes are rare, and what was
//! acknowledged is durable.
//!
//! - `open`: creating, recognising and migrating the file; `quick`: the connection that is held
//! - `backup`: backups, and copies to restore; `partial`: incomplete files
//! - `holder`: the process that holds the write lock; `wal`: the write-ahead log, and its size; `failure`: SQLite's errors

mod backup;
mod failure;
mod holder;
mod open;
mod partial;
mod quick;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::Connection;
use vitrine_model::revision::Revision;

use crate::check::run as check;
use crate::problem::Problem;
use crate::webhooks::place;
use crate::{IfMissing, StoreError};

pub(crate) use backup::{VerifiedCopy, create_from, view as view_of_backup};
pub(crate) use failure::{committed, during};
use holder::with_lock_holder;
pub(crate) use open::{connect, plain_connection};
pub(crate) use partial::{Partial, with_ending};
use quick::Quick;
pub(crate) use quick::{FileId, file_id};

/// A store in one SQLite file.
pub(crate) struct SqliteStore {
    pub(crate) path: PathBuf,
    /// Maximum time that a writer waits for another one.
    pub(crate) lock_wait: Duration,
    /// Connection for calls that take microseconds. Catalogs are read and written on connections of their own, so that
    /// polls and reads of keys never wait for them.
    quick: Mutex<Quick>,
    /// False if the files are closed after each call.
    pub(crate) stays_open: bool,
    pub(crate) webhooks: place::Held,
}

impl SqliteStore {
    /// Interval between polls. A poll reads one row of a cached file, in some microseconds.
    pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

    /// Opens the file, creates it if it is missing and `if_missing` says so, and migrates it.
    pub(crate) fn open(
        path: PathBuf,
        if_missing: IfMissing,
        lock_wait: Duration,
    ) -> Result<Self, StoreError> {
        let opened = open::open(&path, if_missing, lock_wait);
        let opened = opened.map_err(|error| with_lock_holder(error, &path, lock_wait))?;
        let quick = Mutex::new(Quick::of(opened, &path)?);
        Ok(Self {
            path,
            lock_wait,
            quick,
            stays_open: true,
            webhooks: place::Held::default(),
        })
    }

    /// Returns a store that each call tries to open, and never creates.
    pub(crate) fn lazy(path: PathBuf, lock_wait: Duration) -> Result<Self, StoreError> {
        Ok(Self {
            path,
            lock_wait,
            quick: Mutex::new(Quick::closed()?),
            stays_open: true,
            webhooks: place::Held::default(),
        })
    }

    /// As [`lazy`](Self::lazy), but closes the files after each call.
    pub(crate) fn closing(path: PathBuf, lock_wait: Duration) -> Result<Self, StoreError> {
        let stays_open = false;
        Self::lazy(path, lock_wait).map(|store| Self {
            stays_open,
            ..store
        })
    }

    /// Opens a separate connection, for calls that take longer.
    pub(crate) fn connect(&self) -> Result<Connection, StoreError> {
        connect(&self.path, self.lock_wait)
    }

    /// Opens a separate connection for a small write, which may wait for another writer: other calls don't wait for it. If the
    /// path names another file now, that is recognised first.
    pub(crate) fn connect_to_change(&self) -> Result<Connection, StoreError> {
        drop(self.quick()?);
        self.connect()
    }

    /// Opens a separate connection for a large write, and empties a large log first.
    pub(crate) fn connect_to_write(&self) -> Result<Connection, StoreError> {
        let connection = self.connect()?;
        wal::empty_if_large(&connection, &self.path, self.lock_wait, wal::PUBLISH_WAIT)?;
        Ok(connection)
    }
}

impl SqliteStore {
    /// See [`Store::checkpoint_log`](crate::Store::checkpoint_log).
    pub(crate) fn checkpoint_log(&self) -> Result<u64, StoreError> {
        if wal::size_bytes(&self.path) > wal::SMALL_BYTES {
            let connection = self.connect()?;
            wal::empty_if_large(&connection, &self.path, self.lock_wait, wal::FOLLOWER_WAIT)?;
        }
        Ok(wal::size_bytes(&self.path))
    }

    /// See [`Store::check`](crate::Store::check).
    pub(crate) fn check(&self) -> Result<Vec<Problem>, StoreError> {
        // Read-only: a backup must keep every byte.
        file_id(&self.path)?;
        let mut problems = check::check_file(&mut open::backup(&self.path)?)?;
        let webhooks = place::path(&self.path);
        if webhooks.exists() {
            problems.extend(check::check_webhooks(&mut open::read_only(&webhooks)?)?);
        }
        Ok(problems)
    }

    /// Opens the file to read it only: it isn't changed.
    pub(crate) fn open_read_only(&self) -> Result<Connection, StoreError> {
        open::backup(&self.path)
    }

    /// See [`Store::backup`](crate::Store::backup).
    pub(crate) fn backup(&self, path: &Path) -> Result<Option<Revision>, StoreError> {
        backup::backup(&self.connect()?, &self.path, path)
    }
}

/// Returns SQLite's query plan of a statement, which is written as PostgreSQL takes it; one step per line.
#[cfg(test)]
pub(crate) fn plan(sql: &str) -> String {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch(include_str!("schema.sql"))
        .unwrap();
    let sql = crate::db::sqlite_sql(sql);
    let mut statement = connection
        .prepare(&format!("explain query plan {sql}"))
        .unwrap();
    // Unbound parameters are null; the plan doesn't depend on them.
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get::<_, String>(3).unwrap());
    }
    steps.join("\n")
}
