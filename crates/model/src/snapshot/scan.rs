//! Finding a page: scans from the cursor in its direction, skipping blocks that can't have matches, until the page is
//! full and one more match is found or the blocks end. A view of an assortment leaves out what a client may not see.

use super::Snapshot;
use super::bit_set::BitSet256;
use super::block::Block;
use super::groups::Groups;
use super::page::{Page, Run};
use crate::assortment::View;
use crate::code::ProductCode;
use crate::query::{Cursor, ListQuery};
use crate::search::Search;
use crate::selector::{CodeSet, Selector};

impl Snapshot {
    /// Returns the page for `query`.
    #[must_use]
    pub fn page(&self, query: &ListQuery) -> Page<'_> {
        self.page_in(query, None)
    }

    /// Returns the page for `query`, as if there were only the products that the view shows, which must be this snapshot's.
    #[must_use]
    pub fn page_in(&self, query: &ListQuery, view: Option<&View>) -> Page<'_> {
        let mut scan = self.scan(&query.filter, view);
        scan.search = query.search.as_ref();
        if let Some(codes) = &query.filter.codes {
            return scan.page_of_codes(codes.exact(), query);
        }
        let limit = query.limit.get();
        // `cut` separates the matches before the cursor from those after it.
        let (found, cut) = match &query.cursor {
            Cursor::Start => (scan.forwards((0, 0), limit), (0, 0)),
            Cursor::After(code) => {
                let cut = self.first_after(code);
                (scan.forwards(cut, limit), cut)
            }
            Cursor::Before(code) => {
                let cut = self.first_not_below(code.as_str());
                (scan.backwards(cut, limit), cut)
            }
        };
        let has_more_behind = !found.parts.is_empty()
            && match &query.cursor {
                Cursor::Start => false,
                Cursor::After(_) => !scan.backwards(cut, 1).parts.is_empty(),
                Cursor::Before(_) => !scan.forwards(cut, 1).parts.is_empty(),
            };
        let (has_previous, has_next) = match &query.cursor {
            Cursor::Start | Cursor::After(_) => (has_more_behind, found.has_more),
            Cursor::Before(_) => (found.has_more, has_more_behind),
        };
        Page::new(self, found.parts, has_previous, has_next)
    }

    /// Returns a matcher that finds single products that match a filter and that the view shows, if there is one.
    #[must_use]
    pub fn matcher<'s, 'f>(
        &'s self,
        filter: &'f Selector,
        view: Option<&'f View>,
    ) -> Matcher<'s, 'f> {
        Matcher(self.scan(filter, view))
    }

    fn scan<'s, 'f>(&'s self, filter: &'f Selector, view: Option<&'f View>) -> Scan<'s, 'f> {
        let mut groups = filter.groups(self);
        if view.is_some_and(|view| !view.is_of(self)) {
            // Rather nothing than a product that the client may not see.
            groups.push_nothing();
        }
        Scan {
            snapshot: self,
            filter,
            groups,
            view,
            search: None,
        }
    }

    pub(crate) fn first_after(&self, code: &ProductCode) -> (usize, usize) {
        let (block, slot) = self.first_not_below(code.as_str());
        let is_there = self
            .blocks
            .get(block)
            .is_some_and(|block| block.has_at(slot, code.as_str()));
        (block, slot + usize::from(is_there))
    }
}

/// Matches of a scan, by block; `has_more` is true if there are more beyond the limit.
struct Matches {
    parts: Vec<(usize, BitSet256)>,
    /// Number of matches that still fit.
    left: usize,
    has_more: bool,
}

impl Matches {
    fn new(limit: usize) -> Self {
        Self {
            parts: Vec::new(),
            left: limit,
            has_more: false,
        }
    }

    /// Adds `taken`, those of a block's matches that fit.
    fn add(&mut self, index: usize, matches: BitSet256, taken: BitSet256) {
        self.has_more = taken != matches;
        if !taken.is_empty() {
            self.left -= taken.len();
            self.parts.push((index, taken));
        }
    }
}

/// Finds single products that match a filter.
pub struct Matcher<'s, 'f>(Scan<'s, 'f>);

impl Matcher<'_, '_> {
    /// Returns the product with this code, if it matches.
    #[must_use]
    pub fn find(&self, code: &str) -> Option<Run> {
        let Self(scan) = self;
        let found = scan.find(code);
        let (index, slot) = found.filter(|_| scan.filter.selects_code(code))?;
        Some(Run::new(index, slot..slot + 1))
    }

    /// Returns the first block from `start` on that can have matches, and these, by everything but the filter's codes. Blocks
    /// without these codes may be left out.
    pub(crate) fn next_matches(&self, start: usize) -> Option<(usize, BitSet256)> {
        let Self(scan) = self;
        let (mut index, mut block) = scan.next_block(start)?;
        if scan.filter.codes.is_some() {
            let code = scan.filter.named_from(block.code(0))?;
            let (with_code, _) = scan.snapshot.first_not_below(code);
            (index, block) = scan.next_block(index.max(with_code))?;
        }
        Some((index, scan.matches(index, block)))
    }
}

struct Scan<'s, 'f> {
    snapshot: &'s Snapshot,
    filter: &'f Selector,
    groups: Groups,
    view: Option<&'f View>,
    search: Option<&'f Search>,
}

impl<'s> Scan<'s, '_> {
    /// Returns block and slot of the product with this code, if it has a facet of every group and is shown.
    fn find(&self, code: &str) -> Option<(usize, usize)> {
        let (index, slot) = self.snapshot.find(code)?;
        let block = self.snapshot.blocks.get(index)?;
        let is_shown = |view: &View| view.shows_at(block, (index, slot));
        let is_found = |search: &Search| {
            let words = block.words_of_each().nth(slot);
            words.is_some_and(|words| search.matches(words))
        };
        let matches = self.groups.has(block, slot)
            && self.view.is_none_or(is_shown)
            && self.search.is_none_or(is_found);
        matches.then_some((index, slot))
    }

    /// Returns the page of a query for codes, which are looked up one by one.
    fn page_of_codes(&self, codes: &CodeSet, query: &ListQuery) -> Page<'s> {
        let found: Vec<_> = codes.iter().filter_map(|code| self.find(code)).collect();
        let limit = query.limit.get();
        let (start, end) = match &query.cursor {
            Cursor::Start => (0, limit),
            Cursor::After(code) => {
                let start = self.snapshot.first_after(code);
                let start = found.partition_point(|place| *place < start);
                (start, start + limit)
            }
            Cursor::Before(code) => {
                let end = self.snapshot.first_not_below(code.as_str());
                let end = found.partition_point(|place| *place < end);
                (end.saturating_sub(limit), end)
            }
        };
        let end = end.min(found.len());
        let mut parts: Vec<(usize, BitSet256)> = Vec::new();
        for (block, slot) in &found[start..end] {
            if parts.last().is_none_or(|(last, _)| last != block) {
                parts.push((*block, BitSet256::default()));
            }
            if let Some((_, members)) = parts.last_mut() {
                members.insert(*slot);
            }
        }
        let is_empty = parts.is_empty();
        let (has_previous, has_next) = (!is_empty && start > 0, !is_empty && end < found.len());
        Page::new(self.snapshot, parts, has_previous, has_next)
    }

    /// Returns the first `limit` matches from `cut` on.
    fn forwards(&self, cut: (usize, usize), limit: usize) -> Matches {
        let mut found = Matches::new(limit);
        let mut candidate = self.next_block(cut.0);
        while let Some((index, block)) = candidate
            && !found.has_more
        {
            let mut matches = self.matches(index, block);
            if index == cut.0 {
                matches = matches.without(BitSet256::below(cut.1));
            }
            found.add(index, matches, matches.first_members(found.left));
            candidate = self.next_block(index + 1);
        }
        found
    }

    /// Returns the last `limit` matches before `cut`.
    fn backwards(&self, cut: (usize, usize), limit: usize) -> Matches {
        let mut found = Matches::new(limit);
        let mut candidate = self.previous_block(cut.0 + 1);
        while let Some((index, block)) = candidate
            && !found.has_more
        {
            let mut matches = self.matches(index, block);
            if index == cut.0 {
                matches = matches.and(BitSet256::below(cut.1));
            }
            found.add(index, matches, matches.last_members(found.left));
            candidate = self.previous_block(index);
        }
        found.parts.reverse();
        found
    }

    /// Returns the first block from `start` on that can have matches.
    fn next_block(&self, start: usize) -> Option<(usize, &'s Block)> {
        let count = self.snapshot.blocks.len();
        let mut word = start / 64;
        let mut candidates = self.candidates(word) & (u64::MAX << (start % 64));
        while candidates == 0 {
            word += 1;
            if word * 64 >= count {
                return None;
            }
            candidates = self.candidates(word);
        }
        let index = word * 64 + candidates.trailing_zeros() as usize;
        Some((index, self.snapshot.blocks.get(index)?))
    }

    /// Returns the last block before `end` that can have matches.
    fn previous_block(&self, end: usize) -> Option<(usize, &Block)> {
        let last = end.min(self.snapshot.blocks.len()).checked_sub(1)?;
        let mut word = last / 64;
        let mut candidates = self.candidates(word) & (u64::MAX >> (63 - last % 64));
        while candidates == 0 {
            word = word.checked_sub(1)?;
            candidates = self.candidates(word);
        }
        let index = word * 64 + 63 - candidates.leading_zeros() as usize;
        Some((index, self.snapshot.blocks.get(index)?))
    }

    /// Returns a bit for each of the 64 blocks of this word that can have matches.
    fn candidates(&self, word: usize) -> u64 {
        let shown = self.view.map_or(u64::MAX, |view| view.candidates(word));
        match shown {
            0 => 0,
            shown => shown & self.groups.candidates(self.snapshot, word),
        }
    }

    fn matches(&self, index: usize, block: &Block) -> BitSet256 {
        let mut matches = self.groups.matches(block);
        if let Some(view) = self.view {
            matches = matches.and(view.shown(block, index));
        }
        match self.search {
            // Looking at words takes longest.
            Some(search) if !matches.is_empty() => matches.and(block.found(search)),
            _ => matches,
        }
    }
}
