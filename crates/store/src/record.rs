//! Types that are written to a store and read from it.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::Date;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest, TextName};
use vitrine_model::geo::Country;
use vitrine_model::key::KeyRequests;
use vitrine_model::revision::Revision;

pub use crate::digest::StoredDigest;

/// State of a store. Compare for equality only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreState {
    /// Id of the store: another file may have been put in its place.
    pub store_id: String,
    /// Id of the live revision; none if nothing was published yet.
    pub revision_id: Option<String>,
    /// Counter of changes to answers without a revision: texts taken down or put back. It grows by random steps, so that
    /// it differs between copies of a store that were changed separately.
    pub texts: u64,
    /// Counter of changes to keys. It grows by random steps, too: after a database failed over to a replica that lagged,
    /// the same number must not stand for other keys.
    pub keys: u64,
    /// Counter of changes to assortments, which grows by random steps, too.
    pub assortments: u64,
    /// Time at which assortments were last accepted by an operator, or restored from a backup; it only ever grows. Where
    /// it is later than the one that a server knows, assortments that vanished did so on purpose.
    pub assortments_accepted: Option<Timestamp>,
}

impl StoreState {
    /// Returns the part that tells whether the catalog changed, without keys and assortments.
    #[must_use]
    pub fn of_catalog(self) -> Self {
        Self {
            keys: 0,
            assortments: 0,
            assortments_accepted: None,
            ..self
        }
    }
}

/// A version of a product, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProduct {
    /// Product code.
    pub code: ProductCode,
    /// Canonical document, opaque to the store.
    pub document: String,
    /// Range of the content resources in `document`, in bytes.
    pub content: Option<Range<usize>>,
    /// Discount exactly as loaded; the document may have fewer digits.
    pub discount_multiplier: String,
    /// True if the product can be ordered.
    pub is_orderable: bool,
    /// Countries in which it can be redeemed.
    pub countries: Vec<Country>,
    /// Categories.
    pub categories: Vec<String>,
    /// Texts whose Markdown the store has.
    pub own_texts: Vec<OwnText>,
}

/// A text of a product whose Markdown the store has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnText {
    /// Name of the text.
    pub name: TextName,
    /// Digest of its Markdown.
    pub digest: TextDigest,
    /// Outside URL that it was fetched from.
    pub source: Option<String>,
}

/// Result of the last fetch of an outside URL that returned something new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedText {
    /// URL, as products name it.
    pub url: String,
    /// Digest of the fetched Markdown.
    pub digest: TextDigest,
    /// Validator of the response (RFC 9110, 8.8.3).
    pub etag: Option<String>,
    /// Time of the last change, as the other server sent it (RFC 9110, 8.8.2).
    pub last_modified: Option<String>,
    /// Time of the fetch.
    pub fetched_at: Timestamp,
}

/// Result of a [`put`](crate::Publication::put).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// There was no live product of this code.
    Created,
    /// The live product differed.
    Changed,
    /// The live product was the same.
    Unchanged,
}

/// Numbers of products by what a publish did to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublishedCounts {
    /// Products that weren't live before.
    pub created: u64,
    /// Products that were live with another content.
    pub changed: u64,
    /// Products that are no longer live.
    pub retired: u64,
    /// Products that stayed as they were.
    pub unchanged: u64,
}

impl PublishedCounts {
    /// Returns true if no product changed.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        (self.created, self.changed, self.retired) == (0, 0, 0)
    }
}

impl fmt::Display for PublishedCounts {
    /// Formats the numbers as all commands print them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            created,
            changed,
            retired,
            unchanged,
        } = self;
        write!(
            out,
            "{created} created, {changed} changed, {retired} retired, {unchanged} unchanged"
        )
    }
}

/// Author and note of a revision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RevisionNote {
    /// Name of the author.
    pub by: String,
    /// Reason, in the author's words.
    pub note: Option<String>,
    /// SHA-256 of the inputs' bytes in hexadecimal, of a followed mirror behind its token and removals; none without inputs.
    pub source_digest: Option<String>,
}

/// An entry of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedRevision {
    /// The revision.
    pub revision: Revision,
    /// Numbers of products that it changed.
    pub counts: PublishedCounts,
    /// Author and note.
    pub note: RevisionNote,
    /// Availability of its products.
    pub availability: Availability,
}

/// Availability of a revision's products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// They can be read.
    Readable,
    /// They were pruned.
    Pruned,
}

/// Span of revisions in which a version of a product was live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionSpan {
    /// First revision that has the version.
    pub from: u64,
    /// First revision after `from` without the version; none while it is live.
    pub until: Option<u64>,
}

/// A product that a revision changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedProduct {
    /// Product code.
    pub code: ProductCode,
    /// Kind of change.
    pub kind: ChangeKind,
}

/// Kind of change of a product by a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It wasn't live before.
    Created,
    /// It was live with another content.
    Changed,
    /// It is no longer live.
    Retired,
}

impl ChangeKind {
    /// Returns whether a version of the product began, and whether one ended.
    pub(crate) fn bounds(self) -> (bool, bool) {
        match self {
            Self::Created => (true, false),
            Self::Changed => (true, true),
            Self::Retired => (false, true),
        }
    }

    /// Returns the kind, given whether a version of the product began and one ended.
    pub(crate) fn from_bounds(began: bool, ended: bool) -> Self {
        match (began, ended) {
            (true, true) => Self::Changed,
            (true, false) => Self::Created,
            (false, _) => Self::Retired,
        }
    }
}

/// Revisions that a prune keeps; always including the live one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// This number of the newest, the live one included.
    Newest(NonZeroU32),
    /// All that were live at some time since then.
    LiveSince(Timestamp),
}

/// Result of a prune, or of its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneReport {
    /// Oldest revision that can be read afterwards; none if nothing was published.
    pub oldest_readable: Option<u64>,
    /// Number of revisions that could be read before and can't afterwards.
    pub revisions: u64,
    /// Number of versions of products that are deleted.
    pub versions: u64,
    /// Number of texts that are deleted.
    pub texts: u64,
    /// Number of versions that no kept revision has and that stay all the same: they were replaced so recently that
    /// their texts are still served.
    pub waiting_versions: u64,
    /// Free space in the store's file that later writes reuse, in bytes; for a plan, before the prune.
    pub free_bytes: u64,
}

/// A state of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moment {
    /// The live catalog.
    #[default]
    Live,
    /// The catalog of the revision of this number.
    Revision(u64),
}

/// Requests of a key on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDay {
    /// Day, in UTC.
    pub day: Date,
    /// Prefix of the key.
    pub prefix: String,
    /// Numbers of its requests.
    pub counts: KeyRequests,
}

/// Callback for each product.
pub type ProductVisitor<'v> =
    &'v mut dyn FnMut(StoredProduct) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// A live product, as its row has it.
#[derive(Debug)]
pub struct LiveProduct<'a> {
    /// Product code.
    pub code: &'a str,
    /// Canonical document.
    pub document: &'a str,
    /// Range of the content resources in `document`, in bytes.
    pub content: Option<Range<usize>>,
    /// Discount exactly as loaded.
    pub discount_multiplier: &'a str,
    /// True if the product can be ordered.
    pub is_orderable: bool,
    /// Countries in which it can be redeemed.
    pub countries: &'a [Country],
    /// Categories.
    pub categories: &'a [Box<str>],
    /// Digests of its texts that were taken down.
    pub taken_down: &'a [TextDigest],
    /// Digest of the product as it was written.
    pub digest: StoredDigest,
}

/// Item of [`read_catalog`](crate::Store::read_catalog).
#[derive(Debug)]
pub enum CatalogItem<'a> {
    /// A live product, in ascending order of codes.
    Product(LiveProduct<'a>),
    /// A live product whose row is damaged.
    Damaged {
        /// Product code, as far as it can be read.
        code: String,
    },
    /// A product that is no longer live; only among changes.
    Retired {
        /// Product code.
        code: &'a str,
    },
    /// A text, in ascending order of digests.
    Text {
        /// Digest, which names it.
        digest: TextDigest,
        /// Markdown.
        markdown: PackedMarkdown,
        /// Time at which the last revision that names it was replaced; `None` if the live one does.
        retired_at: Option<Timestamp>,
    },
}

/// Callback for each item of a catalog.
pub type ItemVisitor<'v> =
    &'v mut dyn for<'i> FnMut(
        CatalogItem<'i>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Service status of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStatus {
    /// Taken down.
    TakenDown,
    /// Served while a revision names it.
    Served,
}
