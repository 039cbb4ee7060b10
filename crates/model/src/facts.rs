//! Attributes of products that selectors look at, also packed for states that no snapshot has any more.

use crate::geo::Country;
use crate::money::Currency;
use crate::product::PayoutTypeName;

/// Attributes of a product that selectors look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts<'a> {
    /// True if the product can be ordered.
    pub is_orderable: bool,
    /// Currency.
    pub currency: Currency,
    /// Payout type.
    pub payout_type: &'a str,
    /// Countries in which it can be redeemed.
    pub countries: &'a [Country],
    /// Categories.
    pub categories: &'a [Box<str>],
}

impl Facts<'_> {
    /// Returns the attributes in one byte string, for [`FactsView`]: a byte that is 1 if the product can be ordered; three
    /// bytes of the currency; the payout type behind its length in two bytes; the number of countries in two bytes and two
    /// bytes for each; then for each category its length in two bytes and its name. Numbers are little-endian.
    pub(crate) fn packed(&self) -> Vec<u8> {
        let Self {
            is_orderable,
            currency,
            payout_type,
            countries,
            categories,
        } = self;
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
        bytes
    }
}

/// Kind of a value of a product that rules select by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Category,
    Country,
    Currency,
    PayoutType,
}

impl ValueKind {
    /// Number of kinds.
    pub(crate) const COUNT: usize = 4;
}

/// Packed attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FactsView<'f> {
    is_orderable: bool,
    currency: &'f [u8],
    payout_type: &'f [u8],
    countries: &'f [[u8; 2]],
    /// Names of the categories, each behind its length.
    categories: &'f [u8],
}

impl<'f> FactsView<'f> {
    /// Reads packed attributes.
    pub(crate) fn new(facts: &'f [u8]) -> Self {
        let (is_orderable, facts) = facts.split_first().unwrap_or((&0, &[]));
        let (currency, facts) = facts.split_at_checked(3).unwrap_or_default();
        let (payout_type, facts) = take_counted(facts, 1);
        let (countries, categories) = take_counted(facts, 2);
        Self {
            is_orderable: *is_orderable == 1,
            currency,
            payout_type,
            countries: countries.as_chunks().0,
            categories,
        }
    }

    /// Returns true if the product can be ordered.
    pub(crate) fn is_orderable(&self) -> bool {
        self.is_orderable
    }

    /// Returns true if the product has one of these currencies.
    pub(crate) fn has_currency(&self, currencies: &[Currency]) -> bool {
        let mut currencies = currencies.iter();
        currencies.any(|one| one.as_str().as_bytes() == self.currency)
    }

    /// Returns true if the product has one of these payout types.
    pub(crate) fn has_payout_type(&self, payout_types: &[PayoutTypeName]) -> bool {
        let mut payout_types = payout_types.iter();
        payout_types.any(|one| one.as_str().as_bytes() == self.payout_type)
    }

    /// Returns true if the product has one of these countries.
    pub(crate) fn has_country(&self, countries: &[Country]) -> bool {
        let mut own = self.countries.iter();
        own.any(|code| countries.iter().any(|one| one.as_str().as_bytes() == code))
    }

    /// Returns true if the product has one of these categories.
    pub(crate) fn has_category(&self, categories: &[String]) -> bool {
        let mut own = self.category_names();
        own.any(|name| categories.iter().any(|one| one.as_bytes() == name))
    }

    /// Iterates over the values that rules select by.
    pub(crate) fn values(&self) -> impl Iterator<Item = (ValueKind, &'f [u8])> {
        let countries = self.countries.iter().map(|code| &code[..]);
        let single = [
            (ValueKind::Currency, self.currency),
            (ValueKind::PayoutType, self.payout_type),
        ];
        let categories = self.category_names();
        categories
            .map(|name| (ValueKind::Category, name))
            .chain(countries.map(|code| (ValueKind::Country, code)))
            .chain(single)
    }

    fn category_names(&self) -> impl Iterator<Item = &'f [u8]> + use<'f> {
        let mut rest = self.categories;
        std::iter::from_fn(move || {
            let name;
            (name, rest) = (!rest.is_empty()).then(|| take_counted(rest, 1))?;
            Some(name)
        })
    }
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
    use std::fmt;
    use std::str::FromStr;

    use super::*;
    use crate::product::State;
    use crate::selector::Selector;

    /// Returns values of a filter; none are no filter.
    fn given<T: FromStr<Err: fmt::Debug>>(texts: &[&str]) -> Option<Vec<T>> {
        let values = texts.iter().map(|text| text.parse().unwrap());
        (!texts.is_empty()).then(|| values.collect())
    }

    #[test]
    fn facts_match_like_the_list_filters() {
        let countries: Vec<Country> = ["SE", "NO"].map(|code| code.parse().unwrap()).to_vec();
        let categories: [Box<str>; 2] = ["toys".into(), "gämes & more".into()];
        let facts = Facts {
            is_orderable: false,
            currency: "SEK".parse().unwrap(),
            payout_type: "gift_card",
            countries: &countries,
            categories: &categories,
        };
        let packed = facts.packed();
        let filter = |countries: &[&str], categories: &[&str]| Selector {
            countries: given(countries),
            categories: given(categories),
            ..Selector::default()
        };
        let payout = |currencies: &[&str], payout_types: &[&str]| Selector {
            currencies: given(currencies),
            payout_types: given(payout_types),
            ..filter(&["SE"], &["toys"])
        };
        let orderable = Selector {
            is_orderable: Some(true),
            ..Selector::default()
        };
        let unknown = Selector {
            states: Some(State::ALL.to_vec()),
            ..Selector::default()
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
            (unknown, false),
        ] {
            assert_eq!(
                filter.selects_facts(&FactsView::new(&packed)),
                expected,
                "{filter:?}"
            );
        }
        let facts = Facts {
            is_orderable: true,
            currency: "SEK".parse().unwrap(),
            payout_type: "gift_card",
            countries: &[],
            categories: &[],
        };
        let packed = facts.packed();
        assert!(orderable.selects_facts(&FactsView::new(&packed)));
        assert!(!filter(&["SE"], &[]).selects_facts(&FactsView::new(&packed)));
    }
}
