//! Attributes of a product that filters select by, for states of products that no snapshot has any more.

use crate::geo::Country;
use crate::query::{Filter, Orderable};

/// Attributes of a product, encoded: a byte that is 1 if it can be ordered; the number of countries in two bytes and two
/// bytes for each; then for each category its length in two bytes and its name. Numbers are little-endian.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Facts(Vec<u8>);

impl Facts {
    /// Returns the attributes of a product.
    #[must_use]
    pub fn new(is_orderable: bool, countries: &[Country], categories: &[Box<str>]) -> Self {
        let length = |length: usize| u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes();
        let mut bytes = vec![u8::from(is_orderable)];
        bytes.extend(length(countries.len()));
        for country in countries.iter().take(u16::MAX.into()) {
            bytes.extend(country.as_str().as_bytes());
        }
        for category in categories {
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
    let (is_orderable, facts) = facts.split_first().unwrap_or((&0, &[]));
    let (countries, mut categories) = take_counted(facts, 2);
    let in_country = || {
        let mut countries = countries.as_chunks::<2>().0.iter();
        countries.any(|code| {
            let is_same = |country: &Country| country.as_str().as_bytes() == code;
            filter.countries.iter().any(is_same)
        })
    };
    let mut in_category = || {
        while !categories.is_empty() {
            let (name, rest) = take_counted(categories, 1);
            categories = rest;
            if filter.categories.iter().any(|one| one.as_bytes() == name) {
                return true;
            }
        }
        false
    };
    (filter.orderable == Orderable::Any || *is_orderable == 1)
        && (filter.countries.is_empty() || in_country())
        && (filter.categories.is_empty() || in_category())
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
        let facts = Facts::new(false, &countries, &categories);
        let filter = |countries: &[&str], categories: &[&str], orderable| Filter {
            countries: countries.iter().map(|code| code.parse().unwrap()).collect(),
            categories: categories.iter().map(ToString::to_string).collect(),
            orderable,
        };
        for (countries, categories, orderable, expected) in [
            (&[][..], &[][..], Orderable::Any, true),
            (&["NO"], &[], Orderable::Any, true),
            (&["DK"], &[], Orderable::Any, false),
            (&["DK", "SE"], &["gämes & more"], Orderable::Any, true),
            (&[], &["toys"], Orderable::Any, true),
            (&[], &["toy"], Orderable::Any, false),
            (&["SE"], &["food"], Orderable::Any, false),
            (&[], &[], Orderable::Only, false),
        ] {
            let filter = filter(countries, categories, orderable);
            assert_eq!(matches(facts.as_bytes(), &filter), expected, "{filter:?}");
        }
        let orderable = Facts::new(true, &[], &[]);
        assert!(matches(
            orderable.as_bytes(),
            &filter(&[], &[], Orderable::Only)
        ));
        assert!(!matches(
            orderable.as_bytes(),
            &filter(&["SE"], &[], Orderable::Any)
        ));
    }
}
