//! The process that holds the write lock. SQLite doesn't tell, but the kernel does: a writer locks a byte of the `-shm`
//! file. This needs no cooperation of the other process and can't be stale.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::SqliteStore;
use super::partial::with_ending;
use crate::StoreError;
use crate::error::LockHolder;

/// Byte of the `-shm` file that a writer locks (SQLite's WAL-mode file format, "WAL locks").
const WRITER_BYTE: &str = "120";

/// Maximum number of times that the locks are read.
const MAX_READINGS: u32 = 3;

/// Maximum length of a command line in messages.
const MAX_CHARACTERS: usize = 120;

impl SqliteStore {
    /// Adds the process that holds the lock to [`StoreError::Busy`].
    pub(crate) fn with_lock_holder<T>(
        &self,
        outcome: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        outcome.map_err(|error| with_lock_holder(error, &self.path, self.lock_wait))
    }
}

/// Adds the process that holds the lock, and the time waited for it, to [`StoreError::Busy`].
pub(super) fn with_lock_holder(error: StoreError, path: &Path, lock_wait: Duration) -> StoreError {
    match error {
        StoreError::Busy { .. } => StoreError::Busy {
            waited_seconds: lock_wait.as_secs(),
            holder: holder(path),
        },
        other => other,
    }
}

/// Returns the process that is writing to the store at `path`; `None` if it can't be found, as in another container or
/// outside Linux.
pub(super) fn holder(path: &Path) -> Option<LockHolder> {
    let shared = fs::metadata(with_ending(path, "-shm")).ok()?;
    // The kernel lists a page at a time: while others lock and unlock, a lock may be missing in one reading.
    let number = (0..MAX_READINGS).find_map(|_| writer_of(shared.ino()))?;
    let command = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    // On one line: arguments of another program may contain anything.
    let words: Vec<&str> = command.split_whitespace().collect();
    let command = words.join(" ").chars().take(MAX_CHARACTERS).collect();
    Some(LockHolder::Process { number, command })
}

/// Returns the process that locks the writer's byte of this file.
fn writer_of(file: u64) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // 1: POSIX  ADVISORY  WRITE 21701 fe:00:10011765 120 120
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", process, locked, first, last] = fields.as_slice() else {
            return None;
        };
        // Not the device: some file systems show another one here.
        let inode: u64 = locked.rsplit(':').next()?.parse().ok()?;
        let is_writer = inode == file && (*first, *last) == (WRITER_BYTE, WRITER_BYTE);
        is_writer.then(|| process.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writer_is_found_by_its_lock() {
        if !Path::new("/proc/locks").exists() {
            println!("SKIPPED: this system has no /proc/locks");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("held.db");
        let connection =
            super::super::open::open(&path, crate::IfMissing::Create, Duration::ZERO).unwrap();
        assert_eq!(holder(&path), None);
        connection.execute_batch("begin immediate").unwrap();
        let Some(LockHolder::Process { number, command }) = holder(&path) else {
            panic!("no holder");
        };
        assert_eq!(number, std::process::id());
        assert!(command.contains("vitrine_store"), "{command}");
        connection.execute_batch("rollback").unwrap();
        assert_eq!(holder(&path), None);
    }
}
