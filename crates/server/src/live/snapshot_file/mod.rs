//! The snapshot file: what is live, as bytes in a directory of the server's own, so that the next start
//! needn't read the store.
//!
//! It is written under another name, synced and renamed, and never edited. It is used only by the same
//! build with the same settings over the same store; in any doubt everything is read from the store. While
//! the store is away, it is the last that is known to be good: then the store's address tells whether it fits.
//!
//! | Part | What |
//! | --- | --- |
//! | mark | 16 bytes: what this is, and the version of its format |
//! | lengths | 3 × 8 bytes: of the header, the index, the data |
//! | checksum | 16 bytes: XXH3-128 of header and index |
//! | header | JSON: what must match, the revision, the categories' numbers |
//! | index | an entry of 32 bytes for each block and a last one for the texts; then the directories in the same order |
//! | data | the arenas, then the texts |
//!
//! An entry is the length of a directory, the length of its data (8 bytes each), and the XXH3-128 of that data. Numbers are
//! little-endian. All of it is checked before any of it is used.
//!
//! - `read`: the file becomes a snapshot; `map`: large files aren't read, but mapped
//! - `write`: a snapshot becomes the file
//! - `keeper`: the thread that writes it

mod keeper;
mod map;
mod read;
mod write;

use std::time::UNIX_EPOCH;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use vitrine_model::revision::Revision;
use vitrine_store::record::StoreState;

pub(in crate::live) use keeper::Keeper;
pub(in crate::live) use read::ReadError;
#[cfg(feature = "fuzzing")]
pub(super) use read::read_of_anybody;
pub(super) use read::{is_of_store, read, read_while_away};
#[cfg(feature = "fuzzing")]
pub(super) use write::write;

/// What a snapshot file begins with. The last byte counts changes of the format.
const MARK: [u8; 16] = *b"Vitrine-snapshot";
/// Follows the mark's sixteen letters: the version of the format.
const FORMAT: u64 = 2;

/// Mark, format, lengths and checksum.
const PREAMBLE_BYTES: usize = 16 + 8 + 3 * 8 + CHECKSUM_BYTES;

/// Length of an XXH3-128.
const CHECKSUM_BYTES: usize = 16;

/// Length of an entry of the index.
const ENTRY_BYTES: usize = 8 + 8 + CHECKSUM_BYTES;

/// A file of so many bytes is mapped instead of read.
const MAPPED_FROM_BYTES: u64 = 256 << 20;

/// What must be the same for a file to be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct Identity {
    /// The store that the snapshot was made of.
    store_id: String,
    /// Its counter of texts taken down.
    texts: u64,
    /// What clients' addresses of texts begin with.
    text_addresses: String,
    build: Build,
}

/// Which program wrote it: another may render products otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Build {
    version: String,
    executable_bytes: u64,
    executable_modified_nanoseconds: u128,
}

impl Identity {
    /// What the store said of itself when it held `revision`.
    #[must_use]
    pub(in crate::live) fn changes(&self, revision: &Revision) -> StoreState {
        StoreState {
            store_id: self.store_id.clone(),
            revision_id: Some(revision.id.clone()),
            texts: self.texts,
            // Keys are followed apart.
            keys: 0,
        }
    }

    /// Whether the two are of one program with one set of settings, whatever the store.
    fn renders_like(&self, other: &Self) -> bool {
        (&self.text_addresses, &self.build) == (&other.text_addresses, &other.build)
    }

    /// The identity of a snapshot that this program makes.
    #[must_use]
    pub(in crate::live) fn new(store_id: String, texts: u64, text_addresses: String) -> Self {
        let executable = std::env::current_exe().and_then(std::fs::metadata);
        let modified = executable
            .as_ref()
            .ok()
            .and_then(|file| file.modified().ok());
        let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            store_id,
            texts,
            text_addresses,
            build: Build {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                executable_bytes: executable.map_or(0, |file| file.len()),
                executable_modified_nanoseconds: modified.map_or(0, |time| time.as_nanos()),
            },
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    identity: Identity,
    /// See [`StateDirectory`].
    store_address: String,
    revision_number: u64,
    revision_id: String,
    revision_created_at: Timestamp,
    categories: Vec<Box<str>>,
    blocks: usize,
}
