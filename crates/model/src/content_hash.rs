//! The hash that entity tags show and that body caches are keyed by.

use sha2::{Digest, Sha256};

/// The first half of the SHA-256 of a body, or of everything that determines the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ContentHash([u8; Self::LENGTH_BYTES]);

impl ContentHash {
    /// Length of a hash, in bytes.
    pub const LENGTH_BYTES: usize = 16;

    /// Returns the hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::of_parts([bytes])
    }

    /// Returns the hash of these parts, one after the other.
    #[must_use]
    pub fn of_parts<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut sum = Sha256::new();
        for part in parts {
            sum.update(part);
        }
        Self::from_sha256(&sum.finalize().into())
    }

    /// Returns the hash of bytes whose SHA-256 is known.
    #[must_use]
    pub fn from_sha256(digest: &[u8; 32]) -> Self {
        Self(std::array::from_fn(|at| digest[at]))
    }

    /// Returns the hash with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LENGTH_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the hash's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LENGTH_BYTES] {
        &self.0
    }
}
