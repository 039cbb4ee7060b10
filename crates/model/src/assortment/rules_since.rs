//! The rules of an assortment from a client's position to now, for one search of the changes feed.

use std::sync::Arc;

use super::version_index::{CodedSelectors, VersionIndex, VersionSet, Votes};
use super::{Assortment, View};
use crate::facts::FactsView;
use crate::snapshot::Snapshot;

/// Versions of an assortment, any of which may have shown a product to a client; the last one is live.
#[derive(Debug)]
pub struct RulesSince<'k> {
    index: &'k VersionIndex,
    /// The versions, of those of the index.
    versions: VersionSet,
    live: Arc<View>,
    /// Views by the earlier versions whose rules differ from the live ones.
    earlier: Vec<Arc<View>>,
}

impl<'k> RulesSince<'k> {
    /// Returns the versions of the index from the one with this number on, the last of which is `live`.
    pub(super) fn new(
        index: &'k VersionIndex,
        first: usize,
        (earlier, live): (&[&Arc<Assortment>], &Arc<Assortment>),
        snapshot: &Arc<Snapshot>,
    ) -> Self {
        let others = earlier.iter().filter(|other| other.rules() != live.rules());
        Self {
            index,
            versions: VersionSet::MAX << first,
            live: live.view(snapshot),
            earlier: others.map(|other| other.view(snapshot)).collect(),
        }
    }

    /// Returns the live view.
    pub(crate) fn live(&self) -> &View {
        &self.live
    }

    /// Returns the views by the earlier versions whose rules differ from the live ones.
    pub(crate) fn earlier(&self) -> &[Arc<View>] {
        &self.earlier
    }

    /// Returns the votes of the selectors without codes for a product with these attributes.
    pub(crate) fn by_facts(&self, facts: &FactsView<'_>) -> Votes {
        self.index.by_facts(facts)
    }

    /// Returns the selectors with codes.
    pub(crate) fn coded(&self) -> CodedSelectors<'k> {
        self.index.coded()
    }

    /// Returns true if one of the versions shows a product with these votes.
    pub(crate) fn any_shows(&self, votes: Votes) -> bool {
        votes.shown() & self.versions != 0
    }
}
