//! Watches a store and swaps what is live.
//!
//! Two threads, so that a revocation never waits for a catalog: one looks after the keys, one after
//! the snapshot, at a low priority. Each asks the store for its counters a few times a second, one indexed row, and
//! reads more only where they differ. When the store can't be read, what is live stays live.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_model::key::KeyTable;
use vitrine_store::record::Changes;
use vitrine_store::{Store, StoreError};

use super::background::lower_priority;
use super::follow_catalog::CatalogRounds;
use super::{Live, StateDirectory};
use crate::view::TextAddresses;

/// How often the last use of keys is written down.
const RECORD_USE_EVERY: Duration = Duration::from_secs(60);

/// The two threads; they end when this is dropped.
#[derive(Debug)]
pub struct Follower {
    stops: Vec<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// Does one round of looking and, where needed, swapping.
pub(super) type Round = Box<dyn FnMut() -> Result<(), StoreError> + Send>;

impl Follower {
    /// Reads what there is, so that what is live is right when this returns, then keeps following. In `state`
    /// a copy of what is live is kept for the next start.
    ///
    /// # Errors
    ///
    /// Where the store can't be read now.
    pub fn start(
        store: &Arc<dyn Store>,
        live: &Arc<Live>,
        addresses: &TextAddresses,
        state: Option<&StateDirectory>,
    ) -> Result<Self, StoreError> {
        let mut follower = Self {
            stops: Vec::new(),
            threads: Vec::new(),
        };
        let poll_every = store.poll_every();
        let keys = KeyRounds::new(Arc::clone(store), Arc::clone(live));
        follower.follow("follow-keys", || {}, poll_every, keys.into_round())?;
        let catalog = CatalogRounds::new(store, live, addresses, state)?;
        follower.follow(
            "follow-catalog",
            lower_priority,
            poll_every,
            catalog.into_round(),
        )?;
        Ok(follower)
    }

    /// Does a first round here, the others on a thread that is set up by `prepare`.
    fn follow(
        &mut self,
        name: &str,
        prepare: fn(),
        poll_every: Duration,
        mut round: Round,
    ) -> Result<(), StoreError> {
        round()?;
        let (stop, stopped) = channel();
        let run = move || {
            prepare();
            run(&stopped, poll_every, &mut round);
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        self.threads
            .push(thread.map_err(|error| StoreError::Visitor(Box::new(error)))?);
        self.stops.push(stop);
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stops.clear();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a following thread had panicked");
            }
        }
    }
}

/// Does rounds until told to stop. A failure is logged when it begins and when it ends.
fn run(stopped: &Receiver<()>, poll_every: Duration, round: &mut Round) {
    let mut failing = false;
    loop {
        match stopped.recv_timeout(poll_every) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
        match round() {
            Ok(()) if failing => {
                tracing::info!("the store can be read again");
                failing = false;
            }
            Ok(()) => {}
            Err(error) if !failing => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, "the store can't be read; serving what is in memory");
                failing = true;
            }
            Err(_) => {}
        }
    }
}

struct KeyRounds {
    store: Arc<dyn Store>,
    live: Arc<Live>,
    /// The store's id and its counter.
    seen: Option<(String, u64)>,
    use_recorded: Instant,
}

impl KeyRounds {
    fn new(store: Arc<dyn Store>, live: Arc<Live>) -> Self {
        Self {
            store,
            live,
            seen: None,
            use_recorded: Instant::now(),
        }
    }

    fn into_round(mut self) -> Round {
        Box::new(move || {
            let outcome = self.round();
            self.live.metrics.follow_keys.record(&outcome);
            outcome
        })
    }

    fn round(&mut self) -> Result<(), StoreError> {
        let Changes { store_id, keys, .. } = self.store.changes()?;
        // Should a key change meanwhile, the next round sees another counter than this.
        let found = Some((store_id, keys));
        if self.seen != found {
            self.read_keys()?;
            self.seen = found;
        }
        if self.use_recorded.elapsed() < RECORD_USE_EVERY {
            return Ok(());
        }
        match self.record_use() {
            // A load is being written: the next round tries again.
            Err(StoreError::Busy { .. }) => Ok(()),
            outcome => {
                self.use_recorded = Instant::now();
                outcome
            }
        }
    }

    fn read_keys(&self) -> Result<(), StoreError> {
        let records = self.store.keys()?;
        self.live
            .set_keys(KeyTable::new(records, &self.live.keys()));
        Ok(())
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
        self.store.record_key_use(&uses)?;
        self.read_keys()
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
