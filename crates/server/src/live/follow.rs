//! Watches a store and swaps what is live.
//!
//! Two threads, so that a revocation never waits for a catalog: one looks after the keys (`follow_keys`), one after
//! the snapshot (`follow_catalog`), at a low priority. Each asks the store for its counters a few times a second, one indexed row,
//! and sooner where the store hints at something, and reads more only where they differ.
//!
//! When the store can't be read, what is live stays live, and it is tried again after a while that grows up to a
//! second (a minute after panics), by chance a little less: many servers mustn't ask a database all at once that has
//! just come back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use vitrine_store::record::StoreState;
use vitrine_store::{HintGuard, Store, StoreError};

use super::background::lower_priority;
use super::follow_catalog::CatalogRounds;
use super::follow_keys::KeyRounds;
use super::key_use::KeyUse;
use super::{Live, StateDirectory};
use crate::error_chain::ErrorChain;
use crate::jitter;
use crate::metrics::Following;
use crate::panics::{Panicked, caught};
use crate::view::TextAddresses;

/// How long a failing store is left alone at most.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1);

/// The same after panics: the same bug most likely, and each of them is long in the log.
const LONGEST_BACK_OFF_AFTER_PANIC: Duration = Duration::from_secs(60);

/// Maximum time of one step of a following thread, such as asking the store for its counters. The timeouts of a
/// PostgreSQL store add up to less. A thread that takes longer hangs, and the server isn't ready.
const STEP_LIMIT: Duration = Duration::from_secs(10);

/// How long a server that ends waits for what is being done here: a database may hang.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// The stores of a server: the one that it follows, and the one that it writes to.
#[derive(Clone)]
pub struct Stores {
    /// Where the catalog and the keys are read; perhaps a replica.
    pub followed: Arc<dyn Store>,
    /// Where the last uses of keys are written down.
    pub written: Arc<dyn Store>,
}

impl Stores {
    /// One store for both.
    #[must_use]
    pub fn one(store: Arc<dyn Store>) -> Self {
        Self {
            followed: Arc::clone(&store),
            written: store,
        }
    }
}

/// What is followed, and what comes of it.
#[derive(Clone)]
pub(super) struct Followed {
    pub(super) store: Arc<dyn Store>,
    pub(super) live: Arc<Live>,
    /// Where what is live is kept for the next start.
    state: Option<StateDirectory>,
    /// Whether the store held a catalog when an earlier run kept it.
    was_full: bool,
}

impl Followed {
    /// Starts what keeps a file of what is live, where any is kept.
    pub(super) fn kept<K>(
        &self,
        start: impl FnOnce(StateDirectory) -> io::Result<K>,
    ) -> Result<Option<(StateDirectory, K)>, StoreError> {
        let Some(directory) = &self.state else {
            return Ok(None);
        };
        let keeper = start(directory.clone());
        let keeper = keeper.map_err(|error| StoreError::Visitor(error.into()))?;
        Ok(Some((directory.clone(), keeper)))
    }

    /// A store in which nothing was ever published can't be the one that what is live came from: somebody made a new
    /// one in its place. What is live stays.
    pub(super) fn refuse_emptied(&self, changes: &StoreState) -> Result<(), StoreError> {
        let was_full = self.was_full || self.live.snapshot().is_some();
        match changes.revision_id.is_none() && was_full {
            true => Err(StoreError::Emptied),
            false => Ok(()),
        }
    }
}

/// The threads; they end when this is dropped.
pub struct Follower {
    hints: Option<HintGuard>,
    stop: Arc<AtomicBool>,
    /// Wake the threads that wait for their next round.
    wakes: Vec<SyncSender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// What a following thread does over and over.
pub(super) trait Rounds: Send + 'static {
    /// Looks at the store and, where needed, swaps.
    fn round(&mut self) -> Result<(), StoreError>;

    /// Where rounds are counted.
    fn metrics(&self) -> &Following;

    /// Makes live what an earlier run kept, since the store can't be read at the start. Returns whether
    /// something was kept.
    fn start_while_away(&mut self) -> bool;
}

impl Follower {
    /// Reads what there is, so that what is live is right when this returns, then keeps following. In `state`
    /// a copy of what is live is kept for the next start; where the store can't be read now, that is what goes
    /// live.
    ///
    /// # Errors
    ///
    /// Where the store can't be read now and nothing was kept. A store that can't be reached is waited for.
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
            directory.remove_half_written();
        }
        let store = &stores.followed;
        let poll_interval = store.poll_interval();
        let followed = Followed {
            store: Arc::clone(store),
            live: Arc::clone(live),
            state: state.cloned(),
            was_full: state.is_some_and(StateDirectory::holds_catalog),
        };
        let keys = KeyRounds::new(followed.clone())?;
        follower.follow("follow-keys", || {}, poll_interval, keys)?;
        let catalog = CatalogRounds::new(followed, addresses)?;
        follower.follow("follow-catalog", lower_priority, poll_interval, catalog)?;
        let wakes = follower.wakes.clone();
        follower.hints = store.subscribe(Arc::new(move || wake_all(&wakes)));
        let mut key_use = KeyUse::new(&stores.written, live);
        follower.spawn("key-use", move |wakes, stop| key_use.run(wakes, stop))?;
        Ok(follower)
    }

    /// Does a first round here, the others on a thread that is set up by `prepare`.
    fn follow(
        &mut self,
        name: &str,
        prepare: fn(),
        poll_interval: Duration,
        mut rounds: impl Rounds,
    ) -> Result<(), StoreError> {
        let mut failing = false;
        if let Err(error) = recorded(&mut rounds) {
            if !rounds.start_while_away() && !error.may_come_back() {
                return Err(error);
            }
            say_failing(&error);
            failing = true;
        }
        self.spawn(name, move |wakes, stop| {
            prepare();
            run(wakes, stop, poll_interval, &mut rounds, failing);
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
        // Where one waits already, it will do.
        let _ = wake.try_send(());
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.hints = None;
        self.stop.store(true, Ordering::Release);
        wake_all(&self.wakes);
        let end = Instant::now() + ENDS_WITHIN;
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
            if !thread.is_finished() {
                let name = thread.thread().name().unwrap_or_default();
                tracing::warn!(
                    thread = name,
                    "the store doesn't answer, and isn't waited for"
                );
            } else if thread.join().is_err() {
                tracing::error!("a following thread had panicked");
            }
        }
    }
}

/// Does rounds until told to stop. A failure is logged when it begins and when it ends.
fn run(
    wakes: &Receiver<()>,
    stop: &AtomicBool,
    poll_interval: Duration,
    rounds: &mut impl Rounds,
    mut failing: bool,
) {
    let mut wait = poll_interval;
    loop {
        rounds.metrics().heartbeat.beat(wait + STEP_LIMIT);
        if let Err(RecvTimeoutError::Disconnected) = wakes.recv_timeout(wait) {
            return;
        }
        if stop.load(Ordering::Acquire) {
            return;
        }
        rounds.metrics().heartbeat.beat(STEP_LIMIT);
        match recorded(rounds) {
            Ok(()) => {
                if failing {
                    tracing::info!("the store can be read again");
                }
                failing = false;
                wait = poll_interval;
            }
            Err(error) => {
                if !failing {
                    say_failing(&error);
                }
                failing = true;
                wait = jitter::slight((wait * 2).min(longest_back_off(&error)));
            }
        }
    }
}

/// Does a round and counts it. One that panics has failed, and is tried again like any other.
fn recorded(rounds: &mut impl Rounds) -> Result<(), StoreError> {
    let outcome = caught(|| rounds.round())
        .unwrap_or_else(|panicked| Err(StoreError::Visitor(panicked.into())));
    rounds.metrics().record(&outcome);
    outcome
}

fn longest_back_off(error: &StoreError) -> Duration {
    match error {
        StoreError::Visitor(source) if source.is::<Panicked>() => LONGEST_BACK_OFF_AFTER_PANIC,
        _ => LONGEST_BACK_OFF,
    }
}

fn say_failing(error: &StoreError) {
    let error = ErrorChain(error);
    tracing::error!(%error, "the store can't be read; serving what is in memory");
}
