//! Verdicts on changes that requests wait for: all whose filters, assortment and position are equal share one search.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vitrine_model::changes::{ChangesQuery, Position, StateId};
use vitrine_model::code::ProductCode;

use super::request::changes_token::FilterDigest;
use crate::live::{SearchLimit, VisibleFeed};

/// Maximum number of verdicts. Beyond it all are forgotten, which costs searches only.
const MAX_VERDICTS: usize = 16_384;

/// Question of requests that wait: what changed between two positions, by these filters. The positions have the versions of
/// the assortment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Interest {
    pub(super) since: Position,
    pub(super) until: Position,
    pub(super) filter: FilterDigest,
}

/// Result of a search so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Outcome {
    /// Nothing visible was found yet.
    #[default]
    Unfinished,
    /// Nothing visible changed.
    AtRest,
    /// Something visible changed, or what changed is unknown.
    Changed,
}

/// A search, and how far it is.
#[derive(Debug, Clone, Default)]
struct Verdict {
    outcome: Outcome,
    /// Code up to which nothing visible changed.
    unchanged_until: Option<ProductCode>,
}

/// Verdicts on the newest catalog.
#[derive(Debug, Default)]
pub(super) struct Verdicts(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Position of the catalog, of whatever assortment.
    catalog: Position,
    verdicts: HashMap<Interest, Verdict>,
}

impl Verdicts {
    /// Searches on, within the limit of one turn, unless the outcome is known.
    pub(super) fn judge(
        &self,
        seen: VisibleFeed<'_>,
        interest: Interest,
        query: &ChangesQuery,
    ) -> Outcome {
        if interest.since == interest.until {
            return Outcome::AtRest;
        }
        let mut verdict = self.known(&interest).unwrap_or_default();
        if verdict.outcome != Outcome::Unfinished {
            return verdict.outcome;
        }
        let query = ChangesQuery {
            after: verdict.unchanged_until.take(),
            ..query.clone()
        };
        let page =
            SearchLimit::of_turn().search(|work| seen.page(Some(&interest.since), &query, work));
        let Some(page) = page else {
            return Outcome::Changed;
        };
        (verdict.outcome, verdict.unchanged_until) =
            match (page.changes.is_empty(), page.more_after) {
                (true, None) => (Outcome::AtRest, None),
                (true, more_after) => (Outcome::Unfinished, more_after),
                (false, _) => (Outcome::Changed, query.after),
            };
        let outcome = verdict.outcome;
        let mut known = self.lock();
        if known.catalog != catalog(&interest) || known.verdicts.len() >= MAX_VERDICTS {
            *known = Known {
                catalog: catalog(&interest),
                verdicts: HashMap::new(),
            };
        }
        known.verdicts.insert(interest, verdict);
        outcome
    }

    /// Returns a code up to which nothing visible changed, if one is known.
    pub(super) fn unchanged_until(&self, interest: Interest) -> Option<ProductCode> {
        self.known(&interest)?.unchanged_until
    }

    fn known(&self, interest: &Interest) -> Option<Verdict> {
        self.lock().verdicts.get(interest).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        let Self(known) = self;
        known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the position of the catalog that an interest ends at.
fn catalog(interest: &Interest) -> Position {
    Position {
        assortment: StateId::default(),
        ..interest.until
    }
}
