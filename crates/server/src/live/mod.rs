//! The live snapshot and keys that requests read, and the threads that swap them.
//!
//! - `build`: builds a snapshot from a store, with threads that take `batches` of products
//! - `follow`: the threads that poll a store; `follow_catalog`, `follow_keys`, `follow_assortments`: their tasks; `key_use`:
//!   records the last use of keys, with `key_days`: their requests by day; `background`: low priority for work beside requests
//! - `contact`: age of the keys, and its limit
//! - `feed`: the state that the changes feed answers from, and reads that requests ask for; `visible_feed`: as a key sees it;
//!   `follow_changes`: its task; `search_limit`: the work of one request; `replica`: proof that a replica is current
//! - `state_directory`: files for the next start; `state_file`: their format, and the threads that write them; their contents:
//!   the `snapshot_file`, the `keys_file`, and the journal of `follow_changes`
//!
//! A request takes the snapshot and the keys once, and never waits for either.

mod background;
mod batches;
mod build;
mod contact;
mod feed;
mod follow;
mod follow_assortments;
mod follow_catalog;
mod follow_changes;
mod follow_keys;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod key_days;
mod key_use;
mod keys_file;
mod replica;
mod search_limit;
mod snapshot_file;
mod state_directory;
mod state_file;
mod visible_feed;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::watch;
use vitrine_model::key::KeyTable;
use vitrine_model::snapshot::Snapshot;

use crate::metrics::LiveMetrics;

pub(crate) use background::lower_priority;
pub use build::{read_snapshot, texts_kept_since};
pub use contact::{Contact, DEFAULT_MAX_STALE_KEYS};
pub use feed::{Feed, JournalLimits, StoreRead, StoreReads};
pub use follow::{Follower, Stores};
pub use follow_keys::KeysRead;
pub use search_limit::SearchLimit;
pub use state_directory::{StateDirectory, StateDirectoryInUse, StateLock};
pub use visible_feed::VisibleFeed;

/// The live snapshot and keys.
#[derive(Debug)]
pub struct Live {
    snapshot: ArcSwapOption<Snapshot>,
    keys: ArcSwap<KeyTable>,
    /// Last contact with the store, for the age of the keys.
    pub contact: Contact,
    /// Metrics of following.
    pub metrics: LiveMetrics,
    /// Reads of the store that requests ask for.
    pub store_reads: StoreReads,
    journal_limits: JournalLimits,
    feed: watch::Sender<Option<Arc<Feed>>>,
    keys_read: watch::Sender<Option<KeysRead>>,
}

impl Live {
    /// Returns a value without snapshot and keys. Keys are trusted for `max_stale_keys` after the last contact with the
    /// store.
    #[must_use]
    pub fn new(max_stale_keys: Duration, journal_limits: JournalLimits) -> Self {
        Self {
            snapshot: ArcSwapOption::default(),
            keys: ArcSwap::default(),
            contact: Contact::new(max_stale_keys),
            metrics: LiveMetrics::default(),
            store_reads: StoreReads::default(),
            journal_limits,
            feed: watch::Sender::new(None),
            keys_read: watch::Sender::new(None),
        }
    }

    fn journal_limits(&self) -> JournalLimits {
        self.journal_limits
    }

    /// Returns the state that the changes feed answers from; none before a catalog was loaded.
    #[must_use]
    pub fn feed(&self) -> Option<Arc<Feed>> {
        self.feed.borrow().clone()
    }

    /// Returns a receiver of the last read of the keys, and of what they see.
    #[must_use]
    pub fn subscribe_keys_read(&self) -> watch::Receiver<Option<KeysRead>> {
        self.keys_read.subscribe()
    }

    /// Returns a receiver of the state that the changes feed answers from; it is also woken if what keys see changes.
    #[must_use]
    pub fn subscribe_feed(&self) -> watch::Receiver<Option<Arc<Feed>>> {
        self.feed.subscribe()
    }

    fn set_feed(&self, feed: Feed) {
        self.feed.send_replace(Some(Arc::new(feed)));
    }

    /// Returns the live snapshot; none before a catalog was loaded.
    #[must_use]
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.load_full()
    }

    /// Returns the live keys.
    #[must_use]
    pub fn keys(&self) -> Arc<KeyTable> {
        self.keys.load_full()
    }

    /// Replaces the live snapshot. Returns the one before.
    pub fn set_snapshot(&self, snapshot: Option<Arc<Snapshot>>) -> Option<Arc<Snapshot>> {
        self.snapshot.swap(snapshot)
    }

    /// Replaces the live keys, with what they see.
    pub fn set_keys(&self, keys: impl Into<Arc<KeyTable>>) {
        let before = self.keys.swap(keys.into());
        if !self.keys.load().see_the_same(&before) {
            // Requests that wait for changes look at what their key sees now.
            self.feed.send_modify(|_| {});
        }
    }

    /// Records that keys and assortments, with their history, are as the store had them when it was asked.
    fn record_keys_read(&self, read: KeysRead) {
        self.keys_read.send_replace(Some(read));
    }
}
