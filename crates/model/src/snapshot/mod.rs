//! The catalog in memory: one immutable value per revision, shared by all requests.
//!
//! Rendered products lie in code order in immutable blocks of up to 256. A revision that changes a few products gives a
//! snapshot that shares all other blocks with its predecessor. Each block has a bit set per facet (such as a country, or
//! being orderable), and the snapshot a bit per block and facet; a scan uses both. The rendered bytes are opaque here.
//!
//! - `block`: up to 256 products; `bit_set`: a set of slots in a block
//! - `facet`: the attributes of products that filters select by; `groups`: facets of which a match has at least one each
//! - `build`: building blocks; `change`: applying a revision, with `rebuild`: building the blocks with changes
//! - `scan`: finding a page; `page`: its products
//! - `placed_discount`: a product's discount, which a response may show in another form than the rendered one
//! - `texts`: the served Markdown; `damage`: corrupt products and texts of the store

mod bit_set;
mod block;
mod build;
mod change;
mod damage;
mod facet;
mod groups;
mod page;
mod placed_discount;
mod rebuild;
mod scan;
mod texts;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use jiff::Timestamp;

pub use bit_set::BitSet256;
pub use block::{Block, Malformed};
pub use build::{BlockBuilder, Entry, PushError};
pub use change::NewProduct;
pub use damage::Damage;
pub use facet::{Facet, FacetKind, FacetNumbers};
pub(crate) use groups::Groups;
pub use page::{Page, Run, Slice};
pub use placed_discount::PlacedDiscount;
pub use rebuild::RebuildThreads;
pub use scan::Matcher;
pub use texts::{ServedText, TextTable, TextTableBuilder};

use crate::code::ProductCode;
use crate::content::{PackedMarkdown, TextDigest};
use crate::content_hash::ContentHash;
use crate::geo::Country;
use crate::revision::Revision;

/// One revision of the catalog, ready to be served. Clones share products and texts.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    revision: Revision,
    len: usize,
    blocks: Vec<Block>,
    /// Prefix of each block's first code, for searches.
    prefixes: Box<[u128]>,
    /// A bit per facet and block: set if some product of the block has the facet. Empty for facets without products.
    presence: Vec<Box<[u64]>>,
    facets: Arc<FacetNumbers>,
    /// Categories with products, ascending by name.
    live_categories: Vec<Facet>,
    texts: TextTable,
    damage: Arc<Damage>,
    withdrawn: Withdrawn,
}

/// Flag that stops sending the pages of a replaced snapshot. Clones start unset: they weren't replaced.
#[derive(Debug, Default)]
struct Withdrawn(AtomicBool);

impl Clone for Withdrawn {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A product of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct ProductView<'s> {
    block: &'s Block,
    slot: usize,
}

impl Snapshot {
    /// Builds the snapshot of `revision` from blocks whose facets are numbered by `facets`.
    ///
    /// # Errors
    ///
    /// If the codes aren't strictly ascending, or a block has a facet that `facets` doesn't have.
    pub fn new(
        revision: Revision,
        facets: Arc<FacetNumbers>,
        blocks: Vec<Block>,
        texts: TextTable,
    ) -> Result<Self, Malformed> {
        let follows =
            |left: &Block, right: &Block| left.code_bytes(left.count() - 1) < right.code_bytes(0);
        if !blocks.is_sorted_by(follows) {
            return Err(Malformed);
        }
        let mut presence = vec![Box::<[u64]>::default(); facets.facet_count()];
        for (index, block) in blocks.iter().enumerate() {
            for (facet, _) in block.facets() {
                let blocks_with = presence.get_mut(facet.number() as usize).ok_or(Malformed)?;
                if blocks_with.is_empty() {
                    *blocks_with = vec![0; blocks.len().div_ceil(64)].into();
                }
                blocks_with[index / 64] |= 1 << (index % 64);
            }
        }
        let mut live_categories: Vec<Facet> = (0..)
            .zip(&presence)
            .filter(|(_, blocks_with)| !blocks_with.is_empty())
            .map(|(number, _)| Facet::from_number(number))
            .filter(|facet| facets.category(*facet).is_some())
            .collect();
        live_categories.sort_unstable_by_key(|facet| facets.category(*facet));
        Ok(Self {
            revision,
            len: blocks.iter().map(Block::count).sum(),
            prefixes: blocks
                .iter()
                .map(|block| prefix(block.code_bytes(0)))
                .collect(),
            blocks,
            presence,
            facets,
            live_categories,
            texts,
            damage: Arc::default(),
            withdrawn: Withdrawn::default(),
        })
    }

    /// Returns the revision.
    #[must_use]
    pub fn revision(&self) -> &Revision {
        &self.revision
    }

    /// Stops sending its pages: slow clients would keep the whole snapshot in memory.
    pub fn withdraw(&self) {
        self.withdrawn.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if its pages must not be sent any further.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.0.load(Ordering::Relaxed)
    }

    /// Returns the number of products.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no products.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the blocks, in code order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the numbering of facets that the blocks use.
    #[must_use]
    pub fn facet_numbers(&self) -> &Arc<FacetNumbers> {
        &self.facets
    }

    /// Returns the number of facets with a name that some product has.
    #[must_use]
    pub fn named_facet_count(&self) -> usize {
        (0..)
            .zip(&self.presence)
            .filter(|(_, blocks_with)| !blocks_with.is_empty())
            .filter(|(number, _)| self.facets.name(Facet::from_number(*number)).is_some())
            .count()
    }

    /// Returns the texts.
    #[must_use]
    pub fn texts(&self) -> &TextTable {
        &self.texts
    }

    /// Returns the damage of the store that this was built from.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Returns the snapshot with this damage of its store.
    #[must_use]
    pub fn with_damage(self, damage: Damage) -> Self {
        Self {
            damage: Arc::new(damage),
            ..self
        }
    }

    /// Returns the memory of products, texts and their directories, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let block_bytes = |block: &Block| block.directory().len() + block.arena().len();
        self.blocks.iter().map(block_bytes).sum::<usize>() + self.texts.size_bytes()
    }

    /// Returns the product with this code.
    #[must_use]
    pub fn product(&self, code: &ProductCode) -> Option<ProductView<'_>> {
        self.product_at(self.find(code.as_str())?)
    }

    /// Returns the product at a place: the index of its block, and its slot there.
    #[must_use]
    pub fn product_at(&self, (block, slot): (usize, usize)) -> Option<ProductView<'_>> {
        let block = self.blocks.get(block)?;
        Some(ProductView { block, slot })
    }

    /// Iterates over the countries with products, ascending.
    pub fn countries(&self) -> impl Iterator<Item = Country> {
        (0..)
            .zip(&self.presence)
            .filter(|(_, blocks_with)| !blocks_with.is_empty())
            .filter_map(|(number, _)| Facet::from_number(number).as_country())
    }

    /// Iterates over the categories with products, in ascending byte order.
    pub fn categories(&self) -> impl Iterator<Item = &str> {
        let name = |facet: &Facet| self.facets.category(*facet);
        self.live_categories.iter().filter_map(name)
    }

    /// Returns the text with this digest, if it is served at `now`.
    #[must_use]
    pub fn text(&self, digest: &TextDigest, now: Timestamp) -> Option<PackedMarkdown> {
        self.texts.get(digest, now)
    }

    /// Returns block and slot of the product with this code.
    pub(crate) fn find(&self, code: &str) -> Option<(usize, usize)> {
        let (block, slot) = self.first_not_below(code);
        let is_there = self.blocks.get(block)?.has_at(slot, code);
        is_there.then_some((block, slot))
    }

    /// Returns block and slot of the first product whose code isn't below `code`; the slot may be one past the block's
    /// last.
    pub(crate) fn first_not_below(&self, code: &str) -> (usize, usize) {
        let code = code.as_bytes();
        let prefix = prefix(code);
        let mut after = self.prefixes.partition_point(|first| *first < prefix);
        if self.prefixes.get(after) == Some(&prefix) {
            let rest = self.blocks.get(after..).unwrap_or_default();
            after += rest.partition_point(|block| block.code_bytes(0) <= code);
        }
        let block = after.saturating_sub(1);
        let slot = self.blocks.get(block);
        (block, slot.map_or(0, |block| block.first_not_below(code)))
    }
}

/// Returns the first 16 bytes of a code as a number, which is above that of another only if the code is.
fn prefix(code: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    for (byte, other) in bytes.iter_mut().zip(code) {
        *byte = *other;
    }
    u128::from_be_bytes(bytes)
}

impl<'s> ProductView<'s> {
    /// Returns its code.
    #[must_use]
    pub fn code(&self) -> &'s str {
        self.block.code(self.slot)
    }

    /// Returns its rendered bytes.
    #[must_use]
    pub fn bytes(&self) -> &'s [u8] {
        self.block.bytes(self.slot..self.slot + 1)
    }

    /// Returns its rendered bytes, sharing the block's memory beyond the snapshot's life.
    #[must_use]
    pub fn shared_bytes(&self) -> Bytes {
        let range = self.block.arena_range(self.slot..self.slot + 1);
        self.block.arena().slice(range)
    }

    /// Returns the hash of its bytes.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        self.block.hash(self.slot)
    }

    /// Returns the range of its content resources in [`bytes`](Self::bytes), if it has any.
    #[must_use]
    pub fn content(&self) -> Option<Range<usize>> {
        self.block.content(self.slot)
    }

    /// Returns its discount, if the place of its text is known.
    #[must_use]
    pub fn discount(&self) -> Option<PlacedDiscount> {
        self.block.discount(self.slot)
    }
}
