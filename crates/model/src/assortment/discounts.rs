//! Own discounts of a view: entries with codes are one sorted list, the others are evaluated block by block.

use super::own_discount::OwnDiscount;
use super::union::{Place, places, places_of, split};
use super::view::View;
use crate::money::Discount;
use crate::snapshot::{BitSet256, Groups, Run, Snapshot};

/// Own discounts, compiled for one snapshot.
#[derive(Debug, Default)]
pub(super) struct CompiledDiscounts {
    /// Products of entries with codes, ascending, each with the lowest index of its entries.
    places: Box<[(Place, u32)]>,
    /// Groups of the other entries, ascending by the entry's index.
    groups: Box<[(u32, Groups)]>,
}

/// Index of no entry.
const NO_ENTRY: u32 = u32::MAX;

impl CompiledDiscounts {
    pub(super) fn new(discounts: &[OwnDiscount], snapshot: &Snapshot) -> Self {
        let mut all_places: Vec<(Place, u32)> = Vec::new();
        let mut all_groups = Vec::new();
        for (entry, OwnDiscount { selector, .. }) in (0..).zip(discounts) {
            let groups = selector.groups(snapshot);
            if selector.codes.is_some() {
                let found = places_of(selector, &groups, snapshot);
                all_places.extend(found.map(|place| (place, entry)));
            } else if groups.can_match() {
                all_groups.push((entry, groups));
            }
        }
        all_places.sort_unstable();
        all_places.dedup_by_key(|(place, _)| *place);
        Self {
            places: all_places.into(),
            groups: all_groups.into(),
        }
    }

    /// Returns true if no product has an own discount.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.groups.is_empty()
    }

    /// Returns the own discount of the product at a place, block and slot.
    pub(super) fn of_product(
        &self,
        view: &View,
        snapshot: &Snapshot,
        (index, slot): (usize, usize),
    ) -> Option<Discount> {
        let [place, _] = places(index, &(slot..slot + 1));
        let found = self
            .places
            .binary_search_by_key(&place, |(place, _)| *place);
        let by_code = found.map_or(NO_ENTRY, |at| self.places[at].1);
        let block = snapshot.blocks().get(index)?;
        let mut lower = self.groups.iter().take_while(|(entry, _)| *entry < by_code);
        let by_group = lower.find(|(_, groups)| groups.has(block, slot));
        let entry = by_group.map_or(by_code, |(entry, _)| *entry);
        let list = block.discount(slot)?.exact;
        change(view, entry)?.change.of(list)
    }

    /// Returns the products with codes among the slots of a run.
    fn places_of(&self, run: Run) -> impl Iterator<Item = (usize, u32)> {
        let [first, last] = places(run.block(), &run.slots());
        let start = self.places.partition_point(|(place, _)| *place < first);
        let rest = self.places.get(start..).unwrap_or_default().iter();
        let found = rest.take_while(move |(place, _)| *place <= last);
        found.map(|(place, entry)| (split(*place).1, *entry))
    }
}

fn change(view: &View, entry: u32) -> Option<&OwnDiscount> {
    view.rules().discounts.get(entry as usize)
}

/// Reader of own discounts of the runs of a page. Runs of one block should follow each other.
#[derive(Debug)]
pub struct RunDiscounts<'v> {
    view: &'v View,
    snapshot: &'v Snapshot,
    /// Block whose entries are in `by_groups`.
    block: Option<usize>,
    /// Entries without codes, with the products for which each is the first.
    by_groups: Vec<(u32, BitSet256)>,
    /// Entries of the products of a run.
    entries: Vec<u32>,
    found: Vec<Option<Discount>>,
}

impl<'v> RunDiscounts<'v> {
    pub(super) fn new(view: &'v View, snapshot: &'v Snapshot) -> Self {
        Self {
            view,
            snapshot,
            block: None,
            by_groups: Vec::new(),
            entries: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns the own discount of each product of a run, in order; nothing if none has one. A product whose share would be
    /// above 1 has none.
    pub fn of(&mut self, run: Run) -> &[Option<Discount>] {
        self.found.clear();
        let has_any = self.view.has_discounts() && self.find_entries(run);
        let Some(block) = self.snapshot.blocks().get(run.block()).filter(|_| has_any) else {
            return &self.found;
        };
        let own = |(slot, entry): (usize, &u32)| {
            let OwnDiscount { change, .. } = change(self.view, *entry)?;
            change.of(block.discount(slot)?.exact)
        };
        self.found.extend(run.slots().zip(&self.entries).map(own));
        &self.found
    }

    /// Finds the first entry of each product of a run. Returns false if there is none for all.
    fn find_entries(&mut self, run: Run) -> bool {
        let compiled = &self.view.discounts;
        let Some(block) = self
            .snapshot
            .blocks()
            .get(run.block())
            .filter(|_| self.view.is_of(self.snapshot))
        else {
            return false;
        };
        if self.block != Some(run.block()) {
            self.block = Some(run.block());
            self.by_groups.clear();
            let mut left = BitSet256::below(block.count());
            for (entry, groups) in &compiled.groups {
                let first = groups.matches(block).and(left);
                if !first.is_empty() {
                    self.by_groups.push((*entry, first));
                    left = left.without(first);
                }
                if left.is_empty() {
                    break;
                }
            }
        }
        let slots = run.slots();
        self.entries.clear();
        self.entries.resize(slots.len(), NO_ENTRY);
        let mut has_any = false;
        let of_run = BitSet256::below(slots.end).without(BitSet256::below(slots.start));
        for (entry, members) in &self.by_groups {
            for slot in members.and(of_run).iter() {
                self.entries[slot - slots.start] = *entry;
                has_any = true;
            }
        }
        for (slot, entry) in compiled.places_of(run) {
            let lowest = &mut self.entries[slot - slots.start];
            *lowest = entry.min(*lowest);
            has_any = true;
        }
        has_any
    }
}

/// A visible product whose share of the discount would be above 1: its own is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcessiveDiscount<'s> {
    /// Product code.
    pub code: &'s str,
    /// Index of the entry in the rules' discounts.
    pub entry: usize,
}

impl View {
    /// Returns the visible products whose share of the discount would be above 1.
    #[must_use]
    pub fn excessive_discounts<'s>(&self, snapshot: &'s Snapshot) -> Vec<ExcessiveDiscount<'s>> {
        let mut found = Vec::new();
        if !self.has_discounts() {
            return found;
        }
        let mut reader = self.discounts(snapshot);
        for (index, _, shown) in self.blocks(snapshot) {
            let Some(block) = snapshot.blocks().get(index) else {
                continue;
            };
            for slots in shown.runs() {
                if !reader.find_entries(Run::new(index, slots.clone())) {
                    continue;
                }
                for (slot, entry) in slots.zip(&reader.entries) {
                    let list = block.discount(slot);
                    let own = change(self, *entry).zip(list);
                    if own.is_some_and(|(own, list)| own.change.of(list.exact).is_none()) {
                        found.push(ExcessiveDiscount {
                            code: block.code(slot),
                            entry: *entry as usize,
                        });
                    }
                }
            }
        }
        found
    }
}
