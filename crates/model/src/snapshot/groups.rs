//! Groups of facets: a product matches if it has at least one facet of every group.

use super::Snapshot;
use super::bit_set::BitSet256;
use super::block::Block;
use super::facet::{Facet, FacetKind};

/// Minimum number of facets that are merged with all facets of a block; fewer are looked up one by one.
const MIN_FACETS_FOR_MERGE: usize = 8;

/// Groups of facets, of which a match has at least one each. Without groups, everything matches. Valid only with the
/// snapshot for which they were made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Groups(Vec<Box<[Facet]>>);

impl Groups {
    /// Adds a group. Facets without products are left out.
    pub(crate) fn push(&mut self, snapshot: &Snapshot, facets: impl IntoIterator<Item = Facet>) {
        let has_products = |facet: &Facet| !snapshot.blocks_with(*facet).is_empty();
        let mut group: Vec<Facet> = facets.into_iter().filter(has_products).collect();
        group.sort_unstable();
        group.dedup();
        self.0.push(group.into());
    }

    /// Adds a group of facets with these names.
    pub(crate) fn push_named<'n>(
        &mut self,
        snapshot: &Snapshot,
        kind: FacetKind,
        names: impl IntoIterator<Item = &'n str>,
    ) {
        let names = names.into_iter();
        let facets = names.filter_map(|name| snapshot.facets.get(kind, name));
        self.push(snapshot, facets);
    }

    /// Adds a group without facets, so that nothing matches.
    pub(crate) fn push_nothing(&mut self) {
        self.0.push(Box::default());
    }

    /// Returns false if nothing can match.
    pub(crate) fn can_match(&self) -> bool {
        !self.0.iter().any(|group| group.is_empty())
    }

    /// Returns the facets of the only group, if there is just one.
    pub(crate) fn only(&self) -> Option<&[Facet]> {
        match &self.0[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns a bit for each of the 64 blocks of this word that can have matches: it has a facet of every group.
    pub(crate) fn candidates(&self, snapshot: &Snapshot, word: usize) -> u64 {
        let blocks_with = |facet: &Facet| {
            let words = snapshot.blocks_with(*facet);
            words.get(word).copied().unwrap_or_default()
        };
        self.0.iter().fold(u64::MAX, |all, group| {
            let some = group.iter().map(blocks_with);
            all & some.fold(0, |any, some| any | some)
        })
    }

    /// Returns the products of a block that match.
    pub(crate) fn matches(&self, block: &Block) -> BitSet256 {
        let all = BitSet256::below(block.count());
        let groups = self.0.iter();
        groups.fold(all, |all, group| all.and(any_of(block, group)))
    }

    /// Returns true if the product at `slot` matches.
    pub(crate) fn has(&self, block: &Block, slot: usize) -> bool {
        let has = |facet: &Facet| block.members(*facet).contains(slot);
        self.0.iter().all(|group| group.iter().any(has))
    }
}

impl Snapshot {
    fn blocks_with(&self, facet: Facet) -> &[u64] {
        let blocks_with = self.presence.get(facet.number() as usize);
        blocks_with.map_or(&[], AsRef::as_ref)
    }
}

/// Returns the products that have at least one of these facets, which must be sorted.
fn any_of(block: &Block, facets: &[Facet]) -> BitSet256 {
    let union = |any: BitSet256, some: BitSet256| any.or(some);
    if facets.len() < MIN_FACETS_FOR_MERGE {
        let members = facets.iter().map(|facet| block.members(*facet));
        return members.fold(BitSet256::default(), union);
    }
    block
        .facets()
        .filter(|(facet, _)| facets.binary_search(facet).is_ok())
        .map(|(_, members)| members)
        .fold(BitSet256::default(), union)
}
