//! Products ready to be written: what costs time is done on any thread, before the one thread that writes has its turn.

use std::fmt;

use vitrine_model::code::ProductCode;
use vitrine_model::hexadecimal::Hexadecimal;

use crate::StoreError;
use crate::document::PackedDocument;
use crate::record::StoredProduct;
use crate::values;

/// Form in which a store keeps documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentForm {
    /// As they are.
    Text,
    /// Compressed.
    Packed,
}

/// Digest of a product, which tells a changed one from an unchanged one. It covers all fields of a [`StoredProduct`] but
/// the place of its content resources, and doesn't depend on the form in which the document is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductDigest(pub(crate) [u8; 32]);

impl fmt::Debug for ProductDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ProductDigest({})", Hexadecimal(&self.0))
    }
}

/// A product ready to be written by [`put_prepared`](crate::Publication::put_prepared). Made on any thread.
#[derive(Debug, Clone)]
pub struct PreparedProduct {
    product: StoredProduct,
    /// Countries and categories as stored.
    lists: [String; 2],
    digest: ProductDigest,
    packed: Option<PackedDocument>,
}

impl PreparedProduct {
    /// Computes the digest and the columns of a product. If it is to be written, [`pack`](Self::pack) it, too.
    ///
    /// # Errors
    ///
    /// If it can't be stored.
    pub fn new(product: StoredProduct) -> Result<Self, StoreError> {
        let lists = values::lists(&product)?;
        let digest = ProductDigest(values::product_digest(&product, &lists));
        Ok(Self {
            product,
            lists,
            digest,
            packed: None,
        })
    }

    /// Packs the document for a store that keeps documents in this form. A publish does it on its own thread if that hasn't
    /// happened; products that turn out to be unchanged needn't be packed.
    ///
    /// # Errors
    ///
    /// If the document can't be packed.
    pub fn pack(&mut self, form: DocumentForm) -> Result<(), StoreError> {
        if form == DocumentForm::Packed && self.packed.is_none() {
            self.packed = Some(PackedDocument::pack(self.product.document.as_bytes())?);
        }
        Ok(())
    }

    /// Returns its code.
    #[must_use]
    pub fn code(&self) -> &ProductCode {
        &self.product.code
    }

    /// Returns its digest.
    #[must_use]
    pub fn digest(&self) -> ProductDigest {
        self.digest
    }

    /// Returns the product.
    #[must_use]
    pub fn product(&self) -> &StoredProduct {
        &self.product
    }

    /// Returns the product.
    #[must_use]
    pub fn into_product(self) -> StoredProduct {
        self.product
    }

    /// Returns the packed document; empty if it wasn't packed.
    pub(crate) fn packed(&self) -> &[u8] {
        self.packed.as_ref().map_or(&[], PackedDocument::as_bytes)
    }

    /// Returns its countries and categories as stored.
    pub(crate) fn lists(&self) -> &[String; 2] {
        &self.lists
    }
}
