//! What both stores keep in the same form, and how it is read and made.

use std::collections::HashMap;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use vitrine_model::code::ProductCode;
use vitrine_model::place::Country;

use crate::StoreError;
use crate::record::{OwnText, StoredProduct};

/// A moment as a store keeps it.
pub(crate) fn from_millis(millis: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_millisecond(millis)
        .map_err(|_| StoreError::Damaged(format!("{millis} is no moment in time")))
}

/// 32 bytes as a store keeps them.
pub(crate) fn bytes_32(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes
        .try_into()
        .map_err(|_| StoreError::Damaged(format!("a digest of {} bytes", bytes.len())))
}

/// A code as it was stored.
pub(crate) fn code(text: &str) -> Result<ProductCode, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Damaged(format!("a product of the code `{text}`")))
}

/// An id that no store has given before.
pub(crate) fn random_id() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Damaged(format!("no random numbers: {error}")))?;
    Ok(u128::from_ne_bytes(bytes)).map(|id| format!("{id:032x}"))
}

/// A product's countries and categories as they are kept: JSON arrays.
pub(crate) fn lists(product: &StoredProduct) -> Result<[String; 2], StoreError> {
    let countries: Vec<&str> = product.countries.iter().map(Country::as_str).collect();
    Ok([json(&countries)?, json(&product.categories)?])
}

fn json<T: AsRef<str>>(list: &[T]) -> Result<String, StoreError> {
    let texts: Vec<&str> = list.iter().map(AsRef::as_ref).collect();
    serde_json::to_string(&texts).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// A product's countries and categories, read from what is kept.
pub(crate) fn read_lists(
    code: &str,
    countries: &str,
    categories: &str,
) -> Result<(Vec<Country>, Vec<String>), StoreError> {
    let damaged = |_| StoreError::Damaged(format!("the lists of product {code}"));
    let countries: Vec<String> = serde_json::from_str(countries).map_err(damaged)?;
    let countries = countries.iter().filter_map(|text| text.parse().ok());
    let categories = serde_json::from_str(categories).map_err(damaged)?;
    Ok((countries.collect(), categories))
}

/// What tells a changed product from an unchanged one, with its `lists` as they are kept.
pub(crate) fn product_digest(
    product: &StoredProduct,
    [countries, categories]: &[String; 2],
) -> [u8; 32] {
    digest(
        [
            product.code.as_str(),
            &product.document,
            &product.discount_multiplier,
            countries,
            categories,
        ],
        i64::from(product.is_orderable),
        &product.own_texts,
    )
}

/// What tells a changed product from an unchanged one: a hash of all that is stored of it: code, document,
/// discount, countries and categories as they are kept, whether it can be ordered, and its texts, whose order
/// doesn't matter. The document states most of this, but lists are made of what is kept beside it.
pub(crate) fn digest(parts: [&str; 5], is_orderable: i64, own_texts: &[OwnText]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(is_orderable.to_le_bytes());
    // Lengths keep neighbours apart.
    let mut part = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    parts.into_iter().for_each(&mut part);
    let mut own_texts: Vec<&OwnText> = own_texts.iter().collect();
    own_texts.sort_unstable_by_key(|own| own.name);
    for own in own_texts {
        part(own.name.as_str());
        part(own.source.as_deref().unwrap_or_default());
    }
    hash.finalize().into()
}

/// JSON arrays of strings, each read once: most products share theirs with others.
pub(crate) struct Lists<T> {
    known: HashMap<String, Vec<T>>,
    parse: fn(&str) -> Option<T>,
}

impl<T> Lists<T> {
    pub(crate) fn new(parse: fn(&str) -> Option<T>) -> Self {
        Self {
            known: HashMap::new(),
            parse,
        }
    }

    pub(crate) fn get(&mut self, json: &str) -> Result<&[T], StoreError> {
        if !self.known.contains_key(json) {
            let damaged = || StoreError::Damaged(format!("a list that reads {json}"));
            let texts: Vec<String> = serde_json::from_str(json).map_err(|_| damaged())?;
            let values: Option<Vec<T>> = texts.iter().map(|text| (self.parse)(text)).collect();
            self.known
                .insert(json.to_owned(), values.ok_or_else(damaged)?);
        }
        Ok(self.known.get(json).map_or(&[], Vec::as_slice))
    }
}
