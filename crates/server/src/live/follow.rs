//! The threads that poll a store and swap the live snapshot and keys.
//!
//! There are two, so that a revocation never waits for a catalog: one follows the keys (`follow_keys`), one the catalog
//! (`follow_catalog`), at a low priority. Each polls the state of the store a few times a second, one indexed row, and
//! at once after a hint, and reads more only if the state differs.
//!
//! If the store can't be read, the live snapshot and keys stay. Retries back off up to a second (a minute after panics),
//! with jitter, so that many servers don't all query a database that has just recovered.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use vitrine_ingest::jitter;
use vitrine_ingest::view::TextAddresses;
use vitrine_store::record::StoreState;
use vitrine_store::{Hint, HintGuard, Store, StoreError};

use super::background::lower_priority;
use super::contact::TICK;
use super::follow_catalog::CatalogPoll;
use super::follow_keys::KeyPoll;
use super::key_use::KeyUse;
use super::state_file::{State, StateFile};
use super::{Live, StateDirectory};
use crate::boot_time::BootTime;
use crate::error_chain::ErrorChain;
use crate::metrics::Following;
use crate::panics::{Panicked, caught};

/// Maximum pause between retries of a failing store.
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Maximum pause between retries after panics, which are likely to repeat and fill the log.
const MAX_BACKOFF_AFTER_PANIC: Duration = Duration::from_secs(60);

/// Maximum time of one step of a following thread, such as asking the store for its counters. The timeouts of a
/// PostgreSQL store add up to less than ten seconds, and SQLite tries for ten to get a lock that the system refuses. A
/// thread that takes twice as long hangs, and the server isn't ready.
const STEP_LIMIT: Duration = Duration::from_secs(20);

/// Maximum time that the end of a server waits for these threads: a database may hang.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The stores of a server: the one that it follows, and the one that it writes to.
#[derive(Clone)]
pub struct Stores {
    /// Store of the catalog and the keys, perhaps a replica.
    pub followed: Arc<Store>,
    /// Store in which the last use of keys is recorded.
    pub written: Arc<Store>,
}

impl Stores {
    /// Returns one store for both.
    #[must_use]
    pub fn one(store: Arc<Store>) -> Self {
        Self {
            followed: Arc::clone(&store),
            written: store,
        }
    }
}

/// The followed store, and the state to swap.
#[derive(Clone)]
pub(super) struct FollowContext {
    pub(super) store: Arc<Store>,
    pub(super) live: Arc<Live>,
    /// The store that a followed replica is a copy of.
    pub(super) primary: Option<Arc<Store>>,
    /// Directory of the files for the next start.
    state: Option<StateDirectory>,
    /// True if an earlier run saved a catalog of this store.
    was_full: bool,
}

impl FollowContext {
    /// Starts the writer of a file in the state directory, if there is one.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn state_file<T: State>(&self) -> Result<Option<StateFile<T>>, StoreError> {
        let directory = self.state.as_ref();
        let file = directory.map(|directory| StateFile::start(directory, &self.live));
        file.transpose()
            .map_err(|error| StoreError::Visitor(error.into()))
    }

    /// Refuses an empty store if a catalog is live: somebody replaced the store, and the live catalog stays.
    ///
    /// # Errors
    ///
    /// If the store is empty and wasn't before.
    pub(super) fn refuse_emptied(&self, state: &StoreState) -> Result<(), StoreError> {
        let was_full = self.was_full || self.live.snapshot().is_some();
        match state.revision_id.is_none() && was_full {
            true => Err(StoreError::Emptied),
            false => Ok(()),
        }
    }
}

/// The threads, which end when this is dropped.
pub struct Follower {
    hints: Option<HintGuard>,
    stop: Arc<AtomicBool>,
    /// Wake the threads before their next poll.
    wakes: Vec<SyncSender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// Task of a following thread.
pub(super) trait PollTask: Send + 'static {
    /// Polls the store, and swaps if its state changed.
    fn poll(&mut self) -> Result<(), StoreError>;

    /// Returns the metrics of the task.
    fn metrics(&self) -> &Following;

    /// Starts from the files of an earlier run, since the store can't be read. Returns whether that succeeded.
    fn start_offline(&mut self) -> bool;
}

impl Follower {
    /// Reads the store, so that the live snapshot and keys are current when this returns, then starts to follow it. The
    /// directory `state` has copies for the next start; if the store can't be read now, they go live.
    ///
    /// # Errors
    ///
    /// If the store can't be read for a reason that doesn't pass, and there are no copies.
    pub fn start(
        stores: &Stores,
        live: &Arc<Live>,
        addresses: &TextAddresses,
        state: Option<&StateDirectory>,
    ) -> Result<Self, StoreError> {
        let mut follower = Self {
            hints: None,
            stop: Arc::default(),
            wakes: Vec::new(),
            threads: Vec::new(),
        };
        if let Some(directory) = state {
            directory.remove_partial_files();
        }
        let store = &stores.followed;
        let poll_interval = store.poll_interval();
        let followed = FollowContext {
            store: Arc::clone(store),
            live: Arc::clone(live),
            primary: (!Arc::ptr_eq(store, &stores.written)).then(|| Arc::clone(&stores.written)),
            state: state.cloned(),
            was_full: state.is_some_and(StateDirectory::has_catalog),
        };
        let keys = KeyPoll::new(followed.clone())?;
        follower.follow("follow-keys", || {}, poll_interval, keys)?;
        let catalog = CatalogPoll::new(followed, addresses)?;
        follower.follow("follow-catalog", lower_priority, poll_interval, catalog)?;
        let wakes = follower.wakes.clone();
        let hint: Hint = Arc::new(move || wake_all(&wakes));
        live.store_reads.connect(Arc::clone(&hint));
        follower.hints = store.subscribe(hint);
        let ticking = Arc::clone(live);
        follower.spawn("ticks", move |wakes, stop| {
            while !stop.load(Ordering::Acquire) {
                ticking.contact.tick(BootTime::now());
                let _ = wakes.recv_timeout(TICK);
            }
        })?;
        let mut key_use = KeyUse::new(&stores.written, live);
        follower.spawn("key-use", move |wakes, stop| key_use.run(wakes, stop))?;
        Ok(follower)
    }

    /// Polls once on this thread, then on a new one, which runs `prepare` first.
    fn follow(
        &mut self,
        name: &str,
        prepare: fn(),
        poll_interval: Duration,
        mut task: impl PollTask,
    ) -> Result<(), StoreError> {
        let mut failures = Failures::default();
        if let Err(error) = poll_and_record(&mut task) {
            if !task.start_offline() && !error.may_come_back() {
                return Err(error);
            }
            failures.log(&error);
        }
        self.spawn(name, move |wakes, stop| {
            prepare();
            run(wakes, stop, poll_interval, &mut task, failures);
        })
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce(&Receiver<()>, &AtomicBool) + Send + 'static,
    ) -> Result<(), StoreError> {
        let (wake, wakes) = sync_channel(1);
        let stop = Arc::clone(&self.stop);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || work(&wakes, &stop));
        self.threads
            .push(thread.map_err(|error| StoreError::Visitor(Box::new(error)))?);
        self.wakes.push(wake);
        Ok(())
    }
}

fn wake_all(wakes: &[SyncSender<()>]) {
    for wake in wakes {
        // A full queue already wakes the thread.
        let _ = wake.try_send(());
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.hints = None;
        self.stop.store(true, Ordering::Release);
        wake_all(&self.wakes);
        let end = Instant::now() + SHUTDOWN_TIMEOUT;
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
            if !thread.is_finished() {
                let name = thread.thread().name().unwrap_or_default();
                tracing::warn!(
                    thread = name,
                    "the store doesn't answer; no longer waiting for it"
                );
            } else if thread.join().is_err() {
                tracing::error!("a follower thread panicked");
            }
        }
    }
}

/// Failures of polls in a row. Each kind is logged once: a store that is away may come back as an empty one.
#[derive(Default)]
struct Failures(Vec<Discriminant<StoreError>>);

impl Failures {
    fn log(&mut self, error: &StoreError) {
        let kind = discriminant(error);
        if self.0.contains(&kind) {
            return;
        }
        self.0.push(kind);
        let error = ErrorChain(error);
        tracing::error!(%error, "the store can't be read; serving from memory");
    }

    /// Ends them, if there were any.
    fn end(&mut self) {
        if !self.0.is_empty() {
            tracing::info!("the store can be read again");
            self.0.clear();
        }
    }
}

/// Polls until stopped. Logs failures when they begin and when they end.
fn run(
    wakes: &Receiver<()>,
    stop: &AtomicBool,
    poll_interval: Duration,
    task: &mut impl PollTask,
    mut failures: Failures,
) {
    let mut wait = poll_interval;
    loop {
        task.metrics().heartbeat.beat(wait + STEP_LIMIT);
        if let Err(RecvTimeoutError::Disconnected) = wakes.recv_timeout(wait) {
            return;
        }
        if stop.load(Ordering::Acquire) {
            return;
        }
        task.metrics().heartbeat.beat(STEP_LIMIT);
        match poll_and_record(task) {
            Ok(()) => {
                failures.end();
                wait = poll_interval;
            }
            Err(error) => {
                failures.log(&error);
                wait = jitter::slight((wait * 2).min(max_backoff(&error)));
            }
        }
    }
}

/// Polls once and records the outcome. A panic is a failure, which is retried like any other.
fn poll_and_record(task: &mut impl PollTask) -> Result<(), StoreError> {
    let outcome =
        caught(|| task.poll()).unwrap_or_else(|panicked| Err(StoreError::Visitor(panicked.into())));
    task.metrics().record(&outcome);
    outcome
}

fn max_backoff(error: &StoreError) -> Duration {
    match error {
        StoreError::Visitor(source) if source.is::<Panicked>() => MAX_BACKOFF_AFTER_PANIC,
        _ => MAX_BACKOFF,
    }
}
