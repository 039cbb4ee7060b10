//! A page of a list: which products, and whether more lie on either side.

use std::ops::Range;

use bytes::Bytes;

use super::bit_set::BitSet256;
use super::{Block, ProductView, Snapshot};
use crate::content_hash::ContentHash;

/// One page of a list.
#[derive(Debug)]
pub struct Page<'s> {
    snapshot: &'s Snapshot,
    /// Blocks, ascending, each with its products on the page: at least one.
    parts: Vec<(usize, BitSet256)>,
    has_previous: bool,
    has_next: bool,
}

/// Neighbours in one block that are all on a page. Eight bytes, so that a page can be remembered until it is sent.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    block: u32,
    first: u8,
    last: u8,
}

impl Run {
    fn places(self) -> Range<usize> {
        usize::from(self.first)..usize::from(self.last) + 1
    }
}

impl Snapshot {
    /// The products of a run of this snapshot's pages, with commas between them.
    #[must_use]
    pub fn run(&self, run: Run) -> &[u8] {
        let block = self.blocks.get(run.block as usize);
        block.map_or(&[], |block| block.bytes(run.places()))
    }

    /// The same, sharing the block's memory beyond the snapshot's life.
    #[must_use]
    pub fn shared_run(&self, run: Run) -> Bytes {
        let block = self.blocks.get(run.block as usize);
        block.map_or_else(Bytes::new, |block| {
            block.arena().slice(block.stretch(run.places()))
        })
    }
}

impl<'s> Page<'s> {
    pub(super) fn new(
        snapshot: &'s Snapshot,
        parts: Vec<(usize, BitSet256)>,
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
        ContentHash::of_parts(
            self.parts()
                .flat_map(|(block, members)| members.runs().map(|run| block.hash_bytes(run))),
        )
    }

    /// The page's products, in as few runs as neighbours allow.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        self.parts.iter().flat_map(|(block, members)| {
            members.runs().map(|places| Run {
                // A block has 256 places at most, a snapshot fewer blocks than four thousand millions.
                block: u32::try_from(*block).unwrap_or(u32::MAX),
                first: u8::try_from(places.start).unwrap_or(u8::MAX),
                last: u8::try_from(places.end - 1).unwrap_or(u8::MAX),
            })
        })
    }

    fn parts(&self) -> impl DoubleEndedIterator<Item = (&'s Block, BitSet256)> {
        self.parts.iter().map(|(index, members)| {
            // The index came from these blocks.
            (&self.snapshot.blocks[*index], *members)
        })
    }
}
