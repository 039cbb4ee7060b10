//! Persistence of catalogs and API keys: one store, over SQLite or PostgreSQL.
//!
//! Every revision of every product is kept until it is pruned; versions are never rewritten. A publish is one transaction
//! and one revision. Only this crate knows SQL, and it treats a product as opaque text (`document`) with the few facts
//! that indexes and loads need. `digest` alone knows a name in it: that of the content resources, whose range is stored.
//!
//! # Layout
//!
//! - [`Store`]: the store; [`Publication`]: a publish in progress
//! - [`assortment`], [`operators`], [`overrides`], [`webhooks`]: what the names say, and the store's methods about them
//! - [`audit`]: the audit log; [`prepared`]: products ready to be written; [`document`]: packed documents
//! - [`record`]: types that are written and read; [`history`]: those of the history of changes
//! - [`mod@check`]: checks of stored data; [`error`]: the error type, with messages for the operator
//! - [`fail_point`]: points at which tests make writes fail; `named`: enums whose variants have names
//! - `catalog`: reading the live catalog; `moments`: reading any moment; `publish`: writing a revision; `texts`: texts and their
//!   sources; `keys`: API keys, and their requests by day; `prune`, `restore`: what the names say
//! - `db`: running SQL on both databases; `sqlite`: the embedded one; `postgres`: the one that many servers share
//! - `address`: addresses; `values`, `base`: conversions of columns; `digest`: digests of rows

mod address;
pub mod assortment;
pub mod audit;
mod catalog;
pub mod check;
mod db;
mod digest;
pub mod document;
pub mod error;
pub mod fail_point;
pub mod history;
pub(crate) mod keys;
mod moments;
mod named;
pub mod operators;
pub mod overrides;
mod postgres;
pub mod prepared;
mod prune;
mod publication;
mod publish;
pub mod record;
mod restore;
mod sqlite;
mod texts;
mod values;
pub mod webhooks;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use vitrine_model::revision::Revision;

pub use address::{IfMissing, StoreAddress};
use check::Problem;
use db::Db;
pub use error::StoreError;
pub use keys::{KeyDecision, KeysRead};
use postgres::PostgresStore;
pub use publication::{DUPLICATE_PRODUCT, Ineffective, Publication};
pub use publish::Publish;
use record::StoreState;
pub use record::TextStatus;
use sqlite::SqliteStore;

/// Persistent storage of the catalog and its API keys.
///
/// All calls block; servers make them on threads of their own, never on the path of a request.
///
/// # Errors
///
/// Every method that returns a [`StoreError`] fails if the store can't be read or written. Those with further errors name them.
pub struct Store(Base);

/// A store, by its database.
enum Base {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
}

impl From<SqliteStore> for Arc<Store> {
    fn from(store: SqliteStore) -> Self {
        Self::new(Store(Base::Sqlite(store)))
    }
}

impl From<PostgresStore> for Arc<Store> {
    fn from(store: PostgresStore) -> Self {
        Self::new(Store(Base::Postgres(store)))
    }
}

impl Store {
    fn db(&self) -> Db<'_> {
        match &self.0 {
            Base::Sqlite(store) => Db::Sqlite(store),
            Base::Postgres(store) => Db::Postgres(store),
        }
    }

    /// Returns the state of the store, in one cheap read: poll it, and read more only if it differs.
    pub fn state(&self) -> Result<StoreState, StoreError> {
        self.db().quick(catalog::POLLING, catalog::state)
    }

    /// Returns the interval at which followers should poll [`state`](Self::state): short enough for the second that
    /// the contract promises, long enough for a store that many servers poll.
    pub fn poll_interval(&self) -> Duration {
        match &self.0 {
            Base::Sqlite(_) => SqliteStore::POLL_INTERVAL,
            Base::Postgres(_) => PostgresStore::POLL_INTERVAL,
        }
    }

    /// Calls `hint` soon after something may have changed, on a thread of the store, until the returned guard is dropped.
    /// Returns `None` if the store has no notifications. Hints may be spurious or missing: followers poll as well.
    pub fn subscribe(&self, hint: Hint) -> Option<HintGuard> {
        match &self.0 {
            Base::Sqlite(_) => None,
            Base::Postgres(store) => store.subscribe(hint),
        }
    }

    /// Returns whether the database that [`state`](Self::state) asks is a replica, which may be behind its primary.
    pub fn is_replica(&self) -> Result<bool, StoreError> {
        match self.db() {
            Db::Sqlite(_) => Ok(false),
            db @ Db::Postgres(_) => db.quick(catalog::POLLING, |tx| {
                tx.value("select pg_is_in_recovery()", &[])
            }),
        }
    }

    /// Checkpoints and empties the write-ahead log of an SQLite store if it is large, waiting briefly for other readers
    /// and writers. A server calls this every few seconds. Returns the log's size in bytes; `None` for a store that
    /// maintains its log itself.
    ///
    /// # Errors
    ///
    /// If the log can't be read or the store can't be written.
    pub fn checkpoint_log(&self) -> Result<Option<u64>, StoreError> {
        match &self.0 {
            Base::Sqlite(store) => store.checkpoint_log().map(Some),
            Base::Postgres(_) => Ok(None),
        }
    }

    /// Begins a publish. There is one at a time: waits for another writer, and fails with [`StoreError::Busy`] if that
    /// takes too long.
    pub fn publish(&self) -> Result<Box<Publish>, StoreError> {
        Ok(Box::new(Publish::begin(self.db())?))
    }

    /// Begins a publish that is only planned, on one state of the store: it waits for no writer, and none waits for it. What it
    /// puts isn't written, so that live products are those from before. It can't be committed.
    pub fn dry_run(&self) -> Result<Box<Publish>, StoreError> {
        Ok(Box::new(Publish::plan(self.db())?))
    }

    /// Checks that all stored data is as it was written, as of one moment and while others write. Returns the problems.
    /// Reads everything, and takes as long.
    ///
    /// # Errors
    ///
    /// If the store can't be read at all.
    pub fn check(&self) -> Result<Vec<Problem>, StoreError> {
        match &self.0 {
            Base::Sqlite(store) => store.check(),
            Base::Postgres(_) => check::check(self.db()),
        }
    }

    /// Copies the store as of one moment into a new file, while others read and write. Only the owner can read the file,
    /// and it gets its name once it is synced to disk. Returns its live revision.
    ///
    /// # Errors
    ///
    /// If the file exists ([`StoreError::Exists`]) or can't be written, or the store can't be read.
    pub fn backup(&self, path: &Path) -> Result<Option<Revision>, StoreError> {
        match &self.0 {
            Base::Sqlite(store) => store.backup(path),
            Base::Postgres(_) => Err(StoreError::Unsupported(
                "`vitrine backup` copies only SQLite stores; back up a PostgreSQL store with PostgreSQL's own tools, such as `pg_dump --format=custom --schema=vitrine --file=FILE DATABASE`",
            )),
        }
    }
}

/// Callback for possible changes. It must return at once.
pub type Hint = Arc<dyn Fn() + Send + Sync>;

/// Stops hints when it is dropped.
pub type HintGuard = Box<dyn std::any::Any + Send>;

/// Opens the store at `url`, such as `sqlite:vitrine.db`, with the default lock wait: see [`StoreAddress::open`].
///
/// # Errors
///
/// As [`StoreAddress::open`].
pub fn open(url: &str, if_missing: IfMissing) -> Result<Arc<Store>, StoreError> {
    let Ok(address) = url.parse::<StoreAddress>();
    address.open(if_missing, DEFAULT_LOCK_WAIT)
}

/// Default maximum time that a writer waits for another one.
pub const DEFAULT_LOCK_WAIT: Duration = Duration::from_secs(30);

/// Maximum of that time: both databases count its milliseconds in 32 bits, which end after 24 days.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
