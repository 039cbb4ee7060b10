//! Rows of products.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use crate::StoreError;
use crate::db::Row;
use crate::document::unpack_into;
use crate::record::{OwnText, StoredDigest, StoredProduct};
use crate::values::{code, hash_bytes, read_lists};

/// Versions and their documents, as [`PRODUCT_COLUMNS`] names them.
pub(crate) const VERSIONS: &str = "vitrine.product_version v \
    left join vitrine.product_document d on d.product_version_id = v.id";

/// Columns of a product, in the order in which [`ProductRow`] reads them; its texts as JSON.
pub(crate) const PRODUCT_COLUMNS: &str = "v.id, v.code, d.document, v.content_start, v.content_end, \
    v.discount_multiplier, v.is_orderable, v.countries, v.categories, \
    (select json_agg(json_build_object('name', t.name, 'digest', encode(t.digest, 'hex'), \
       'source', t.source_url))::text from vitrine.product_text t where t.product_version_id = v.id), \
    v.digest";

/// Bases beside products, and their versions and documents, for [`PRODUCT_COLUMNS`].
pub(crate) const BASES: &str = "vitrine.product_base b \
    /*sqlite cross*/ join vitrine.product_version v on v.id = b.version_id \
    left join vitrine.product_document d on d.product_version_id = v.id";

/// A row of a product.
pub(crate) struct ProductRow<'r> {
    pub(crate) code: &'r str,
    pub(crate) document: &'r str,
    pub(crate) content: Option<Range<usize>>,
    pub(crate) discount_multiplier: &'r str,
    pub(crate) is_orderable: bool,
    pub(crate) countries: &'r str,
    pub(crate) categories: &'r str,
    own_texts: Vec<OwnText>,
}

impl<'r> ProductRow<'r> {
    /// Number of columns.
    pub(crate) const COLUMNS: usize = 11;

    /// Reads a row; its document is unpacked into `unpacked`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] if a value of it is invalid.
    pub(crate) fn read(row: &Row<'r>, unpacked: &'r mut Vec<u8>) -> Result<Self, StoreError> {
        let packed: Option<&[u8]> = row.get(2)?;
        let packed =
            packed.ok_or_else(|| StoreError::Damaged("a version has no document".to_owned()))?;
        Ok(Self {
            code: row.get(1)?,
            document: unpack_into(packed, unpacked)?,
            content: content(row.get(3)?, row.get(4)?)?,
            discount_multiplier: row.get(5)?,
            is_orderable: row.get(6)?,
            countries: row.get(7)?,
            categories: row.get(8)?,
            own_texts: own_texts(row.get(9)?)?,
        })
    }

    /// Returns the stored digest of the product that this row has.
    pub(crate) fn stored_digest(&self, row: &Row<'_>) -> Result<StoredDigest, StoreError> {
        let digest = hash_bytes(row.get(10)?)?;
        let parts = [self.discount_multiplier, self.countries, self.categories];
        let is_orderable = i64::from(self.is_orderable);
        Ok(StoredDigest::new(
            digest,
            is_orderable,
            parts,
            &self.own_texts,
        ))
    }

    /// Returns the product.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] if its code or a list is invalid.
    pub(crate) fn into_product(self) -> Result<StoredProduct, StoreError> {
        let (countries, categories) = read_lists(self.code, self.countries, self.categories)?;
        Ok(StoredProduct {
            code: code(self.code)?,
            document: self.document.to_owned(),
            content: self.content,
            discount_multiplier: self.discount_multiplier.to_owned(),
            is_orderable: self.is_orderable,
            countries,
            categories,
            own_texts: self.own_texts,
        })
    }
}

/// Returns the range of the content resources.
fn content(start: Option<i64>, end: Option<i64>) -> Result<Option<Range<usize>>, StoreError> {
    let place = |place: i64| {
        usize::try_from(place).map_err(|_| {
            StoreError::Damaged(format!("content resources at the invalid place {place}"))
        })
    };
    let range = start.zip(end);
    let range = range.map(|(start, end)| Ok::<_, StoreError>(place(start)?..place(end)?));
    range.transpose()
}

/// A text of a product in JSON.
#[derive(Deserialize)]
struct TextRow<'t> {
    #[serde(borrow)]
    name: Cow<'t, str>,
    #[serde(borrow)]
    digest: Cow<'t, str>,
    source: Option<String>,
}

/// Returns the texts in the order of the contract, as a load has them: it compares products with the live ones.
pub(crate) fn own_texts(json: Option<&str>) -> Result<Vec<OwnText>, StoreError> {
    let damaged = || StoreError::Damaged("the texts of a product can't be read".to_owned());
    let rows: Vec<TextRow<'_>> = match json {
        // Most products have none.
        None => Vec::new(),
        Some(json) => serde_json::from_str(json).map_err(|_| damaged())?,
    };
    let own = |row: TextRow<'_>| {
        Some(OwnText {
            name: row.name.parse().ok()?,
            digest: row.digest.parse().ok()?,
            source: row.source,
        })
    };
    let texts: Option<Vec<OwnText>> = rows.into_iter().map(own).collect();
    let mut texts = texts.ok_or_else(damaged)?;
    texts.sort_by_key(|text| text.name);
    Ok(texts)
}
