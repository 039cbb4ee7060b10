//! The history of changes: what each revision and each texts state changed. Its types, and what both stores share.

use jiff::Timestamp;
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

use crate::StoreError;
use crate::record::StoreState;
use crate::values::ListCache;

/// Start of a read of the history, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStart {
    /// Number of the oldest revision to return.
    pub revision: u64,
    /// Texts state ([`StoreState::texts`]) after which changes of texts are visited; all recorded ones if it is none or
    /// unknown.
    pub texts: Option<u64>,
    /// Time; revisions that were replaced until then are left out.
    pub since: Timestamp,
    /// Maximum number of product changes of the revisions after the first; older revisions are left out beyond it.
    pub max_changes: u64,
}

/// Revisions and texts states as of one moment, whose changes were visited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// State of the store.
    pub state: StoreState,
    /// Readable revisions, ascending and without a gap; the last is the live one. The changes by the first one aren't
    /// visited. Empty if nothing was published, or if the start is beyond the live revision.
    pub revisions: Vec<HistoryRevision>,
    /// Recorded texts states, ascending; each begins with the end of the one before, the last ends with
    /// [`StoreState::texts`]. Those before a change that wasn't recorded are left out.
    pub text_states: Vec<TextState>,
}

/// A revision of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRevision {
    /// The revision.
    pub revision: Revision,
    /// Id that it had before a restore gave it a new one.
    pub former_id: Option<String>,
}

/// A step of [`StoreState::texts`]: texts were taken down or put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextState {
    /// Texts state before the step.
    pub before: u64,
    /// Texts state after the step.
    pub after: u64,
}

/// Facts of a version of a product that filters select by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts<'a> {
    /// True if the product can be ordered.
    pub is_orderable: bool,
    /// Countries in which it can be redeemed.
    pub countries: &'a [Country],
    /// Categories.
    pub categories: &'a [Box<str>],
    /// Canonical document, which has the others.
    pub document: &'a str,
}

/// Item of [`read_history`](crate::Store::read_history).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryItem<'a> {
    /// A version of a product ended with this revision: the product was changed or retired.
    Ended {
        /// Number of the revision.
        revision: u64,
        /// Product code.
        code: &'a str,
        /// Facts of the version.
        facts: Facts<'a>,
    },
    /// A version of a product began with this revision: the product was created or changed.
    Began {
        /// Number of the revision.
        revision: u64,
        /// Product code.
        code: &'a str,
        /// Facts of the version.
        facts: Facts<'a>,
    },
    /// A live product names a text whose status changed.
    Text {
        /// Texts state after the change.
        texts: u64,
        /// Product code.
        code: &'a str,
    },
    /// A version that began or ended with this revision can't be read: what it changed is unknown.
    Damaged {
        /// Number of the revision.
        revision: u64,
    },
}

/// Callback for each item of the history.
pub type HistoryVisitor<'v> =
    &'v mut dyn for<'i> FnMut(
        HistoryItem<'i>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// End of a version's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Ended,
    Began,
}

impl Bound {
    /// Returns the item of a version with its code and facts; none if it can't be read.
    pub(crate) fn item<'a>(
        self,
        revision: u64,
        version: Option<(&'a str, Facts<'a>)>,
    ) -> HistoryItem<'a> {
        match (self, version) {
            (_, None) => HistoryItem::Damaged { revision },
            (Self::Ended, Some((code, facts))) => HistoryItem::Ended {
                revision,
                code,
                facts,
            },
            (Self::Began, Some((code, facts))) => HistoryItem::Began {
                revision,
                code,
                facts,
            },
        }
    }
}

/// Cache of the lists of countries and categories.
pub(crate) struct FactsCache {
    countries: ListCache<Country>,
    categories: ListCache<Box<str>>,
}

impl FactsCache {
    pub(crate) fn new() -> Self {
        Self {
            countries: ListCache::new(|text| text.parse().ok()),
            categories: ListCache::new(|text| Some(text.into())),
        }
    }

    /// Returns the facts of a version, given its columns.
    pub(crate) fn facts<'a>(
        &'a mut self,
        is_orderable: bool,
        [countries, categories]: [&str; 2],
        document: &'a str,
    ) -> Result<Facts<'a>, StoreError> {
        Ok(Facts {
            is_orderable,
            document,
            countries: self.countries.get(countries)?,
            categories: self.categories.get(categories)?,
        })
    }
}

/// Selection of revisions, from the live one downwards.
pub(crate) struct Selection<'a> {
    from: &'a HistoryStart,
    /// Newest first.
    taken: Vec<HistoryRevision>,
    /// Number of changes by the taken revisions.
    changes: u64,
}

impl<'a> Selection<'a> {
    pub(crate) fn new(from: &'a HistoryStart) -> Self {
        Self {
            from,
            taken: Vec::new(),
            changes: 0,
        }
    }

    /// Takes the next older revision with the numbers of products that it created, changed and retired, unless a bound is
    /// reached or one is missing between. Returns whether it was taken; if it wasn't, no older one is.
    pub(crate) fn take(&mut self, older: HistoryRevision, counts: [u64; 3]) -> bool {
        let is_taken = self.taken.last().is_none_or(|newer| {
            older.revision.number + 1 == newer.revision.number
                && newer.revision.created_at > self.from.since
                && self.changes <= self.from.max_changes
        });
        if is_taken {
            self.changes = counts.into_iter().fold(self.changes, u64::saturating_add);
            self.taken.push(older);
        }
        is_taken
    }

    /// Returns the taken revisions in ascending order.
    pub(crate) fn into_ascending(mut self) -> Vec<HistoryRevision> {
        self.taken.reverse();
        self.taken
    }
}

/// Returns the unbroken chain of steps that leads to the texts state `now`, ascending, from `from` if it is part of it.
/// `steps` has all recorded steps, newest first.
pub(crate) fn chain(steps: &[TextState], now: u64, from: Option<u64>) -> Vec<TextState> {
    let mut chain: Vec<TextState> = Vec::new();
    let mut at = now;
    for step in steps {
        if from == Some(at) || step.after < at {
            break;
        }
        if step.after == at && step.before < at {
            chain.push(*step);
            at = step.before;
        }
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chain_of_texts_states_ends_at_a_gap_or_the_start() {
        let step = |(before, after)| TextState { before, after };
        let found = |steps: &[(u64, u64)], now, from| -> Vec<(u64, u64)> {
            let steps: Vec<TextState> = steps.iter().copied().map(step).collect();
            let found = chain(&steps, now, from);
            found.iter().map(|step| (step.before, step.after)).collect()
        };
        let steps = [(7, 9), (5, 7), (5, 7), (2, 4), (0, 2)];
        assert_eq!(found(&steps, 9, None), [(5, 7), (7, 9)], "4 → 5 is a gap");
        assert_eq!(found(&steps, 9, Some(7)), [(7, 9)]);
        assert_eq!(found(&steps, 9, Some(9)), []);
        for unknown in [0, 4, 6, 10] {
            assert_eq!(found(&steps, 9, Some(unknown)), [(5, 7), (7, 9)]);
        }
        // Another release stepped last, or steps are newer than the state: nothing leads there.
        for now in [0, 3, 8, 11] {
            assert_eq!(found(&steps, now, None), []);
        }
        assert_eq!(found(&[(9, 9), (12, 9)], 9, None), [], "damaged steps");
    }
}
