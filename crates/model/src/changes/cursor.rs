//! A walk through the changes of a segment.

use super::segment::Segment;
use crate::selector::Selector;

/// Iterates over the products of a segment that changed by certain steps and whose codes a filter selects, ascending by code.
pub(super) struct Cursor<'s, 'f> {
    pub(super) segment: &'s Segment,
    filter: &'f Selector,
    /// Indexes of the first and the last step.
    steps: [u32; 2],
    /// Index of the first change of the current product, or of one past the last.
    change: usize,
    /// Code of the current product.
    pub(super) code: Option<&'s [u8]>,
}

impl<'s, 'f> Cursor<'s, 'f> {
    /// Returns a cursor over the changes of the steps from `since`, exclusive, to `until`, with codes above `after`.
    pub(super) fn new(
        segment: &'s Segment,
        [since, until]: [u64; 2],
        after: &[u8],
        filter: &'f Selector,
    ) -> Self {
        let index = |number: u64| number.saturating_sub(segment.first);
        let first = index(since.saturating_add(1));
        let mut cursor = Self {
            segment,
            filter,
            steps: [first, index(until)].map(|index| u32::try_from(index).unwrap_or(u32::MAX)),
            change: 0,
            code: None,
        };
        cursor.skip(after);
        cursor
    }

    /// Goes on to the first product whose code is above `after`.
    pub(super) fn skip(&mut self, after: &[u8]) {
        let mut start = self.segment.skip(self.change, |code| code <= after);
        self.code = None;
        while let Some(change) = self.next_from(start) {
            let code = self.segment.codes.get(change);
            let text = str::from_utf8(code).unwrap_or_default();
            if self.filter.selects_code(text) {
                (self.code, start) = (Some(code), change);
                break;
            }
            // Straight to the next one that is selected.
            let Some(next) = self.filter.named_from(text) else {
                start = self.segment.len();
                break;
            };
            let next = next.as_bytes();
            start = self.segment.skip(change, |other| other < next);
        }
        self.change = start;
    }

    /// Returns the first change from `start` on by one of the steps.
    fn next_from(&self, mut start: usize) -> Option<usize> {
        let [first, last] = self.steps;
        loop {
            let change = self.segment.next_since(start, first)?;
            if *self.segment.at.get(change)? <= last {
                return Some(change);
            }
            start = change + 1;
        }
    }

    /// Iterates over the changes of the current product: the numbers of the facts before and after each.
    pub(super) fn each_around(&self) -> impl Iterator<Item = [u32; 2]> {
        let mut start = self.change;
        std::iter::from_fn(move || {
            let change = self.next_from(start)?;
            start = change + 1;
            let is_of_product = Some(self.segment.codes.get(change)) == self.code;
            is_of_product.then(|| self.segment.facts_around(change))
        })
    }
}
