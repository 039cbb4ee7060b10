//! Access to the snapshot file, and a live state without a store, for the targets in `fuzz/`: see the feature `fuzzing`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use vitrine_model::key::KeyTable;
use vitrine_model::snapshot::Snapshot;

use super::JournalLimits;
use super::Live;
use super::snapshot_file::{Identity, read_any, write};
use super::state_directory::StateDirectory;
use crate::boot_time::BootTime;

/// Returns the path of the file.
#[must_use]
pub fn path(directory: &StateDirectory) -> PathBuf {
    directory.snapshot_file()
}

/// Writes a snapshot as it is at `now`.
///
/// # Errors
///
/// If the file can't be written.
pub fn write_snapshot(
    directory: &StateDirectory,
    snapshot: &Snapshot,
    now: Timestamp,
) -> io::Result<()> {
    let identity = Identity::new("store".to_owned(), 1, "texts/".to_owned());
    write(directory, &identity, snapshot, now)
}

/// Reads the snapshot of any program; `None` if it is refused.
#[must_use]
pub fn read_snapshot(directory: &StateDirectory) -> Option<Snapshot> {
    read_any(directory).ok()
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
