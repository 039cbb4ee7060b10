//! Watches a store and swaps what is live.
//!
//! Two threads, so that a revocation never waits for a catalog: one looks after the keys, one after
//! the snapshot, at a low priority. Each asks the store for its counters a few times a second, one indexed row,
//! and sooner where the store hints at something, and reads more only where they differ.
//!
//! When the store can't be read, what is live stays live, and it is tried again after a while that grows up to a
//! second, by chance a little more or less: many servers mustn't ask a database all at once that has just come
//! back.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_model::key::KeyTable;
use vitrine_store::record::Changes;
use vitrine_store::{HintGuard, Store, StoreError};

use super::background::lower_priority;
use super::follow_catalog::CatalogRounds;
use super::keys_file::{self, KeysKeeper};
use super::{Live, StateDirectory};
use crate::view::TextAddresses;

/// How long a failing store is left alone at most.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1);

/// How often the last use of keys is written down.
const RECORD_USE_EVERY: Duration = Duration::from_secs(60);

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

/// The two threads; they end when this is dropped.
pub struct Follower {
    // First: a hint after the end would find nobody.
    hints: Option<HintGuard>,
    wakes: Vec<SyncSender<Wake>>,
    threads: Vec<JoinHandle<()>>,
}

/// Why a thread that waits for its next round wakes early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// Something may have changed.
    Hint,
    /// The server ends.
    Stop,
}

/// What a following thread does over and over.
pub(super) trait Rounds: Send + 'static {
    /// Looks at the store and, where needed, swaps.
    fn round(&mut self) -> Result<(), StoreError>;

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
            wakes: Vec::new(),
            threads: Vec::new(),
        };
        if let Some(directory) = state {
            directory.remove_half_written();
        }
        let store = &stores.followed;
        let poll_every = store.poll_every();
        let keys = KeyRounds::new(stores, live, state)?;
        follower.follow("follow-keys", || {}, poll_every, keys)?;
        let catalog = CatalogRounds::new(store, live, addresses, state)?;
        follower.follow("follow-catalog", lower_priority, poll_every, catalog)?;
        let wakes = follower.wakes.clone();
        follower.hints = store.hint_changes(Arc::new(move || {
            for wake in &wakes {
                // Where one waits already, it will do.
                let _ = wake.try_send(Wake::Hint);
            }
        }));
        Ok(follower)
    }

    /// Does a first round here, the others on a thread that is set up by `prepare`.
    fn follow(
        &mut self,
        name: &str,
        prepare: fn(),
        poll_every: Duration,
        mut rounds: impl Rounds,
    ) -> Result<(), StoreError> {
        let mut failing = false;
        if let Err(error) = rounds.round() {
            if !rounds.start_while_away() && !error.may_come_back() {
                return Err(error);
            }
            say_failing(&error);
            failing = true;
        }
        let (wake, wakes) = sync_channel(1);
        let run = move || {
            prepare();
            run(&wakes, poll_every, &mut rounds, failing);
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        self.threads
            .push(thread.map_err(|error| StoreError::Visitor(Box::new(error)))?);
        self.wakes.push(wake);
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.hints = None;
        for wake in self.wakes.drain(..) {
            // Where the thread has ended already, nobody needs to be told.
            let _ = wake.send(Wake::Stop);
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a following thread had panicked");
            }
        }
    }
}

/// Does rounds until told to stop. A failure is logged when it begins and when it ends.
fn run(wakes: &Receiver<Wake>, poll_every: Duration, rounds: &mut impl Rounds, mut failing: bool) {
    let mut wait = poll_every;
    loop {
        match wakes.recv_timeout(wait) {
            Ok(Wake::Hint) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
        match rounds.round() {
            Ok(()) => {
                if failing {
                    tracing::info!("the store can be read again");
                }
                failing = false;
                wait = poll_every;
            }
            Err(error) => {
                if !failing {
                    say_failing(&error);
                }
                failing = true;
                wait = with_jitter((wait * 2).min(LONGEST_BACK_OFF));
            }
        }
    }
}

fn say_failing(error: &StoreError) {
    let error: &dyn std::error::Error = error;
    tracing::error!(error, "the store can't be read; serving what is in memory");
}

/// Between three quarters of a time and all of it, by chance.
fn with_jitter(time: Duration) -> Duration {
    // Each of these states is another, at random: chance enough.
    let chance = RandomState::new().hash_one(0_u8) % 1024;
    let quarter = time / 4;
    time - quarter * u32::try_from(chance).unwrap_or(0) / 1024
}

struct KeyRounds {
    stores: Stores,
    live: Arc<Live>,
    /// The store's id and its counter.
    seen: Option<(String, u64)>,
    use_recorded: Instant,
    /// Whether the last uses of keys couldn't be written down when that was last tried.
    use_not_recorded: bool,
    file: Option<(StateDirectory, KeysKeeper)>,
}

impl KeyRounds {
    fn new(
        stores: &Stores,
        live: &Arc<Live>,
        state: Option<&StateDirectory>,
    ) -> Result<Self, StoreError> {
        let keeper = |directory: &StateDirectory| {
            let keeper = KeysKeeper::start(directory.clone(), Arc::clone(live));
            keeper.map(|keeper| (directory.clone(), keeper))
        };
        let file = state.map(keeper).transpose();
        Ok(Self {
            stores: stores.clone(),
            live: Arc::clone(live),
            seen: None,
            use_recorded: Instant::now(),
            use_not_recorded: false,
            file: file.map_err(|error| StoreError::Visitor(error.into()))?,
        })
    }

    fn follow_keys(&mut self) -> Result<(), StoreError> {
        let changes = self.stores.followed.changes()?;
        refuse_emptied(&changes, &self.live)?;
        let Changes { store_id, keys, .. } = changes;
        // Should a key change meanwhile, the next round sees another counter than this.
        let found = Some((store_id, keys));
        let is_new = self.seen != found;
        if is_new {
            self.read_keys()?;
            self.seen = found;
        }
        self.live.contact.note();
        if let (true, Some((_, keeper))) = (is_new, &self.file) {
            keeper.write();
        }
        Ok(())
    }

    fn read_keys(&self) -> Result<(), StoreError> {
        let records = self.stores.followed.keys()?;
        self.live
            .set_keys(KeyTable::new(records, &self.live.keys()));
        Ok(())
    }

    /// Writes down, once in a while, when keys were last used. Whether that can be done says nothing of whether
    /// the store can be read.
    fn record_use_in_time(&mut self) {
        if self.use_recorded.elapsed() < RECORD_USE_EVERY {
            return;
        }
        match self.record_use() {
            // A load is being written: the next round tries again.
            Err(StoreError::Busy { .. }) => {}
            outcome => {
                self.use_recorded = Instant::now();
                let failed = outcome.is_err();
                if let (Err(error), false) = (outcome, self.use_not_recorded) {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "the last use of keys can't be written down");
                }
                self.use_not_recorded = failed;
            }
        }
    }

    fn record_use(&self) -> Result<(), StoreError> {
        let keys = self.live.keys();
        let uses: Vec<(String, Timestamp)> = keys
            .used_since_recorded()
            .map(|(prefix, used_at)| (prefix.to_owned(), used_at))
            .collect();
        if uses.is_empty() {
            return Ok(());
        }
        self.stores.written.record_key_use(&uses)?;
        self.read_keys()
    }
}

impl Rounds for KeyRounds {
    fn round(&mut self) -> Result<(), StoreError> {
        let outcome = self.follow_keys();
        self.live.metrics.follow_keys.record(&outcome);
        if outcome.is_ok() {
            self.record_use_in_time();
        }
        outcome
    }

    fn start_while_away(&mut self) -> bool {
        let Some((directory, _)) = &self.file else {
            return false;
        };
        match keys_file::read(directory) {
            Ok((records, contact)) => {
                self.live
                    .set_keys(KeyTable::new(records, &KeyTable::default()));
                if let Err(error) = self.live.contact.resume(contact, Timestamp::now()) {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "the kept keys open nothing until the store is back");
                }
                true
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "the keys file isn't used");
                false
            }
        }
    }
}

impl Drop for KeyRounds {
    /// What was used since the last minute is written down when the server stops.
    fn drop(&mut self) {
        if let Err(error) = self.record_use() {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "the last use of keys wasn't written down");
        }
    }
}

/// A store in which nothing was ever published can't be the one that what is live came from: somebody made a new
/// one in its place. What is live stays.
pub(super) fn refuse_emptied(changes: &Changes, live: &Live) -> Result<(), StoreError> {
    match changes.revision_id.is_none() && live.snapshot().is_some() {
        true => Err(StoreError::Emptied),
        false => Ok(()),
    }
}
