//! Selections of stored products: by codes, patterns of codes, and values of fields.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use vitrine_model::Invalid;
use vitrine_model::code::ProductCode;
use vitrine_model::geo::Country;
use vitrine_store::record::StoredProduct;

use crate::as_texts;

/// Selection of products. Values of one kind are alternatives; kinds narrow each other. An empty one selects all products.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// Codes, and patterns of codes.
    #[serde(with = "as_texts", skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<CodePattern>,
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

impl Selection {
    /// Returns true if a product belongs to the selection.
    ///
    /// # Errors
    ///
    /// If the product's document is damaged.
    pub fn contains(&self, product: &StoredProduct) -> anyhow::Result<bool> {
        let is_among = |patterns: &[CodePattern]| {
            patterns
                .iter()
                .any(|pattern| pattern.matches(&product.code))
        };
        let has =
            |wanted: &[Country]| (wanted.iter()).any(|country| product.countries.contains(country));
        let is_categorised =
            (self.categories.iter()).any(|category| product.categories.contains(category));
        let by_facts = (self.codes.is_empty() || is_among(&self.codes))
            && (self.countries.is_empty() || has(&self.countries))
            && (self.categories.is_empty() || is_categorised)
            && (self.is_orderable).is_none_or(|wanted| wanted == product.is_orderable);
        Ok(by_facts && (!self.needs_document() || self.contains_fields(product)?))
    }

    /// Returns the codes that are named, without patterns.
    pub fn named_codes(&self) -> impl Iterator<Item = &str> {
        let named = self.codes.iter().filter(|pattern| !pattern.is_pattern());
        named.map(|pattern| pattern.0.as_str())
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

/// A product code, or a pattern of codes: `*` stands for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePattern(String);

impl CodePattern {
    /// Returns true if this has a `*` or a `?`.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.0.contains(['*', '?'])
    }

    /// Returns the beginning of all codes that it matches.
    pub(crate) fn prefix(&self) -> &str {
        let end = self.0.find(['*', '?']).unwrap_or(self.0.len());
        &self.0[..end]
    }

    /// Returns true if it is the code, or matches it.
    #[must_use]
    pub fn matches(&self, code: &ProductCode) -> bool {
        matches(self.0.as_bytes(), code.as_str().as_bytes())
    }
}

impl fmt::Display for CodePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for CodePattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // What stands for characters may stand for those of codes.
        let filled = text.replace(['*', '?'], "A");
        match filled.parse::<ProductCode>() {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err(Invalid::new(
                "code",
                "a product's code, or a pattern such as `ADIDAS-*`",
            )),
        }
    }
}

/// Returns true if a pattern matches a text as a whole. After a mismatch, only the last `*` takes another character: the time
/// is at most the product of both lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star = None;
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((star_at, taken)) = star else {
                    return false;
                };
                star = Some((star_at, taken + 1));
                (at, read) = (star_at + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A naive model of patterns.
    fn by_recursion(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => {
                (0..=text.len()).any(|taken| by_recursion(rest, &text[taken..]))
            }
            ([b'?', rest @ ..], [_, others @ ..]) => by_recursion(rest, others),
            ([first, rest @ ..], [other, others @ ..]) if first == other => {
                by_recursion(rest, others)
            }
            _ => false,
        }
    }

    /// Returns all texts of these characters, up to a length.
    fn texts(characters: &[u8], length: usize) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        let mut longest = all.clone();
        for _ in 0..length {
            longest = (longest.iter())
                .flat_map(|text| {
                    characters
                        .iter()
                        .map(move |byte| [text, &[*byte][..]].concat())
                })
                .collect();
            all.extend(longest.iter().cloned());
        }
        all
    }

    #[test]
    fn patterns_match_as_their_model_does() {
        let patterns = texts(b"AB*?", 5);
        let codes = texts(b"AB", 5);
        for pattern in &patterns {
            for code in &codes {
                let (found, expected) = (matches(pattern, code), by_recursion(pattern, code));
                assert_eq!(found, expected, "{pattern:?} {code:?}");
            }
        }
    }

    #[test]
    fn patterns_are_made_of_characters_of_codes() {
        for fine in ["ADIDAS-SE", "ADIDAS-*", "*", "?-SE", "*-SE-*"] {
            assert!(fine.parse::<CodePattern>().is_ok(), "{fine}");
        }
        for wrong in ["", "A B", "[A]", "A/B", "é*"] {
            assert!(wrong.parse::<CodePattern>().is_err(), "{wrong}");
        }
    }
}
