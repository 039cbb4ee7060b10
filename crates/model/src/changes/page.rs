//! The changes between two points of a journal, as one client sees them: by its filters, a page at a time.

use std::fmt;

use super::rules::RuleCursor;
use super::search::{FormerVisibility, Search};
use super::{Journal, Point};
use crate::assortment::{RulesSince, View};
use crate::code::ProductCode;
use crate::query::Limit;
use crate::selector::Selector;
use crate::snapshot::{BitSet256, Block, Run, Snapshot};

/// Question for changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangesQuery {
    /// Filter.
    pub filter: Selector,
    /// Code after which the page begins; none at the start of a walk.
    pub after: Option<ProductCode>,
    /// Maximum number of changes.
    pub limit: Limit,
}

/// A change: a product that is visible, or that isn't any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<'s> {
    /// Product code: bytes, since a page of 500 is rendered without looking into them.
    pub(super) code: &'s [u8],
    /// The product in the snapshot; `None` if it isn't visible any more.
    pub product: Option<Run>,
}

impl<'s> Change<'s> {
    /// Returns the product code.
    #[must_use]
    pub fn code(&self) -> &'s str {
        // The codes of snapshots and journals were checked.
        str::from_utf8(self.code).unwrap_or_default()
    }

    /// Returns the bytes of the product code.
    #[must_use]
    pub fn code_bytes(&self) -> &'s [u8] {
        self.code
    }
}

/// Limit of the work of a search: a number of products to look at, and whatever else its caller measures. A search looks at
/// one product in any case, so that the next one gets further.
pub struct Work<'t> {
    left: usize,
    is_time_over: &'t dyn Fn() -> bool,
}

impl<'t> Work<'t> {
    /// Returns a limit of so many products, or until `is_time_over` is true.
    #[must_use]
    pub fn new(products: usize, is_time_over: &'t dyn Fn() -> bool) -> Self {
        Self {
            left: products,
            is_time_over,
        }
    }

    /// Returns no limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(usize::MAX, &|| false)
    }

    /// Takes what was looked at into account. Returns true if there may be more.
    pub(super) fn spend(&mut self, looked_at: usize) -> bool {
        self.left = self.left.saturating_sub(looked_at);
        self.left > 0 && !(self.is_time_over)()
    }
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Work").field(&self.left).finish()
    }
}

/// A page of changes, ascending by code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangesPage<'s> {
    /// The changes; a code is there only once.
    pub changes: Vec<Change<'s>>,
    /// Code after which the next page begins; `None` if this is the last one. It may be that of a product that the client
    /// never saw.
    pub more_after: Option<ProductCode>,
}

impl<'s> ChangesPage<'s> {
    /// Returns true if there may be further changes.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.more_after.is_some()
    }

    /// Adds a change if the page isn't full. Otherwise the next page begins with it, and this returns false.
    fn add(&mut self, change: Change<'s>, limit: Limit) -> bool {
        let is_full = self.changes.len() == limit.get();
        match self.changes.last().filter(|_| is_full) {
            Some(last) => self.more_after = parsed(last.code),
            None => self.changes.push(change),
        }
        !is_full
    }
}

fn parsed(code: &[u8]) -> Option<ProductCode> {
    // The codes of snapshots and journals were checked.
    str::from_utf8(code).ok()?.parse().ok()
}

/// Returns everything visible from a code on: a page of a walk that begins a copy. A block of products counts as one product
/// looked at, since it is looked at as a whole.
#[must_use]
pub fn first_page<'s>(
    snapshot: &'s Snapshot,
    query: &ChangesQuery,
    view: Option<&View>,
    work: &mut Work<'_>,
) -> ChangesPage<'s> {
    let matcher = snapshot.matcher(&query.filter, view);
    let after = query.after.as_ref();
    let (first, slot) = after.map_or((0, 0), |code| snapshot.first_after(code));
    let mut page = ChangesPage::default();
    let is_left = |block: &Block| slot < block.count();
    let mut next = match snapshot.blocks().get(first).is_some_and(is_left) {
        true => first,
        false => first + 1,
    };
    while let Some((index, mut matches)) = matcher.next_matches(next)
        && let Some(block) = snapshot.blocks().get(index)
    {
        if index == first {
            matches = matches.without(BitSet256::below(slot));
        }
        let codes = matches.iter().map(|slot| (slot, block.code_bytes(slot)));
        for (slot, code) in codes.filter(|(slot, _)| query.filter.selects_code(block.code(*slot))) {
            let product = Some(Run::new(index, slot..slot + 1));
            if !page.add(Change { code, product }, query.limit) {
                return page;
            }
        }
        next = index + 1;
        if !work.spend(1) && next < snapshot.blocks().len() {
            page.more_after = parsed(block.code_bytes(block.count() - 1));
            break;
        }
    }
    page
}

impl Journal {
    /// Returns the changes since a point until that of the snapshot, which must be a state with which an update of the
    /// journal ended: products that name a text are known as of then.
    ///
    /// A product that isn't visible is a change only if it was in some state between the two points, by some version of the
    /// client's assortment: a client may have seen any of them.
    ///
    /// `rules` are those of the client's assortment since its version at `since`, for the snapshot; none shows everything.
    /// Products that only the rules treat differently are changes, too.
    #[must_use]
    pub fn changes<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        [since, until]: [Point; 2],
        query: &ChangesQuery,
        rules: Option<&RulesSince<'_>>,
        work: &mut Work<'_>,
    ) -> ChangesPage<'s> {
        let filter = &query.filter;
        let after = query.after.as_ref().map_or("", ProductCode::as_str);
        let revisions = [since.revision, until.revision];
        let texts = [since.texts, until.texts];
        let revisions = (self.revisions).cursors(revisions, after.as_bytes(), filter);
        let texts = (self.texts).cursors(texts, after.as_bytes(), filter);
        let by_rules =
            rules.and_then(|rules| RuleCursor::new(snapshot, query.after.as_ref(), filter, rules));
        let mut search = Search {
            cursors: revisions.chain(texts).collect(),
            by_rules,
            former: FormerVisibility::new(filter, rules),
            visible: snapshot.matcher(filter, rules.map(RulesSince::live)),
        };
        let mut page = ChangesPage::default();
        while let Some(code) = search.next_code() {
            let (change, looked_at) = search.look(code);
            if change.is_some_and(|change| !page.add(change, query.limit)) {
                break;
            }
            if !work.spend(looked_at) && search.next_code().is_some() {
                page.more_after = parsed(code);
                break;
            }
        }
        page
    }
}
