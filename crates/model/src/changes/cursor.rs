//! A walk through the changes of a segment that concern a client.

use super::facts::{FactsView, matches};
use super::segment::Segment;
use crate::assortment::View;
use crate::query::Filter;

/// Visibility for a client: of products that match its filter, and that its assortment shows.
#[derive(Clone, Copy)]
pub(super) struct Visibility<'f> {
    pub(super) filter: &'f Filter,
    /// Views by the versions of the assortment, any of which may have shown a product; the last is the present one. `None`
    /// shows everything, and so does an empty slice.
    pub(super) views: &'f [Option<&'f View>],
}

impl<'f> Visibility<'f> {
    /// Returns the present view.
    pub(super) fn now(self) -> Option<&'f View> {
        self.views.last().copied().flatten()
    }

    /// Returns true if any version of the assortment shows a product with these encoded facts.
    fn was_shown(self, code: &[u8], facts: &[u8]) -> bool {
        if self.views.is_empty() {
            return true;
        }
        let code = str::from_utf8(code).unwrap_or_default();
        let shows = |view: &View| view.rules().shows(code, &FactsView::new(facts));
        let mut views = self.views.iter();
        views.any(|view| view.is_none_or(shows))
    }
}

/// Iterates over the products of a segment that changed by certain steps, ascending by code. Products that weren't visible
/// before or after any of these steps are left out, as far as their facts are known.
pub(super) struct Cursor<'s, 'f> {
    segment: &'s Segment,
    visibility: Visibility<'f>,
    /// Indexes of the first and the last step.
    steps: [u32; 2],
    /// Results of the filter by number of facts; `None` isn't known yet.
    verdicts: Vec<Option<bool>>,
    /// Index of the current change, or of one past the last.
    change: usize,
    /// Code of the current change.
    pub(super) code: Option<&'s [u8]>,
}

impl<'s, 'f> Cursor<'s, 'f> {
    /// Returns a cursor over the changes of the steps from `since`, exclusive, to `until`, with codes above `after`.
    pub(super) fn new(
        segment: &'s Segment,
        [since, until]: [u64; 2],
        after: &[u8],
        visibility: Visibility<'f>,
    ) -> Self {
        let index = |number: u64| number.saturating_sub(segment.first);
        let first = index(since.saturating_add(1));
        let verdicts = match *visibility.filter == Filter::default() {
            true => Vec::new(),
            false => vec![None; segment.facts.len()],
        };
        let mut cursor = Self {
            segment,
            visibility,
            steps: [first, index(until)].map(|index| u32::try_from(index).unwrap_or(u32::MAX)),
            verdicts,
            change: 0,
            code: None,
        };
        cursor.skip(|code| code <= after);
        cursor
    }

    /// Goes on to the first product whose code isn't before the wanted ones.
    pub(super) fn skip(&mut self, is_before: impl Fn(&[u8]) -> bool) {
        let mut start = self.segment.skip(self.change, is_before);
        let [first, last] = self.steps;
        self.code = None;
        while let Some(change) = self.segment.next_since(start, first) {
            let code = str::from_utf8(self.segment.codes.get(change)).unwrap_or_default();
            let filter = self.visibility.filter;
            if !filter.selects_code(code) {
                // Straight to the next one that is selected.
                let Some(next) = filter.codes_from(code).next() else {
                    start = self.segment.len();
                    break;
                };
                let next = next.as_str().as_bytes();
                start = self.segment.skip(change, |other| other < next);
                continue;
            }
            if self.segment.at[change] <= last && self.is_concerned(change) {
                self.code = Some(self.segment.codes.get(change));
                start = change;
                break;
            }
            start = change + 1;
        }
        self.change = start;
    }

    /// Returns true if facts of the current change are known, which were visible then.
    pub(super) fn was_visible(&self) -> bool {
        self.segment.facts_around(self.change) != [0, 0]
    }

    /// Returns true if the product of a change was visible before or after, or its facts aren't known.
    fn is_concerned(&mut self, change: usize) -> bool {
        let [before, after] = self.segment.facts_around(change);
        let is_unknown = before == 0 && after == 0;
        is_unknown
            || self.is_visible(change, after)
            || (before != after && self.is_visible(change, before))
    }

    /// Returns true if the product of a change was visible with the facts of this number.
    fn is_visible(&mut self, change: usize, number: u32) -> bool {
        let Some(index) = number.checked_sub(1).map(|index| index as usize) else {
            return false;
        };
        let facts = self.segment.facts.get(index);
        let verdict = || matches(facts, self.visibility.filter);
        let is_match = match self.verdicts.get_mut(index) {
            Some(known) => *known.get_or_insert_with(verdict),
            None => verdict(),
        };
        is_match && (self.visibility).was_shown(self.segment.codes.get(change), facts)
    }
}
