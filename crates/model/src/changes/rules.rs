//! Changes that only the rules of an assortment make: products that its versions show in different ways.

use super::cursor::Visibility;
use crate::assortment::{Rules, View, different_discounts, shown};
use crate::code::ProductCode;
use crate::query::Filter;
use crate::snapshot::{BitSet256, Matcher, Snapshot};

/// Iterates over the products of a snapshot that match a filter, and that an earlier version of an assortment shows and the
/// present one doesn't, or the other way round, or with another discount; ascending by code.
pub(super) struct RuleCursor<'s, 'f> {
    snapshot: &'s Snapshot,
    filter: &'f Filter,
    matcher: Matcher<'s, 'f>,
    now: Option<&'f View>,
    earlier: Vec<Earlier<'f>>,
    /// Index of the current block, and of the next one.
    block: usize,
    next: usize,
    /// Products of the current block from the current one on.
    left: BitSet256,
    /// Code of the current product.
    pub(super) code: Option<&'s [u8]>,
}

/// An earlier version with other rules.
struct Earlier<'f> {
    view: Option<&'f View>,
    has_other_discounts: bool,
}

impl<'s, 'f> RuleCursor<'s, 'f> {
    /// Returns a cursor over the products with codes above `after`; `None` if no earlier version has other rules.
    pub(super) fn new(
        snapshot: &'s Snapshot,
        after: Option<&ProductCode>,
        visibility: Visibility<'f>,
    ) -> Option<Self> {
        let Visibility { filter, views } = visibility;
        let now = visibility.now();
        let everything = Rules::default();
        let rules = |view: Option<&'f View>| view.map_or(&everything, View::rules);
        let before = views.split_last().map_or(&[][..], |(_, before)| before);
        let others = before.iter().filter(|view| rules(**view) != rules(now));
        let earlier = others.map(|view| Earlier {
            view: *view,
            has_other_discounts: rules(*view).discounts != rules(now).discounts,
        });
        let earlier: Vec<Earlier<'f>> = earlier.collect();
        if earlier.is_empty() {
            return None;
        }
        let (block, slot) = after.map_or((0, 0), |code| snapshot.first_after(code));
        let mut cursor = Self {
            snapshot,
            filter,
            matcher: snapshot.matcher(filter, None),
            now,
            earlier,
            block,
            next: block,
            left: BitSet256::default(),
            code: None,
        };
        cursor.settle();
        if cursor.block == block {
            cursor.skip_slots(slot);
        }
        Some(cursor)
    }

    /// Goes on to the next product.
    pub(super) fn advance(&mut self) {
        if let Some(slot) = self.left.next_member(0) {
            self.skip_slots(slot + 1);
        }
    }

    fn skip_slots(&mut self, end: usize) {
        self.left = self.left.without(BitSet256::below(end));
        self.settle();
    }

    /// Goes to the first product that is left, or of the next block that has any.
    fn settle(&mut self) {
        self.code = None;
        while self.left.is_empty() {
            let Some((index, matches)) = self.matcher.next_matches(self.next) else {
                return;
            };
            (self.block, self.next) = (index, index + 1);
            self.left = self.changed(index, matches);
        }
        let block = self.snapshot.blocks().get(self.block);
        let slot = self.left.next_member(0);
        self.code = block.zip(slot).map(|(block, slot)| block.code_bytes(slot));
    }

    /// Returns those of a block's matches that the versions show in different ways.
    fn changed(&self, index: usize, matches: BitSet256) -> BitSet256 {
        let Some(block) = self.snapshot.blocks().get(index) else {
            return BitSet256::default();
        };
        let shown = |view| matches.and(shown(view, self.snapshot, block, index));
        let now = shown(self.now);
        let mut changed = BitSet256::default();
        for earlier in &self.earlier {
            let before = shown(earlier.view);
            changed = changed.or(now.without(before)).or(before.without(now));
            if earlier.has_other_discounts {
                let views = [earlier.view, self.now];
                let both = now.and(before).without(changed);
                let different = different_discounts(self.snapshot, views, index, both);
                different.iter().for_each(|(slot, _)| changed.insert(*slot));
            }
        }
        if self.filter.codes.is_empty() {
            return changed;
        }
        let mut selected = BitSet256::default();
        let slots = changed.iter();
        let slots = slots.filter(|slot| self.filter.selects_code(block.code(*slot)));
        slots.for_each(|slot| selected.insert(slot));
        selected
    }
}
