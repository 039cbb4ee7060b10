//! A block: up to 256 neighbouring products, immutable, and shared by all snapshots in which none of
//! them changed.
//!
//! It is two stretches of bytes, which are the same in memory and in a snapshot file. In the **arena**
//! the products lie rendered, in code order, with commas between them, so that neighbours are one
//! slice. The **directory** says what lies where:
//!
//! | Part | Bytes |
//! | --- | --- |
//! | how many products, how many facets, how long the codes are | 3 × 4 |
//! | where each product ends in the arena | 4 each |
//! | where in each product its content resources begin and end; 0, 0 for none | 8 each |
//! | each product's hash | 16 each |
//! | where each code ends among the codes | 2 each |
//! | the codes | |
//! | each facet's number and its members, ascending by number | 36 each |
//!
//! Numbers are little-endian.

use std::ops::Range;

use bytes::Bytes;

use super::bit_set::BitSet256;
use super::facet::Facet;
use crate::code::ProductCode;
use crate::content_hash::ContentHash;

const HEADER_BYTES: usize = 12;
const FACET_BYTES: usize = 4 + BitSet256::ENCODED_BYTES;

/// Up to 256 neighbouring products. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Block {
    count: usize,
    directory: Bytes,
    arena: Bytes,
    parts: Parts,
}

/// Where the parts of a directory begin.
#[derive(Debug, Clone, Copy)]
struct Parts {
    content: usize,
    hashes: usize,
    code_ends: usize,
    codes: usize,
    facets: usize,
    end: usize,
}

/// Bytes that aren't a block's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes aren't those of a block of products")]
pub struct Malformed;

impl Block {
    /// The most products of a block.
    pub const CAPACITY: usize = BitSet256::CAPACITY;

    /// Takes bytes for a block, after a look at all that the directory says: nothing that is asked of
    /// a block can fail or leave its bytes. What lies in the arena isn't looked at.
    ///
    /// # Errors
    ///
    /// Where the directory isn't one, or speaks of another arena.
    pub fn from_bytes(directory: Bytes, arena: Bytes) -> Result<Self, Malformed> {
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
            parts,
        };
        block.is_sound().then_some(block).ok_or(Malformed)
    }

    fn is_sound(&self) -> bool {
        let places = 0..self.count;
        let fits = self.directory.len() == self.parts.end
            && self.range(self.count - 1).end == self.arena.len()
            && self.code_range(self.count - 1).end == self.parts.facets - self.parts.codes;
        let in_order = |range: Range<usize>| range.start <= range.end;
        fits && places.clone().all(|place| {
            let bytes = self.range(place);
            let content = self.content(place).unwrap_or(0..0);
            in_order(bytes.clone())
                && in_order(content.clone())
                && content.end <= bytes.len()
                && in_order(self.code_range(place))
        }) && places
            .clone()
            .all(|place| ProductCode::check(self.code(place)).is_ok())
            && places
                .skip(1)
                .all(|place| self.code_bytes(place - 1) < self.code_bytes(place))
            && self.facets().is_sorted_by(|left, right| left.0 < right.0)
            && self
                .facets()
                .all(|(_, members)| members.without(BitSet256::below(self.count)).is_empty())
    }

    /// The bytes of the directory, which [`from_bytes`](Self::from_bytes) takes back.
    #[must_use]
    pub fn directory(&self) -> &Bytes {
        &self.directory
    }

    /// The bytes of the arena, which [`from_bytes`](Self::from_bytes) takes back.
    #[must_use]
    pub fn arena(&self) -> &Bytes {
        &self.arena
    }

    /// The codes, ascending.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        (0..self.count).map(|place| self.code(place))
    }

    /// The products as they were rendered, with their codes, in the order of these.
    pub fn products(&self) -> impl Iterator<Item = (&str, &[u8])> {
        (0..self.count).map(|place| (self.code(place), self.bytes(place..place + 1)))
    }

    /// How many products there are: at least one.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The code at `place`.
    pub(super) fn code(&self, place: usize) -> &str {
        std::str::from_utf8(self.code_bytes(place)).unwrap_or_default()
    }

    /// Whether the product at `place` is there, and is that of `code`.
    pub(super) fn has_at(&self, place: usize, code: &ProductCode) -> bool {
        place < self.count && self.code(place) == code.as_str()
    }

    /// The place of the first code that isn't below `code`.
    pub(super) fn first_not_below(&self, code: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.code_bytes(middle) < code {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(super) fn code_bytes(&self, place: usize) -> &[u8] {
        let Range { start, end } = self.code_range(place);
        let at = self.parts.codes;
        self.directory.get(at + start..at + end).unwrap_or_default()
    }

    fn code_range(&self, place: usize) -> Range<usize> {
        let end = |place: usize| {
            let at = self.parts.code_ends + place * 2;
            let bytes = self.directory.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
        };
        place.checked_sub(1).map_or(0, end)..end(place)
    }

    /// Where the product at `place` lies in the arena.
    pub(super) fn range(&self, place: usize) -> Range<usize> {
        let end = |place: usize| number(&self.directory, HEADER_BYTES + place * 4).unwrap_or(0);
        // Behind the end of the one before stands a comma.
        place.checked_sub(1).map_or(0, |before| end(before) + 1)..end(place)
    }

    /// The bytes of some neighbours, with commas between them.
    pub(super) fn bytes(&self, places: Range<usize>) -> &[u8] {
        self.arena.get(self.stretch(places)).unwrap_or_default()
    }

    /// Where some neighbours lie in the arena.
    pub(super) fn stretch(&self, places: Range<usize>) -> Range<usize> {
        self.range(places.start).start..self.range(places.end - 1).end
    }

    /// Where in the product at `place` its content resources lie.
    pub(super) fn content(&self, place: usize) -> Option<Range<usize>> {
        let at = self.parts.content + place * 8;
        let start = number(&self.directory, at)?;
        let end = number(&self.directory, at + 4)?;
        (end > 0).then_some(start..end)
    }

    /// Returns the hash of the product at `place`.
    pub(super) fn hash(&self, place: usize) -> ContentHash {
        let bytes = self.hash_bytes(place..place + 1).first_chunk();
        bytes.map_or_else(ContentHash::default, |bytes| {
            ContentHash::from_bytes(*bytes)
        })
    }

    /// Returns the hashes of neighbouring products, one after the other.
    pub(super) fn hash_bytes(&self, places: Range<usize>) -> &[u8] {
        const LENGTH: usize = ContentHash::LENGTH_BYTES;
        let at = self.parts.hashes;
        let range = at + places.start * LENGTH..at + places.end * LENGTH;
        self.directory.get(range).unwrap_or_default()
    }

    /// The products that have a facet.
    pub(super) fn members(&self, facet: Facet) -> BitSet256 {
        let facets = self.facet_entries();
        let found = facets.binary_search_by_key(&facet, facet_of);
        found.map_or(BitSet256::default(), |at| {
            BitSet256::decode(&facets[at][4..])
        })
    }

    /// Every facet that some product of the block has, with those that have it.
    pub(super) fn facets(&self) -> impl Iterator<Item = (Facet, BitSet256)> {
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
        let hashes = content + count * 8;
        let code_ends = hashes + count * ContentHash::LENGTH_BYTES;
        let codes = code_ends + count * 2;
        let facets_at = codes + codes_bytes;
        Self {
            content,
            hashes,
            code_ends,
            codes,
            facets: facets_at,
            end: facets_at + facets * FACET_BYTES,
        }
    }
}

/// The number of four bytes that stands at `at`.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}
