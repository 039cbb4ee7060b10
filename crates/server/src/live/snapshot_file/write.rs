//! Writing a snapshot to its file.

use std::io::{self, BufWriter, Write};

use bytes::Bytes;
use jiff::Timestamp;
use tempfile::NamedTempFile;
use vitrine_model::snapshot::Snapshot;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use super::{ENTRY_BYTES, FORMAT, Header, Identity, MARK};
use crate::live::state_directory::{PARTIAL_SNAPSHOT_PREFIX, StateDirectory};

/// Writes the file, and replaces the previous one after it is synced to disk.
///
/// # Errors
///
/// If the file can't be written. The previous one stays then.
pub(in crate::live) fn write(
    directory: &StateDirectory,
    identity: &Identity,
    snapshot: &Snapshot,
    now: Timestamp,
) -> io::Result<()> {
    let (texts_directory, texts) = snapshot.texts().to_bytes(now);
    let revision = snapshot.revision();
    let header = Header {
        identity: identity.clone(),
        store_address: directory.store_address.clone(),
        revision_number: revision.number,
        revision_id: revision.id.clone(),
        revision_created_at: revision.created_at,
        facets: snapshot
            .facet_numbers()
            .names()
            .iter()
            .map(|(kind, name)| (*kind as usize, name.clone()))
            .collect(),
        blocks: snapshot.blocks().len(),
    };
    let header = serde_json::to_vec(&header)?;
    let blocks = snapshot.blocks().iter();
    let parts: Vec<(&Bytes, &Bytes)> = blocks
        .map(|block| (block.directory(), block.arena()))
        .chain([(&texts_directory, &texts)])
        .collect();
    let entries: Vec<u8> = parts.iter().copied().flat_map(entry).collect();
    let index = || std::iter::once(&entries[..]).chain(parts.iter().map(|part| &part.0[..]));
    let mut sum = Xxh3Default::new();
    sum.update(&header);
    index().for_each(|part| sum.update(part));
    let index_bytes: usize = index().map(<[u8]>::len).sum();
    let data_bytes: usize = parts.iter().map(|part| part.1.len()).sum();

    // Only its owner can read a temporary file; it is removed if this fails.
    let file = NamedTempFile::with_prefix_in(PARTIAL_SNAPSHOT_PREFIX, directory.path())?;
    let mut out = BufWriter::with_capacity(1 << 20, file.as_file());
    out.write_all(&MARK)?;
    for number in [
        FORMAT,
        header.len() as u64,
        index_bytes as u64,
        data_bytes as u64,
    ] {
        out.write_all(&number.to_le_bytes())?;
    }
    out.write_all(&sum.digest128().to_le_bytes())?;
    out.write_all(&header)?;
    index().try_for_each(|part| out.write_all(part))?;
    parts.iter().try_for_each(|part| out.write_all(part.1))?;
    out.flush()?;
    drop(out);
    file.as_file().sync_all()?;
    file.persist(directory.snapshot_file())?;
    directory.sync()
}

/// Returns an entry of the index.
fn entry((directory, data): (&Bytes, &Bytes)) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    entry[..8].copy_from_slice(&(directory.len() as u64).to_le_bytes());
    entry[8..16].copy_from_slice(&(data.len() as u64).to_le_bytes());
    entry[16..].copy_from_slice(&xxh3_128(data).to_le_bytes());
    entry
}
