//! The catalog in memory: one immutable value per revision, shared by all requests.
//!
//! Products lie rendered, in code order, in blocks of up to 256. A block never changes: a revision that
//! changes a few products gives a snapshot that shares all other blocks with the one before. Each block
//! knows which of its products have a facet (a country, a category, being orderable), and the snapshot
//! knows in which blocks a facet occurs at all; a scan goes through both. Nothing here knows what the
//! rendered bytes mean.
//!
//! - `block`: up to 256 products; `members`: a set of places in one
//! - `facet`: what filters can ask of a product
//! - `build`: how blocks come about; `change`: how they change
//! - `scan`: how a page is found; `page`: what it is
//! - `texts`: the Markdown that is served; `damage`: what is damaged in the store

mod bit_set;
mod block;
mod build;
mod change;
mod damage;
mod facet;
mod page;
mod scan;
mod texts;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use jiff::Timestamp;

pub use bit_set::BitSet256;
pub use block::{Block, Malformed};
pub use build::{BlockBuilder, Entry, Refused};
pub use change::NewProduct;
pub use damage::Damage;
pub use facet::{Categories, Facet};
pub use page::{Page, Run};
pub use texts::{ServedText, TextTable, TextTableBuilder};

use crate::code::ProductCode;
use crate::content::{PackedMarkdown, TextDigest};
use crate::content_hash::ContentHash;
use crate::geo::Country;
use crate::revision::Revision;

/// One revision of the catalog, ready to be served. A clone shares the products and texts.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    revision: Revision,
    len: usize,
    blocks: Vec<Block>,
    /// Per facet, in which blocks some product has it: a bit each. Empty where none has.
    presence: Vec<Box<[u64]>>,
    categories: Arc<Categories>,
    /// The categories that some product names, ascending by name.
    live_categories: Vec<Facet>,
    texts: TextTable,
    damage: Arc<Damage>,
    withdrawn: Withdrawn,
}

/// Set once a replaced snapshot's pages are sent no further. A clone is another snapshot, which isn't replaced.
#[derive(Debug, Default)]
struct Withdrawn(AtomicBool);

impl Clone for Withdrawn {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A product in the snapshot.
#[derive(Debug, Clone, Copy)]
pub struct ProductView<'s> {
    block: &'s Block,
    place: usize,
}

impl Snapshot {
    /// The snapshot of `revision`, made of blocks whose facets are numbered by `categories`.
    ///
    /// # Errors
    ///
    /// Where a code isn't above all before it, or a block speaks of a category that isn't there.
    pub fn new(
        revision: Revision,
        categories: Arc<Categories>,
        blocks: Vec<Block>,
        texts: TextTable,
    ) -> Result<Self, Malformed> {
        let follows =
            |left: &Block, right: &Block| left.code_bytes(left.count() - 1) < right.code_bytes(0);
        if !blocks.is_sorted_by(follows) {
            return Err(Malformed);
        }
        let mut presence = vec![Box::<[u64]>::default(); categories.facet_count()];
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
            .filter(|facet| categories.name(*facet).is_some())
            .collect();
        live_categories.sort_unstable_by_key(|facet| categories.name(*facet));
        Ok(Self {
            revision,
            len: blocks.iter().map(Block::count).sum(),
            blocks,
            presence,
            categories,
            live_categories,
            texts,
            damage: Arc::default(),
            withdrawn: Withdrawn::default(),
        })
    }

    /// Which revision this is.
    #[must_use]
    pub fn revision(&self) -> &Revision {
        &self.revision
    }

    /// Ends the sending of its pages: clients that read them slowly would keep all of it in memory.
    pub fn withdraw(&self) {
        self.withdrawn.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if its pages must not be sent any further.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.0.load(Ordering::Relaxed)
    }

    /// How many products there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no product.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The blocks, in code order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The numbering of categories that the blocks speak of.
    #[must_use]
    pub fn category_numbers(&self) -> &Arc<Categories> {
        &self.categories
    }

    /// The texts.
    #[must_use]
    pub fn texts(&self) -> &TextTable {
        &self.texts
    }

    /// Damage in the store that this was built from.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// The same, made of a store in which this is damaged.
    #[must_use]
    pub fn with_damage(self, damage: Damage) -> Self {
        Self {
            damage: Arc::new(damage),
            ..self
        }
    }

    /// The bytes that products, texts and what is known of them take.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let block_bytes = |block: &Block| block.directory().len() + block.arena().len();
        self.blocks.iter().map(block_bytes).sum::<usize>() + self.texts.size_bytes()
    }

    /// The product of this code.
    #[must_use]
    pub fn product(&self, code: &ProductCode) -> Option<ProductView<'_>> {
        let (block, place) = self.first_not_below(code);
        let block = self.blocks.get(block)?;
        block
            .has_at(place, code)
            .then_some(ProductView { block, place })
    }

    /// The countries that some product names, ascending.
    pub fn countries(&self) -> impl Iterator<Item = Country> {
        (0..)
            .zip(&self.presence)
            .filter(|(_, blocks_with)| !blocks_with.is_empty())
            .filter_map(|(number, _)| Facet::from_number(number).as_country())
    }

    /// The categories that some product names, ascending byte-wise.
    pub fn categories(&self) -> impl Iterator<Item = &str> {
        let name = |facet: &Facet| self.categories.name(*facet);
        self.live_categories.iter().filter_map(name)
    }

    /// The text of this digest, if it is served at `now`.
    #[must_use]
    pub fn text(&self, digest: &TextDigest, now: Timestamp) -> Option<PackedMarkdown> {
        self.texts.get(digest, now)
    }

    /// The block and the place in it of the first product whose code isn't below `code`; the place may
    /// be the block's end.
    fn first_not_below(&self, code: &ProductCode) -> (usize, usize) {
        let code = code.as_str().as_bytes();
        let after = self
            .blocks
            .partition_point(|block| block.code_bytes(0) <= code);
        let block = after.saturating_sub(1);
        let place = self.blocks.get(block);
        (block, place.map_or(0, |block| block.first_not_below(code)))
    }
}

impl<'s> ProductView<'s> {
    /// Its code.
    #[must_use]
    pub fn code(&self) -> &'s str {
        self.block.code(self.place)
    }

    /// Its bytes as they were rendered.
    #[must_use]
    pub fn bytes(&self) -> &'s [u8] {
        self.block.bytes(self.place..self.place + 1)
    }

    /// The same, sharing the snapshot's memory beyond its life.
    #[must_use]
    pub fn shared_bytes(&self) -> Bytes {
        let stretch = self.block.stretch(self.place..self.place + 1);
        self.block.arena().slice(stretch)
    }

    /// The hash of its bytes.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        self.block.hash(self.place)
    }

    /// Where its content resources lie within [`bytes`](Self::bytes), if it has any.
    #[must_use]
    pub fn content(&self) -> Option<Range<usize>> {
        self.block.content(self.place)
    }
}
