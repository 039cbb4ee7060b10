//! The store that many servers share: a PostgreSQL database, with all tables in the schema `vitrine`.
//!
//! - `target`: the address, with `tls`; `session`: a connection
//! - `schema`: recognising, creating and migrating the schema
//! - `lock`: locks of writers; `listen`: hints of changes

#[cfg(test)]
#[path = "../../tests/support/database.rs"]
#[expect(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod database;
mod listen;
mod lock;
mod schema;
mod session;
mod target;
mod tls;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vitrine_model::revision::Revision;

pub(crate) use self::lock::{Lock, take as take_lock};
use self::session::Background;
pub(crate) use self::session::Session;
pub(crate) use self::target::Target;
use crate::audit::AuditContext;
use crate::db::Tx;
use crate::sqlite::VerifiedCopy;
use crate::webhooks::place::{read_backup, restore_in};
use crate::{Hint, HintGuard, IfMissing, MAX_LOCK_WAIT, StoreError, restore};

const CREATING: &str = "creating the store";

/// Timeout of a call for a row or two.
const QUICK_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout of a call for a row or two in a command, which has nothing else to do on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for the next rows of a large read by a server, which can retry.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for the first row of a large read that is sorted first.
pub(crate) const SORT_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of a statement of a command that reads or writes much. A broken network is noticed long before.
pub(crate) const WORK_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Begins a transaction that writes.
pub(crate) const BEGIN: &str =
    "begin isolation level read committed read write; set local statement_timeout = '1h'";

/// Permitted use of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads and writes.
    Write(IfMissing),
    /// Reads only.
    ReadOnly,
}

/// A store in a PostgreSQL database.
pub(crate) struct PostgresStore {
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
    /// Interval between polls of a shared database: half of the second that the contract promises.
    pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(500);

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
            lock_wait: lock_wait.min(MAX_LOCK_WAIT),
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
        let copy = VerifiedCopy::temporary(backup)?;
        session.transaction(CREATING, BEGIN, |session| {
            schema::create(session, &target.place)?;
            let tx = &mut Tx::postgres(session, CREATING);
            restore_in(tx, &read_backup(&copy.connection)?)?;
            restore::fill(tx, &copy, backup, context)
        })
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
    pub(crate) fn session(&self, limit: Duration) -> Result<Session, StoreError> {
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

    pub(crate) fn is_read_only(&self) -> bool {
        self.access == Access::ReadOnly
    }

    /// See [`Store::subscribe`](crate::Store::subscribe).
    pub(crate) fn subscribe(&self, hint: Hint) -> Option<HintGuard> {
        match self.access {
            // A replica has no LISTEN.
            Access::ReadOnly => None,
            Access::Write(_) => listen::start(&self.background, &self.target, hint),
        }
    }
}

/// Returns what begins a transaction for a row or two, read as of one moment.
pub(crate) fn begin_quick(limit: Duration) -> String {
    let limit = limit.as_millis();
    format!(
        "begin isolation level repeatable read read only; set local statement_timeout = {limit}"
    )
}

/// Returns what begins a transaction that reads much, as of one moment, whatever timeout the role or the database has set.
/// `limit` is the timeout for the next rows. The server's own are longer: they end what a lost client has left behind.
pub(crate) fn begin_read(limit: Duration) -> String {
    let lock = (limit + Duration::from_secs(1)).as_millis();
    let minutes = if limit > READ_TIMEOUT { 60 } else { 10 };
    format!(
        "begin isolation level repeatable read read only; \
         set local lock_timeout = {lock}; set local statement_timeout = '{minutes}min'"
    )
}
