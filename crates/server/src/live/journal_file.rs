//! The file of changes: the journal as bytes in the state directory, so that a start needn't read the store's history, and
//! can answer while the store is unreachable.
//!
//! It is a mark and a version of the format (16 + 8 bytes), the XXH3-128 of the rest (16), then the id of the store and the
//! digest of its address, each behind its length in eight bytes, and the journal. It is written under another name, synced
//! and renamed.

use std::io::{self, Write};

use tempfile::NamedTempFile;
use vitrine_model::changes::Journal;
use xxhash_rust::xxh3::xxh3_128;

use super::state_directory::{PARTIAL_JOURNAL_PREFIX, StateDirectory};

/// Mark at the start of the file.
const MARK: [u8; 16] = *b"Vitrine-changes\0";
/// Version of the format.
const FORMAT: u64 = 3;

/// Reason that a file isn't used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("it can't be read")]
    Io(#[from] io::Error),
    #[error("it is damaged, or of another format")]
    Damaged,
    #[error("it is of another store")]
    OtherStore,
}

impl ReadError {
    /// Returns true if there is no file.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads the journal of a store.
pub(super) fn read(directory: &StateDirectory, store_id: &str) -> Result<Journal, ReadError> {
    let bytes = std::fs::read(directory.journal_file())?;
    let rest = bytes.strip_prefix(&MARK).ok_or(ReadError::Damaged)?;
    let rest = rest
        .strip_prefix(&FORMAT.to_le_bytes())
        .ok_or(ReadError::Damaged)?;
    let (sum, rest) = rest.split_first_chunk().ok_or(ReadError::Damaged)?;
    if xxh3_128(rest).to_le_bytes() != *sum {
        return Err(ReadError::Damaged);
    }
    let names = names(directory, store_id);
    let journal = rest.strip_prefix(&names[..]).ok_or(ReadError::OtherStore)?;
    Journal::from_bytes(journal).map_err(|_| ReadError::Damaged)
}

/// Writes the journal of a store.
pub(super) fn write(
    directory: &StateDirectory,
    store_id: &str,
    journal: &Journal,
) -> io::Result<()> {
    let content = [names(directory, store_id), journal.to_bytes()].concat();
    let mut file = NamedTempFile::with_prefix_in(PARTIAL_JOURNAL_PREFIX, directory.path())?;
    for part in [
        &MARK[..],
        &FORMAT.to_le_bytes(),
        &xxh3_128(&content).to_le_bytes(),
        &content,
    ] {
        file.write_all(part)?;
    }
    file.as_file().sync_all()?;
    file.persist(directory.journal_file())?;
    directory.sync()
}

/// Returns the names of a store, each behind its length.
fn names(directory: &StateDirectory, store_id: &str) -> Vec<u8> {
    let mut names = Vec::new();
    for name in [store_id, &directory.store_address] {
        names.extend((name.len() as u64).to_le_bytes());
        names.extend(name.as_bytes());
    }
    names
}
