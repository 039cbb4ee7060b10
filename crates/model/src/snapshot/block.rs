//! A block: up to 256 neighbouring products, immutable, shared by all snapshots in which none of them changed.
//!
//! It consists of three byte strings, which are the same in memory and in a snapshot file. The **arena** has the rendered
//! products in code order with commas between them, so that neighbours are one slice. The **words** are those by which each
//! product is found ([`search`](crate::search)), a line each. The **directory** describes the arena:
//!
//! | Part | Bytes |
//! | --- | --- |
//! | number of products, number of facets, total length of the codes | 3 × 4 |
//! | end of each product in the arena | 4 each |
//! | start and end of the content resources in each product; 0, 0 for none | 8 each |
//! | start of the text of the discount in each product; 0 for none | 4 each |
//! | discount of each product | 16 each |
//! | hash of each product | 16 each |
//! | end of each code among the codes | 2 each |
//! | codes | |
//! | number and bit set of each facet, ascending by number | 36 each |
//!
//! Numbers are little-endian. A discount is a number whose lowest byte says how many of the digits in the others stand
//! behind the point.

use std::ops::Range;

use bytes::Bytes;

use super::bit_set::BitSet256;
use super::facet::Facet;
use super::placed_discount::{ENCODED_BYTES, PlacedDiscount};
use crate::code::ProductCode;
use crate::content_hash::ContentHash;
use crate::search::{Search, places};

const HEADER_BYTES: usize = 12;
const FACET_BYTES: usize = 4 + BitSet256::ENCODED_BYTES;

/// Up to 256 neighbouring products. Clones share memory.
#[derive(Debug, Clone)]
pub struct Block {
    count: usize,
    directory: Bytes,
    arena: Bytes,
    words: Bytes,
    parts: Parts,
}

/// Offsets of the parts of a directory.
#[derive(Debug, Clone, Copy)]
struct Parts {
    content: usize,
    discount_starts: usize,
    discounts: usize,
    hashes: usize,
    code_ends: usize,
    codes: usize,
    facets: usize,
    end: usize,
}

/// Error of bytes that aren't a valid block or text table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes aren't those of a block of products")]
pub struct Malformed;

impl Block {
    /// Maximum number of products in a block.
    pub const CAPACITY: usize = BitSet256::CAPACITY;

    /// Reads a block, validating the whole directory: afterwards no access can fail or be out of bounds. The arena's
    /// content isn't validated, and of the words only their number is.
    ///
    /// # Errors
    ///
    /// If the directory is invalid or doesn't fit the arena.
    pub fn from_bytes(directory: Bytes, arena: Bytes, words: Bytes) -> Result<Self, Malformed> {
        let header = |index: usize| number(&directory, index * 4).ok_or(Malformed);
        let (count, facets, codes_bytes) = (header(0)?, header(1)?, header(2)?);
        let is_small = count <= Self::CAPACITY
            && facets <= directory.len()
            && codes_bytes <= Self::CAPACITY * ProductCode::MAX_LENGTH_BYTES;
        if count == 0 || !is_small {
            return Err(Malformed);
        }
        let parts = Parts::new(count, facets, codes_bytes);
        let block = Self {
            count,
            directory,
            arena,
            words,
            parts,
        };
        block.is_sound().then_some(block).ok_or(Malformed)
    }

    fn is_sound(&self) -> bool {
        let slots = 0..self.count;
        let fits = self.directory.len() == self.parts.end
            && self.product_range(self.count - 1).end == self.arena.len()
            && self.code_range(self.count - 1).end == self.parts.facets - self.parts.codes;
        let in_order = |range: Range<usize>| range.start <= range.end;
        let has_words = memchr::memchr_iter(b'\n', &self.words).count() == self.count;
        fits && has_words
            && slots.clone().all(|slot| {
                let bytes = self.product_range(slot);
                let content = self.content(slot).unwrap_or(0..0);
                in_order(bytes.clone())
                    && in_order(content.clone())
                    && content.end <= bytes.len()
                    && self.has_sound_discount(slot, bytes.len())
                    && in_order(self.code_range(slot))
            })
            && slots
                .clone()
                .all(|slot| ProductCode::check(self.code(slot)).is_ok())
            && slots
                .skip(1)
                .all(|slot| self.code_bytes(slot - 1) < self.code_bytes(slot))
            && self.facets().is_sorted_by(|left, right| left.0 < right.0)
            && self
                .facets()
                .all(|(_, members)| members.without(BitSet256::below(self.count)).is_empty())
    }

    fn has_sound_discount(&self, slot: usize, product_bytes: usize) -> bool {
        match self.discount_start(slot) {
            Some(0) => true,
            Some(_) => self
                .discount(slot)
                .is_some_and(|discount| discount.range().end <= product_bytes),
            None => false,
        }
    }

    /// Returns the bytes of the directory, for [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub fn directory(&self) -> &Bytes {
        &self.directory
    }

    /// Returns the bytes of the arena, for [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub fn arena(&self) -> &Bytes {
        &self.arena
    }

    /// Returns the words, for [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub fn words(&self) -> &Bytes {
        &self.words
    }

    /// Iterates over the words of each product.
    pub(super) fn words_of_each(&self) -> impl Iterator<Item = &str> {
        let words = std::str::from_utf8(&self.words).unwrap_or_default();
        words.split('\n').take(self.count)
    }

    /// Returns the products that a search finds.
    #[must_use]
    pub fn found(&self, search: &Search) -> BitSet256 {
        let mut found: Option<BitSet256> = None;
        for wanted in search.words() {
            if found.is_some_and(BitSet256::is_empty) {
                break;
            }
            let mut with_word = BitSet256::default();
            let (mut slot, mut at) = (0, 0);
            for place in places(&self.words, wanted) {
                slot += memchr::memchr_iter(b'\n', &self.words[at..place]).count();
                at = place;
                if slot < self.count {
                    with_word.insert(slot);
                }
            }
            found = Some(found.map_or(with_word, |found| found.and(with_word)));
        }
        found.unwrap_or_default()
    }

    /// Iterates over the codes, ascending.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        (0..self.count).map(|slot| self.code(slot))
    }

    /// Iterates over codes and rendered products, ascending by code.
    pub fn products(&self) -> impl Iterator<Item = (&str, &[u8])> {
        (0..self.count).map(|slot| (self.code(slot), self.bytes(slot..slot + 1)))
    }

    /// Returns the number of products, at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the code at `slot`.
    #[must_use]
    pub fn code(&self, slot: usize) -> &str {
        std::str::from_utf8(self.code_bytes(slot)).unwrap_or_default()
    }

    /// Returns true if the block has a product at `slot`, and it has this code.
    pub(super) fn has_at(&self, slot: usize, code: &str) -> bool {
        slot < self.count && self.code_bytes(slot) == code.as_bytes()
    }

    /// Returns the slot of the first code that isn't below `code`.
    pub(super) fn first_not_below(&self, code: &[u8]) -> usize {
        let Parts {
            code_ends,
            codes,
            facets,
            ..
        } = self.parts;
        let ends = self.directory.get(code_ends..codes).unwrap_or_default();
        let codes = self.directory.get(codes..facets).unwrap_or_default();
        let (ends, _) = ends.as_chunks();
        let end = |slot: usize| {
            ends.get(slot)
                .map_or(0, |end| u16::from_le_bytes(*end).into())
        };
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            let start = middle.checked_sub(1).map_or(0, end);
            if codes.get(start..end(middle)).unwrap_or_default() < code {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(crate) fn code_bytes(&self, slot: usize) -> &[u8] {
        let Range { start, end } = self.code_range(slot);
        let at = self.parts.codes;
        self.directory.get(at + start..at + end).unwrap_or_default()
    }

    fn code_range(&self, slot: usize) -> Range<usize> {
        let end = |slot: usize| {
            let at = self.parts.code_ends + slot * 2;
            let bytes = self.directory.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
        };
        slot.checked_sub(1).map_or(0, end)..end(slot)
    }

    /// Returns the range of the product at `slot` in the arena.
    pub(super) fn product_range(&self, slot: usize) -> Range<usize> {
        let end = |slot: usize| number(&self.directory, HEADER_BYTES + slot * 4).unwrap_or(0);
        // The previous product is followed by a comma.
        slot.checked_sub(1).map_or(0, |before| end(before) + 1)..end(slot)
    }

    /// Returns the bytes of neighbouring products, with commas between them.
    pub(super) fn bytes(&self, slots: Range<usize>) -> &[u8] {
        self.arena.get(self.arena_range(slots)).unwrap_or_default()
    }

    /// Returns the range of neighbouring products in the arena.
    pub(super) fn arena_range(&self, slots: Range<usize>) -> Range<usize> {
        self.product_range(slots.start).start..self.product_range(slots.end - 1).end
    }

    /// Returns the range of the content resources in the product at `slot`.
    pub(super) fn content(&self, slot: usize) -> Option<Range<usize>> {
        let at = self.parts.content + slot * 8;
        let start = number(&self.directory, at)?;
        let end = number(&self.directory, at + 4)?;
        (end > 0).then_some(start..end)
    }

    /// Returns the discount of the product at `slot`, if its text is known to be in the product.
    #[must_use]
    pub fn discount(&self, slot: usize) -> Option<PlacedDiscount> {
        let at = self.parts.discounts + slot * ENCODED_BYTES;
        let discount = self.directory.get(at..)?.first_chunk()?;
        PlacedDiscount::decode(*discount, self.discount_start(slot)?)
    }

    fn discount_start(&self, slot: usize) -> Option<usize> {
        number(&self.directory, self.parts.discount_starts + slot * 4)
    }

    /// Returns the hash of the product at `slot`.
    #[must_use]
    pub fn hash(&self, slot: usize) -> ContentHash {
        let bytes = self.hash_bytes(slot..slot + 1).first_chunk();
        bytes.map_or_else(ContentHash::default, |bytes| {
            ContentHash::from_bytes(*bytes)
        })
    }

    /// Returns the hashes of neighbouring products, one after the other.
    pub(super) fn hash_bytes(&self, slots: Range<usize>) -> &[u8] {
        const LENGTH: usize = ContentHash::LENGTH_BYTES;
        let at = self.parts.hashes;
        let range = at + slots.start * LENGTH..at + slots.end * LENGTH;
        self.directory.get(range).unwrap_or_default()
    }

    /// Returns the products that have a facet.
    #[must_use]
    pub fn members(&self, facet: Facet) -> BitSet256 {
        let facets = self.facet_entries();
        let found = facets.binary_search_by_key(&facet, facet_of);
        found.map_or(BitSet256::default(), |at| {
            BitSet256::decode(&facets[at][4..])
        })
    }

    /// Iterates over the facets of the block's products, with the products that have each.
    pub fn facets(&self) -> impl Iterator<Item = (Facet, BitSet256)> {
        let decode = |entry| (facet_of(entry), BitSet256::decode(&entry[4..]));
        self.facet_entries().iter().map(decode)
    }

    fn facet_entries(&self) -> &[[u8; FACET_BYTES]] {
        let bytes = self.directory.get(self.parts.facets..);
        bytes.unwrap_or_default().as_chunks().0
    }
}

fn facet_of(entry: &[u8; FACET_BYTES]) -> Facet {
    let number = entry
        .first_chunk()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes));
    Facet::from_number(number)
}

impl Parts {
    fn new(count: usize, facets: usize, codes_bytes: usize) -> Self {
        let content = HEADER_BYTES + count * 4;
        let discount_starts = content + count * 8;
        let discounts = discount_starts + count * 4;
        let hashes = discounts + count * ENCODED_BYTES;
        let code_ends = hashes + count * ContentHash::LENGTH_BYTES;
        let codes = code_ends + count * 2;
        let facets_at = codes + codes_bytes;
        Self {
            content,
            discount_starts,
            discounts,
            hashes,
            code_ends,
            codes,
            facets: facets_at,
            end: facets_at + facets * FACET_BYTES,
        }
    }
}

/// Reads the 32-bit number at `at`.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}
