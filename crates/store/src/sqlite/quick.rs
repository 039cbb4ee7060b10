//! The connection that a store holds.

use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};

use rusqlite::Connection;

use super::{SqliteStore, during, open};
use crate::{IfMissing, StoreError};

/// Device and inode: identify a file when its path is given to another one.
pub(crate) type FileId = (u64, u64);

pub(crate) fn file_id(path: &Path) -> Result<FileId, StoreError> {
    match std::fs::metadata(path) {
        Ok(file) => Ok((file.dev(), file.ino())),
        Err(_) => Err(StoreError::Missing {
            place: path.display().to_string(),
        }),
    }
}

/// A connection, and the identity of its file.
pub(crate) struct Quick {
    pub(crate) connection: Connection,
    file: FileId,
}

impl Quick {
    pub(super) fn of(connection: Connection, path: &Path) -> Result<Self, StoreError> {
        let file = file_id(path)?;
        Ok(Self { connection, file })
    }

    /// Returns a connection to no file.
    pub(super) fn closed() -> Result<Self, StoreError> {
        Ok(Self {
            connection: Connection::open_in_memory().map_err(during("preparing to open"))?,
            // No file is this one.
            file: (u64::MAX, u64::MAX),
        })
    }

    /// Closes the file if a call failed, so that the next call reopens it. While it is open, SQLite may believe that it
    /// still holds a lock, or go on reading a log that it couldn't open for writing.
    pub(crate) fn close_on_error<T>(
        &mut self,
        outcome: &Result<T, StoreError>,
    ) -> Result<(), StoreError> {
        match outcome {
            Ok(_) | Err(StoreError::Busy { .. } | StoreError::Pruned { .. }) => {}
            Err(_) => *self = Self::closed()?,
        }
        Ok(())
    }
}

/// The held connection, for one call.
pub(crate) struct QuickGuard<'s> {
    held: MutexGuard<'s, Quick>,
    stays_open: bool,
}

impl Deref for QuickGuard<'_> {
    type Target = Quick;

    fn deref(&self) -> &Quick {
        &self.held
    }
}

impl DerefMut for QuickGuard<'_> {
    fn deref_mut(&mut self) -> &mut Quick {
        &mut self.held
    }
}

impl Drop for QuickGuard<'_> {
    fn drop(&mut self) {
        if !self.stays_open
            && let Ok(closed) = Quick::closed()
        {
            *self.held = closed;
        }
    }
}

impl SqliteStore {
    /// Returns the held connection, reopened if the path names another file now.
    pub(crate) fn quick(&self) -> Result<QuickGuard<'_>, StoreError> {
        // After a panic elsewhere the transaction was rolled back: the connection is usable.
        let mut held = self.quick.lock().unwrap_or_else(PoisonError::into_inner);
        let file = file_id(&self.path)?;
        if held.file != file {
            *held = Quick {
                connection: open::open(&self.path, IfMissing::Refuse, self.lock_wait)?,
                file,
            };
        }
        Ok(QuickGuard {
            held,
            stays_open: self.stays_open,
        })
    }
}
