//! The changes feed as a key sees it: changes of the catalog and of its assortment together
//! (docs/contract/assortments.md#changes).

use std::sync::Arc;

use jiff::Timestamp;
use vitrine_model::assortment::{Assortment, KnownAssortment, VersionsSince};
use vitrine_model::changes::{ChangesPage, ChangesQuery, Position, StateId, Work, first_page};
use vitrine_model::code::ProductCode;
use vitrine_model::key::KnownKey;
use vitrine_model::query::Limit;

use super::feed::Feed;

/// Feed with the assortment of a key.
#[derive(Debug, Clone, Copy)]
pub struct VisibleFeed<'f> {
    feed: &'f Feed,
    assortment: Option<&'f KnownAssortment>,
    now: Timestamp,
}

impl<'f> VisibleFeed<'f> {
    /// Returns the feed as the keys of an assortment see it, or those without one.
    #[must_use]
    pub fn new(feed: &'f Feed, assortment: Option<&'f KnownAssortment>, now: Timestamp) -> Self {
        Self {
            feed,
            assortment,
            now,
        }
    }

    /// Returns the feed as a key sees it; `None` if that is unknown.
    #[must_use]
    pub fn of_key(feed: &'f Feed, key: &'f KnownKey, now: Timestamp) -> Option<Self> {
        let assortment = key.visible.assortment().ok()?;
        Some(Self::new(feed, assortment, now))
    }

    /// Returns the position of what is shown now.
    #[must_use]
    pub fn position(&self) -> Position {
        let live = self.assortment.map(|known| known.live().id());
        Position {
            assortment: live.unwrap_or_default(),
            ..self.feed.position
        }
    }

    /// Returns the random id of the store.
    #[must_use]
    pub fn store_id(&self) -> &'f str {
        &self.feed.store_id
    }

    /// Returns the name of the assortment.
    #[must_use]
    pub fn assortment(&self) -> Option<&'f str> {
        self.assortment.map(|known| known.live().name())
    }

    /// Returns true if changes since a position can be told. That of what is shown now is known without a journal.
    #[must_use]
    pub fn knows(&self, position: &Position) -> bool {
        *position == self.position()
            || self.versions_since(position.assortment).is_some()
                && self.feed.locate(position, self.now).is_some()
    }

    /// Returns the changes since a position, or everything visible, which begins a copy; `None` if the position is unknown.
    #[must_use]
    pub fn page(
        &self,
        since: Option<&Position>,
        query: &ChangesQuery,
        work: &mut Work<'_>,
    ) -> Option<ChangesPage<'f>> {
        let Feed {
            snapshot, journal, ..
        } = self.feed;
        let Some(since) = since else {
            let view = self.assortment.map(|known| known.live().view(snapshot));
            return Some(first_page(snapshot, query, view.as_deref(), work));
        };
        if *since == self.position() {
            return Some(ChangesPage::default());
        }
        let journal = journal.as_ref()?;
        let until = self.feed.locate(&self.feed.position, self.now)?;
        let since_point = self.feed.locate(since, self.now)?;
        let versions = self.versions_since(since.assortment)?;
        let rules = versions.map(|versions| versions.rules(snapshot));
        let points = [since_point, until];
        Some(journal.changes(snapshot, points, query, rules.as_ref(), work))
    }

    /// Returns the code of the first change, searched for as long as it takes; `None` if the position is unknown.
    #[must_use]
    pub fn first_code(
        &self,
        since: Option<&Position>,
        mut query: ChangesQuery,
    ) -> Option<Option<ProductCode>> {
        query.limit = Limit::ONE;
        let page = self.page(since, &query, &mut Work::unlimited())?;
        let first = page.changes.first();
        Some(first.and_then(|change| change.code().parse().ok()))
    }

    /// Returns a version of the assortment, none for everything; `None` if it is unknown.
    #[must_use]
    pub fn version(&self, id: StateId) -> Option<Option<Arc<Assortment>>> {
        let versions = self.versions_since(id)?;
        Some(versions.map(|versions| Arc::clone(versions.first())))
    }

    /// Returns the versions of the assortment since one; none for everything. `None` if that one is unknown.
    fn versions_since(&self, id: StateId) -> Option<Option<VersionsSince<'f>>> {
        match self.assortment {
            None => (id == StateId::default()).then_some(None),
            Some(known) => {
                let kept_since = self.now.saturating_sub(self.feed.keep);
                let versions = known.versions_since(id, kept_since.unwrap_or(Timestamp::MIN));
                versions.map(Some)
            }
        }
    }
}
