//! Products ready to be written: packed, so that many wait in little memory. What costs time is done on any thread, before
//! the one thread that writes has its turn.

use std::fmt;
use std::ops::Range;

use vitrine_model::code::ProductCode;
use vitrine_model::hexadecimal::Hexadecimal;

use crate::StoreError;
use crate::db::Value;
use crate::document::{self, PackedDocument};
use crate::record::{OwnText, StoredProduct};
use crate::values;

/// Digest of a product, which tells a changed one from an unchanged one. It covers all fields of a [`StoredProduct`]
/// but the place of its content resources, and doesn't depend on how the document is packed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductDigest(pub(crate) [u8; 16]);

impl ProductDigest {
    /// Returns the digest of a product.
    ///
    /// # Errors
    ///
    /// If the product can't be stored.
    pub fn of(product: &StoredProduct) -> Result<Self, StoreError> {
        let lists = values::lists(product)?;
        Ok(Self(values::product_digest(product, &lists)))
    }
}

impl fmt::Debug for ProductDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ProductDigest({})", Hexadecimal(&self.0))
    }
}

/// A product ready to be written by [`put_prepared`](crate::Publication::put_prepared). Made on any thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedProduct {
    code: ProductCode,
    document: PackedDocument,
    content: Option<Range<usize>>,
    discount_multiplier: String,
    is_orderable: bool,
    /// Countries and categories as stored.
    lists: [Box<str>; 2],
    own_texts: Vec<OwnText>,
    digest: ProductDigest,
}

impl PreparedProduct {
    /// Packs a product, and computes its digest and columns.
    ///
    /// # Errors
    ///
    /// If it can't be stored.
    pub fn new(product: StoredProduct) -> Result<Self, StoreError> {
        let lists = values::lists(&product)?;
        let digest = ProductDigest(values::product_digest(&product, &lists));
        let document = PackedDocument::pack(product.document.as_bytes())?;
        Ok(Self {
            code: product.code,
            document,
            content: product.content,
            discount_multiplier: product.discount_multiplier,
            is_orderable: product.is_orderable,
            lists: lists.map(String::into_boxed_str),
            own_texts: product.own_texts,
            digest,
        })
    }

    /// Returns its code.
    #[must_use]
    pub fn code(&self) -> &ProductCode {
        &self.code
    }

    /// Returns its digest.
    #[must_use]
    pub fn digest(&self) -> ProductDigest {
        self.digest
    }

    /// Returns its texts whose Markdown the store has.
    #[must_use]
    pub fn own_texts(&self) -> &[OwnText] {
        &self.own_texts
    }

    /// Unpacks the product.
    ///
    /// # Errors
    ///
    /// If its memory was damaged.
    pub fn product(&self) -> Result<StoredProduct, StoreError> {
        let [countries, categories] = &self.lists;
        let (countries, categories) =
            values::read_lists(self.code.as_str(), countries, categories)?;
        Ok(StoredProduct {
            code: self.code.clone(),
            document: document::unpack(self.document.as_bytes())?,
            content: self.content.clone(),
            discount_multiplier: self.discount_multiplier.clone(),
            is_orderable: self.is_orderable,
            countries,
            categories,
            own_texts: self.own_texts.clone(),
        })
    }

    /// Returns the packed document.
    pub(crate) fn packed(&self) -> &[u8] {
        self.document.as_bytes()
    }

    /// Returns the values of the columns of its version, from the code on.
    pub(crate) fn columns(&self) -> [Value<'_>; 8] {
        let [countries, categories] = &self.lists;
        let content = self.content.as_ref();
        let place = |place: usize| i64::try_from(place).unwrap_or(i64::MAX);
        [
            self.code.as_str().into(),
            (&self.digest.0).into(),
            content.map(|range| place(range.start)).into(),
            content.map(|range| place(range.end)).into(),
            (&self.discount_multiplier).into(),
            self.is_orderable.into(),
            (&**countries).into(),
            (&**categories).into(),
        ]
    }
}
