//! The embedded store: one SQLite file in WAL mode, written with `synchronous=FULL`: writes are rare, and what was
//! acknowledged is durable.
//!
//! - `open`: creating, recognising and migrating the file; `quick`: the connection that is held; `pack`: packing what earlier releases stored
//! - `prune`: deleting old revisions' data
//! - `keys`: API keys; `assortments`: assortments
//! - `check`: checks of all data; `failure`: SQLite's errors
//! - `backup`: backup and restore; `partial`: incomplete files
//! - `holder`: the process that holds the write lock
//! - `wal`: the write-ahead log, and its size
//! - `webhooks`: webhook endpoints, in a file of their own

mod assortments;
mod backup;
mod check;
mod failure;
mod holder;
mod keys;
mod open;
mod pack;
mod partial;
mod prune;
mod quick;
mod wal;
mod webhooks;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Connection;
use vitrine_model::key::KeyRecord;
use vitrine_model::revision::Revision;

use crate::audit::AuditContext;
use crate::db::{Db, OnDb, Tx};
use crate::operators::OperatorStore;
use crate::overrides::{self, OverrideStore, StoredOverride};
use crate::prepared::RecordDigestStore;
use crate::problem::Problem;
use crate::record::{Keep, PruneReport, StoreState};
use crate::{Hint, HintGuard, IfMissing, KeyDecision, Store, StoreError};

pub(crate) use backup::{checked_copy, create_from, view as view_of_backup};
pub(crate) use failure::{committed, during, is_value_error};
use holder::with_lock_holder;
pub(crate) use open::bytes_to_migrate;
use quick::{FileId, Quick, file_id};
pub(crate) use webhooks::backup::{BackedUp, RESTORED, read_backup};

/// A store in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    /// Maximum time that a writer waits for another one.
    pub(crate) lock_wait: Duration,
    /// Connection for calls that take microseconds. Catalogs are read and written on connections of their own, so that
    /// polls and reads of keys never wait for them.
    quick: Mutex<Quick>,
    /// False if the files are closed after each call.
    stays_open: bool,
    webhooks: webhooks::Held,
}

impl SqliteStore {
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
            webhooks: webhooks::Held::default(),
        })
    }

    /// Returns a store that each call tries to open, and never creates.
    pub(crate) fn lazy(path: PathBuf, lock_wait: Duration) -> Result<Self, StoreError> {
        Ok(Self {
            path,
            lock_wait,
            quick: Mutex::new(Quick::closed()?),
            stays_open: true,
            webhooks: webhooks::Held::default(),
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
        open::connect(&self.path, self.lock_wait)
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

/// Schema since which there are overrides.
const OVERRIDES: u32 = 7;

const CHECKING: &str = "checking the store";

/// Interval between polls. A poll reads one row of a cached file, in some microseconds.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl OnDb for SqliteStore {
    fn db(&self) -> Db<'_> {
        Db::Sqlite(self)
    }
}

impl OperatorStore for SqliteStore {}

impl RecordDigestStore for SqliteStore {}

impl OverrideStore for SqliteStore {
    fn overrides_to_check(&self) -> Result<Vec<StoredOverride>, StoreError> {
        let (connection, schema) = open::backup(&self.path)?;
        match schema < OVERRIDES {
            true => Ok(Vec::new()),
            false => overrides::read(&mut Tx::sqlite(&connection, CHECKING), overrides::ALL),
        }
    }
}

impl Store for SqliteStore {
    fn poll_interval(&self) -> Duration {
        POLL_INTERVAL
    }

    fn subscribe(&self, _hint: Hint) -> Option<HintGuard> {
        None
    }

    fn checkpoint_log(&self) -> Result<Option<u64>, StoreError> {
        if wal::size_bytes(&self.path) > wal::SMALL_BYTES {
            let connection = self.connect()?;
            wal::empty_if_large(&connection, &self.path, self.lock_wait, wal::FOLLOWER_WAIT)?;
        }
        Ok(Some(wal::size_bytes(&self.path)))
    }

    fn plan_prune(
        &self,
        keep: Keep,
        texts_kept_since: Timestamp,
    ) -> Result<PruneReport, StoreError> {
        prune::plan(&mut self.connect()?, keep, texts_kept_since)
    }

    fn prune(&self, keep: Keep, texts_kept_since: Timestamp) -> Result<PruneReport, StoreError> {
        self.with_lock_holder(prune::prune(&mut self.connect()?, keep, texts_kept_since))
    }

    fn read_keys(&self) -> Result<(StoreState, Vec<KeyRecord>), StoreError> {
        keys::read(&mut self.quick()?.connection)
    }

    fn change_keys(
        &self,
        context: &AuditContext,
        decide: KeyDecision<'_>,
    ) -> Result<(), StoreError> {
        let connection = &mut self.connect_to_change()?;
        self.with_lock_holder(keys::change(connection, context, decide))
    }

    fn record_key_use(&self, uses: &[(String, Timestamp)]) -> Result<(), StoreError> {
        let mut quick = self.quick()?;
        let recorded = keys::record_use(&mut quick.connection, uses, self.lock_wait);
        quick.close_on_error(&recorded)?;
        recorded
    }

    fn check(&self) -> Result<Vec<Problem>, StoreError> {
        // Read-only: a backup must keep every byte.
        file_id(&self.path)?;
        let mut problems = check::check(&mut open::backup(&self.path)?.0)?;
        let webhooks = webhooks::path(&self.path);
        if webhooks.exists() {
            problems.extend(check::check_webhooks(&mut open::read_only(&webhooks)?)?);
        }
        Ok(problems)
    }

    fn backup(&self, path: &Path) -> Result<Option<Revision>, StoreError> {
        backup::backup(&self.connect()?, &self.path, path)
    }

    fn restore(&self, path: &Path, context: &AuditContext) -> Result<Option<Revision>, StoreError> {
        let connection = self.connect_to_write()?;
        self.with_lock_holder(backup::restore(connection, &self.path, path, context))
    }
}

/// Returns SQLite's query plan of a statement, which is written as PostgreSQL takes it; one step per line.
#[cfg(test)]
pub(crate) fn plan(sql: &str) -> String {
    let connection = Connection::open_in_memory().unwrap();
    open::apply(&connection, 0).unwrap();
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
