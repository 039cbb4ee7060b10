//! The history of changes: what each revision and each texts state changed. Its types, and what both stores share.

use jiff::Timestamp;
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

use crate::StoreError;
use crate::digest::StoredDigest;
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
    /// Time; revisions and texts states that were replaced until then are left out.
    pub since: Timestamp,
    /// Maximum number of product changes of the revisions after the first, and of changes by texts; older revisions and
    /// texts states are left out beyond it.
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
    /// [`StoreState::texts`]. Those before a change that wasn't recorded are left out. Changes by the step before the first
    /// one may be visited, too.
    pub text_states: Vec<TextState>,
    /// Time at which the state before these began, if the step to it is recorded.
    pub texts_since: Option<Timestamp>,
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
    /// Time of the step, or of an earlier one if that is later.
    pub changed_at: Timestamp,
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

    /// Returns code and facts of a version, given its columns.
    ///
    /// # Errors
    ///
    /// If they don't match its digest, or aren't lists.
    pub(crate) fn version<'a>(
        &'a mut self,
        [code, document]: [&'a str; 2],
        is_orderable: bool,
        [countries, categories]: [&str; 2],
        digest: &StoredDigest,
    ) -> Result<(&'a str, Facts<'a>), StoreError> {
        if !digest.matches(code, document, None) {
            let damage = format!("a version of {code} doesn't match its digest");
            return Err(StoreError::Damaged(damage));
        }
        let facts = Facts {
            is_orderable,
            document,
            countries: self.countries.get(countries)?,
            categories: self.categories.get(categories)?,
        };
        Ok((code, facts))
    }
}

/// Selection of revisions, from the live one downwards.
pub(crate) struct Selection<'a> {
    from: &'a HistoryStart,
    /// Newest first.
    taken: Vec<HistoryRevision>,
    /// Number of changes by the taken revisions.
    changes: u64,
    /// Time at which the revision before the oldest taken one was replaced.
    replaced_at: Timestamp,
}

impl<'a> Selection<'a> {
    pub(crate) fn new(from: &'a HistoryStart) -> Self {
        Self {
            from,
            taken: Vec::new(),
            changes: 0,
            replaced_at: Timestamp::MAX,
        }
    }

    /// Takes the next older revision with the numbers of products that it created, changed and retired, unless a bound is
    /// reached or one is missing between. `latest` is the latest time of it and older ones: the clocks of publishers differ.
    /// Returns whether it was taken; if it wasn't, no older one is.
    pub(crate) fn take(
        &mut self,
        older: HistoryRevision,
        latest: Timestamp,
        counts: [u64; 3],
    ) -> bool {
        let is_taken = self.taken.last().is_none_or(|newer| {
            older.revision.number + 1 == newer.revision.number
                && self.replaced_at > self.from.since
                && self.changes <= self.from.max_changes
        });
        if is_taken {
            self.replaced_at = latest;
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

/// Recorded steps of the counter of texts, and the chain of them that is read.
pub(crate) struct TextSelection<'a> {
    from: &'a HistoryStart,
    /// All recorded steps, newest first.
    steps: Vec<TextState>,
    /// Texts state to which the chain leads.
    now: u64,
    /// Unbroken steps, ascending.
    chain: Vec<TextState>,
    /// Number of visited changes.
    changes: u64,
}

impl<'a> TextSelection<'a> {
    /// Selects the steps that lead to the texts state `now` without a gap, from the start's state or time on. `steps` has
    /// all recorded steps, ascending.
    pub(crate) fn new(mut steps: Vec<TextState>, now: u64, from: &'a HistoryStart) -> Self {
        let mut latest = Timestamp::MIN;
        for step in &mut steps {
            latest = latest.max(step.changed_at);
            step.changed_at = latest;
        }
        steps.reverse();
        let mut chain: Vec<TextState> = Vec::new();
        let mut at = now;
        for step in &steps {
            if from.texts == Some(at) || step.after < at {
                break;
            }
            if step.after == at && step.before < at {
                if step.changed_at <= from.since {
                    break;
                }
                chain.push(*step);
                at = step.before;
            }
        }
        chain.reverse();
        Self {
            from,
            steps,
            now,
            chain,
            changes: 0,
        }
    }

    /// Returns the texts states before the first step and after the last one, and the maximum number of changes to read
    /// between them, newest first; `None` if there is no step.
    pub(crate) fn bounds(&self) -> Option<[u64; 3]> {
        let first = self.chain.first()?;
        // Stores count with 63 bits.
        let max = self.from.max_changes.saturating_add(1);
        Some([first.before, self.now, max.min(i64::MAX.cast_unsigned())])
    }

    /// Takes the next older change of a product, by a step to the state `texts`. One beyond the maximum drops its step and
    /// older ones. Returns whether it is to be visited.
    pub(crate) fn take(&mut self, texts: u64) -> bool {
        self.changes += 1;
        if self.changes > self.from.max_changes {
            self.chain.retain(|step| step.after > texts);
            return false;
        }
        self.chain
            .binary_search_by_key(&texts, |step| step.after)
            .is_ok()
    }

    /// Returns the selected steps, ascending, and the time at which the state before them began, if that is recorded.
    pub(crate) fn into_parts(self) -> (Vec<TextState>, Option<Timestamp>) {
        let base = self.chain.first().map_or(self.now, |first| first.before);
        let begin = self.steps.iter().find(|step| step.after == base);
        (self.chain, begin.map(|step| step.changed_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: HistoryStart = HistoryStart {
        revision: 0,
        texts: None,
        since: Timestamp::MIN,
        max_changes: u64::MAX,
    };

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Returns the chain of steps, each of which was made a second after the one before.
    fn chain(steps: &[(u64, u64)], now: u64, from: &HistoryStart) -> Vec<(u64, u64)> {
        let step = |(&(before, after), at)| TextState {
            before,
            after,
            changed_at: second(at),
        };
        let steps = steps.iter().zip(1..).map(step).collect();
        let (chain, _) = TextSelection::new(steps, now, from).into_parts();
        chain.iter().map(|step| (step.before, step.after)).collect()
    }

    #[test]
    fn chain_of_texts_states_ends_at_a_gap_or_the_start() {
        let steps = [(0, 2), (2, 4), (5, 7), (5, 7), (7, 9)];
        let found = |now, texts| {
            chain(
                &steps,
                now,
                &HistoryStart {
                    texts,
                    ..EVERYTHING
                },
            )
        };
        assert_eq!(found(9, None), [(5, 7), (7, 9)], "4 → 5 is a gap");
        assert_eq!(found(9, Some(7)), [(7, 9)]);
        assert_eq!(found(9, Some(9)), []);
        for unknown in [0, 4, 6, 10] {
            assert_eq!(found(9, Some(unknown)), [(5, 7), (7, 9)]);
        }
        // Another release stepped last, or steps are newer than the state: nothing leads there.
        for now in [0, 3, 8, 11] {
            assert_eq!(found(now, None), []);
        }
        let damaged = chain(&[(12, 9), (9, 9)], 9, &EVERYTHING);
        assert_eq!(damaged, [], "damaged steps");
    }

    #[test]
    fn chain_of_texts_states_begins_after_the_time() {
        let steps = [(0, 2), (2, 4), (4, 6)];
        for (since, expected) in [
            (0, &steps[..]),
            (1, &steps[1..]),
            (2, &steps[2..]),
            (3, &[]),
        ] {
            let since = second(since);
            let from = HistoryStart {
                since,
                ..EVERYTHING
            };
            assert_eq!(chain(&steps, 6, &from), expected);
        }
    }

    #[test]
    fn texts_state_of_a_late_clock_counts_as_of_the_one_before() {
        let step = |before, at| TextState {
            before,
            after: before + 1,
            changed_at: second(at),
        };
        let from = HistoryStart {
            since: second(50),
            ..EVERYTHING
        };
        let steps = vec![step(0, 40), step(1, 60), step(2, 10)];
        let (chain, begin) = TextSelection::new(steps, 3, &from).into_parts();
        assert_eq!(chain, [step(1, 60), step(2, 60)]);
        assert_eq!(begin, Some(second(40)));
    }
}
