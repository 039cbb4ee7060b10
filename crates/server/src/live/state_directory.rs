//! The directory where a server keeps what is live for its next start: the snapshot file and the keys file.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::StoreAddress;

use super::snapshot_file::is_of_store;

/// What the name of a snapshot file begins with while it is being written.
pub(super) const HALF_WRITTEN_SNAPSHOT: &str = ".catalog.snapshot.";
/// What the name of a keys file begins with while it is being written.
pub(super) const HALF_WRITTEN_KEYS: &str = ".keys.";

/// Maximum length of what a lock file says of its owner, in bytes.
const MAX_OWNER_BYTES: u64 = 200;

/// Lock of a state directory, held until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

/// Another process has the lock of a state directory.
#[derive(Debug, thiserror::Error)]
#[error("it is used by another server ({owner}); give each server a directory of its own")]
pub struct StateDirectoryInUse {
    /// The other process.
    owner: String,
}

/// A directory of one server, and the store that it follows.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    path: PathBuf,
    /// A digest of the store's address. While the store is away, it alone tells whether files are of that store.
    pub(super) store_address: String,
}

impl StateDirectory {
    /// A directory that is there and belongs to this server alone, which follows `store`.
    #[must_use]
    pub fn new(path: PathBuf, store: &StoreAddress) -> Self {
        // As it is shown: a new password makes no other store.
        let digest = Sha256::digest(store.to_string());
        Self {
            path,
            store_address: Hexadecimal(&digest).to_string(),
        }
    }

    /// Locks the directory for this process. `owner` is what another server is told that tries the same. A server starts
    /// without the lock if the disk or the file system gives none, as it starts without the other files.
    ///
    /// # Errors
    ///
    /// If another process has the lock.
    pub fn lock(&self, owner: &str) -> Result<Option<StateLock>, StateDirectoryInUse> {
        match self.try_lock() {
            Ok(mut file) => {
                // For people only: the lock holds without it.
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
                    "the state directory can't be locked; see that no other server uses it"
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

    /// Returns what the lock's owner wrote into its file.
    fn lock_owner(&self) -> String {
        let mut owner = String::new();
        if let Ok(file) = File::open(self.lock_file()) {
            let _ = file.take(MAX_OWNER_BYTES).read_to_string(&mut owner);
        }
        owner.lines().next().unwrap_or("PID unknown").to_owned()
    }

    /// Whether a catalog of the store is kept here. So the store isn't a new one, and one that is empty now isn't it.
    #[must_use]
    pub fn holds_catalog(&self) -> bool {
        is_of_store(self)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn snapshot_file(&self) -> PathBuf {
        self.path.join("catalog.snapshot")
    }

    pub(super) fn keys_file(&self) -> PathBuf {
        self.path.join("keys")
    }

    /// Removes what a server left that ended while it wrote.
    pub(super) fn remove_half_written(&self) {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten();
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let begins = |prefix: &str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
            if begins(HALF_WRITTEN_SNAPSHOT) || begins(HALF_WRITTEN_KEYS) {
                // Where it can't be removed, writing will fail too, and say why.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Makes what was renamed into the directory outlive the machine.
    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_password_is_no_new_store() {
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
