//! Bases beside overridden products, as JSON: whole in PostgreSQL, and their texts in SQLite.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use vitrine_model::geo::Country;

use crate::StoreError;
use crate::digest::RowHash;
use crate::record::{OwnText, StoredProduct};
use crate::values::code;

/// A base as it is stored.
#[derive(Serialize, Deserialize)]
struct Row {
    document: String,
    content: Option<Range<usize>>,
    discount_multiplier: String,
    is_orderable: bool,
    countries: Vec<String>,
    categories: Vec<String>,
    own_texts: Vec<TextRow>,
}

/// A text of a base.
#[derive(Serialize, Deserialize)]
struct TextRow {
    name: String,
    digest: String,
    source: Option<String>,
}

impl From<&OwnText> for TextRow {
    fn from(own: &OwnText) -> Self {
        Self {
            name: own.name.as_str().to_owned(),
            digest: own.digest.to_string(),
            source: own.source.clone(),
        }
    }
}

impl TextRow {
    /// Returns the text; `None` if the row is damaged.
    fn into_text(self) -> Option<OwnText> {
        Some(OwnText {
            name: self.name.parse().ok()?,
            digest: self.digest.parse().ok()?,
            source: self.source,
        })
    }
}

/// Returns the texts of a base as JSON.
pub(crate) fn texts_json(own_texts: &[OwnText]) -> Result<String, StoreError> {
    let texts: Vec<TextRow> = own_texts.iter().map(TextRow::from).collect();
    serde_json::to_string(&texts).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Returns the texts of a base from their JSON.
pub(crate) fn texts_of_json(json: &str) -> Result<Vec<OwnText>, StoreError> {
    let damaged = || StoreError::Damaged("the texts of a base can't be read".to_owned());
    let texts: Vec<TextRow> = serde_json::from_str(json).map_err(|_| damaged())?;
    let texts: Option<Vec<OwnText>> = texts.into_iter().map(TextRow::into_text).collect();
    texts.ok_or_else(damaged)
}

/// Returns a base as JSON.
pub(crate) fn base_json(base: &StoredProduct) -> Result<String, StoreError> {
    let texts = base.own_texts.iter().map(TextRow::from);
    let row = Row {
        document: base.document.clone(),
        content: base.content.clone(),
        discount_multiplier: base.discount_multiplier.clone(),
        is_orderable: base.is_orderable,
        countries: base.countries.iter().map(ToString::to_string).collect(),
        categories: base.categories.clone(),
        own_texts: texts.collect(),
    };
    serde_json::to_string(&row).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Returns a base from its JSON.
pub(crate) fn base_of(stored_code: &str, json: &str) -> Result<StoredProduct, StoreError> {
    let damaged =
        |what: String| StoreError::Damaged(format!("the base of product {stored_code}: {what}"));
    let row: Row = serde_json::from_str(json).map_err(|error| damaged(error.to_string()))?;
    let own_texts: Option<Vec<OwnText>> =
        (row.own_texts.into_iter().map(TextRow::into_text)).collect();
    let countries: Option<Vec<Country>> =
        (row.countries.iter().map(|text| text.parse().ok())).collect();
    Ok(StoredProduct {
        code: code(stored_code)?,
        document: row.document,
        content: row.content,
        discount_multiplier: row.discount_multiplier,
        is_orderable: row.is_orderable,
        countries: countries.ok_or_else(|| damaged("invalid countries".to_owned()))?,
        categories: row.categories,
        own_texts: own_texts.ok_or_else(|| damaged("invalid texts".to_owned()))?,
    })
}

/// Returns the digest with which a base is stored: of its code and its JSON.
pub(crate) fn base_digest(stored_code: &str, json: &str) -> [u8; 16] {
    let mut hash = RowHash::default();
    hash.bytes(Some(stored_code.as_bytes()));
    hash.bytes(Some(json.as_bytes()));
    hash.finish()
}
