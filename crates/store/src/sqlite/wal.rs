//! The write-ahead log beside the file, and checkpoints that keep it small.
//!
//! SQLite copies the log into the file after each commit, but starts the log again only if nobody reads from it when the
//! next writer begins. A server that spends long reading each new catalog may always be reading, and then every publish
//! makes the log grow. So a publish waits for readers while the log is large, and servers empty the log after they read
//! the catalog.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::during;
use super::partial::with_ending;
use crate::StoreError;

/// Size up to which the log is left alone, in bytes: twice what SQLite lets it grow to by small commits.
pub(super) const SMALL_BYTES: u64 = 32 << 20;

/// Maximum time that a publish waits for readers of a large log.
pub(super) const PUBLISH_WAIT: Duration = Duration::from_secs(10);

/// Maximum time that a server waits for others to empty a large log: it follows the catalog on the same thread.
pub(super) const FOLLOWER_WAIT: Duration = Duration::from_millis(250);

/// Returns the log's size, in bytes.
pub(super) fn size_bytes(path: &Path) -> u64 {
    std::fs::metadata(with_ending(path, "-wal")).map_or(0, |log| log.len())
}

/// Moves a large log into the file and empties it. If others are in the way for longer than `wait`, moves what it can.
pub(super) fn empty_if_large(
    connection: &Connection,
    path: &Path,
    lock_wait: Duration,
    wait: Duration,
) -> Result<(), StoreError> {
    if size_bytes(path) <= SMALL_BYTES {
        return Ok(());
    }
    let failed = during("emptying the log");
    connection
        .busy_timeout(wait.min(lock_wait))
        .map_err(&failed)?;
    // If others are in the way, that is in the returned row, and no error.
    let emptied = connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
    connection.busy_timeout(lock_wait).map_err(&failed)?;
    match emptied.map_err(&failed) {
        Err(StoreError::Busy { .. }) => Ok(()),
        outcome => outcome,
    }
}
