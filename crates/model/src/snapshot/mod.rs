//! The catalog in memory: one immutable value, built once per revision and shared by all requests.
//!
//! Products lie rendered, in code order, in one arena with their separators in place, so a stretch
//! of neighbours is one slice. Bitmaps say which positions a filter value has; `scan` intersects
//! them and cuts the page. Nothing here knows what the rendered bytes mean.
//!
//! - `build`: how a snapshot comes about
//! - `scan`: how a page is found

mod build;
mod scan;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use jiff::Timestamp;
use roaring::RoaringBitmap;

pub use build::{Entry, SnapshotBuilder};
pub use scan::Page;

use crate::code::ProductCode;
use crate::content::{PackedMarkdown, TextDigest, TextName};
use crate::place::Country;
use crate::revision::Revision;

/// The first half of the SHA-256 of some rendered bytes.
pub type ContentHash = [u8; 16];

/// One revision of the catalog, ready to be served.
#[derive(Debug, Default)]
pub struct Snapshot {
    revision: Revision,
    codes: Vec<ProductCode>,
    arena: Vec<u8>,
    products: Vec<Rendered>,
    own_texts: HashMap<u32, Vec<(TextName, TextDigest)>>,
    texts: HashMap<TextDigest, ServedText>,
    orderable: RoaringBitmap,
    countries: BTreeMap<Country, RoaringBitmap>,
    categories: BTreeMap<Box<str>, RoaringBitmap>,
}

/// Where one product lies in the arena.
#[derive(Debug)]
struct Rendered {
    bytes: Range<usize>,
    content: Option<Range<usize>>,
    hash: ContentHash,
}

/// A text that the service holds, and until when it is served.
#[derive(Debug)]
pub struct ServedText {
    /// The Markdown.
    pub markdown: PackedMarkdown,
    /// When serving ends; for a text that the live revision names, never.
    pub served_until: Option<Timestamp>,
}

/// A product in the snapshot.
#[derive(Debug, Clone, Copy)]
pub struct ProductView<'s> {
    snapshot: &'s Snapshot,
    position: u32,
}

impl Snapshot {
    /// Which revision this is.
    #[must_use]
    pub fn revision(&self) -> &Revision {
        &self.revision
    }

    /// How many products there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no product.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// How many bytes all rendered products take.
    #[must_use]
    pub fn rendered_bytes(&self) -> usize {
        self.arena.len()
    }

    /// The product of this code.
    #[must_use]
    pub fn product(&self, code: &ProductCode) -> Option<ProductView<'_>> {
        let position = self.codes.binary_search(code).ok()?;
        Some(self.view(u32::try_from(position).ok()?))
    }

    /// The countries that some product names, ascending.
    pub fn countries(&self) -> impl Iterator<Item = Country> {
        self.countries.keys().copied()
    }

    /// The categories that some product names, ascending byte-wise.
    pub fn categories(&self) -> impl Iterator<Item = &str> {
        self.categories.keys().map(AsRef::as_ref)
    }

    /// The text of this digest, if it is served at `now`.
    #[must_use]
    pub fn text(&self, digest: &TextDigest, now: Timestamp) -> Option<&PackedMarkdown> {
        let text = self.texts.get(digest)?;
        let is_served = text.served_until.is_none_or(|until| now < until);
        is_served.then_some(&text.markdown)
    }

    fn view(&self, position: u32) -> ProductView<'_> {
        ProductView {
            snapshot: self,
            position,
        }
    }

    fn rendered(&self, position: u32) -> &Rendered {
        &self.products[position as usize]
    }
}

impl<'s> ProductView<'s> {
    /// Its code.
    #[must_use]
    pub fn code(&self) -> &'s ProductCode {
        &self.snapshot.codes[self.position as usize]
    }

    /// Its bytes as they were rendered.
    #[must_use]
    pub fn bytes(&self) -> &'s [u8] {
        &self.snapshot.arena[self.snapshot.rendered(self.position).bytes.clone()]
    }

    /// The hash of its bytes.
    #[must_use]
    pub fn hash(&self) -> &'s ContentHash {
        &self.snapshot.rendered(self.position).hash
    }

    /// Where its content resources lie within [`bytes`](Self::bytes), if it has any.
    #[must_use]
    pub fn content(&self) -> Option<Range<usize>> {
        self.snapshot.rendered(self.position).content.clone()
    }

    /// The digest of the Markdown held for one of its texts.
    #[must_use]
    pub fn own_text(&self, name: TextName) -> Option<TextDigest> {
        let texts = self.snapshot.own_texts.get(&self.position)?;
        let (_, digest) = texts.iter().find(|(own, _)| *own == name)?;
        Some(*digest)
    }
}
