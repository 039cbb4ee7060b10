//! Attributes of a product that filters select by, for states of products that no snapshot has any more.

use crate::attributes::Attributes;
use crate::geo::Country;
use crate::query::{Filter, Orderable};

/// Attributes of a product, encoded: a byte that is 1 if it can be ordered; three bytes of the currency; the payout type
/// behind its length in two bytes; the number of countries in two bytes and two bytes for each; then for each category its
/// length in two bytes and its name. Numbers are little-endian.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Facts(Vec<u8>);

impl Facts {
    /// Returns the attributes of a product.
    #[must_use]
    pub fn new(attributes: &Attributes<'_>) -> Self {
        let Attributes {
            is_orderable,
            currency,
            payout_type,
            countries,
            categories,
        } = attributes;
        let length = |length: usize| u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes();
        let mut bytes = vec![u8::from(*is_orderable)];
        bytes.extend(currency.as_str().as_bytes());
        bytes.extend(length(payout_type.len()));
        bytes.extend(payout_type.as_bytes());
        bytes.extend(length(countries.len()));
        for country in countries.iter().take(u16::MAX.into()) {
            bytes.extend(country.as_str().as_bytes());
        }
        for category in *categories {
            // A longer name fits into no query.
            let name = &category.as_bytes()[..category.len().min(u16::MAX.into())];
            bytes.extend(length(name.len()));
            bytes.extend(name);
        }
        Self(bytes)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Returns true if a product with these encoded attributes matches the filter.
pub(super) fn matches(facts: &[u8], filter: &Filter) -> bool {
    let Filter {
        countries: in_countries,
        categories: in_categories,
        currencies,
        payout_types,
        // By the cursor.
        codes: _,
        orderable,
    } = filter;
    let (is_orderable, facts) = facts.split_first().unwrap_or((&0, &[]));
    let (currency, facts) = facts.split_at_checked(3).unwrap_or_default();
    let (payout_type, facts) = take_counted(facts, 1);
    let (countries, mut categories) = take_counted(facts, 2);
    let in_country = || {
        let mut countries = countries.as_chunks::<2>().0.iter();
        countries.any(|code| {
            let is_same = |country: &Country| country.as_str().as_bytes() == code;
            in_countries.iter().any(is_same)
        })
    };
    let mut in_category = || {
        while !categories.is_empty() {
            let (name, rest) = take_counted(categories, 1);
            categories = rest;
            if in_categories.iter().any(|one| one.as_bytes() == name) {
                return true;
            }
        }
        false
    };
    (*orderable == Orderable::Any || *is_orderable == 1)
        && is_any(currencies, |one| one.as_str().as_bytes() == currency)
        && is_any(payout_types, |one| one.as_str().as_bytes() == payout_type)
        && (in_countries.is_empty() || in_country())
        && (in_categories.is_empty() || in_category())
}

/// Returns true if a filter has no values, or one of them is meant.
fn is_any<T>(values: &[T], is_meant: impl FnMut(&T) -> bool) -> bool {
    values.is_empty() || values.iter().any(is_meant)
}

/// Splits off a number of items of `size` bytes, which is in the first two bytes.
fn take_counted(bytes: &[u8], size: usize) -> (&[u8], &[u8]) {
    let Some((count, rest)) = bytes.split_first_chunk() else {
        return (&[], &[]);
    };
    let length = usize::from(u16::from_le_bytes(*count)) * size;
    rest.split_at(length.min(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_match_like_the_list_filters() {
        let countries: Vec<Country> = ["SE", "NO"].map(|code| code.parse().unwrap()).to_vec();
        let categories: [Box<str>; 2] = ["toys".into(), "gämes & more".into()];
        let facts = Facts::new(&Attributes {
            is_orderable: false,
            currency: "SEK".parse().unwrap(),
            payout_type: "gift_card",
            countries: &countries,
            categories: &categories,
        });
        let filter = |countries: &[&str], categories: &[&str]| Filter {
            countries: countries.iter().map(|code| code.parse().unwrap()).collect(),
            categories: categories.iter().map(ToString::to_string).collect(),
            ..Filter::default()
        };
        let payout = |currencies: &[&str], payout_types: &[&str]| Filter {
            currencies: currencies
                .iter()
                .map(|code| code.parse().unwrap())
                .collect(),
            payout_types: payout_types
                .iter()
                .map(|name| name.parse().unwrap())
                .collect(),
            ..filter(&["SE"], &["toys"])
        };
        let orderable = Filter {
            orderable: Orderable::Only,
            ..Filter::default()
        };
        for (filter, expected) in [
            (filter(&[], &[]), true),
            (filter(&["NO"], &[]), true),
            (filter(&["DK"], &[]), false),
            (filter(&["DK", "SE"], &["gämes & more"]), true),
            (filter(&[], &["toys"]), true),
            (filter(&[], &["toy"]), false),
            (filter(&["SE"], &["food"]), false),
            (payout(&["SEK"], &[]), true),
            (payout(&["EUR", "SEK"], &["gift_card"]), true),
            (payout(&["EUR"], &["gift_card"]), false),
            (payout(&[], &["gift"]), false),
            (payout(&[], &["payment", "gift_card"]), true),
            (orderable.clone(), false),
        ] {
            assert_eq!(matches(facts.as_bytes(), &filter), expected, "{filter:?}");
        }
        let facts = Facts::new(&Attributes {
            is_orderable: true,
            currency: "SEK".parse().unwrap(),
            payout_type: "gift_card",
            countries: &[],
            categories: &[],
        });
        assert!(matches(facts.as_bytes(), &orderable));
        assert!(!matches(facts.as_bytes(), &filter(&["SE"], &[])));
    }
}
