//! A page of a list: its products, and if there are more before and after it.

use std::ops::Range;

use bytes::Bytes;

use super::bit_set::BitSet256;
use super::{Block, ProductView, Snapshot};
use crate::content_hash::ContentHash;

/// One page of a list.
#[derive(Debug)]
pub struct Page<'s> {
    snapshot: &'s Snapshot,
    /// Blocks, ascending, each with its products on the page, at least one.
    parts: Vec<(usize, BitSet256)>,
    has_previous: bool,
    has_next: bool,
}

/// Neighbouring products of a block, all on a page. Eight bytes, because pages are kept until they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    block: u32,
    first: u8,
    last: u8,
}

impl Run {
    pub(crate) fn new(block: usize, slots: Range<usize>) -> Self {
        Self {
            // A block has at most 256 slots, a snapshot fewer than 2^32 blocks.
            block: u32::try_from(block).unwrap_or(u32::MAX),
            first: u8::try_from(slots.start).unwrap_or(u8::MAX),
            last: u8::try_from(slots.end - 1).unwrap_or(u8::MAX),
        }
    }

    /// Returns the number of products.
    #[must_use]
    pub fn count(self) -> usize {
        self.slots().len()
    }

    /// Returns the index of its block.
    pub(crate) fn block(self) -> usize {
        self.block as usize
    }

    /// Returns the slots of its products.
    pub(crate) fn slots(self) -> Range<usize> {
        usize::from(self.first)..usize::from(self.last) + 1
    }
}

/// Bytes of neighbouring products of a block, or a part of them. Small, because pages are kept until they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    block: u32,
    start: u32,
    end: u32,
}

impl Slice {
    /// Returns the length, in bytes.
    #[must_use]
    pub fn len(self) -> usize {
        self.range().len()
    }

    /// Returns true if there are no bytes.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Returns the bytes before and from an offset on.
    #[must_use]
    pub fn split_at(self, offset: usize) -> (Self, Self) {
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        let middle = self.start.saturating_add(offset).min(self.end);
        let (mut before, mut after) = (self, self);
        (before.end, after.start) = (middle, middle);
        (before, after)
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Snapshot {
    /// Returns the products of a run of one of this snapshot's pages, with commas between them.
    #[must_use]
    pub fn run(&self, run: Run) -> Slice {
        let block = self.blocks.get(run.block as usize);
        let range = block.map_or(0..0, |block| block.arena_range(run.slots()));
        // Arenas have fewer than 2^32 bytes.
        let small = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Slice {
            block: run.block,
            start: small(range.start),
            end: small(range.end),
        }
    }

    /// Returns the bytes of a slice of one of this snapshot's runs.
    #[must_use]
    pub fn slice(&self, slice: Slice) -> &[u8] {
        let block = self.blocks.get(slice.block as usize);
        let bytes = block.and_then(|block| block.arena().get(slice.range()));
        bytes.unwrap_or_default()
    }

    /// Returns the bytes of a slice like [`slice`](Self::slice), sharing the block's memory beyond the snapshot's life.
    #[must_use]
    pub fn shared_slice(&self, slice: Slice) -> Bytes {
        let block = self.blocks.get(slice.block as usize);
        block.map_or_else(Bytes::new, |block| block.arena().slice(slice.range()))
    }

    /// Iterates over the products of a run of one of this snapshot's pages.
    pub fn products(&self, run: Run) -> impl Iterator<Item = ProductView<'_>> {
        let block = self.blocks.get(run.block as usize);
        block
            .into_iter()
            .flat_map(move |block| run.slots().map(move |slot| ProductView { block, slot }))
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

    /// Iterates over the products, ascending by code.
    pub fn products(&self) -> impl Iterator<Item = ProductView<'s>> {
        self.parts().flat_map(|(block, members)| {
            members.iter().map(move |slot| ProductView { block, slot })
        })
    }

    /// Returns the number of products.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|(_, members)| members.len()).sum()
    }

    /// Returns true if the page has no products.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the first code on the page.
    #[must_use]
    pub fn first(&self) -> Option<&'s str> {
        let (block, members) = self.parts().next()?;
        Some(block.code(members.next_member(0)?))
    }

    /// Returns the last code on the page.
    #[must_use]
    pub fn last(&self) -> Option<&'s str> {
        let (block, members) = self.parts().next_back()?;
        Some(block.code(members.last()?))
    }

    /// Returns true if matches precede the page.
    #[must_use]
    pub fn has_previous(&self) -> bool {
        self.has_previous
    }

    /// Returns true if matches follow the page.
    #[must_use]
    pub fn has_next(&self) -> bool {
        self.has_next
    }

    /// Returns the hash of its products' hashes, in order: equal for pages of the same products.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::of_parts(
            self.parts()
                .flat_map(|(block, members)| members.runs().map(|run| block.hash_bytes(run))),
        )
    }

    /// Returns the hash of the hashes that `of_product` returns for its products, in order: like [`hash`](Self::hash), for a page
    /// that shows some of them with other bytes.
    #[must_use]
    pub fn hash_of(&self, of_product: impl FnMut(ProductView<'s>) -> ContentHash) -> ContentHash {
        let hashes = self.products().map(of_product);
        let bytes: Vec<_> = hashes.map(|hash| *hash.as_bytes()).collect();
        ContentHash::of(bytes.as_flattened())
    }

    /// Returns the number of [`runs`](Self::runs).
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.parts
            .iter()
            .map(|(_, members)| members.run_count())
            .sum()
    }

    /// Iterates over the page's products, in maximal runs.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        self.parts
            .iter()
            .flat_map(|(block, members)| members.runs().map(|slots| Run::new(*block, slots)))
    }

    /// Iterates over the page's products, ascending by code: each with the bytes of its code, as a run of its own.
    pub fn each(&self) -> impl Iterator<Item = (&'s [u8], Run)> {
        let snapshot = self.snapshot;
        self.parts.iter().flat_map(move |(index, members)| {
            let product = move |slot| {
                let code = snapshot.blocks[*index].code_bytes(slot);
                (code, Run::new(*index, slot..slot + 1))
            };
            members.iter().map(product)
        })
    }

    fn parts(&self) -> impl DoubleEndedIterator<Item = (&'s Block, BitSet256)> {
        self.parts.iter().map(|(index, members)| {
            // The index came from these blocks.
            (&self.snapshot.blocks[*index], *members)
        })
    }
}
