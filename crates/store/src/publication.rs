//! A publish in progress.

use jiff::Timestamp;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::revision::Revision;

use crate::audit::{AuditContext, PublishedChange};
use crate::error::StoreError;
use crate::prepared::{PreparedProduct, ProductDigest};
use crate::record::{
    FetchedText, ProductVisitor, PublishedCounts, PutOutcome, RevisionNote, StoredProduct,
};

/// Error of a publish that puts a product twice, or puts and retires it: its version would end in the revision in which
/// it begins, and be live in none.
pub const DUPLICATE_PRODUCT: StoreError =
    StoreError::Unsupported("a publish can put or retire each product only once");

/// Changes of a publish that clients don't see until an override ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ineffective {
    /// Number of the override.
    pub override_number: u64,
    /// Number of changed fields.
    pub changes: u64,
}

/// A publish in progress: one transaction, rolled back if it is dropped without a commit.
pub trait Publication {
    /// Returns the live product of this code, as this publish leaves it so far.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    fn live(&mut self, code: &ProductCode) -> Result<Option<StoredProduct>, StoreError>;

    /// Announces the products that are used next, so that a store across a network can fetch them together. Changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    fn prefetch(&mut self, codes: &[&ProductCode]) -> Result<(), StoreError>;

    /// Returns the digest of the live product of each of these codes, as this publish leaves them so far; `None` for codes that
    /// aren't live. Cheap: documents aren't read, and of the codes of the last call, products are put and kept without another
    /// look at the store. Cheapest for hundreds of codes in ascending order.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    fn live_digests(
        &mut self,
        codes: &[&ProductCode],
    ) -> Result<Vec<Option<ProductDigest>>, StoreError>;

    /// Returns the codes of live products, hidden ones included. Of products that this publish puts, some are left out.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    fn live_codes(&mut self) -> Result<Vec<ProductCode>, StoreError>;

    /// Stores a text, unless it is stored already.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    fn put_text(
        &mut self,
        digest: &TextDigest,
        markdown: &PackedMarkdown,
    ) -> Result<(), StoreError>;

    /// Stores the result of fetching an outside URL, instead of the one before. The text must be [stored](Self::put_text)
    /// first.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    fn put_fetched(&mut self, fetched: &FetchedText) -> Result<(), StoreError>;

    /// Makes `product` the live product of its code.
    ///
    /// # Errors
    ///
    /// If the store can't be written, or this publish already put the product in another version.
    fn put(&mut self, product: &StoredProduct) -> Result<PutOutcome, StoreError> {
        let live = self.live_digests(&[&product.code])?.pop().flatten();
        if live == Some(ProductDigest::of(product)?) {
            self.keep(&product.code)?;
            return Ok(PutOutcome::Unchanged);
        }
        self.put_prepared(PreparedProduct::new(product.clone())?)
    }

    /// As [`put`](Self::put), for a product that another thread prepared.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    fn put_prepared(&mut self, product: PreparedProduct) -> Result<PutOutcome, StoreError>;

    /// Retires a product. Returns whether it was live.
    ///
    /// # Errors
    ///
    /// If the store can't be written, or this publish put the product.
    fn retire(&mut self, code: &ProductCode) -> Result<bool, StoreError>;

    /// Exempts the live product of this code from [`retire_others`](Self::retire_others). Returns whether there is one.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    fn keep(&mut self, code: &ProductCode) -> Result<bool, StoreError>;

    /// Returns the number of products that were live when this publish began, hidden ones included.
    fn live_before(&self) -> u64;

    /// Reads the products that were live when this publish began, in ascending order of codes.
    ///
    /// # Errors
    ///
    /// If the store can't be read, or `visit` fails.
    fn read_live_before(&mut self, visit: ProductVisitor<'_>) -> Result<(), StoreError>;

    /// Retires all live products that were neither [`put`](Self::put) nor [`kept`](Self::keep) in this publish. Returns
    /// their codes.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    fn retire_others(&mut self) -> Result<Vec<ProductCode>, StoreError>;

    /// Returns the changes so far that overrides hide, by the number of the override.
    fn ineffective(&self) -> Vec<Ineffective> {
        Vec::new()
    }

    /// Writes an entry into the audit log, which is committed with the rest. Call it last before the commit: other writers of the
    /// log wait until then.
    ///
    /// # Errors
    ///
    /// If the store can't be written.
    fn log(&mut self, context: &AuditContext, change: PublishedChange) -> Result<(), StoreError>;

    /// Commits as one new revision. If no product changed, makes no revision and returns `None`; [results of
    /// fetching](Self::put_fetched) are stored either way.
    ///
    /// # Errors
    ///
    /// If the store can't be written. Nothing was changed then.
    fn commit(
        self: Box<Self>,
        now: Timestamp,
        note: &RevisionNote,
    ) -> Result<Option<(Revision, PublishedCounts)>, StoreError>;
}
