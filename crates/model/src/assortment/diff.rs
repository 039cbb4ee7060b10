//! The difference between what two views of a snapshot show.

use super::view::View;
use crate::money::Discount;
use crate::snapshot::{BitSet256, Block, Run, Snapshot};

/// Difference between two views; codes ascend.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff<'s> {
    /// Number of products that were visible before.
    pub shown_before: usize,
    /// Codes that are visible only after.
    pub gained: Vec<&'s str>,
    /// Codes that were visible only before.
    pub lost: Vec<&'s str>,
    /// Products that are visible in both, with another discount.
    pub discounts: Vec<DiscountDifference<'s>>,
}

/// A product that is shown with another discount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscountDifference<'s> {
    /// Product code.
    pub code: &'s str,
    /// Discount before, in full.
    pub before: Discount,
    /// Discount after, in full.
    pub after: Discount,
}

/// Returns what `after` shows of a snapshot in another way than `before`; without a view, everything is shown at list
/// discounts.
#[must_use]
pub fn diff<'s>(snapshot: &'s Snapshot, before: Option<&View>, after: Option<&View>) -> Diff<'s> {
    let mut diff = Diff::default();
    let views = [before, after];
    for (index, block) in snapshot.blocks().iter().enumerate() {
        let [was, is] = views.map(|view| shown(view, snapshot, block, index));
        diff.shown_before += was.len();
        let codes = |slots: BitSet256| slots.iter().map(|slot| block.code(slot));
        diff.gained.extend(codes(is.without(was)));
        diff.lost.extend(codes(was.without(is)));
        let different = different_discounts(snapshot, views, index, was.and(is));
        diff.discounts
            .extend(different.into_iter().map(|(slot, [before, after])| {
                let code = block.code(slot);
                DiscountDifference {
                    code,
                    before,
                    after,
                }
            }));
    }
    diff
}

/// Returns the visible products of a block.
pub(crate) fn shown(
    view: Option<&View>,
    snapshot: &Snapshot,
    block: &Block,
    index: usize,
) -> BitSet256 {
    match view {
        None => BitSet256::below(block.count()),
        Some(view)
            if view.is_of(snapshot) && view.candidates(index / 64) >> (index % 64) & 1 == 1 =>
        {
            view.shown(block, index)
        }
        Some(_) => BitSet256::default(),
    }
}

/// Returns those of a block's products for which two views have other discounts, with these.
pub(crate) fn different_discounts(
    snapshot: &Snapshot,
    views: [Option<&View>; 2],
    index: usize,
    slots: BitSet256,
) -> Vec<(usize, [Discount; 2])> {
    let mut readers = views.map(|view| {
        let view = view.filter(|view| view.has_discounts())?;
        Some(view.discounts(snapshot))
    });
    let mut found = Vec::new();
    if readers.iter().all(Option::is_none) {
        return found;
    }
    let Some(block) = snapshot.blocks().get(index) else {
        return found;
    };
    for run in slots.runs() {
        let [before, after] = readers.each_mut().map(|reader| {
            let own = reader
                .as_mut()
                .map(|reader| reader.of(Run::new(index, run.clone())));
            own.unwrap_or_default()
        });
        if before.is_empty() && after.is_empty() {
            continue;
        }
        for (offset, slot) in run.enumerate() {
            let Some(list) = block.discount(slot) else {
                continue;
            };
            let listed = list.exact.shown();
            let discounts =
                [before, after].map(|own| own.get(offset).copied().flatten().unwrap_or(listed));
            if discounts[0] != discounts[1] {
                found.push((slot, discounts));
            }
        }
    }
    found
}
