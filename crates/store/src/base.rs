//! Texts of products and bases as JSON.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::record::OwnText;

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
