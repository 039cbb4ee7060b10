//! The changes feed as a key sees it: changes of the catalog and of its assortment together
//! (docs/contract/assortments.md#changes).

use std::sync::Arc;

use jiff::Timestamp;
use vitrine_model::assortment::{Assortment, KnownAssortment, View};
use vitrine_model::changes::{ChangesPage, ChangesQuery, Position, StateId, first_page};
use vitrine_model::key::KnownKey;

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

    /// Returns the changes since a position; `None` if it is unknown.
    #[must_use]
    pub fn changes(&self, since: &Position, query: &ChangesQuery) -> Option<ChangesPage<'f>> {
        if *since == self.position() {
            return Some(ChangesPage::default());
        }
        let Feed {
            snapshot, journal, ..
        } = self.feed;
        let journal = journal.as_ref()?;
        let until = self.feed.locate(&self.feed.position, self.now)?;
        let since_point = self.feed.locate(since, self.now)?;
        let versions = self.versions_since(since.assortment)?;
        let views: Vec<Arc<View>> = versions
            .iter()
            .map(|version| version.view(snapshot))
            .collect();
        let views: Vec<Option<&View>> = views.iter().map(|view| Some(&**view)).collect();
        Some(journal.changes(snapshot, since_point, until, query, &views))
    }

    /// Returns a page of everything visible: the beginning of a copy.
    #[must_use]
    pub fn first_page(&self, query: &ChangesQuery) -> ChangesPage<'f> {
        let view = self
            .assortment
            .map(|known| known.live().view(&self.feed.snapshot));
        first_page(&self.feed.snapshot, query, view.as_deref())
    }

    /// Returns true if something visible changed since a position, or if that is unknown.
    #[must_use]
    pub fn has_changes(&self, query: &ChangesQuery, since: &Position) -> bool {
        let page = self.changes(since, query);
        page.is_none_or(|page| !page.changes.is_empty())
    }

    /// Returns a version of the assortment, none for everything; `None` if it is unknown.
    #[must_use]
    pub fn version(&self, id: StateId) -> Option<Option<Arc<Assortment>>> {
        let versions = self.versions_since(id)?;
        Some(versions.first().map(|version| Arc::clone(version)))
    }

    /// Returns the versions of the assortment since one, the live one last; none for everything.
    fn versions_since(&self, id: StateId) -> Option<Vec<&'f Arc<Assortment>>> {
        match self.assortment {
            None => (id == StateId::default()).then(Vec::new),
            Some(known) => {
                let kept_since = self.now.saturating_sub(self.feed.keep);
                known.versions_since(id, kept_since.unwrap_or(Timestamp::MIN))
            }
        }
    }
}
