//! Selections of stored products: by codes, patterns of codes, and values of fields.
//!
//! - `codes`: codes and patterns

mod codes;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use vitrine_model::geo::Country;
use vitrine_store::record::StoredProduct;

use crate::as_texts;

pub use codes::{CodePattern, Codes};

/// Maximum number of patterns in a selection.
pub const MAX_PATTERNS: usize = 100;

/// Maximum number of values of one kind in a selection. Codes have no maximum: they are looked up, however many there are.
pub const MAX_VALUES: usize = 250;

/// Maximum length of the part of a name, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// Selection of products. Values of one kind are alternatives; kinds narrow each other. An empty one selects all products.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// Codes, and patterns of codes.
    #[serde(skip_serializing_if = "Codes::is_empty")]
    pub codes: Codes,
    /// Countries in which products can be redeemed.
    #[serde(with = "as_texts", skip_serializing_if = "Vec::is_empty")]
    pub countries: Vec<Country>,
    /// Categories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Codes of currencies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub currencies: Vec<String>,
    /// Names of payout types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub payout_types: Vec<String>,
    /// States.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    /// Part of the name, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True for products that can be ordered, false for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_orderable: Option<bool>,
}

/// Fields of a canonical document that selections look at.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    currency: Cow<'a, str>,
    #[serde(borrow)]
    payout_type: Cow<'a, str>,
    #[serde(borrow)]
    state: Cow<'a, str>,
}

/// Part of a selection that is too large: its cost would be paid for each product, and again with each load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// Words for the part.
    pub what: &'static str,
    /// Size that it has.
    pub size: usize,
    /// Maximum size.
    pub max: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, size, max } = self;
        write!(out, "{size} {what}, and the limit is {max}")
    }
}

/// Removes values that stand in a list already.
fn keep_first<T: Ord + Clone>(list: &mut Vec<T>) {
    let mut seen = BTreeSet::new();
    list.retain(|value| seen.insert(value.clone()));
}

impl Selection {
    /// Returns the selection with each value once.
    ///
    /// # Errors
    ///
    /// If a part of it is too large.
    pub fn checked(mut self) -> Result<Self, TooLarge> {
        let lists = [
            &mut self.categories,
            &mut self.currencies,
            &mut self.payout_types,
            &mut self.states,
        ];
        for list in lists {
            keep_first(list);
        }
        keep_first(&mut self.countries);
        let name = self.name.as_ref().map_or(0, String::len);
        for (what, size, max) in [
            ("patterns", self.codes.pattern_count(), MAX_PATTERNS),
            ("countries", self.countries.len(), MAX_VALUES),
            ("categories", self.categories.len(), MAX_VALUES),
            ("currencies", self.currencies.len(), MAX_VALUES),
            ("payout types", self.payout_types.len(), MAX_VALUES),
            ("bytes of a name", name, MAX_NAME_BYTES),
        ] {
            if size > max {
                return Err(TooLarge { what, size, max });
            }
        }
        Ok(self)
    }

    /// Returns true if a product belongs to the selection.
    ///
    /// # Errors
    ///
    /// If the product's document is damaged.
    pub fn contains(&self, product: &StoredProduct) -> anyhow::Result<bool> {
        let has =
            |wanted: &[Country]| (wanted.iter()).any(|country| product.countries.contains(country));
        let is_categorised =
            (self.categories.iter()).any(|category| product.categories.contains(category));
        let by_facts = (self.codes.is_empty() || self.codes.contain(&product.code))
            && (self.countries.is_empty() || has(&self.countries))
            && (self.categories.is_empty() || is_categorised)
            && (self.is_orderable).is_none_or(|wanted| wanted == product.is_orderable);
        Ok(by_facts && (!self.needs_document() || self.contains_fields(product)?))
    }

    /// Returns the codes that are named, without patterns.
    pub fn named_codes(&self) -> impl Iterator<Item = &str> {
        let named = self.codes.iter().filter(|pattern| !pattern.is_pattern());
        named.map(CodePattern::as_str)
    }

    fn needs_document(&self) -> bool {
        let lists = [&self.currencies, &self.payout_types, &self.states];
        self.name.is_some() || lists.iter().any(|list| !list.is_empty())
    }

    fn contains_fields(&self, product: &StoredProduct) -> anyhow::Result<bool> {
        let fields: Fields<'_> = serde_json::from_str(&product.document)
            .map_err(|_| anyhow::anyhow!("the product {} is damaged", product.code))?;
        let is_one = |wanted: &[String], value: &str| {
            wanted.is_empty() || wanted.iter().any(|wanted| wanted == value)
        };
        let has_name = self.name.as_ref().is_none_or(|part| {
            let name = fields.name.to_lowercase();
            name.contains(&part.to_lowercase())
        });
        Ok(has_name
            && is_one(&self.currencies, &fields.currency)
            && is_one(&self.payout_types, &fields.payout_type)
            && is_one(&self.states, &fields.state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_has_bounded_cost() {
        let patterns = |count: usize| {
            let patterns = (0..count).map(|number| format!("{number}-*").parse().unwrap());
            patterns.collect::<Vec<CodePattern>>()
        };
        let selection = |codes: Vec<CodePattern>| Selection {
            codes: codes.into(),
            ..Selection::default()
        };
        assert!(selection(patterns(MAX_PATTERNS)).checked().is_ok());
        let refused = selection(patterns(10_000)).checked().unwrap_err();
        assert_eq!(refused.to_string(), "10000 patterns, and the limit is 100");
        let codes = (0..10_000).map(|number| format!("CODE-{number}").parse().unwrap());
        assert!(selection(codes.collect()).checked().is_ok());
        let states = Selection {
            states: vec!["LIVE".to_owned(); 10_000],
            ..Selection::default()
        };
        assert_eq!(states.checked().unwrap().states, ["LIVE"]);
        let categories = Selection {
            categories: (0..=MAX_VALUES).map(|number| number.to_string()).collect(),
            ..Selection::default()
        };
        assert_eq!(categories.checked().unwrap_err().what, "categories");
        let name = Selection {
            name: Some("a".repeat(MAX_NAME_BYTES + 1)),
            ..Selection::default()
        };
        assert_eq!(name.checked().unwrap_err().what, "bytes of a name");
    }
}
