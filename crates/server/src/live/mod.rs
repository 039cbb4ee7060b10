//! What is live: the snapshot and the keys that requests read, and who swaps them.
//!
//! - `build`: makes a snapshot out of a store; `blocks`: the threads that help
//! - `follow`: watches a store and swaps; `follow_catalog`: what it does for the catalog; `background`: what mustn't slow requests down
//! - `snapshot_file`: what is live, kept for the next start
//!
//! A request takes the snapshot and the keys once, and never waits for either.

mod background;
mod blocks;
mod build;
mod follow;
mod follow_catalog;
mod snapshot_file;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use vitrine_model::key::KeyTable;
use vitrine_model::snapshot::Snapshot;

use crate::metrics::LiveMetrics;

pub use build::{apply_changes, build, texts_kept_since};
pub use follow::Follower;
pub use snapshot_file::StateDirectory;

/// What is live at this moment.
#[derive(Debug, Default)]
pub struct Live {
    snapshot: ArcSwapOption<Snapshot>,
    keys: ArcSwap<KeyTable>,
    damages: AtomicU64,
    /// How following goes.
    pub metrics: LiveMetrics,
}

impl Live {
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

    /// How often a snapshot that was live turned out to be damaged, and was replaced. What was made of
    /// such a one bears the tags of what it should have been.
    #[must_use]
    pub fn damages(&self) -> u64 {
        self.damages.load(Ordering::Acquire)
    }

    /// Takes note that a damaged snapshot was replaced.
    fn note_damage(&self) {
        self.damages.fetch_add(1, Ordering::Release);
    }

    /// Puts a table of keys in place.
    pub fn set_keys(&self, keys: KeyTable) {
        self.keys.store(Arc::new(keys));
    }
}
