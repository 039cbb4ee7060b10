//! The directory of a server's files for its next start: the snapshot file, the file of changes and the keys file; and
//! its lock.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::StoreAddress;

use crate::metrics::state_files::StateFileKind;

/// Maximum length of the owner in a lock file, in bytes.
const MAX_OWNER_BYTES: u64 = 200;

/// Lock of a state directory, held until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

/// Another process has the lock of a state directory.
#[derive(Debug, thiserror::Error)]
#[error("it is in use by another server ({owner}); each server needs its own directory")]
pub struct StateDirectoryInUse {
    /// Description of the other process.
    owner: String,
}

/// A directory of one server, and the store that it follows.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    pub(super) path: PathBuf,
    /// Digest of the store's address. While the store is unreachable, only this tells whether files are of that store.
    pub(super) store_address: String,
}

impl StateDirectory {
    /// Returns the existing directory `path` of this server, which follows `store`.
    #[must_use]
    pub fn new(path: PathBuf, store: &StoreAddress) -> Self {
        // Without the password, which may change.
        let digest = Sha256::digest(store.to_string());
        Self {
            path,
            store_address: Hexadecimal(&digest).to_string(),
        }
    }

    /// Locks the directory for this process. Another server's error names `owner`. Returns none if the disk or the file
    /// system can't lock: the server starts without the lock, as it starts without the other files.
    ///
    /// # Errors
    ///
    /// If another process has the lock.
    pub fn lock(&self, owner: &str) -> Result<Option<StateLock>, StateDirectoryInUse> {
        match self.try_lock() {
            Ok(mut file) => {
                // For messages only: the lock doesn't need it.
                let _ = file.set_len(0);
                let _ = writeln!(file, "{owner}");
                Ok(Some(StateLock { _file: file }))
            }
            Err(TryLockError::WouldBlock) => Err(StateDirectoryInUse {
                owner: self.lock_owner(),
            }),
            Err(TryLockError::Error(error)) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    error,
                    "can't lock the state directory; make sure that no other server uses it"
                );
                Ok(None)
            }
        }
    }

    fn lock_file(&self) -> PathBuf {
        self.path.join("lock")
    }

    fn try_lock(&self) -> Result<File, TryLockError> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(self.lock_file())
            .map_err(TryLockError::Error)?;
        file.try_lock()?;
        Ok(file)
    }

    /// Returns the owner that the lock file names.
    fn lock_owner(&self) -> String {
        let mut owner = String::new();
        if let Ok(file) = File::open(self.lock_file()) {
            let _ = file.take(MAX_OWNER_BYTES).read_to_string(&mut owner);
        }
        owner.lines().next().unwrap_or("PID unknown").to_owned()
    }

    /// Returns the path of a file.
    pub(super) fn file(&self, kind: StateFileKind) -> PathBuf {
        self.path.join(kind.file_name())
    }

    /// Returns the time at which a file was last written; `None` if there is none.
    pub(super) fn written(&self, kind: StateFileKind) -> Option<Timestamp> {
        let modified = std::fs::metadata(self.file(kind)).and_then(|found| found.modified());
        modified.ok()?.try_into().ok()
    }

    /// Removes incomplete files of a server that ended while it wrote.
    pub(super) fn remove_partial_files(&self) {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten();
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let is_partial = |kind: &StateFileKind| {
                let prefix = kind.partial_prefix();
                name.as_encoded_bytes().starts_with(prefix.as_bytes())
            };
            if StateFileKind::ALL.iter().any(is_partial) {
                // If this fails, writing will fail, too, and log the error.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_address_ignores_the_password() {
        let digest = |address: &str| {
            let Ok(store) = address.parse();
            StateDirectory::new(PathBuf::new(), &store).store_address
        };
        let first = digest("postgres://vitrine:one@db.example:5432/catalog");
        assert_eq!(
            first,
            digest("postgres://vitrine:t@o@db.example:5432/catalog")
        );
        assert_ne!(
            first,
            digest("postgres://vitrine:one@db.example:5432/other")
        );
        assert_ne!(
            first,
            digest("postgres://vitrine:one@other.example:5432/catalog")
        );
        assert_ne!(digest("sqlite:a.db"), digest("sqlite:b.db"));
        assert!(!first.contains("one"));
    }
}
