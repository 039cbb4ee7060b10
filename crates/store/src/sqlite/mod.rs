//! The embedded store: one SQLite file in WAL mode, written with `synchronous=FULL`, since writes are
//! rare and acknowledged means durable.
//!
//! - `open`: how the file is made, recognised and migrated
//! - `catalog`: reading the live catalog
//! - `publish`: writing a revision
//! - `keys`: API keys

mod catalog;
mod keys;
mod open;
mod publish;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use vitrine_model::content::TextDigest;
use vitrine_model::key::KeyRecord;
use vitrine_model::revision::Revision;

use crate::record::{Changes, ItemVisitor};
use crate::{IfMissing, KeyDecision, Publication, Store, StoreError, TextServed};

/// How long a writer waits for another one.
const WRITER_PATIENCE: Duration = Duration::from_secs(30);

/// A store in one SQLite file.
pub(crate) struct SqliteStore {
    path: PathBuf,
    /// For what takes microseconds. Catalogs are read and written on connections of their own, so
    /// that looking for changes and reading keys never waits for them.
    quick: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens the file, makes it where it is missing and may be made, and migrates it.
    pub(crate) fn open(path: PathBuf, if_missing: IfMissing) -> Result<Self, StoreError> {
        let quick = Mutex::new(open::open(&path, if_missing)?);
        Ok(Self { path, quick })
    }

    fn quick(&self) -> MutexGuard<'_, Connection> {
        // A panic elsewhere leaves a connection whose transaction was rolled back: it is sound.
        self.quick.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of its own, for what takes longer.
    fn connect(&self) -> Result<Connection, StoreError> {
        open::connect(&self.path)
    }
}

impl Store for SqliteStore {
    fn changes(&self) -> Result<Changes, StoreError> {
        let connection = self.quick();
        let sql = "select revision_id, texts_counter, keys_counter from state";
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Changes {
                revision_id: row.get(0)?,
                texts: row.get(1)?,
                keys: row.get(2)?,
            })
        };
        let mut statement = connection
            .prepare_cached(sql)
            .map_err(during("looking for changes"))?;
        statement
            .query_row([], read)
            .map_err(during("looking for changes"))
    }

    fn read_catalog(
        &self,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<Option<Revision>, StoreError> {
        catalog::read(&mut self.connect()?, texts_kept_since, visit)
    }

    fn publish(&self) -> Result<Box<dyn Publication + '_>, StoreError> {
        let publication = publish::SqlitePublication::begin(self.connect()?)?;
        Ok(Box::new(publication))
    }

    fn set_text_served(&self, digest: &TextDigest, served: TextServed) -> Result<bool, StoreError> {
        let doing = "taking a text down or putting it back";
        let mut connection = self.quick();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(during(doing))?;
        let taken_down_at = match served {
            TextServed::Yes => None,
            TextServed::No => Some(Timestamp::now().as_millisecond()),
        };
        let found = transaction
            .execute(
                "update text set taken_down_at = ?2 where digest = ?1",
                (digest.as_bytes(), taken_down_at),
            )
            .map_err(during(doing))?;
        if found == 0 {
            return Ok(false);
        }
        transaction
            .execute("update state set texts_counter = texts_counter + 1", [])
            .map_err(during(doing))?;
        transaction.commit().map_err(during(doing))?;
        Ok(true)
    }

    fn keys(&self) -> Result<(u64, Vec<KeyRecord>), StoreError> {
        keys::read(&mut self.quick())
    }

    fn change_keys(&self, decide: KeyDecision<'_>) -> Result<(), StoreError> {
        keys::change(&mut self.quick(), decide)
    }

    fn record_key_use(&self, uses: &[(String, Timestamp)]) -> Result<(), StoreError> {
        keys::record_use(&mut self.quick(), uses)
    }
}

/// Turns SQLite's error into the store's, with what was being done.
fn during(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
            waited_seconds: WRITER_PATIENCE.as_secs(),
        },
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged(source.to_string()),
        _ => StoreError::Database { doing, source },
    }
}

/// A moment as the store keeps it.
fn from_millis(millis: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_millisecond(millis)
        .map_err(|_| StoreError::Damaged(format!("{millis} is no moment in time")))
}

/// 32 bytes as the store keeps them.
fn bytes_32(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes
        .try_into()
        .map_err(|_| StoreError::Damaged(format!("a digest of {} bytes", bytes.len())))
}
