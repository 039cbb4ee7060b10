//! The live snapshot and keys that requests read, and the threads that swap them.
//!
//! - `build`: builds a snapshot from a store; `blocks`: its threads
//! - `follow`: the threads that poll a store; `follow_catalog`, `follow_keys`: their tasks; `key_use`: records the last use
//!   of keys; `background`: low priority for work beside requests
//! - `contact`: age of the keys, and its limit
//! - `state_directory`: files for the next start: the `snapshot_file` and the `keys_file`
//!
//! A request takes the snapshot and the keys once, and never waits for either.

mod background;
mod blocks;
mod build;
mod contact;
mod follow;
mod follow_catalog;
mod follow_keys;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod key_use;
mod keys_file;
mod snapshot_file;
mod state_directory;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use vitrine_model::key::KeyTable;
use vitrine_model::snapshot::Snapshot;

use crate::metrics::LiveMetrics;

pub use build::texts_kept_since;
pub use contact::{Contact, DEFAULT_MAX_STALE_KEYS};
pub use follow::{Follower, Stores};
pub use state_directory::{StateDirectory, StateDirectoryInUse, StateLock};

/// The live snapshot and keys.
#[derive(Debug)]
pub struct Live {
    snapshot: ArcSwapOption<Snapshot>,
    keys: ArcSwap<KeyTable>,
    /// Last contact with the store, for the age of the keys.
    pub contact: Contact,
    /// Metrics of following.
    pub metrics: LiveMetrics,
}

impl Live {
    /// Returns a value without snapshot and keys. Keys are trusted for `max_stale_keys` after the last contact with the
    /// store.
    #[must_use]
    pub fn new(max_stale_keys: Duration) -> Self {
        Self {
            snapshot: ArcSwapOption::default(),
            keys: ArcSwap::default(),
            contact: Contact::new(max_stale_keys),
            metrics: LiveMetrics::default(),
        }
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

    /// Replaces the live keys.
    pub fn set_keys(&self, keys: KeyTable) {
        self.keys.store(Arc::new(keys));
    }
}
