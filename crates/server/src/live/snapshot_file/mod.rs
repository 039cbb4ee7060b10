//! The snapshot file: the live snapshot as bytes in the server's state directory, so that the next start needn't read
//! the store.
//!
//! It is written under another name, synced and renamed, and never edited. It is used only by the same build with the
//! same settings over the same store; in any doubt the store is read. While the store is unreachable, it is the last
//! good state, and the address of the store tells whether it belongs to it.
//!
//! | Part | Content |
//! | --- | --- |
//! | mark | 16 bytes: magic number; 8 bytes: version of the format |
//! | lengths | 3 × 8 bytes: of the header, the index, the data |
//! | checksum | 16 bytes: XXH3-128 of header and index |
//! | header | JSON: the identity, the revision, the facets' numbers |
//! | index | an entry of 32 bytes for each block and a last one for the texts; then the directories in the same order |
//! | data | the arenas, then the texts |
//!
//! An entry is the length of a directory, the length of its data (8 bytes each), and the XXH3-128 of that data. Numbers are
//! little-endian. The whole file is checked before any of it is used.
//!
//! - `read`: reading the file; `write`: writing it

mod read;
mod write;

use std::fs::File;
use std::io;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_model::revision::Revision;
use vitrine_store::record::StoreState;
use xxhash_rust::xxh3::Xxh3Default;

pub(in crate::live) use read::ReadError;
#[cfg(feature = "fuzzing")]
pub(super) use read::read_any;
pub(super) use read::{is_of_store, read, read_offline};
pub(super) use write::write;

/// Magic number at the start of a snapshot file.
const MARK: [u8; 16] = *b"Vitrine-snapshot";
/// Version of the format, after the mark.
const FORMAT: u64 = 7;

/// Length of mark, format, lengths and checksum.
const PREAMBLE_BYTES: usize = 16 + 8 + 3 * 8 + CHECKSUM_BYTES;

/// Length of an XXH3-128.
const CHECKSUM_BYTES: usize = 16;

/// Length of an entry of the index.
const ENTRY_BYTES: usize = 8 + 8 + CHECKSUM_BYTES;

/// Properties that must be equal for a file to be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct Identity {
    /// Id of the store.
    store_id: String,
    /// Counter of texts of the store.
    texts: u64,
    /// Prefix of public URLs of texts.
    text_addresses: String,
    /// Digest of the program that wrote the file: another one may render products differently.
    build: String,
}

impl Identity {
    /// Returns the state of the store at `revision`.
    #[must_use]
    pub(in crate::live) fn store_state(&self, revision: &Revision) -> StoreState {
        StoreState {
            store_id: self.store_id.clone(),
            revision_id: Some(revision.id.clone()),
            texts: self.texts,
            // Another thread follows the keys and the assortments.
            ..StoreState::default()
        }
    }

    /// Returns whether both are of the same program and settings, whatever the store.
    fn renders_like(&self, other: &Self) -> bool {
        (&self.text_addresses, &self.build) == (&other.text_addresses, &other.build)
    }

    /// Returns the identity of a snapshot of this program.
    #[must_use]
    pub(in crate::live) fn new(store_id: String, texts: u64, text_addresses: String) -> Self {
        Self {
            store_id,
            texts,
            text_addresses,
            build: BUILD.clone(),
        }
    }
}

/// XXH3-128 of the running program's file; its version alone if that can't be read.
static BUILD: LazyLock<String> = LazyLock::new(|| {
    let digest = || {
        let mut file = File::open(std::env::current_exe()?)?;
        let mut sum = Xxh3Default::new();
        io::copy(&mut file, &mut sum)?;
        Ok::<_, io::Error>(Hexadecimal(&sum.digest128().to_be_bytes()).to_string())
    };
    digest().unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned())
});

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    identity: Identity,
    /// See [`StateDirectory`].
    store_address: String,
    revision_number: u64,
    revision_id: String,
    revision_created_at: Timestamp,
    /// Kind, as its place among all kinds, and name of each facet with a name.
    facets: Vec<(usize, Box<str>)>,
    blocks: usize,
}
