//! Building blocks from products in code order.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use super::bit_set::BitSet256;
use super::block::{Block, Malformed};
use super::facet::Facet;
use super::placed_discount::{ENCODED_BYTES, PlacedDiscount};
use crate::code::ProductCode;
use crate::content_hash::ContentHash;

/// Size of a full arena, in bytes: it gets no further product, because offsets have 32 bits and changes copy whole
/// blocks.
const FULL_ARENA_BYTES: usize = 4 << 20;

/// A product to append to a block.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Code; codes must be appended in ascending order.
    pub code: &'a ProductCode,
    /// Rendered bytes.
    pub bytes: &'a [u8],
    /// Start and end of its content resources in `bytes`, if it has any.
    pub content: Option<(usize, usize)>,
    /// Discount, if the place of its text in `bytes` is known.
    pub discount: Option<PlacedDiscount>,
    /// Facets.
    pub facets: &'a [Facet],
    /// Words by which it is found ([`words_of`](crate::search::words_of)).
    pub words: &'a str,
}

/// Builds a [`Block`] from products.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    arena: Vec<u8>,
    ends: Vec<u32>,
    content: Vec<[u32; 2]>,
    discounts: Vec<[u8; ENCODED_BYTES]>,
    discount_starts: Vec<u32>,
    hashes: Vec<ContentHash>,
    code_ends: Vec<u16>,
    codes: Vec<u8>,
    last_code: Range<usize>,
    facets: BTreeMap<Facet, BitSet256>,
    words: String,
}

/// Error of a product that doesn't fit into the block.
#[derive(Debug, thiserror::Error)]
#[error("product {code} isn't in ascending order of codes, or its block is full or too large")]
pub struct PushError {
    code: String,
}

impl BlockBuilder {
    /// Returns the number of appended products.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if no product was appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns true if the block must be finished before another product is appended.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() == Block::CAPACITY || self.arena.len() >= FULL_ARENA_BYTES
    }

    /// Appends a product.
    ///
    /// # Errors
    ///
    /// If its code isn't above the previous one, the block is full, or its bytes don't fit.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), PushError> {
        let Entry {
            code,
            bytes,
            content,
            discount,
            facets,
            words,
        } = *entry;
        let hash = ContentHash::of(bytes);
        let places = (content.unwrap_or_default().into(), discount);
        self.append(code.as_str(), bytes, places, hash)?;
        self.push_words(words);
        let slot = self.len() - 1;
        for facet in facets {
            self.facets.entry(*facet).or_default().insert(slot);
        }
        Ok(())
    }

    /// Appends products of another block unchanged.
    pub(super) fn push_from(
        &mut self,
        block: &Block,
        slots: Range<usize>,
    ) -> Result<(), PushError> {
        let first = self.len();
        for slot in slots.clone() {
            let content = block.content(slot).unwrap_or_default();
            let places = ([content.start, content.end], block.discount(slot));
            let bytes = block.bytes(slot..slot + 1);
            self.append(block.code(slot), bytes, places, block.hash(slot))?;
        }
        let words = block.words_of_each().skip(slots.start);
        words
            .take(slots.len())
            .for_each(|words| self.push_words(words));
        for (facet, members) in block.facets() {
            let kept = members
                .and(BitSet256::below(slots.end))
                .without(BitSet256::below(slots.start));
            if !kept.is_empty() {
                let moved = self.facets.entry(facet).or_default();
                kept.iter()
                    .for_each(|slot| moved.insert(first + slot - slots.start));
            }
        }
        Ok(())
    }

    fn push_words(&mut self, words: &str) {
        self.words.push_str(words);
        self.words.push('\n');
    }

    /// Appends a product. `places` are those of its content resources and its discount.
    fn append(
        &mut self,
        code: &str,
        bytes: &[u8],
        places: ([usize; 2], Option<PlacedDiscount>),
        hash: ContentHash,
    ) -> Result<(), PushError> {
        let refused = || PushError {
            code: code.to_owned(),
        };
        let is_first = self.is_empty();
        let follows = is_first || self.codes[self.last_code.clone()] < *code.as_bytes();
        if !follows || self.len() == Block::CAPACITY {
            return Err(refused());
        }
        let small = |number: usize| u32::try_from(number).map_err(|_| refused());
        let ([content_start, content_end], discount) = places;
        let content = [small(content_start)?, small(content_end)?];
        let discount_start = small(discount.map_or(0, |discount| discount.start))?;
        let end = small(self.arena.len() + usize::from(!is_first) + bytes.len())?;
        let code_start = self.codes.len();
        let code_end = u16::try_from(code_start + code.len()).map_err(|_| refused())?;
        if !is_first {
            self.arena.push(b',');
        }
        self.arena.extend_from_slice(bytes);
        self.ends.push(end);
        self.content.push(content);
        let discount = discount.map(|discount| PlacedDiscount::encode(discount.exact));
        self.discounts.push(discount.unwrap_or_default());
        self.discount_starts.push(discount_start);
        self.hashes.push(hash);
        self.codes.extend_from_slice(code.as_bytes());
        self.code_ends.push(code_end);
        self.last_code = code_start..self.codes.len();
        Ok(())
    }

    /// Returns the finished block, leaving the builder empty for the next one.
    ///
    /// # Errors
    ///
    /// If no product was appended, or content resources or a discount lie outside their product.
    pub fn finish(&mut self) -> Result<Block, Malformed> {
        let Self {
            arena,
            ends,
            content,
            discounts,
            discount_starts,
            hashes,
            code_ends,
            codes,
            last_code,
            facets,
            words,
        } = self;
        let mut directory = Vec::with_capacity(4096);
        for number in [ends.len(), facets.len(), codes.len()] {
            // Each was counted in four bytes or fewer.
            directory.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
        }
        let places = content.iter().flatten().chain(&*discount_starts);
        for number in ends.iter().chain(places) {
            directory.extend_from_slice(&number.to_le_bytes());
        }
        for discount in &*discounts {
            directory.extend_from_slice(discount);
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
        // Copied, so that none has spare capacity.
        let block = Block::from_bytes(
            Bytes::copy_from_slice(&directory),
            Bytes::copy_from_slice(arena),
            Bytes::copy_from_slice(words.as_bytes()),
        );
        arena.clear();
        ends.clear();
        content.clear();
        discounts.clear();
        discount_starts.clear();
        hashes.clear();
        code_ends.clear();
        codes.clear();
        *last_code = 0..0;
        facets.clear();
        words.clear();
        block
    }
}
