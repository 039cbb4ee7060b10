//! Texts of products and bases as JSON; and whole bases, in the first SQLite schemas that had them.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use vitrine_model::geo::Country;

use crate::record::{OwnText, StoredProduct};
use crate::values::code;
use crate::{StoreError, digest};

/// A base as it was stored.
#[derive(Deserialize)]
struct Row<'t> {
    document: String,
    content: Option<Range<usize>>,
    discount_multiplier: String,
    is_orderable: bool,
    countries: Vec<String>,
    categories: Vec<String>,
    #[serde(borrow)]
    own_texts: Vec<TextRow<'t>>,
}

/// A text of a product or a base.
#[derive(Serialize, Deserialize)]
struct TextRow<'t> {
    #[serde(borrow)]
    name: Cow<'t, str>,
    #[serde(borrow)]
    digest: Cow<'t, str>,
    source: Option<Cow<'t, str>>,
}

impl<'t> From<&'t OwnText> for TextRow<'t> {
    fn from(own: &'t OwnText) -> Self {
        Self {
            name: own.name.as_str().into(),
            digest: own.digest.to_string().into(),
            source: own.source.as_deref().map(Cow::from),
        }
    }
}

impl TextRow<'_> {
    /// Returns the text; `None` if the row is damaged.
    fn into_text(self) -> Option<OwnText> {
        Some(OwnText {
            name: self.name.parse().ok()?,
            digest: self.digest.parse().ok()?,
            source: self.source.map(Cow::into_owned),
        })
    }
}

/// Returns the texts of a base as JSON.
pub(crate) fn texts_json(own_texts: &[OwnText]) -> Result<String, StoreError> {
    let texts: Vec<TextRow<'_>> = own_texts.iter().map(TextRow::from).collect();
    serde_json::to_string(&texts).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Returns the texts of a product or a base from their JSON.
pub(crate) fn texts_of_json(json: &str) -> Result<Vec<OwnText>, StoreError> {
    let damaged = || StoreError::Damaged("the texts of a product can't be read".to_owned());
    let texts: Vec<TextRow<'_>> = serde_json::from_str(json).map_err(|_| damaged())?;
    let texts: Option<Vec<OwnText>> = texts.into_iter().map(TextRow::into_text).collect();
    texts.ok_or_else(damaged)
}

/// Returns a base from its JSON.
pub(crate) fn base_of(stored_code: &str, json: &str) -> Result<StoredProduct, StoreError> {
    let damaged =
        |what: String| StoreError::Damaged(format!("the base of product {stored_code}: {what}"));
    let row: Row<'_> = serde_json::from_str(json).map_err(|error| damaged(error.to_string()))?;
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
pub(crate) fn base_digest(stored_code: &str, json: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    let parts = [stored_code, json].map(|part| Some(part.as_bytes()));
    digest::add_parts(&mut hash, parts);
    hash.finalize().into()
}
