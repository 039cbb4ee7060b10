//! A publish in progress.

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::revision::Revision;

use crate::error::StoreError;
use crate::record::{
    Change, FetchedText, ProductVisitor, PublishedCounts, RevisionNote, StoredProduct,
};

/// What a publish says that is to put a product twice, or to put and retire it: a version that ends in the revision in
/// which it begins would be live in none.
pub(crate) const NAMED_TWICE: StoreError =
    StoreError::Unsupported("a publish names each product once, to put it or to retire it");

/// A publish in progress: one transaction. Dropped without a commit, it changes nothing.
pub trait Publication {
    /// The live product of this code, as this publish finds it.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn live(&mut self, code: &ProductCode) -> Result<Option<StoredProduct>, StoreError>;

    /// Says which products are asked for next, so that a store across a network can fetch them together. It
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// Where the store can't be read.
    fn expect(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError>;

    /// Keeps a text; one that is there already stays.
    ///
    /// # Errors
    ///
    /// Where the store can't be written.
    fn put_text(
        &mut self,
        digest: &TextDigest,
        markdown: &PackedMarkdown,
    ) -> Result<(), StoreError>;

    /// Remembers what an outside address gave, in the place of what it gave before. The text must be
    /// [kept](Self::put_text).
    ///
    /// # Errors
    ///
    /// Where the store can't be written.
    fn remember_fetched(&mut self, fetched: &FetchedText) -> Result<(), StoreError>;

    /// Makes `product` the live one of its code.
    ///
    /// # Errors
    ///
    /// Where the store can't be written, or this publish put the product already.
    fn put(&mut self, product: &StoredProduct) -> Result<Change, StoreError>;

    /// Retires one product. Returns whether it was live.
    ///
    /// # Errors
    ///
    /// Where the store can't be written, or this publish put the product.
    fn retire(&mut self, code: &ProductCode) -> Result<bool, StoreError>;

    /// Leaves the live product of this code as it is, whatever [`retire_others`](Self::retire_others) does.
    /// Returns whether there is one.
    ///
    /// # Errors
    ///
    /// Where the store can't be written.
    fn keep(&mut self, code: &ProductCode) -> Result<bool, StoreError>;

    /// How many products were live when this publish began.
    fn live_before(&self) -> u64;

    /// Reads the products that were live when this publish began, in ascending order of codes.
    ///
    /// # Errors
    ///
    /// Where the store can't be read, or `visit` fails.
    fn read_before(&mut self, visit: ProductVisitor<'_>) -> Result<(), StoreError>;

    /// Retires every live product that was neither [`put`](Self::put) nor [`kept`](Self::keep) in this
    /// publish. Returns which.
    ///
    /// # Errors
    ///
    /// Where the store can't be written.
    fn retire_others(&mut self) -> Result<Vec<ProductCode>, StoreError>;

    /// Makes the live catalog what it was in the revision of this number. Nothing is rewritten: the
    /// old content becomes new versions. Returns whether there is such a revision.
    ///
    /// # Errors
    ///
    /// Where the store can't be written, or the revision was pruned ([`StoreError::Pruned`]).
    fn restore(&mut self, number: u64) -> Result<bool, StoreError>;

    /// Commits as one new revision; or, where no product changed, makes none and returns `None`. What was
    /// [remembered](Self::remember_fetched) is kept either way.
    ///
    /// # Errors
    ///
    /// Where the store can't be written; then nothing has changed.
    fn commit(
        self: Box<Self>,
        now: Timestamp,
        note: &RevisionNote,
    ) -> Result<Option<(Revision, PublishedCounts)>, StoreError>;
}
