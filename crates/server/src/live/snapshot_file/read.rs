//! Reading a snapshot from its file.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

use bytes::Bytes;
use vitrine_model::revision::Revision;
use vitrine_model::snapshot::{Block, FacetKind, FacetNumbers, Snapshot, TextTable};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use super::{CHECKSUM_BYTES, ENTRY_BYTES, FORMAT, Header, Identity, MARK, PREAMBLE_BYTES};
use crate::live::state_directory::StateDirectory;

/// Reason that a file isn't used.
#[derive(Debug, thiserror::Error)]
pub(in crate::live) enum ReadError {
    /// It can't be read, or doesn't exist.
    #[error("it can't be read")]
    Io(#[from] io::Error),
    /// Its checksums don't match, or it isn't a snapshot file.
    #[error("it is damaged")]
    Damaged,
    /// It is of another format, build or store, or of other settings.
    #[error("it is of another format, build or store, or of other settings")]
    Other,
}

impl ReadError {
    /// Returns whether the file doesn't exist.
    pub(in crate::live) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads and checks the whole file, if its identity is `identity`.
///
/// # Errors
///
/// If the file doesn't exist, is damaged or belongs to something else.
pub(in crate::live) fn read(
    directory: &StateDirectory,
    identity: &Identity,
) -> Result<Snapshot, ReadError> {
    let (_, snapshot) = read_if(directory, |header| header.identity == *identity)?;
    Ok(snapshot)
}

/// Reads and checks the whole file without knowing the state of the store: if it is of the store at the directory's
/// address, and of the program and settings of `identity`. Also returns its identity.
///
/// # Errors
///
/// If the file doesn't exist, is damaged or belongs to something else.
pub(in crate::live) fn read_offline(
    directory: &StateDirectory,
    identity: &Identity,
) -> Result<(Identity, Snapshot), ReadError> {
    let fits = |header: &Header| {
        header.store_address == directory.store_address && header.identity.renders_like(identity)
    };
    read_if(directory, fits)
}

/// Reads the file of any program.
///
/// # Errors
///
/// If the file doesn't exist, is damaged or belongs to something else.
#[cfg(feature = "fuzzing")]
pub(in crate::live) fn read_any(directory: &StateDirectory) -> Result<Snapshot, ReadError> {
    let (_, snapshot) = read_if(directory, |_| true)?;
    Ok(snapshot)
}

/// Returns whether the file exists and its header names the store at the directory's address.
pub(in crate::live) fn is_of_store(directory: &StateDirectory) -> bool {
    let header = || -> Result<Header, ReadError> {
        let mut source = Source::open(directory)?;
        let preamble = source.take(PREAMBLE_BYTES)?;
        let length_at = MARK.len() + 8;
        let header_bytes = preamble[length_at..].as_chunks::<8>().0.first();
        let header_bytes = header_bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let header = source.take(length(header_bytes)?)?;
        serde_json::from_slice(&header).map_err(|_| ReadError::Damaged)
    };
    header().is_ok_and(|header| header.store_address == directory.store_address)
}

/// Reads the file if its header `fits`.
fn read_if(
    directory: &StateDirectory,
    fits: impl FnOnce(&Header) -> bool,
) -> Result<(Identity, Snapshot), ReadError> {
    let mut source = Source::open(directory)?;
    let preamble = source.take(PREAMBLE_BYTES)?;
    let (mark, rest) = preamble.split_at(MARK.len());
    let (numbers, checksum) = rest.split_at(4 * 8);
    let number = |index: usize| {
        let bytes = numbers.as_chunks::<8>().0.get(index);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let expected = [number(1), number(2), number(3)]
        .iter()
        .try_fold(PREAMBLE_BYTES as u64, |sum, part| sum.checked_add(*part));
    if mark == MARK && number(0) != FORMAT {
        return Err(ReadError::Other);
    }
    if mark != MARK || expected != Some(source.file_bytes) {
        return Err(ReadError::Damaged);
    }
    let header = source.take(length(number(1))?)?;
    let index = source.take(length(number(2))?)?;
    let mut sum = Xxh3Default::new();
    sum.update(&header);
    sum.update(&index);
    if sum.digest128().to_le_bytes() != checksum[..] {
        return Err(ReadError::Damaged);
    }
    let header: Header = serde_json::from_slice(&header).map_err(|_| ReadError::Damaged)?;
    if !fits(&header) {
        return Err(ReadError::Other);
    }
    let identity = header.identity.clone();
    Ok((identity, snapshot(header, index, &mut source)?))
}

fn snapshot(header: Header, mut index: Bytes, source: &mut Source) -> Result<Snapshot, ReadError> {
    let Header {
        identity: _,
        store_address: _,
        revision_number,
        revision_id,
        revision_created_at,
        facets,
        blocks,
    } = header;
    let entries_bytes = blocks
        .checked_add(1)
        .and_then(|parts| parts.checked_mul(ENTRY_BYTES));
    let entries = split(&mut index, entries_bytes.ok_or(ReadError::Damaged)?)?;
    let mut parts = Vec::with_capacity(blocks + 1);
    for entry in entries.as_chunks::<ENTRY_BYTES>().0 {
        let (lengths, checksum) = entry.split_at(16);
        let number = |at: usize| {
            let bytes = lengths.as_chunks::<8>().0.get(at);
            length(bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes)))
        };
        parts.push(Part {
            directory: split(&mut index, number(0)?)?,
            data: source.take(number(1)?)?,
            checksum: checksum.first_chunk().copied().unwrap_or_default(),
        });
    }
    if !match_checksums(&parts) {
        return Err(ReadError::Damaged);
    }
    let texts = parts.pop().ok_or(ReadError::Damaged)?;
    let texts =
        TextTable::from_bytes(texts.directory, texts.data).map_err(|_| ReadError::Damaged)?;
    let blocks: Result<Vec<Block>, _> = parts
        .into_iter()
        .map(|part| Block::from_bytes(part.directory, part.data))
        .collect();
    let blocks = blocks.map_err(|_| ReadError::Damaged)?;
    let revision = Revision {
        number: revision_number,
        id: revision_id,
        created_at: revision_created_at,
    };
    let facets = facets.into_iter().map(|(kind, name)| {
        let kind = FacetKind::ALL.get(kind).ok_or(ReadError::Damaged)?;
        Ok((*kind, name))
    });
    let facets = Arc::new(facets.collect::<Result<FacetNumbers, ReadError>>()?);
    Snapshot::new(revision, facets, blocks, texts).map_err(|_| ReadError::Damaged)
}

/// Stored block, or the stored texts.
struct Part {
    directory: Bytes,
    data: Bytes,
    checksum: [u8; CHECKSUM_BYTES],
}

/// Returns whether the data of all parts matches their checksums. Uses all cores: a million products are gigabytes.
fn match_checksums(parts: &[Part]) -> bool {
    let next = AtomicUsize::new(0);
    let check = || {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            if xxh3_128(&part.data).to_le_bytes() != part.checksum {
                return false;
            }
        }
        true
    };
    let threads = available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        // If a thread can't be started, the others do its share.
        let others: Vec<_> = (1..threads.min(parts.len()))
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, check).ok())
            .collect();
        let here = check();
        others
            .into_iter()
            .all(|other| other.join().unwrap_or(false))
            && here
    })
}

fn length(number: u64) -> Result<usize, ReadError> {
    usize::try_from(number).map_err(|_| ReadError::Damaged)
}

fn split(bytes: &mut Bytes, length: usize) -> Result<Bytes, ReadError> {
    let is_there = length <= bytes.len();
    is_there
        .then(|| bytes.split_to(length))
        .ok_or(ReadError::Damaged)
}

/// A file, read from its start to its end.
struct Source {
    file: File,
    file_bytes: u64,
}

impl Source {
    fn open(directory: &StateDirectory) -> io::Result<Self> {
        let file = File::open(directory.snapshot_file())?;
        let file_bytes = file.metadata()?.len();
        Ok(Self { file, file_bytes })
    }

    /// Returns the next `length` bytes, in memory of their own: it is freed with its block.
    fn take(&mut self, length: usize) -> Result<Bytes, ReadError> {
        // A damaged file may have any length here.
        if length as u64 > self.file_bytes {
            return Err(ReadError::Damaged);
        }
        let mut bytes = Vec::with_capacity(length);
        let file = &mut self.file;
        file.take(length as u64).read_to_end(&mut bytes)?;
        let is_whole = bytes.len() == length;
        is_whole.then(|| bytes.into()).ok_or(ReadError::Damaged)
    }
}
