//! The snapshot file by itself, and something live without a store, for the targets in `fuzz/`: see the feature
//! `fuzzing`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_model::key::KeyTable;
use vitrine_model::snapshot::Snapshot;

use super::Live;
use super::snapshot_file::{Identity, read_of_anybody, write};
use super::state_directory::StateDirectory;

/// How the bytes of a file come into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// They are read, as those of small files are.
    Read,
    /// They are mapped, as those of large files are.
    Mapped,
}

/// Where the file lies.
#[must_use]
pub fn path(directory: &StateDirectory) -> PathBuf {
    directory.snapshot_file()
}

/// Writes a snapshot as it is at `now`.
///
/// # Errors
///
/// Where it can't be written.
pub fn write_snapshot(
    directory: &StateDirectory,
    snapshot: &Snapshot,
    now: Timestamp,
) -> io::Result<()> {
    let identity = Identity::new("store".to_owned(), 1, "texts/".to_owned());
    write(directory, &identity, snapshot, now)
}

/// Reads the snapshot, whichever program wrote it; `None` where it is refused.
#[must_use]
pub fn read_snapshot(directory: &StateDirectory, source: Source) -> Option<Snapshot> {
    let mapped_from = match source {
        Source::Read => u64::MAX,
        Source::Mapped => 0,
    };
    read_of_anybody(directory, mapped_from).ok()
}

/// What is live where the store was asked a moment ago.
#[must_use]
pub fn live(snapshot: Snapshot, keys: KeyTable) -> Live {
    let live = Live::new(Duration::MAX);
    live.set_snapshot(Some(Arc::new(snapshot)));
    live.set_keys(keys);
    live.contact.note(Instant::now());
    live
}
