//! How blocks come about: products in code order, a block at a time.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use memmap2::MmapMut;

use super::bit_set::BitSet256;
use super::block::{Block, Malformed};
use super::facet::Facet;
use crate::code::ProductCode;
use crate::content_hash::ContentHash;

/// An arena of so many bytes gets no further product: places in it are told in 32 bits, and what changes
/// is copied by the block.
const LARGE_BYTES: usize = 4 << 20;

/// One product on its way into a block.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Its code; codes must arrive in ascending order.
    pub code: &'a ProductCode,
    /// Its bytes, rendered.
    pub bytes: &'a [u8],
    /// Where its content resources begin and end within `bytes`, if it has any.
    pub content: Option<(usize, usize)>,
    /// What filters can ask of it.
    pub facets: &'a [Facet],
}

/// Takes products and makes a [`Block`] of them.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    arena: Vec<u8>,
    ends: Vec<u32>,
    content: Vec<[u32; 2]>,
    hashes: Vec<ContentHash>,
    code_ends: Vec<u16>,
    codes: Vec<u8>,
    last_code: Range<usize>,
    facets: BTreeMap<Facet, BitSet256>,
}

/// A product that a block can't take.
#[derive(Debug, thiserror::Error)]
#[error("product {code} isn't in ascending order of codes, or its block is full or too large")]
pub struct Refused {
    code: String,
}

impl BlockBuilder {
    /// How many products there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no product.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether the block is to be finished before another product is appended.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() == Block::CAPACITY || self.arena.len() >= LARGE_BYTES
    }

    /// Appends a product.
    ///
    /// # Errors
    ///
    /// Where its code doesn't follow the one before, the block is full, or its bytes don't fit.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), Refused> {
        let Entry {
            code,
            bytes,
            content,
            facets,
        } = *entry;
        let hash = ContentHash::of(bytes);
        self.append(code.as_str(), bytes, content, hash)?;
        let place = self.len() - 1;
        for facet in facets {
            self.facets.entry(*facet).or_default().insert(place);
        }
        Ok(())
    }

    /// Appends products of another block as they are there.
    pub(super) fn push_from(&mut self, block: &Block, places: Range<usize>) -> Result<(), Refused> {
        let first = self.len();
        for place in places.clone() {
            let content = block
                .content(place)
                .map(|content| (content.start, content.end));
            let bytes = block.bytes(place..place + 1);
            self.append(block.code(place), bytes, content, block.hash(place))?;
        }
        for (facet, members) in block.facets() {
            let kept = members
                .and(BitSet256::below(places.end))
                .without(BitSet256::below(places.start));
            if !kept.is_empty() {
                let moved = self.facets.entry(facet).or_default();
                kept.iter()
                    .for_each(|place| moved.insert(first + place - places.start));
            }
        }
        Ok(())
    }

    fn append(
        &mut self,
        code: &str,
        bytes: &[u8],
        content: Option<(usize, usize)>,
        hash: ContentHash,
    ) -> Result<(), Refused> {
        let refused = || Refused {
            code: code.to_owned(),
        };
        let is_first = self.is_empty();
        let follows = is_first || self.codes[self.last_code.clone()] < *code.as_bytes();
        if !follows || self.len() == Block::CAPACITY {
            return Err(refused());
        }
        let small = |number: usize| u32::try_from(number).map_err(|_| refused());
        let (content_start, content_end) = content.unwrap_or_default();
        let content = [small(content_start)?, small(content_end)?];
        let end = small(self.arena.len() + usize::from(!is_first) + bytes.len())?;
        let code_start = self.codes.len();
        let code_end = u16::try_from(code_start + code.len()).map_err(|_| refused())?;
        if !is_first {
            self.arena.push(b',');
        }
        self.arena.extend_from_slice(bytes);
        self.ends.push(end);
        self.content.push(content);
        self.hashes.push(hash);
        self.codes.extend_from_slice(code.as_bytes());
        self.code_ends.push(code_end);
        self.last_code = code_start..self.codes.len();
        Ok(())
    }

    /// The finished block; the builder is empty afterwards, ready for the next.
    ///
    /// # Errors
    ///
    /// Where no product was appended, or content resources lie outside of their product.
    pub fn finish(&mut self) -> Result<Block, Malformed> {
        let Self {
            arena,
            ends,
            content,
            hashes,
            code_ends,
            codes,
            last_code,
            facets,
        } = self;
        let mut directory = Vec::with_capacity(4096);
        for number in [ends.len(), facets.len(), codes.len()] {
            // Each was counted in four bytes or fewer.
            directory.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
        }
        for number in ends.iter().chain(content.as_flattened()) {
            directory.extend_from_slice(&number.to_le_bytes());
        }
        for hash in &*hashes {
            directory.extend_from_slice(hash.as_bytes());
        }
        for end in &*code_ends {
            directory.extend_from_slice(&end.to_le_bytes());
        }
        directory.extend_from_slice(codes);
        for (facet, members) in &*facets {
            directory.extend_from_slice(&facet.number().to_le_bytes());
            members.encode(&mut directory);
        }
        // Copied, so that neither takes more memory than it needs.
        let block = Block::from_bytes(Bytes::copy_from_slice(&directory), kept_apart(arena));
        arena.clear();
        ends.clear();
        content.clear();
        hashes.clear();
        code_ends.clear();
        codes.clear();
        *last_code = 0..0;
        facets.clear();
        block
    }
}

/// An arena of so many bytes has memory of its own.
const APART_BYTES: usize = 64 << 10;

/// A copy in memory that goes back to the system with the last snapshot that shares the block. The allocator couldn't
/// give all of it back: what was allocated meanwhile lies between, and each snapshot that is made anew would leave more.
fn kept_apart(arena: &[u8]) -> Bytes {
    if arena.len() >= APART_BYTES
        && let Ok(mut memory) = MmapMut::map_anon(arena.len())
    {
        memory.copy_from_slice(arena);
        return Bytes::from_owner(memory);
    }
    Bytes::copy_from_slice(arena)
}
