//! The changes between two points of a journal, as one client sees them: by its filters, a page at a time.

use super::cursor::{Cursor, Visibility};
use super::rules::RuleCursor;
use super::{Journal, Point};
use crate::assortment::View;
use crate::code::ProductCode;
use crate::query::{Cursor as ListCursor, Filter, Limit, ListQuery};
use crate::snapshot::{Run, Snapshot};

/// Question for changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangesQuery {
    /// Filters.
    pub filter: Filter,
    /// Code after which the page begins; none at the start of a walk.
    pub after: Option<ProductCode>,
    /// Maximum number of changes.
    pub limit: Limit,
}

/// A change: a product that is visible, or that isn't any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<'s> {
    /// Product code: bytes, since a page of 500 is rendered without looking into them.
    code: &'s [u8],
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

/// A page of changes, ascending by code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangesPage<'s> {
    /// The changes; a code is there only once.
    pub changes: Vec<Change<'s>>,
    /// True if further changes follow.
    pub has_more: bool,
}

/// Returns everything visible from a code on: a page of a walk that begins a copy.
#[must_use]
pub fn first_page<'s>(
    snapshot: &'s Snapshot,
    query: &ChangesQuery,
    view: Option<&View>,
) -> ChangesPage<'s> {
    let list = ListQuery {
        filter: query.filter.clone(),
        cursor: query
            .after
            .clone()
            .map_or(ListCursor::Start, ListCursor::After),
        limit: query.limit,
    };
    let page = snapshot.page_in(&list, view);
    let change = |(code, run)| Change {
        code,
        product: Some(run),
    };
    ChangesPage {
        changes: {
            let mut changes = Vec::with_capacity(page.len());
            changes.extend(page.each().map(change));
            changes
        },
        has_more: page.has_next(),
    }
}

impl Journal {
    /// Returns the changes since a point until that of the snapshot, which must be a state with which an update of the
    /// journal ended: products that name a text are known as of then.
    ///
    /// A product that isn't visible is a change only if it was in some state between the two points, by some version of the
    /// client's assortment: a client may have seen any of them.
    ///
    /// `views` are those of the snapshot by the versions of the client's assortment from that at `since` to the present one,
    /// which is the last; `None` is no assortment, and so is an empty slice. Products that only the rules treat differently are
    /// changes, too.
    #[must_use]
    pub fn changes<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        since: Point,
        until: Point,
        query: &ChangesQuery,
        views: &[Option<&View>],
    ) -> ChangesPage<'s> {
        let visibility = Visibility {
            filter: &query.filter,
            views,
        };
        let after = query.after.as_ref().map_or("", ProductCode::as_str);
        let revisions = [since.revision, until.revision];
        let texts = [since.texts, until.texts];
        let revisions = (self.revisions).cursors(revisions, after.as_bytes(), visibility);
        let texts = (self.texts).cursors(texts, after.as_bytes(), visibility);
        let mut cursors: Vec<Cursor<'s, '_>> = revisions.chain(texts).collect();
        let mut by_rules = RuleCursor::new(snapshot, query.after.as_ref(), visibility);
        let visible = snapshot.matcher(&query.filter, visibility.now());
        let mut page = ChangesPage::default();
        loop {
            let codes = cursors.iter().filter_map(|cursor| cursor.code);
            let code_by_rules = by_rules.as_ref().and_then(|cursor| cursor.code);
            let Some(code) = codes.chain(code_by_rules).min() else {
                break;
            };
            let mut was_visible = false;
            for cursor in &mut cursors {
                if cursor.code == Some(code) {
                    was_visible |= cursor.was_visible();
                    cursor.skip(|other| other <= code);
                }
            }
            if let Some(cursor) = &mut by_rules
                && cursor.code == Some(code)
            {
                was_visible = true;
                cursor.advance();
            }
            let text = str::from_utf8(code).unwrap_or_default();
            let product = visible.find(text);
            if product.is_none() && !was_visible {
                // Only a text of the product changed; the others like it don't concern the client up to the next visible one.
                let next = visible.first_from(text);
                let is_before = |code: &[u8]| next.is_none_or(|next| code < next.as_bytes());
                cursors
                    .iter_mut()
                    .filter(|cursor| !cursor.was_visible())
                    .for_each(|cursor| cursor.skip(is_before));
                continue;
            }
            if page.changes.len() == query.limit.get() {
                page.has_more = true;
                break;
            }
            page.changes.push(Change { code, product });
        }
        page
    }
}
