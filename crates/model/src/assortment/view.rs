//! A view: rules compiled for one snapshot, with its facets and blocks.

use std::sync::{Arc, OnceLock};

use super::discounts::CompiledDiscounts;
use super::union::Union;
use super::{Rules, RunDiscounts, SnapshotRef};
use crate::code::ProductCode;
use crate::geo::Country;
use crate::money::Discount;
use crate::snapshot::{BitSet256, Block, Facet, ProductView, Snapshot};

/// Visible part of one snapshot, by an assortment. With another snapshot, it shows nothing.
#[derive(Debug)]
pub struct View {
    snapshot: SnapshotRef,
    rules: Arc<Rules>,
    allow: Option<Union>,
    deny: Union,
    /// A bit for each block that can have visible products; `None` if all can.
    blocks: Option<Box<[u64]>>,
    pub(super) discounts: CompiledDiscounts,
    pub(super) categories: OnceLock<Box<[Facet]>>,
    pub(super) countries: OnceLock<Box<[Country]>>,
}

impl View {
    pub(super) fn new(rules: Arc<Rules>, snapshot: &Arc<Snapshot>) -> Self {
        let allow = rules.allow.as_deref();
        let allow = allow.map(|allow| Union::new(allow, snapshot));
        Self {
            blocks: allow.as_ref().map(|allow| allow.blocks(snapshot)),
            allow,
            deny: Union::new(&rules.deny, snapshot),
            discounts: CompiledDiscounts::new(&rules.discounts, snapshot),
            rules,
            snapshot: SnapshotRef(Arc::downgrade(snapshot)),
            categories: OnceLock::new(),
            countries: OnceLock::new(),
        }
    }

    /// Returns true if it is the view of this snapshot.
    #[must_use]
    pub fn is_of(&self, snapshot: &Snapshot) -> bool {
        self.snapshot.is(snapshot)
    }

    /// Returns true if its snapshot is still in use.
    pub(super) fn is_in_use(&self) -> bool {
        self.snapshot.is_in_use()
    }

    /// Returns its rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns true if the product with this code is there and visible.
    #[must_use]
    pub fn shows(&self, snapshot: &Snapshot, code: &str) -> bool {
        self.find(snapshot, code).is_some()
    }

    /// Returns the product with this code if it is visible, and the client's own discount if it has one.
    #[must_use]
    pub fn product<'s>(
        &self,
        snapshot: &'s Snapshot,
        code: &ProductCode,
    ) -> Option<(ProductView<'s>, Option<Discount>)> {
        let place = self.find(snapshot, code.as_str())?;
        let product = snapshot.product_at(place)?;
        Some((product, self.discounts.of_product(self, snapshot, place)))
    }

    /// Returns a reader of the client's own discounts, for the runs of a page.
    #[must_use]
    pub fn discounts<'v>(&'v self, snapshot: &'v Snapshot) -> RunDiscounts<'v> {
        RunDiscounts::new(self, snapshot)
    }

    /// Returns true if the client has own discounts for any products, visible or not.
    #[must_use]
    pub fn has_discounts(&self) -> bool {
        !self.discounts.is_empty()
    }

    fn find(&self, snapshot: &Snapshot, code: &str) -> Option<(usize, usize)> {
        let place = snapshot.find(code).filter(|_| self.is_of(snapshot))?;
        let block = snapshot.blocks().get(place.0)?;
        self.shows_at(block, place).then_some(place)
    }

    /// Returns true if the product at this place, block and slot, is visible.
    pub(crate) fn shows_at(&self, block: &Block, place: (usize, usize)) -> bool {
        let is_allowed = |allow: &Union| allow.has(block, place);
        self.allow.as_ref().is_none_or(is_allowed) && !self.deny.has(block, place)
    }

    /// Returns the visible products of the block with this index.
    pub(crate) fn shown(&self, block: &Block, index: usize) -> BitSet256 {
        let allowed = match &self.allow {
            Some(allow) => allow.members(block, index),
            None => BitSet256::below(block.count()),
        };
        match allowed.is_empty() || self.deny.is_empty() {
            true => allowed,
            false => allowed.without(self.deny.members(block, index)),
        }
    }

    /// Returns a bit for each of the 64 blocks of this word that can have visible products.
    pub(crate) fn candidates(&self, word: usize) -> u64 {
        let word_of = |blocks: &[u64]| blocks.get(word).copied().unwrap_or_default();
        self.blocks.as_deref().map_or(u64::MAX, word_of)
    }

    /// Iterates over the blocks with visible products: index, block, and these products.
    pub(crate) fn blocks<'v>(
        &'v self,
        snapshot: &'v Snapshot,
    ) -> impl Iterator<Item = (usize, &'v Block, BitSet256)> {
        let is_candidate = |index: usize| self.candidates(index / 64) >> (index % 64) & 1 == 1;
        let blocks = snapshot.blocks().iter().enumerate();
        let blocks = blocks.filter(move |(index, _)| self.is_of(snapshot) && is_candidate(*index));
        blocks
            .map(|(index, block)| (index, block, self.shown(block, index)))
            .filter(|(_, _, shown)| !shown.is_empty())
    }

    /// Returns the visible products of each block.
    #[must_use]
    pub fn members(&self, snapshot: &Snapshot) -> Vec<BitSet256> {
        let mut members = vec![BitSet256::default(); snapshot.blocks().len()];
        for (index, _, shown) in self.blocks(snapshot) {
            members[index] = shown;
        }
        members
    }

    /// Returns the number of visible products.
    #[must_use]
    pub fn count(&self, snapshot: &Snapshot) -> usize {
        self.blocks(snapshot).map(|(_, _, shown)| shown.len()).sum()
    }
}
