//! Access to the snapshot file, and a live state without a store, for the targets in `fuzz/`: see the feature `fuzzing`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use vitrine_model::key::KeyTable;
use vitrine_model::snapshot::Snapshot;

use super::JournalLimits;
use super::Live;
use super::snapshot_file::{Identity, SavedSnapshot};
use super::state_directory::StateDirectory;
use crate::boot_time::BootTime;
use crate::metrics::state_files::StateFileKind;

/// Returns the path of the file.
#[must_use]
pub fn path(directory: &StateDirectory) -> PathBuf {
    directory.file(StateFileKind::Snapshot)
}

/// Writes a snapshot.
///
/// # Errors
///
/// If the file can't be written.
pub fn write_snapshot(directory: &StateDirectory, snapshot: Arc<Snapshot>) -> io::Result<()> {
    let identity = Identity {
        store_id: "store".to_owned(),
        texts: 1,
        text_addresses: "texts/".to_owned(),
    };
    directory.write(&SavedSnapshot { identity, snapshot })
}

/// Reads the snapshot of any store; `None` if it is refused.
#[must_use]
pub fn read_snapshot(directory: &StateDirectory) -> Option<Arc<Snapshot>> {
    let saved: SavedSnapshot = directory.read(|_, _| true).ok()?;
    Some(saved.snapshot)
}

/// Returns a live state with a contact just now.
#[must_use]
pub fn live(snapshot: Snapshot, keys: KeyTable) -> Live {
    let live = Live::new(Duration::MAX, JournalLimits::default());
    live.set_snapshot(Some(Arc::new(snapshot)));
    live.set_keys(keys);
    live.contact.record(BootTime::now());
    live
}
