//! A search for the changes between two points: product by product, in the order of codes.

use std::collections::HashMap;

use super::page::Change;
use super::rules::RuleCursor;
use super::segment::Segment;
use crate::assortment::{CodedSelectors, RulesSince, Votes};
use crate::facts::FactsView;
use crate::selector::Selector;
use crate::snapshot::Matcher;

/// Search for changes that a client sees.
pub(super) struct Search<'s, 'f> {
    pub(super) cursors: Vec<Cursor<'s, 'f>>,
    pub(super) by_rules: Option<RuleCursor<'s, 'f>>,
    pub(super) former: FormerVisibility<'f>,
    /// Products that are visible now.
    pub(super) visible: Matcher<'s, 'f>,
}

impl<'s> Search<'s, '_> {
    /// Returns the code of the next product to look at.
    pub(super) fn next_code(&self) -> Option<&'s [u8]> {
        let codes = self.cursors.iter().filter_map(|cursor| cursor.code);
        let by_rules = self.by_rules.as_ref().and_then(|cursor| cursor.code);
        codes.chain(by_rules).min()
    }

    /// Looks at the next product, whose code this is. Returns its change if it has one, and the number of changes looked at.
    pub(super) fn look(&mut self, code: &'s [u8]) -> (Option<Change<'s>>, usize) {
        let text = str::from_utf8(code).unwrap_or_default();
        let (mut was_visible, mut is_unknown, mut looked_at) = (false, false, 0);
        self.former.seek(text);
        for (number, cursor) in self.cursors.iter_mut().enumerate() {
            if cursor.code != Some(code) {
                continue;
            }
            for around in cursor.each_around() {
                if was_visible {
                    break;
                }
                looked_at += 1;
                is_unknown |= around == [0; 2];
                let mut facts = around.into_iter().filter_map(|facts| facts.checked_sub(1));
                was_visible = facts.any(|facts| {
                    let bytes = cursor.segment.facts.get(facts as usize);
                    self.former.was_visible((number, facts), text, bytes)
                });
            }
            cursor.skip(code);
        }
        if let Some(cursor) = &mut self.by_rules
            && cursor.code == Some(code)
        {
            was_visible |= cursor.is_changed;
            cursor.advance();
        }
        let product = match was_visible || is_unknown {
            true => self.visible.find(text),
            false => None,
        };
        let is_change = was_visible || product.is_some();
        (
            is_change.then_some(Change { code, product }),
            looked_at.max(1),
        )
    }
}

/// Visibility for a client in former states: of products that match its filter, and that its assortment showed by any version.
pub(super) struct FormerVisibility<'f> {
    filter: &'f Selector,
    rules: Option<(&'f RulesSince<'f>, CodedSelectors<'f>)>,
    /// Results so far by cursor and facts, save what codes decide: `None` if the filter doesn't match.
    verdicts: HashMap<(usize, u32), Option<Votes>>,
}

impl<'f> FormerVisibility<'f> {
    pub(super) fn new(filter: &'f Selector, rules: Option<&'f RulesSince<'f>>) -> Self {
        Self {
            filter,
            rules: rules.map(|rules| (rules, rules.coded())),
            verdicts: HashMap::new(),
        }
    }

    /// Goes to the product with this code, which is after that of the last call.
    fn seek(&mut self, code: &str) {
        if let Some((_, coded)) = &mut self.rules {
            coded.seek(code);
        }
    }

    /// Returns true if the product with this code was visible with the facts of this number, by a cursor.
    fn was_visible(&mut self, number: (usize, u32), code: &str, facts: &[u8]) -> bool {
        let Self {
            filter,
            rules,
            verdicts,
        } = self;
        let judge = || {
            let facts = FactsView::new(facts);
            filter.selects_facts(&facts).then(|| match rules {
                Some((rules, _)) => rules.by_facts(&facts),
                None => Votes::default(),
            })
        };
        let Some(votes) = *verdicts.entry(number).or_insert_with(judge) else {
            return false;
        };
        rules.as_ref().is_none_or(|(rules, coded)| {
            let votes = match coded.is_empty() {
                true => votes,
                false => votes.or(coded.votes(code, &FactsView::new(facts))),
            };
            rules.any_shows(votes)
        })
    }
}

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
            is_of_product.then(|| self.segment.around.get(change).copied())?
        })
    }
}
