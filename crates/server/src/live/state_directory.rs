//! The directory where a server keeps what is live for its next start: the snapshot file and the keys file.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::StoreAddress;

use super::snapshot_file::is_of_store;

/// What the name of a snapshot file begins with while it is being written.
pub(super) const HALF_WRITTEN_SNAPSHOT: &str = ".catalog.snapshot.";
/// What the name of a keys file begins with while it is being written.
pub(super) const HALF_WRITTEN_KEYS: &str = ".keys.";

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
        std::fs::File::open(&self.path)?.sync_all()
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
