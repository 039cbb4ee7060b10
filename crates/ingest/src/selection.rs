//! Selectors of stored products: the limits of what operators give, matching, and their JSON.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;

use serde::{Deserialize, Serialize};
use vitrine_model::geo::Country;
use vitrine_model::money::Currency;
use vitrine_model::product::{PayoutTypeName, State};
use vitrine_model::selector::{CodePattern, Codes, Selector, any_of};
use vitrine_store::record::StoredProduct;

use crate::as_texts::optional;

/// Maximum number of patterns in a selector.
pub const MAX_PATTERNS: usize = 100;

/// Maximum number of values of one kind in a selector. Codes have no maximum: they are looked up, however many there are.
pub const MAX_VALUES: usize = 250;

/// Maximum length of the part of a name, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// Fields of a canonical document that selectors look at.
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

/// Returns values that an operator gave; `None` for none, which select nothing in particular.
#[must_use]
pub fn given<V: FromIterator<T>, T>(values: Vec<T>) -> Option<V> {
    (!values.is_empty()).then(|| values.into_iter().collect())
}

/// Removes values that stand in a list already.
pub(crate) fn keep_first<T: Hash + Eq + Clone>(list: &mut Vec<T>) {
    let mut seen = HashSet::new();
    list.retain(|value| seen.insert(value.clone()));
}

/// Returns the selector with each value once.
///
/// # Errors
///
/// If a part of it is too large, with its size: its cost would be paid for each product, and again with each load.
pub fn checked(mut selector: Selector) -> Result<Selector, String> {
    fn sized<T: Hash + Eq + Clone>(list: &mut Option<Vec<T>>) -> usize {
        list.as_mut().map_or(0, |list| {
            keep_first(list);
            list.len()
        })
    }
    let Selector {
        codes,
        categories,
        countries,
        currencies,
        payout_types,
        states,
        name,
        is_orderable: _,
    } = &mut selector;
    // Each of the three states once, so few.
    sized(states);
    let patterns = codes.as_ref().map_or(0, Codes::pattern_count);
    let name = name.as_ref().map_or(0, String::len);
    for (what, size, max) in [
        ("patterns", patterns, MAX_PATTERNS),
        ("countries", sized(countries), MAX_VALUES),
        ("categories", sized(categories), MAX_VALUES),
        ("currencies", sized(currencies), MAX_VALUES),
        ("payout types", sized(payout_types), MAX_VALUES),
        ("bytes of a name", name, MAX_NAME_BYTES),
    ] {
        if size > max {
            return Err(format!("{size} {what}, and the limit is {max}"));
        }
    }
    Ok(selector)
}

/// Returns true if the selector holds for a stored product.
///
/// # Errors
///
/// If the product's document is damaged.
pub fn selects(selector: &Selector, product: &StoredProduct) -> anyhow::Result<bool> {
    let Selector {
        codes: _,
        categories,
        countries,
        currencies,
        payout_types,
        states,
        name,
        is_orderable,
    } = selector;
    let by_columns = selector.selects_code(product.code.as_str())
        && any_of(countries.as_ref(), |one| product.countries.contains(one))
        && any_of(categories.as_ref(), |one| product.categories.contains(one))
        && is_orderable.is_none_or(|wanted| wanted == product.is_orderable);
    let needs_document =
        name.is_some() || currencies.is_some() || payout_types.is_some() || states.is_some();
    if !by_columns || !needs_document {
        return Ok(by_columns);
    }
    let fields: Fields<'_> = serde_json::from_str(&product.document)
        .map_err(|_| anyhow::anyhow!("the product {} is damaged", product.code))?;
    let has_name = name.as_ref().is_none_or(|part| {
        let name = fields.name.to_lowercase();
        name.contains(&part.to_lowercase())
    });
    Ok(has_name
        && any_of(currencies.as_ref(), |one| one.as_str() == fields.currency)
        && any_of(payout_types.as_ref(), |one| {
            one.as_str() == fields.payout_type
        })
        && any_of(states.as_ref(), |one| one.as_str() == fields.state))
}

/// JSON of a selector: absent members are left out.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Selector", deny_unknown_fields)]
pub(crate) struct SelectorJson {
    #[serde(default, with = "codes", skip_serializing_if = "Option::is_none")]
    codes: Option<Codes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    categories: Option<Vec<String>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    countries: Option<Vec<Country>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    currencies: Option<Vec<Currency>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    payout_types: Option<Vec<PayoutTypeName>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    states: Option<Vec<State>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_orderable: Option<bool>,
}

/// JSON of codes and patterns.
mod codes {
    use serde::{Deserializer, Serializer};

    use super::{CodePattern, Codes};
    use crate::as_texts;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        codes: &Option<Codes>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(codes.iter().flat_map(Codes::texts))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Codes>, D::Error> {
        let codes: Vec<CodePattern> = as_texts::deserialize(deserializer)?;
        Ok(Some(codes.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selector_of_an_operator_has_bounded_cost() {
        let codes = |name: &str, count: usize| Selector {
            codes: Some(
                (0..count)
                    .map(|number| name.replace('#', &number.to_string()))
                    .map(|code| code.parse::<CodePattern>().unwrap())
                    .collect(),
            ),
            ..Selector::default()
        };
        assert!(checked(codes("#-*", MAX_PATTERNS)).is_ok());
        let refused = checked(codes("#-*", 10_000)).unwrap_err();
        assert_eq!(refused, "10000 patterns, and the limit is 100");
        assert!(checked(codes("CODE-#", 10_000)).is_ok());
        let states = Selector {
            states: Some(vec![State::Live; 10_000]),
            ..Selector::default()
        };
        assert_eq!(checked(states).unwrap().states, Some(vec![State::Live]));
        let categories = Selector {
            categories: Some((0..=MAX_VALUES).map(|number| number.to_string()).collect()),
            ..Selector::default()
        };
        assert!(checked(categories).unwrap_err().contains("categories"));
        let name = Selector {
            name: Some("a".repeat(MAX_NAME_BYTES + 1)),
            ..Selector::default()
        };
        assert!(checked(name).unwrap_err().contains("bytes of a name"));
    }
}
