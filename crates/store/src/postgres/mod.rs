//! The store that many servers share: a PostgreSQL database, in which everything lies in the schema `vitrine`.
//!
//! - `target`: the address, with `password` and `tls`; `session`: a connection; `failure`: what can go wrong there
//! - `schema`: how the database is recognised, set up and migrated
//! - `catalog`, `history`: reading what is live, and any moment
//! - `publish`: writing a revision, with `pending`: what waits to be written, and `copy`: how that is sent
//! - `keys`: API keys; `texts`: texts and where they came from; `prune`: freeing what old revisions alone see
//! - `check`: whether what rests there is what was written; `restore`: the way in for an SQLite store
//! - `listen`: hints that something changed

mod catalog;
mod check;
mod copy;
mod failure;
mod history;
mod keys;
mod listen;
mod lock;
mod password;
mod pending;
mod prune;
mod publish;
mod restore;
mod schema;
mod session;
mod target;
mod texts;
mod tls;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::key::KeyRecord;
use vitrine_model::revision::Revision;

use self::session::{Background, Session};
pub(crate) use self::target::Target;
use crate::problem::Problem;
use crate::record::{
    Changes, FetchedText, ItemVisitor, Keep, Life, Moment, ProductVisitor, Pruned,
    PublishedRevision, StoredProduct, Touch, Touched,
};
use crate::{Hint, HintGuard, IfMissing, KeyDecision, Publication, Store, StoreError, TextServed};

/// How often a shared database is asked: twice in the second that the contract promises.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// How long a call may take that asks for a row or two.
const QUICK: Duration = Duration::from_secs(1);

/// The same for a command, which somebody waits for, on a machine that may be busy.
const QUICK_FOR_COMMANDS: Duration = Duration::from_secs(10);

/// How long the next rows of much may take: servers that read wait for it, and can as well ask again.
const READING: Duration = Duration::from_secs(5);

/// How long the first row of much may take where all of it is gathered and sorted before.
const SORTING: Duration = Duration::from_secs(60);

/// How long a step of a command may take that writes or looks at much. A broken network is noticed long before.
const WORKING: Duration = Duration::from_secs(60 * 60);

/// One state of the store, whatever others write meanwhile.
const AS_OF_ONE_MOMENT: &str =
    "begin isolation level repeatable read read only; set local statement_timeout = 0";

/// A transaction that writes. Both say what a role or a database may have set otherwise; how long something may
/// take is for this side to say.
const BEGIN: &str =
    "begin isolation level read committed read write; set local statement_timeout = 0";

/// What may be done to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everything.
    Write(IfMissing),
    /// Nothing is ever written.
    ReadOnly,
}

/// A store in a PostgreSQL database.
pub(crate) struct PostgresStore {
    // First, since it is dropped first: it is driven by the background.
    /// For what takes milliseconds. What takes longer has connections of its own, so that looking for changes and
    /// reading keys never waits for it. None before the first call, and where it broke.
    quick: Mutex<Option<Session>>,
    target: Arc<Target>,
    access: Access,
    patience: Duration,
    /// How long a call may take that asks for a row or two.
    quick_limit: Duration,
    background: Arc<Background>,
    /// Whether there was a store: should it be gone one day, it isn't made anew.
    was_seen: AtomicBool,
}

impl PostgresStore {
    /// Takes note of where the store is. The first call connects.
    pub(crate) fn new(
        target: Target,
        access: Access,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            quick: Mutex::new(None),
            target: Arc::new(target),
            access,
            patience,
            quick_limit: QUICK,
            background: Arc::new(Background::start()?),
            was_seen: AtomicBool::new(false),
        })
    }

    /// Takes note of where the store is, for a command rather than a server that follows.
    pub(crate) fn for_command(
        target: Target,
        access: Access,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let target = target.waiting(QUICK_FOR_COMMANDS);
        let store = Self::new(target, access, patience)?;
        Ok(Self {
            quick_limit: QUICK_FOR_COMMANDS,
            ..store
        })
    }

    /// Connects, and makes or migrates what is to be made or migrated.
    pub(crate) fn connect_now(&self) -> Result<(), StoreError> {
        self.quick(|_| Ok(()))
    }

    /// See [`StoreAddress::create_from`](crate::StoreAddress::create_from).
    pub(crate) fn create_from(
        target: Target,
        backup: &Path,
    ) -> Result<Option<Revision>, StoreError> {
        let background = Arc::new(Background::start()?);
        let target = Arc::new(target.waiting(QUICK_FOR_COMMANDS));
        let mut session = Session::open(&background, &target, WORKING)?;
        restore::create_from(&mut session, &target.place, backup)
    }

    /// Does something short on the connection that is held.
    fn quick<T>(
        &self,
        work: impl FnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // A panic elsewhere may have left it within a transaction.
        let mut held = self.quick.lock().unwrap_or_else(|poisoned| {
            self.quick.clear_poison();
            let mut held = PoisonError::into_inner(poisoned);
            *held = None;
            held
        });
        let session = match &mut *held {
            Some(session) if session.is_usable() => session,
            broken => broken.insert(self.session(self.quick_limit)?),
        };
        let outcome = work(session);
        if !session.is_usable() {
            *held = None;
        }
        outcome
    }

    /// A connection of its own, for what takes longer, to a database that was looked at.
    fn session(&self, limit: Duration) -> Result<Session, StoreError> {
        let mut session = Session::open(&self.background, &self.target, limit.min(READING))?;
        let access = match self.access {
            Access::Write(_) if self.was_seen.load(Ordering::Relaxed) => {
                Access::Write(IfMissing::Refuse)
            }
            access => access,
        };
        schema::ensure(&mut session, access, &self.target.place)?;
        self.was_seen.store(true, Ordering::Relaxed);
        session.within(limit);
        Ok(session)
    }

    /// A connection of its own that writes.
    fn writer(&self) -> Result<Session, StoreError> {
        match self.access {
            Access::Write(_) => self.session(WORKING),
            Access::ReadOnly => Err(StoreError::ReadOnly {
                place: self.target.place.to_string(),
            }),
        }
    }

    /// Reads on a connection of its own, as of one moment.
    fn read<T>(
        &self,
        doing: &'static str,
        limit: Duration,
        work: impl FnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut session = self.session(limit)?;
        session.transaction(doing, AS_OF_ONE_MOMENT, work)
    }
}

impl Store for PostgresStore {
    fn changes(&self) -> Result<Changes, StoreError> {
        self.quick(catalog::changes)
    }

    fn poll_every(&self) -> Duration {
        POLL_EVERY
    }

    fn hint_changes(&self, hint: Hint) -> Option<HintGuard> {
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
    ) -> Result<(Changes, Option<Revision>), StoreError> {
        self.read(catalog::READING, READING, |session| {
            catalog::read(session, texts_kept_since, visit)
        })
    }

    fn read_changes(
        &self,
        since: &Revision,
        most_products: u32,
        texts_kept_since: Timestamp,
        visit: ItemVisitor<'_>,
    ) -> Result<(Changes, Option<Revision>), StoreError> {
        self.read(catalog::READING, READING, |session| {
            catalog::read_changes(session, since, most_products, texts_kept_since, visit)
        })
    }

    fn revisions(&self, most: u32) -> Result<Vec<PublishedRevision>, StoreError> {
        self.quick(|session| history::revisions(session, most))
    }

    fn revision(&self, number: u64) -> Result<Option<PublishedRevision>, StoreError> {
        self.quick(|session| history::published(session, number))
    }

    fn read_products(
        &self,
        moment: Moment,
        visit: ProductVisitor<'_>,
    ) -> Result<Option<Revision>, StoreError> {
        self.read(history::READING, WORKING, |session| {
            history::read_products(session, moment, visit)
        })
    }

    fn product(
        &self,
        code: &ProductCode,
        moment: Moment,
    ) -> Result<Option<StoredProduct>, StoreError> {
        self.quick(|session| {
            session.transaction(history::READING, AS_OF_ONE_MOMENT, |session| {
                if history::revision(session, moment)?.is_none() {
                    return Ok(None);
                }
                history::ensure_readable(session, moment)?;
                let found = history::products_of(session, &[code.as_str()], moment)?;
                Ok(found.into_iter().next().map(|(_, _, product)| product))
            })
        })
    }

    fn lives(&self, code: &ProductCode, most: u32) -> Result<Vec<Life>, StoreError> {
        self.quick(|session| history::lives(session, code.as_str(), most))
    }

    fn touched(
        &self,
        number: u64,
        how: Option<Touch>,
        after: Option<&ProductCode>,
        most: u32,
    ) -> Result<Vec<Touched>, StoreError> {
        let after = after.map_or("", ProductCode::as_str);
        self.read(history::READING, READING, |session| {
            history::touched(session, number, how, after, most)
        })
    }

    fn text(&self, digest: &TextDigest) -> Result<Option<PackedMarkdown>, StoreError> {
        self.quick(|session| texts::read(session, digest))
    }

    fn fetched_text(&self, url: &str) -> Result<Option<(FetchedText, TextServed)>, StoreError> {
        self.quick(|session| texts::fetched(session, url))
    }

    fn publish(&self) -> Result<Box<dyn Publication + '_>, StoreError> {
        let publication = publish::PostgresPublication::begin(self.writer()?, self.patience)?;
        Ok(Box::new(publication))
    }

    fn set_text_served(&self, digest: &TextDigest, served: TextServed) -> Result<bool, StoreError> {
        texts::set_served(&mut self.writer()?, digest, served, self.patience)
    }

    fn plan_prune(&self, keep: Keep, texts_kept_since: Timestamp) -> Result<Pruned, StoreError> {
        self.read(prune::PRUNING, WORKING, |session| {
            prune::plan(session, keep, texts_kept_since)
        })
    }

    fn prune(&self, keep: Keep, texts_kept_since: Timestamp) -> Result<Pruned, StoreError> {
        prune::prune(&mut self.writer()?, keep, texts_kept_since, self.patience)
    }

    fn read_keys(&self) -> Result<(Changes, Vec<KeyRecord>), StoreError> {
        self.quick(|session| session.transaction(keys::READING, AS_OF_ONE_MOMENT, keys::read))
    }

    fn change_keys(&self, decide: KeyDecision<'_>) -> Result<(), StoreError> {
        keys::change(&mut self.writer()?, decide, self.patience)
    }

    fn record_key_use(&self, uses: &[(String, Timestamp)]) -> Result<(), StoreError> {
        match self.access {
            Access::ReadOnly => Ok(()),
            Access::Write(_) => self.quick(|session| keys::record_use(session, uses)),
        }
    }

    fn check(&self) -> Result<Vec<Problem>, StoreError> {
        self.read(check::CHECKING, WORKING, check::check)
    }

    fn backup(&self, _path: &Path) -> Result<Option<Revision>, StoreError> {
        Err(StoreError::Unsupported(
            "a PostgreSQL store is backed up by PostgreSQL's own tools, such as `pg_dump --format=custom --schema=vitrine --file=FILE DATABASE`; `vitrine backup` copies SQLite stores",
        ))
    }

    fn restore(&self, path: &Path) -> Result<Option<Revision>, StoreError> {
        restore::restore(&mut self.writer()?, path, self.patience)
    }
}
