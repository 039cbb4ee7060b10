//! The embedded store: one SQLite file in WAL mode, written with `synchronous=FULL`: writes are rare, and what was
//! acknowledged is durable.
//!
//! SQLite copies the log into the file after each commit, but starts the log again only if nobody reads from it when the
//! next writer begins. A server that spends long reading each new catalog may always be reading, and then every publish
//! makes the log grow. So a publish waits for readers while the log is large, and servers empty the log after they read
//! the catalog.
//!
//! - `open`: creating, recognising and migrating the file; `backup`: backups, copies to restore, and incomplete files

mod backup;
mod open;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use vitrine_model::revision::Revision;

use crate::check::{self, Problem};
use crate::fail_point::FailPoint;
use crate::webhooks::place;
use crate::{IfMissing, MAX_LOCK_WAIT, StoreError};

pub(crate) use backup::{Partial, VerifiedCopy, create_from, view as view_of_backup, with_ending};
pub(crate) use open::{connect, plain_connection};

/// Size up to which the log is left alone, in bytes: twice what SQLite lets it grow to by small commits.
const SMALL_LOG_BYTES: u64 = 32 << 20;

/// Maximum time that a publish waits for readers of a large log.
const PUBLISH_WAIT: Duration = Duration::from_secs(10);

/// Maximum time that a server waits for others to empty a large log: it follows the catalog on the same thread.
const FOLLOWER_WAIT: Duration = Duration::from_millis(250);

/// Device and inode: identify a file when its path is given to another one.
type FileId = (u64, u64);

fn file_id(path: &Path) -> Result<FileId, StoreError> {
    match std::fs::metadata(path) {
        Ok(file) => Ok((file.dev(), file.ino())),
        Err(_) => Err(StoreError::Missing {
            place: path.display().to_string(),
        }),
    }
}

/// A connection that is held between calls, with the identity of its file.
#[derive(Default)]
pub(crate) struct Held(Mutex<Option<(Connection, FileId)>>);

impl Held {
    /// Runs `work` on the connection to the file, which `open` opens if none is held, or if the path names another file now.
    ///
    /// The file is closed unless it `stays_open`, and if a call failed: while it is open, SQLite may believe that it still
    /// holds a lock, or go on reading a log that it couldn't open for writing.
    pub(crate) fn with<T>(
        &self,
        path: &Path,
        stays_open: bool,
        open: impl FnOnce() -> Result<Connection, StoreError>,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = file_id(path)?;
        let mut connection = match held.take() {
            Some((connection, opened)) if opened == file => connection,
            _ => open()?,
        };
        let outcome = work(&mut connection);
        let is_sound = matches!(
            outcome,
            Ok(_) | Err(StoreError::Busy { .. } | StoreError::Pruned { .. })
        );
        *held = (stays_open && is_sound).then_some((connection, file));
        outcome
    }
}

/// A store in one SQLite file.
pub(crate) struct SqliteStore {
    pub(crate) path: PathBuf,
    /// Maximum time that a writer waits for another one.
    pub(crate) lock_wait: Duration,
    /// Connection for calls that take microseconds. Catalogs are read and written on connections of their own, so that
    /// polls and reads of keys never wait for them.
    quick: Held,
    /// False if the files are closed after each call.
    pub(crate) stays_open: bool,
    pub(crate) webhooks: Held,
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
        let store = Self::lazy(path, lock_wait);
        let opened = open::open(&store.path, if_missing, store.lock_wait);
        let opened = store.waited(opened)?;
        store
            .quick
            .with(&store.path, true, || Ok(opened), |_| Ok(()))?;
        Ok(store)
    }

    /// Returns a store that each call tries to open, and never creates.
    pub(crate) fn lazy(path: PathBuf, lock_wait: Duration) -> Self {
        Self {
            path,
            lock_wait: lock_wait.min(MAX_LOCK_WAIT),
            quick: Held::default(),
            stays_open: true,
            webhooks: Held::default(),
        }
    }

    /// Runs a short call on the held connection.
    pub(crate) fn quick<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let open = || open::open(&self.path, IfMissing::Refuse, self.lock_wait);
        self.quick.with(&self.path, self.stays_open, open, work)
    }

    /// Adds the time that a writer waited to [`StoreError::Busy`].
    pub(crate) fn waited<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        outcome.map_err(|error| match error {
            StoreError::Busy { .. } => StoreError::Busy {
                waited_seconds: self.lock_wait.as_secs(),
                holder: None,
            },
            other => other,
        })
    }

    /// Opens a separate connection, for calls that take longer.
    pub(crate) fn connect(&self) -> Result<Connection, StoreError> {
        connect(&self.path, self.lock_wait)
    }

    /// Opens a separate connection for a small write, which may wait for another writer: other calls don't wait for it. If the
    /// path names another file now, that is recognised first.
    pub(crate) fn connect_to_change(&self) -> Result<Connection, StoreError> {
        self.quick(|_| Ok(()))?;
        self.connect()
    }

    /// Opens a separate connection for a large write, and empties a large log first.
    pub(crate) fn connect_to_write(&self) -> Result<Connection, StoreError> {
        let connection = self.connect()?;
        self.empty_large_log(&connection, PUBLISH_WAIT)?;
        Ok(connection)
    }

    /// Returns the log's size, in bytes.
    fn log_bytes(&self) -> u64 {
        std::fs::metadata(with_ending(&self.path, "-wal")).map_or(0, |log| log.len())
    }

    /// Moves a large log into the file and empties it. If others are in the way for longer than `wait`, moves what it can.
    fn empty_large_log(&self, connection: &Connection, wait: Duration) -> Result<(), StoreError> {
        if self.log_bytes() <= SMALL_LOG_BYTES {
            return Ok(());
        }
        let failed = during("emptying the log");
        let set_wait = |wait| connection.busy_timeout(wait).map_err(&failed);
        set_wait(wait.min(self.lock_wait))?;
        // If others are in the way, that is in the returned row, and no error.
        let emptied = connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
        set_wait(self.lock_wait)?;
        match emptied.map_err(&failed) {
            Err(StoreError::Busy { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    /// See [`Store::checkpoint_log`](crate::Store::checkpoint_log).
    pub(crate) fn checkpoint_log(&self) -> Result<u64, StoreError> {
        if self.log_bytes() > SMALL_LOG_BYTES {
            self.empty_large_log(&self.connect()?, FOLLOWER_WAIT)?;
        }
        Ok(self.log_bytes())
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

/// Converts SQLite's errors, adding the failed operation.
pub(crate) fn during(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
            waited_seconds: 0,
            holder: None,
        },
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged(source.to_string()),
        // `CannotOpen` and `ReadOnly`: out of descriptors, for one. If SQLite can't open for writing, it opens for reading.
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
            StoreError::Disk {
                doing,
                source: source.into(),
            }
        }
        _ => StoreError::Database {
            doing,
            source: source.into(),
        },
    }
}

/// Converts the result of a commit. If the disk failed, the end of the log may be on it all the same and take effect when
/// the store is opened after a crash: nobody can say that nothing was changed.
pub(crate) fn committed(
    outcome: rusqlite::Result<()>,
    point: FailPoint,
    doing: &'static str,
) -> Result<(), StoreError> {
    let outcome = outcome.map_err(during(doing));
    outcome
        .and_then(|()| point.pass())
        .map_err(|error| match error {
            StoreError::Disk { doing, source } => StoreError::DiskAtCommit { doing, source },
            other => other,
        })
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
