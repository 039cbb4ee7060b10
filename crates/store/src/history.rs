//! Types of the history of changes: what each revision and each texts state changed, for the changes feed
//! (contract, section "Changes").

use jiff::Timestamp;
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

use crate::record::StoreState;

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
