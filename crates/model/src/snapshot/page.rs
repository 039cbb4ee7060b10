//! A page of a list: which products, and whether more lie on either side.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::members::Members;
use super::{Block, ContentHash, ProductView, Snapshot};

/// One page of a list.
#[derive(Debug)]
pub struct Page<'s> {
    snapshot: &'s Snapshot,
    /// Blocks, ascending, each with its products on the page: at least one.
    parts: Vec<(usize, Members)>,
    has_previous: bool,
    has_next: bool,
}

impl<'s> Page<'s> {
    pub(super) fn new(
        snapshot: &'s Snapshot,
        parts: Vec<(usize, Members)>,
        has_previous: bool,
        has_next: bool,
    ) -> Self {
        Self {
            snapshot,
            parts,
            has_previous,
            has_next,
        }
    }

    /// Its products in ascending order of codes.
    pub fn products(&self) -> impl Iterator<Item = ProductView<'s>> {
        self.parts().flat_map(|(block, members)| {
            members
                .iter()
                .map(move |place| ProductView { block, place })
        })
    }

    /// How many products there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|(_, members)| members.len()).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The first code on the page.
    #[must_use]
    pub fn first(&self) -> Option<&'s str> {
        let (block, members) = self.parts().next()?;
        Some(block.code(members.next_member(0)?))
    }

    /// The last code on the page.
    #[must_use]
    pub fn last(&self) -> Option<&'s str> {
        let (block, members) = self.parts().next_back()?;
        Some(block.code(members.last()?))
    }

    /// Whether matches precede the page.
    #[must_use]
    pub fn has_previous(&self) -> bool {
        self.has_previous
    }

    /// Whether matches follow the page.
    #[must_use]
    pub fn has_next(&self) -> bool {
        self.has_next
    }

    /// A hash of its products' hashes, in order: it is the same for pages of the same products.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        let mut sum = Sha256::new();
        for (block, members) in self.parts() {
            for run in members.runs() {
                sum.update(block.hashes(run).as_flattened());
            }
        }
        let mut hash = ContentHash::default();
        hash.copy_from_slice(&sum.finalize()[..16]);
        hash
    }

    /// How many slices [`slices`](Self::slices) gives.
    #[must_use]
    pub fn slice_count(&self) -> usize {
        self.parts().map(|(_, members)| members.run_count()).sum()
    }

    /// The page's products, in as few slices as neighbours allow; within one, commas are in place,
    /// between two of them one is still to be put.
    pub fn slices(&self) -> impl Iterator<Item = &'s [u8]> {
        self.parts()
            .flat_map(|(block, members)| members.runs().map(|run| block.bytes(run)))
    }

    /// The same, sharing the snapshot's memory beyond its life.
    pub fn shared_slices(&self) -> impl Iterator<Item = Bytes> {
        self.parts().flat_map(|(block, members)| {
            members
                .runs()
                .map(|run| block.arena().slice(block.stretch(run)))
        })
    }

    fn parts(&self) -> impl DoubleEndedIterator<Item = (&'s Block, Members)> {
        self.parts.iter().map(|(index, members)| {
            // The index came from these blocks.
            (&self.snapshot.blocks[*index], *members)
        })
    }
}
