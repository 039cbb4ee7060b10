//! What is live: the snapshot and the keys that requests read, and who swaps them.
//!
//! - `build`: makes a snapshot out of a store; `blocks`: the threads that help
//! - `follow`: watches a store and swaps; `follow_catalog`, `follow_keys`: what it does for each; `key_use`: when keys were
//!   last used; `background`: what mustn't slow requests down
//! - `contact`: how old what is known of the keys may be
//! - `state_directory`: what is live, kept for the next start: the `snapshot_file` and the `keys_file`
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
pub use contact::{Contact, USUAL_MAX_STALE_KEYS};
pub use follow::{Follower, Stores};
pub use state_directory::{StateDirectory, StateDirectoryInUse, StateLock};

/// What is live at this moment.
#[derive(Debug)]
pub struct Live {
    snapshot: ArcSwapOption<Snapshot>,
    keys: ArcSwap<KeyTable>,
    /// How old the keys are.
    pub contact: Contact,
    /// How following goes.
    pub metrics: LiveMetrics,
}

impl Live {
    /// Nothing is live yet. Keys will be good for `max_stale_keys` after the last contact with the store.
    #[must_use]
    pub fn new(max_stale_keys: Duration) -> Self {
        Self {
            snapshot: ArcSwapOption::default(),
            keys: ArcSwap::default(),
            contact: Contact::new(max_stale_keys),
            metrics: LiveMetrics::default(),
        }
    }

    /// The live snapshot, once a catalog was loaded.
    #[must_use]
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.load_full()
    }

    /// The known keys.
    #[must_use]
    pub fn keys(&self) -> Arc<KeyTable> {
        self.keys.load_full()
    }

    /// Puts a snapshot in place; returns the one before.
    pub fn set_snapshot(&self, snapshot: Option<Arc<Snapshot>>) -> Option<Arc<Snapshot>> {
        self.snapshot.swap(snapshot)
    }

    /// Puts a table of keys in place.
    pub fn set_keys(&self, keys: KeyTable) {
        self.keys.store(Arc::new(keys));
    }
}
