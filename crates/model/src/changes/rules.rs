//! Changes that only the rules of an assortment make: products that its versions show in different ways.

use std::sync::Arc;

use crate::assortment::{RulesSince, View, different_discounts, shown};
use crate::code::ProductCode;
use crate::selector::Selector;
use crate::snapshot::{BitSet256, Block, Matcher, Snapshot};

/// Iterates over the products of a snapshot that match a filter, and that an earlier version of an assortment shows and the
/// present one doesn't, or the other way round, or with another discount; ascending by code. Of each block without any, the
/// last product comes, too, so that whoever looks at the products can stop there.
pub(super) struct RuleCursor<'s, 'f> {
    snapshot: &'s Snapshot,
    filter: &'f Selector,
    matcher: Matcher<'s, 'f>,
    now: &'f View,
    earlier: &'f [Arc<View>],
    /// Index of the current block, and of the next one.
    block: usize,
    next: usize,
    /// Products of the current block from the current one on.
    left: BitSet256,
    /// Code of the current product.
    pub(super) code: Option<&'s [u8]>,
    /// True if the versions show the current product in different ways.
    pub(super) is_changed: bool,
}

impl<'s, 'f> RuleCursor<'s, 'f> {
    /// Returns a cursor over the products with codes above `after`; `None` if no earlier version has other rules.
    pub(super) fn new(
        snapshot: &'s Snapshot,
        after: Option<&ProductCode>,
        filter: &'f Selector,
        rules: &'f RulesSince<'_>,
    ) -> Option<Self> {
        if rules.earlier().is_empty() {
            return None;
        }
        let (block, slot) = after.map_or((0, 0), |code| snapshot.first_after(code));
        let is_left = |block: &Block| slot < block.count();
        let has_left = snapshot.blocks().get(block).is_some_and(is_left);
        let mut cursor = Self {
            snapshot,
            filter,
            matcher: snapshot.matcher(filter, None),
            now: rules.live(),
            earlier: rules.earlier(),
            block,
            next: if has_left { block } else { block + 1 },
            left: BitSet256::default(),
            code: None,
            is_changed: false,
        };
        cursor.read_block();
        if cursor.code.is_some() && cursor.block == block {
            cursor.left = cursor.left.without(BitSet256::below(slot));
            cursor.settle();
        }
        Some(cursor)
    }

    /// Goes on to the next product.
    pub(super) fn advance(&mut self) {
        if let Some(slot) = self.left.next_member(0) {
            self.left = self.left.without(BitSet256::below(slot + 1));
        }
        match self.left.is_empty() {
            true => self.read_block(),
            false => self.settle(),
        }
    }

    /// Goes on to the next block that can have any.
    fn read_block(&mut self) {
        match self.matcher.next_matches(self.next) {
            Some((index, matches)) => {
                (self.block, self.next) = (index, index + 1);
                self.left = self.changed(index, matches);
                self.settle();
            }
            None => self.code = None,
        }
    }

    /// Goes to the first product that is left of the block, or to its last one.
    fn settle(&mut self) {
        let block = self.snapshot.blocks().get(self.block);
        let changed = self.left.next_member(0);
        self.is_changed = changed.is_some();
        self.code = block.and_then(|block| {
            let slot = changed.or(block.count().checked_sub(1))?;
            Some(block.code_bytes(slot))
        });
    }

    /// Returns those of a block's matches that the versions show in different ways.
    fn changed(&self, index: usize, matches: BitSet256) -> BitSet256 {
        let Some(block) = self.snapshot.blocks().get(index) else {
            return BitSet256::default();
        };
        let shown = |view| matches.and(shown(Some(view), self.snapshot, block, index));
        let now = shown(self.now);
        let mut changed = BitSet256::default();
        for earlier in self.earlier {
            let before = shown(&**earlier);
            changed = changed.or(now.without(before)).or(before.without(now));
            if earlier.rules().discounts != self.now.rules().discounts {
                let views = [Some(&**earlier), Some(self.now)];
                let both = now.and(before).without(changed);
                let different = different_discounts(self.snapshot, views, index, both);
                different.iter().for_each(|(slot, _)| changed.insert(*slot));
            }
        }
        if self.filter.codes.is_none() {
            return changed;
        }
        let mut selected = BitSet256::default();
        let slots = changed.iter();
        let slots = slots.filter(|slot| self.filter.selects_code(block.code(*slot)));
        slots.for_each(|slot| selected.insert(slot));
        selected
    }
}
