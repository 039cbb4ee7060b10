//! The store that many servers share: a PostgreSQL database, with all tables in the schema `vitrine`.
//!
//! - `target`: the address, with `password` and `tls`; `session`: a connection; `failure`: its errors; `limits`: its timeouts
//! - `schema`: recognising, creating and migrating the schema
//! - `catalog`, `history`: reading the live catalog, and any moment; `change_history`: reading what each revision changed
//! - `publish`: writing a revision, with `pending`, its write buffer, and `copy`, the format of rows; `record_digests`: records that products were loaded from
//! - `overrides`: overrides, and the bases of products; `operators`: operators and their sessions; `keys`: API keys; `key_days`: their requests by day; `assortments`: assortments; `audit`: the audit log
//! - `texts`: texts and their sources; `prune`: deleting old revisions' data; `check`: checks of all data; `restore`: moving an SQLite store here; `listen`: hints of changes

mod catalog;
mod change_history;
mod copy;
mod failure;
mod history;
mod limits;
mod listen;
mod lock;
mod overrides;
mod password;
mod pending;
mod publish;
mod record_digests;
mod restore;
mod schema;
mod session;
mod target;
mod tls;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::revision::Revision;

pub(crate) use self::limits::{BEGIN, BEGIN_READ, READ_TIMEOUT, WORK_TIMEOUT, begin_quick};
use self::limits::{COMMAND_TIMEOUT, NOTIFY, POLL_INTERVAL, QUICK_TIMEOUT, SORT_TIMEOUT};
pub(crate) use self::lock::{Lock, take as take_lock};
use self::session::Background;
pub(crate) use self::session::Session;
pub(crate) use self::target::Target;
use crate::assortment::AssortmentStore;
use crate::audit::AuditContext;
use crate::db::{Db, OnDb};
use crate::dry_run::DryRun;
use crate::history::{History, HistoryStart, HistoryVisitor};
use crate::operators::OperatorStore;
use crate::overrides::StorePublication;
use crate::record::{
    ChangeKind, ChangedProduct, ItemVisitor, Moment, ProductVisitor, PublishedRevision, StoreState,
    StoredProduct, VersionSpan,
};
use crate::webhooks::WebhookStore;
use crate::{Hint, HintGuard, IfMissing, Store, StoreError};

/// Permitted use of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads and writes.
    Write(IfMissing),
    /// Reads only.
    ReadOnly,
}

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    // First, so that it is dropped before the thread that drives it.
    /// Connection for calls that take milliseconds. Longer ones have connections of their own, so that polls and reads of
    /// keys never wait for them. None before the first call, and after a failure.
    quick: Mutex<Option<Session>>,
    target: Arc<Target>,
    access: Access,
    pub(crate) lock_wait: Duration,
    /// Timeout of a call for a row or two.
    pub(crate) quick_timeout: Duration,
    background: Arc<Background>,
    /// True once the store was found: if it is gone later, it isn't created again.
    was_seen: AtomicBool,
}

impl PostgresStore {
    /// Returns a store that connects with the first call, for a server.
    pub(crate) fn new(
        target: Target,
        access: Access,
        lock_wait: Duration,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            quick: Mutex::new(None),
            target: Arc::new(target),
            access,
            lock_wait,
            quick_timeout: QUICK_TIMEOUT,
            background: Arc::new(Background::start()?),
            was_seen: AtomicBool::new(false),
        })
    }

    /// Returns a store for a command, with longer timeouts than a server's.
    pub(crate) fn for_command(
        target: Target,
        access: Access,
        lock_wait: Duration,
    ) -> Result<Self, StoreError> {
        let target = target.with_default_timeout(COMMAND_TIMEOUT);
        let store = Self::new(target, access, lock_wait)?;
        Ok(Self {
            quick_timeout: COMMAND_TIMEOUT,
            ..store
        })
    }

    /// Connects, and creates or migrates the schema as necessary.
    pub(crate) fn connect_now(&self) -> Result<(), StoreError> {
        self.quick(|_| Ok(()))
    }

    /// See [`StoreAddress::create_from`](crate::StoreAddress::create_from).
    pub(crate) fn create_from(
        target: Target,
        backup: &Path,
        context: &AuditContext,
    ) -> Result<Option<Revision>, StoreError> {
        let background = Arc::new(Background::start()?);
        let target = Arc::new(target.with_default_timeout(COMMAND_TIMEOUT));
        let mut session = Session::open(&background, &target, WORK_TIMEOUT)?;
        restore::create_from(&mut session, &target.place, backup, context)
    }

    /// Runs a short call on the held connection.
    pub(crate) fn quick<T>(
        &self,
        work: impl FnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // After a panic elsewhere it may be within a transaction.
        let mut held = self.quick.lock().unwrap_or_else(|poisoned| {
            self.quick.clear_poison();
            let mut held = PoisonError::into_inner(poisoned);
            *held = None;
            held
        });
        let session = match &mut *held {
            Some(session) if session.is_usable() => session,
            broken => broken.insert(self.session(self.quick_timeout)?),
        };
        let outcome = work(session);
        if !session.is_usable() {
            *held = None;
        }
        outcome
    }

    /// Opens a separate connection, for calls that take longer, and checks the schema.
    fn session(&self, limit: Duration) -> Result<Session, StoreError> {
        let mut session = Session::open(&self.background, &self.target, limit.min(READ_TIMEOUT))?;
        let access = match self.access {
            Access::Write(_) if self.was_seen.load(Ordering::Relaxed) => {
                Access::Write(IfMissing::Refuse)
            }
            access => access,
        };
        schema::ensure(&mut session, access, &self.target.place)?;
        self.was_seen.store(true, Ordering::Relaxed);
        session.set_timeout(limit);
        Ok(session)
    }

    /// Opens a separate connection for writing.
    pub(crate) fn writer(&self) -> Result<Session, StoreError> {
        match self.access {
            Access::Write(_) => self.session(WORK_TIMEOUT),
            Access::ReadOnly => Err(StoreError::ReadOnly {
                place: self.target.place.to_string(),
            }),
        }
    }

    /// Reads on a separate connection, as of one moment.
    pub(crate) fn read<T>(
        &self,
        doing: &'static str,
        limit: Duration,
        work: impl FnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut session = self.session(limit)?;
        session.transaction(doing, BEGIN_READ, work)
    }
}

impl PostgresStore {
    pub(crate) fn is_read_only(&self) -> bool {
        self.access == Access::ReadOnly
    }
}

impl OnDb for PostgresStore {
    fn db(&self) -> Db<'_> {
        Db::Postgres(self)
    }
}

impl OperatorStore for PostgresStore {}

impl WebhookStore for PostgresStore {}

impl AssortmentStore for PostgresStore {}

impl Store for PostgresStore {
    fn state(&self) -> Result<StoreState, StoreError> {
        self.quick(catalog::state)
    }

    fn poll_interval(&self) -> Duration {
        POLL_INTERVAL
    }

    fn subscribe(&self, hint: Hint) -> Option<HintGuard> {
        match self.access {
            // A replica has no LISTEN.
            Access::ReadOnly => None,
            Access::Write(_) => listen::start(&self.background, &self.target, hint),
        }
    }

    fn read_catalog(
        &self,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<(StoreState, Option<Revision>), StoreError> {
        self.read(catalog::READING, READ_TIMEOUT, |session| {
            catalog::read(session, texts_kept_since, visit)
        })
    }

    fn read_changes(
        &self,
        since: &Revision,
        max_products: u32,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<(StoreState, Option<Revision>), StoreError> {
        self.read(catalog::READING, READ_TIMEOUT, |session| {
            catalog::read_changes(session, since, max_products, texts_kept_since, visit)
        })
    }

    fn read_history(
        &self,
        from: &HistoryStart,
        visit: HistoryVisitor<'_>,
    ) -> Result<History, StoreError> {
        self.read(change_history::READING, READ_TIMEOUT, |session| {
            change_history::read(session, from, visit)
        })
    }

    fn is_replica(&self) -> Result<bool, StoreError> {
        self.quick(catalog::is_replica)
    }

    fn revisions(&self, limit: u32) -> Result<Vec<PublishedRevision>, StoreError> {
        self.quick(|session| history::revisions(session, limit))
    }

    fn revision(&self, number: u64) -> Result<Option<PublishedRevision>, StoreError> {
        self.quick(|session| history::published(session, number))
    }

    fn revision_at(&self, time: Timestamp) -> Result<Option<PublishedRevision>, StoreError> {
        self.quick(|session| history::published_at(session, time))
    }

    fn read_products(
        &self,
        moment: Moment,
        visit: ProductVisitor<'_>,
    ) -> Result<Option<Revision>, StoreError> {
        self.read(history::READING, WORK_TIMEOUT, |session| {
            history::read_products(session, moment, visit)
        })
    }

    fn product(
        &self,
        code: &ProductCode,
        moment: Moment,
    ) -> Result<Option<StoredProduct>, StoreError> {
        self.quick(|session| {
            session.transaction(history::READING, BEGIN_READ, |session| {
                history::at(session, moment, |session, _| {
                    history::product(session, code, moment)
                })
            })
        })
        .map(Option::flatten)
    }

    fn version_spans(
        &self,
        code: &ProductCode,
        limit: u32,
    ) -> Result<Vec<VersionSpan>, StoreError> {
        self.quick(|session| history::version_spans(session, code.as_str(), limit))
    }

    fn revision_changes(
        &self,
        number: u64,
        kind: Option<ChangeKind>,
        after: Option<&ProductCode>,
        limit: u32,
    ) -> Result<Vec<ChangedProduct>, StoreError> {
        let after = after.map_or("", ProductCode::as_str);
        self.read(history::READING, READ_TIMEOUT, |session| {
            history::revision_changes(session, number, kind, after, limit)
        })
    }

    fn publish(&self) -> Result<Box<dyn StorePublication + '_>, StoreError> {
        let publication = publish::PostgresPublication::begin(self.writer()?, self.lock_wait)?;
        Ok(Box::new(publication))
    }

    fn dry_run(&self) -> Result<Box<dyn StorePublication + '_>, StoreError> {
        let mut session = self.session(WORK_TIMEOUT)?;
        session.run(publish::PUBLISHING, BEGIN_READ)?;
        let begun = publish::PostgresPublication::begun(session)?;
        Ok(Box::new(DryRun::new(begun)))
    }

    fn backup(&self, _path: &Path) -> Result<Option<Revision>, StoreError> {
        Err(StoreError::Unsupported(
            "`vitrine backup` copies only SQLite stores; back up a PostgreSQL store with PostgreSQL's own tools, such as `pg_dump --format=custom --schema=vitrine --file=FILE DATABASE`",
        ))
    }

    fn restore(&self, path: &Path, context: &AuditContext) -> Result<Option<Revision>, StoreError> {
        restore::restore(&mut self.writer()?, path, context, self.lock_wait)
    }
}
