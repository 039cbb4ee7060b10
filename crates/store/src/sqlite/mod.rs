//! The embedded store: one SQLite file in WAL mode, written with `synchronous=FULL`: writes are rare, and what was
//! acknowledged is durable.
//!
//! - `open`: creating, recognising and migrating the file; `quick`: the connection that is held
//! - `catalog`: reading the live catalog; `catalog_changes`: what changed in it
//! - `publish`: writing a revision, with `live_versions`; `record_digests`: records that products were loaded from
//! - `history`: reading any moment; `change_history`: reading what each revision changed
//! - `overrides`: overrides, and the bases of products; `prune`: deleting old revisions' data
//! - `operators`: operators of the console, and their sessions
//! - `keys`: API keys; `key_days`: their requests by day; `assortments`: assortments; `audit`: the audit log
//! - `texts`: texts and their sources
//! - `check`: checks of all data; `failure`: SQLite's errors
//! - `backup`: backup and restore; `partial`: incomplete files; `unpacked`: columns of the other store
//! - `holder`: the process that holds the write lock
//! - `wal`: the write-ahead log, and its size

mod backup;
mod catalog;
mod catalog_changes;
mod change_history;
mod failure;
mod history;
mod holder;
mod live_versions;
mod open;
mod overrides;
mod partial;
mod publish;
mod quick;
mod record_digests;
mod unpacked;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Connection;
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;

use crate::assortment::AssortmentStore;
use crate::audit::AuditContext;
use crate::check::run as check;
use crate::db::{Db, OnDb};
use crate::dry_run::DryRun;
use crate::history::{History, HistoryStart, HistoryVisitor};
use crate::operators::OperatorStore;
use crate::overrides::StorePublication;
use crate::prepared::DocumentForm;
use crate::problem::Problem;
use crate::record::{
    ChangeKind, ChangedProduct, ItemVisitor, Moment, ProductVisitor, PublishedRevision, StoreState,
    StoredProduct, VersionSpan,
};
use crate::webhooks::{WebhookStore, place};
use crate::{Hint, HintGuard, IfMissing, Store, StoreError};

pub(crate) use backup::{checked_copy, create_from, view as view_of_backup};
pub(crate) use failure::{committed, during};
use holder::with_lock_holder;
pub(crate) use open::{connect, plain_connection};
pub(crate) use partial::{Partial, with_ending};
use quick::Quick;
pub(crate) use quick::{FileId, file_id};

/// A store in one SQLite file.
pub struct SqliteStore {
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
    fn connect_to_write(&self) -> Result<Connection, StoreError> {
        let connection = self.connect()?;
        wal::empty_if_large(&connection, &self.path, self.lock_wait, wal::PUBLISH_WAIT)?;
        Ok(connection)
    }
}

/// Interval between polls. A poll reads one row of a cached file, in some microseconds.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl OnDb for SqliteStore {
    fn db(&self) -> Db<'_> {
        Db::Sqlite(self)
    }
}

impl OperatorStore for SqliteStore {}

impl WebhookStore for SqliteStore {}

impl AssortmentStore for SqliteStore {}

impl Store for SqliteStore {
    fn state(&self) -> Result<StoreState, StoreError> {
        let mut quick = self.quick()?;
        let found = catalog::state(&quick.connection);
        quick.close_on_error(&found)?;
        found
    }

    fn poll_interval(&self) -> Duration {
        POLL_INTERVAL
    }

    fn subscribe(&self, _hint: Hint) -> Option<HintGuard> {
        None
    }

    fn read_catalog(
        &self,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<(StoreState, Option<Revision>), StoreError> {
        catalog::read(&mut self.connect()?, texts_kept_since, visit)
    }

    fn read_changes(
        &self,
        since: &Revision,
        max_products: u32,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<(StoreState, Option<Revision>), StoreError> {
        let connection = &mut self.connect()?;
        catalog_changes::read(connection, since, max_products, texts_kept_since, visit)
    }

    fn read_history(
        &self,
        from: &HistoryStart,
        visit: HistoryVisitor<'_>,
    ) -> Result<History, StoreError> {
        change_history::read(&mut self.connect()?, from, visit)
    }

    fn checkpoint_log(&self) -> Result<Option<u64>, StoreError> {
        if wal::size_bytes(&self.path) > wal::SMALL_BYTES {
            let connection = self.connect()?;
            wal::empty_if_large(&connection, &self.path, self.lock_wait, wal::FOLLOWER_WAIT)?;
        }
        Ok(Some(wal::size_bytes(&self.path)))
    }

    fn revisions(&self, limit: u32) -> Result<Vec<PublishedRevision>, StoreError> {
        history::revisions(&self.quick()?.connection, limit)
    }

    fn revision(&self, number: u64) -> Result<Option<PublishedRevision>, StoreError> {
        history::published(&self.quick()?.connection, number)
    }

    fn revision_at(&self, time: Timestamp) -> Result<Option<PublishedRevision>, StoreError> {
        history::published_at(&self.quick()?.connection, time)
    }

    fn read_products(
        &self,
        moment: Moment,
        visit: ProductVisitor<'_>,
    ) -> Result<Option<Revision>, StoreError> {
        history::read_products(&mut self.connect()?, moment, visit)
    }

    fn product(
        &self,
        code: &ProductCode,
        moment: Moment,
    ) -> Result<Option<StoredProduct>, StoreError> {
        history::at(&mut self.quick()?.connection, moment, |transaction, _| {
            history::product(transaction, code, moment)
        })
        .map(Option::flatten)
    }

    fn version_spans(
        &self,
        code: &ProductCode,
        limit: u32,
    ) -> Result<Vec<VersionSpan>, StoreError> {
        history::version_spans(&self.quick()?.connection, code, limit)
    }

    fn revision_changes(
        &self,
        number: u64,
        kind: Option<ChangeKind>,
        after: Option<&ProductCode>,
        limit: u32,
    ) -> Result<Vec<ChangedProduct>, StoreError> {
        let mut quick = self.quick()?;
        // One read transaction: whether the revision can be read, and what it changed.
        let transaction = quick
            .connection
            .transaction()
            .map_err(during("reading the history"))?;
        history::revision_changes(&transaction, number, kind, after, limit)
    }

    fn document_form(&self) -> DocumentForm {
        DocumentForm::Packed
    }

    fn publish(&self) -> Result<Box<dyn StorePublication + '_>, StoreError> {
        let begun = publish::SqlitePublication::begin(self.connect_to_write()?, "begin immediate");
        let publication = self.with_lock_holder(begun)?;
        Ok(Box::new(publication))
    }

    fn dry_run(&self) -> Result<Box<dyn StorePublication + '_>, StoreError> {
        let begun = publish::SqlitePublication::begin(self.connect()?, "begin deferred")?;
        Ok(Box::new(DryRun::new(begun)))
    }

    fn check(&self) -> Result<Vec<Problem>, StoreError> {
        // Read-only: a backup must keep every byte.
        file_id(&self.path)?;
        let mut problems = check::check_file(&mut open::backup(&self.path)?)?;
        let webhooks = place::path(&self.path);
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
