//! The history of changes: what each revision and each texts state changed.
//!
//! - `read`: reading it; `text_selection`: the changes of texts that are read

mod read;
mod text_selection;

use jiff::Timestamp;
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

use crate::StoreError;
use crate::digest::StoredDigest;
use crate::record::StoreState;
use crate::values::ListCache;

pub(crate) use read::read;
use text_selection::TextSelection;

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
