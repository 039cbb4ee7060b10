//! The products that at least one of some selectors selects.

use std::ops::Range;

use crate::selector::Selector;
use crate::snapshot::{BitSet256, Block, Groups, Snapshot};

/// Place of a product in a snapshot: its block, then its slot in eight bits.
pub(super) type Place = u32;

/// Returns the places of a range of slots of a block, first and last.
pub(super) fn places(block: usize, slots: &Range<usize>) -> [Place; 2] {
    // A snapshot has fewer than 2^24 blocks.
    let place = |slot: usize| u32::try_from(block * Block::CAPACITY + slot).unwrap_or(u32::MAX);
    [place(slots.start), place(slots.end.saturating_sub(1))]
}

/// Returns block and slot of a place.
pub(super) fn split(place: Place) -> (usize, usize) {
    let place = place as usize;
    (place / Block::CAPACITY, place % Block::CAPACITY)
}

/// Returns the places of the products that a selector with codes selects.
pub(super) fn places_of(
    selector: &Selector,
    groups: &Groups,
    snapshot: &Snapshot,
) -> impl Iterator<Item = Place> {
    let found = selector
        .named_codes()
        .filter_map(|code| snapshot.find(code));
    let selected = found.filter(|(block, slot)| {
        let block = snapshot.blocks().get(*block);
        block.is_some_and(|block| groups.has(block, *slot))
    });
    selected.map(|(block, slot)| places(block, &(slot..slot + 1))[0])
}

/// Products that at least one of some selectors selects.
#[derive(Debug, Default)]
pub(super) struct Union {
    /// Products of selectors with codes, ascending.
    places: Box<[Place]>,
    /// Groups of the other selectors, of which one must match.
    groups: Box<[Groups]>,
}

impl Union {
    pub(super) fn new(selectors: &[Selector], snapshot: &Snapshot) -> Self {
        let mut all_places: Vec<Place> = Vec::new();
        let mut all_groups = Vec::new();
        // Selectors of one group each are as good as one.
        let mut single = Vec::new();
        for selector in selectors {
            let groups = selector.groups(snapshot);
            if selector.codes.is_some() {
                all_places.extend(places_of(selector, &groups, snapshot));
            } else if let Some(only) = groups.only() {
                single.extend_from_slice(only);
            } else if groups.can_match() {
                all_groups.push(groups);
            }
        }
        if !single.is_empty() {
            let mut groups = Groups::default();
            groups.push(snapshot, single);
            all_groups.push(groups);
        }
        all_places.sort_unstable();
        all_places.dedup();
        Self {
            places: all_places.into(),
            groups: all_groups.into(),
        }
    }

    /// Returns true if there are no such products.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.groups.is_empty()
    }

    /// Returns a bit for each block that can have such products.
    pub(super) fn blocks(&self, snapshot: &Snapshot) -> Box<[u64]> {
        let words = 0..snapshot.blocks().len().div_ceil(64);
        let mut blocks: Box<[u64]> = words
            .map(|word| {
                let some = self.groups.iter();
                let some = some.map(|groups| groups.candidates(snapshot, word));
                some.fold(0, |any, some| any | some)
            })
            .collect();
        for place in &self.places {
            let (block, _) = split(*place);
            blocks[block / 64] |= 1 << (block % 64);
        }
        blocks
    }

    /// Returns the products of a block.
    pub(super) fn members(&self, block: &Block, index: usize) -> BitSet256 {
        let [first, last] = places(index, &(0..Block::CAPACITY));
        let start = self.places.partition_point(|place| *place < first);
        let rest = self.places.get(start..).unwrap_or_default();
        let mut members = BitSet256::default();
        for place in rest.iter().take_while(|place| **place <= last) {
            members.insert(split(*place).1);
        }
        let groups = self.groups.iter();
        groups.fold(members, |any, groups| any.or(groups.matches(block)))
    }

    /// Returns true if the product at `slot` of a block is one of them.
    pub(super) fn has(&self, block: &Block, (index, slot): (usize, usize)) -> bool {
        let [place, _] = places(index, &(slot..slot + 1));
        self.places.binary_search(&place).is_ok()
            || self.groups.iter().any(|groups| groups.has(block, slot))
    }
}
