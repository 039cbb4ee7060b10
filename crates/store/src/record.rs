//! What goes into a store and comes out of it.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest, TextName};
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;

pub use crate::seal::Seal;

/// Which state a store is in. Compare for equality only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The id of the store itself: another file may have been put in its place.
    pub store_id: String,
    /// The id of the live revision, where something was published.
    pub revision_id: Option<String>,
    /// Goes up with what changes the catalog's answers without a revision: texts taken down or put back.
    /// By random steps, so that it tells copies of a store apart in which that was done.
    pub texts: u64,
    /// Goes up with every change of keys; by random steps too: after a database failed over to a copy that
    /// was behind, the same number must not come again for other keys.
    pub keys: u64,
}

/// One version of one product, as it rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProduct {
    /// Its code.
    pub code: ProductCode,
    /// Its canonical text, opaque to the store.
    pub document: String,
    /// Where in `document` the content resources lie, in bytes.
    pub content: Option<Range<usize>>,
    /// The discount exactly as it was loaded; the document may show less.
    pub discount_multiplier: String,
    /// Whether it can be ordered.
    pub is_orderable: bool,
    /// Where it can be redeemed.
    pub countries: Vec<Country>,
    /// Its categories.
    pub categories: Vec<String>,
    /// Its texts whose Markdown is held.
    pub own_texts: Vec<OwnText>,
}

/// A text of a product whose Markdown the store holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnText {
    /// Which text.
    pub name: TextName,
    /// Its Markdown.
    pub digest: TextDigest,
    /// The outside address that it came from.
    pub source: Option<String>,
}

/// What an outside address gave when it was last asked and had something new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedText {
    /// The address, as products name it.
    pub url: String,
    /// The Markdown that came from there.
    pub digest: TextDigest,
    /// The validator that came with it (RFC 9110, 8.8.3).
    pub etag: Option<String>,
    /// When it was last changed there, in the other server's words (RFC 9110, 8.8.2).
    pub last_modified: Option<String>,
    /// When it came.
    pub fetched_at: Timestamp,
}

/// What one [`put`](crate::Publication::put) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// There was no live product of this code.
    Created,
    /// The live product differed.
    Changed,
    /// The live product was the same.
    Unchanged,
}

/// What a publish did.
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

impl fmt::Display for PublishedCounts {
    /// The numbers in words, as every command says them.
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

/// Who published something, and what they say of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RevisionNote {
    /// Who.
    pub by: String,
    /// Why, in their own words.
    pub note: Option<String>,
    /// The SHA-256 of the inputs' bytes, in hexadecimal digits, where there were inputs.
    pub source_digest: Option<String>,
}

/// A revision of the past or the present, as history tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedRevision {
    /// Which.
    pub revision: Revision,
    /// What it did.
    pub counts: PublishedCounts,
    /// Who and why.
    pub note: RevisionNote,
    /// Whether its products can still be read.
    pub reading: Reading,
}

/// Whether a revision's products can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// They can.
    Possible,
    /// They were pruned.
    Pruned,
}

/// When a version of a product lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// The revision that made it.
    pub from: u64,
    /// The revision that ended it; none where it is live.
    pub until: Option<u64>,
}

/// A product that a revision changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Its code.
    pub code: ProductCode,
    /// What became of it.
    pub how: Touch,
}

/// What a revision did to a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// It wasn't live before.
    Created,
    /// It was live with another content.
    Changed,
    /// It is no longer live.
    Retired,
}

impl Touch {
    /// Returns whether a version of the product began, and whether one ended.
    pub(crate) fn began_and_ended(self) -> (bool, bool) {
        match self {
            Self::Created => (true, false),
            Self::Changed => (true, true),
            Self::Retired => (false, true),
        }
    }

    /// By whether a version began and one ended.
    pub(crate) fn of(began: bool, ended: bool) -> Self {
        match (began, ended) {
            (true, true) => Self::Changed,
            (true, false) => Self::Created,
            (false, _) => Self::Retired,
        }
    }
}

/// Which revisions a prune keeps; the live one always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// So many, the newest; the live one is the first of them.
    Newest(NonZeroU32),
    /// Those that were live at some time since then.
    LiveSince(Timestamp),
}

/// What a prune freed, or would free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// The oldest revision that can be read afterwards; none where nothing was published.
    pub oldest_readable: Option<u64>,
    /// Revisions that could be read before, and can't afterwards.
    pub revisions: u64,
    /// Versions of products that go.
    pub versions: u64,
    /// Texts that go.
    pub texts: u64,
    /// Versions of products that no kept revision sees and that stay all the same: they were replaced
    /// so lately that their texts are still served.
    pub waiting_versions: u64,
    /// What of the store's file is free for what is written next, in bytes; of a plan, as it is now.
    pub free_bytes: u64,
}

/// Which state of the catalog is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moment {
    /// What is live.
    #[default]
    Live,
    /// What was live in the revision of this number.
    Revision(u64),
}

/// Takes products one by one.
pub type ProductVisitor<'v> =
    &'v mut dyn FnMut(StoredProduct) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// What [`read_catalog`](crate::Store::read_catalog) comes across.
#[derive(Debug)]
pub enum CatalogItem<'a> {
    /// A live product, in ascending order of codes.
    Product {
        /// Its code.
        code: &'a str,
        /// Its canonical text.
        document: &'a str,
        /// Where in `document` the content resources lie.
        content: Option<Range<usize>>,
        /// Whether it can be ordered.
        is_orderable: bool,
        /// Where it can be redeemed.
        countries: &'a [Country],
        /// Its categories.
        categories: &'a [Box<str>],
        /// Its texts that were taken down.
        taken_down: &'a [TextDigest],
        /// Digest of the product as it was written.
        seal: Seal,
    },
    /// A live product whose row can't be read as one.
    Damaged {
        /// Its code, as far as that can be read.
        code: String,
    },
    /// A product that isn't live any more; only where changes are read.
    Retired {
        /// Its code.
        code: &'a str,
    },
    /// A text, in ascending order of digests.
    Text {
        /// Its name.
        digest: TextDigest,
        /// Its Markdown.
        markdown: PackedMarkdown,
        /// When the last revision that named it was replaced; `None` while the live one names it.
        retired_at: Option<Timestamp>,
    },
}

/// Takes the items of a catalog one by one.
pub type ItemVisitor<'v> =
    &'v mut dyn for<'i> FnMut(
        CatalogItem<'i>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
