//! The snapshot file: the live snapshot in the state directory, so that the next start needn't read the store.
//!
//! It is used only by the same build with the same settings over the same store; in any doubt the store is read. While the
//! store is unreachable, it is the last good state, and the address of the store tells whether it belongs to it.
//!
//! Its parts are a directory, an arena and words for each block, then those of the texts.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use vitrine_model::revision::Revision;
use vitrine_model::snapshot::{Block, FacetKind, FacetNumbers, Snapshot, TextTable};
use vitrine_store::record::StoreState;

use super::state_file::State;
use crate::metrics::state_files::StateFileKind;
use crate::panic_point::PanicPoint;

/// Properties that must be equal for a file to be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Id of the store.
    pub(super) store_id: String,
    /// Counter of texts of the store.
    pub(super) texts: u64,
    /// Prefix of public URLs of texts.
    pub(super) text_addresses: String,
}

/// A snapshot, with what it was made from.
#[derive(Debug)]
pub(super) struct SavedSnapshot {
    pub(super) identity: Identity,
    pub(super) snapshot: Arc<Snapshot>,
}

impl SavedSnapshot {
    /// Returns the state of the store of which the snapshot was made.
    pub(super) fn store_state(&self) -> StoreState {
        StoreState {
            store_id: self.identity.store_id.clone(),
            revision_id: Some(self.snapshot.revision().id.clone()),
            texts: self.identity.texts,
            // Another thread follows the keys and the assortments.
            ..StoreState::default()
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) identity: Identity,
    revision_number: u64,
    revision_id: String,
    revision_created_at: Timestamp,
    /// Kind, as its place among all kinds, and name of each facet with a name.
    facets: Vec<(usize, Box<str>)>,
}

impl State for SavedSnapshot {
    const KIND: StateFileKind = StateFileKind::Snapshot;
    const FORMAT: u64 = 8;
    // Another program may render products differently.
    const IS_OF_BUILD: bool = true;
    type Header = Header;

    fn to_parts(&self) -> (Header, Vec<Bytes>) {
        PanicPoint::SnapshotFile.pass();
        let (directory, texts) = self.snapshot.texts().to_bytes(Timestamp::now());
        let blocks = self.snapshot.blocks().iter();
        let parts = blocks.flat_map(|block| [block.directory(), block.arena(), block.words()]);
        let names = self.snapshot.facet_numbers().names().iter();
        let revision = self.snapshot.revision();
        let header = Header {
            identity: self.identity.clone(),
            revision_number: revision.number,
            revision_id: revision.id.clone(),
            revision_created_at: revision.created_at,
            facets: names
                .map(|(kind, name)| (*kind as usize, name.clone()))
                .collect(),
        };
        (header, parts.chain([&directory, &texts]).cloned().collect())
    }

    fn from_parts(header: Header, mut parts: Vec<Bytes>) -> Option<Self> {
        let (texts, directory) = (parts.pop()?, parts.pop()?);
        let texts = TextTable::from_bytes(directory, texts).ok()?;
        let mut blocks = Vec::with_capacity(parts.len() / 3);
        let mut parts = parts.into_iter();
        while let Some(directory) = parts.next() {
            let (arena, words) = (parts.next()?, parts.next()?);
            blocks.push(Block::from_bytes(directory, arena, words).ok()?);
        }
        let revision = Revision {
            number: header.revision_number,
            id: header.revision_id,
            created_at: header.revision_created_at,
        };
        let facets = header.facets.into_iter();
        let facets = facets.map(|(kind, name)| Some((*FacetKind::ALL.get(kind)?, name)));
        let facets = Arc::new(facets.collect::<Option<FacetNumbers>>()?);
        let snapshot = Snapshot::new(revision, facets, blocks, texts).ok()?;
        Some(Self {
            identity: header.identity,
            snapshot: Arc::new(snapshot),
        })
    }

    fn log_written(&self) {
        let revision = self.snapshot.revision().number;
        tracing::info!(revision, "the snapshot file is written");
    }
}
