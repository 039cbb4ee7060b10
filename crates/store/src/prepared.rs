//! Products ready to be written: what costs time is done on any thread, before the one thread that writes has its turn.

use std::collections::HashMap;
use std::fmt;

use vitrine_model::code::ProductCode;
use vitrine_model::hexadecimal::Hexadecimal;

use crate::StoreError;
use crate::db::values;
use crate::document::PackedDocument;
use crate::postgres::WORK_TIMEOUT;
use crate::record::StoredProduct;
use crate::values;

const READING: &str = "reading the digests of records";

/// Digest of a product, which tells a changed one from an unchanged one. It covers all fields of a [`StoredProduct`]
/// but the place of its content resources, and doesn't depend on how the document is packed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductDigest(pub(crate) [u8; 16]);

impl fmt::Debug for ProductDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ProductDigest({})", Hexadecimal(&self.0))
    }
}

/// Digest of a record as it was loaded, made by those who load: a load knows by it that a record is the one that led to
/// the live version, and needn't be read again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordDigest(pub [u8; 16]);

impl RecordDigest {
    /// Returns a stored digest; a damaged one is none.
    pub(crate) fn stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Debug for RecordDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RecordDigest({})", Hexadecimal(&self.0))
    }
}

/// Id of a version within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionId(pub i64);

/// Live versions, by the digest of the record that each was loaded from.
#[derive(Debug, Default)]
pub struct LoadedVersions {
    /// Id of the live revision.
    pub revision: Option<String>,
    /// Codes and versions.
    pub by_record: HashMap<RecordDigest, (ProductCode, VersionId)>,
}

impl crate::Store {
    /// Returns the live versions whose records are known; or `None` if more than `max_products` are live.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn loaded_versions(&self, max_products: u32) -> Result<Option<LoadedVersions>, StoreError> {
        self.db().read_within(WORK_TIMEOUT, READING, |tx| {
            let sql = "select count(*) from (select 1 from vitrine.product_version \
                       where until_revision is null limit $1) live";
            let limit = i64::from(max_products) + 1;
            if limit == tx.value::<i64>(sql, values![limit])? {
                return Ok(None);
            }
            let mut loaded = LoadedVersions {
                revision: tx.value("select revision_id from vitrine.state", &[])?,
                by_record: HashMap::new(),
            };
            let sql = "select record_digest, code, id from vitrine.product_version /*scan*/ \
                       where until_revision is null and record_digest is not null";
            tx.each(sql, &[], |row| {
                if let Some(digest) = RecordDigest::stored(row.get(0)?) {
                    let version = (values::code(row.get(1)?)?, VersionId(row.get(2)?));
                    loaded.by_record.insert(digest, version);
                }
                Ok(())
            })?;
            Ok(Some(loaded))
        })
    }
}

/// Digests of a live product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveDigests {
    /// Digest of the product.
    pub product: ProductDigest,
    /// Digest of the record that it was loaded from, if it is known.
    pub record: Option<RecordDigest>,
}

/// A product ready to be written by [`put_prepared`](crate::Publication::put_prepared). Made on any thread.
#[derive(Debug, Clone)]
pub struct PreparedProduct {
    product: StoredProduct,
    /// Countries and categories as stored.
    lists: [String; 2],
    digest: ProductDigest,
    record: Option<RecordDigest>,
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
        let digest = values::product_digest(&product, &lists);
        Ok(Self {
            product,
            lists,
            digest: ProductDigest(digest),
            record: None,
            packed: None,
        })
    }

    /// Packs the document. A publish does it on its own thread if that hasn't happened; products that turn out to be
    /// unchanged needn't be packed.
    ///
    /// # Errors
    ///
    /// If the document can't be packed.
    pub fn pack(&mut self) -> Result<(), StoreError> {
        if self.packed.is_none() {
            self.packed = Some(PackedDocument::pack(self.product.document.as_bytes())?);
        }
        Ok(())
    }

    /// Sets the digest of the record that the product was loaded from.
    pub fn set_record(&mut self, record: Option<RecordDigest>) {
        self.record = record;
    }

    /// Returns the digest of the record that it was loaded from, if it is known.
    #[must_use]
    pub fn record(&self) -> Option<RecordDigest> {
        self.record
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

    /// Returns the bytes of its digest.
    pub(crate) fn digest_bytes(&self) -> &[u8; 16] {
        &self.digest.0
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
