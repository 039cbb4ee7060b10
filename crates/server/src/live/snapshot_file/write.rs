//! A snapshot becomes a file.

use std::io::{self, BufWriter, Write};

use bytes::Bytes;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use vitrine_model::snapshot::{Block, Snapshot};

use super::{FORMAT, Header, Identity, MARK};
use crate::live::state_directory::{HALF_WRITTEN_SNAPSHOT, StateDirectory};

/// Writes the file, which has its name once all of it is on the disk, in place of the one before.
///
/// # Errors
///
/// Where it can't be written; then the file before is as it was.
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
        categories: snapshot.category_numbers().names().to_vec(),
        blocks: snapshot.blocks().len(),
        texts_directory_bytes: texts_directory.len(),
        texts_bytes: texts.len(),
    };
    let header = serde_json::to_vec(&header)?;
    let lengths = snapshot
        .blocks()
        .iter()
        .flat_map(|block| [block.directory().len() as u64, block.arena().len() as u64])
        .flat_map(u64::to_le_bytes)
        .collect::<Vec<u8>>();
    let directories = || snapshot.blocks().iter().map(Block::directory);
    let index = || std::iter::once(&lengths[..]).chain(directories().map(|bytes| &bytes[..]));
    let index = || index().chain(std::iter::once(&texts_directory[..]));
    let mut sum = Sha256::new();
    sum.update(&header);
    index().for_each(|part| sum.update(part));
    let index_bytes: usize = index().map(<[u8]>::len).sum();
    let arenas = || snapshot.blocks().iter().map(Block::arena);
    let data_bytes = arenas().map(Bytes::len).sum::<usize>() + texts.len();

    // A temporary file is for its owner only, and goes where this fails.
    let file = NamedTempFile::with_prefix_in(HALF_WRITTEN_SNAPSHOT, directory.path())?;
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
    out.write_all(&sum.finalize())?;
    out.write_all(&header)?;
    index().try_for_each(|part| out.write_all(part))?;
    arenas().try_for_each(|arena| out.write_all(arena))?;
    out.write_all(&texts)?;
    out.flush()?;
    drop(out);
    file.as_file().sync_all()?;
    file.persist(directory.snapshot_file())?;
    directory.sync()
}
