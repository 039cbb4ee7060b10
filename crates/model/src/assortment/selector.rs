//! Selectors of products: lists of values, each any-of, all of which must hold
//! (docs/contract/assortments.md#rules).

use super::code_set::CodeSet;
use crate::changes::{FactsView, ValueKind};
use crate::geo::Country;
use crate::money::Currency;
use crate::product::PayoutTypeName;
use crate::snapshot::{Facet, FacetKind, Groups, Snapshot};

/// Values of each list of a selector except that of codes, by [`ValueKind`]; `None` for a list that is absent.
pub(super) type ValueLists<'s> = [Option<Vec<&'s [u8]>>; ValueKind::COUNT];

/// Selector of products: holds for a product for which each of its lists holds. A list that is absent holds for all products,
/// an empty one for none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Selector {
    /// Codes, of which a product has one.
    pub codes: Option<CodeSet>,
    /// Categories, of which a product has at least one.
    pub categories: Option<Vec<String>>,
    /// Countries, of which a product has at least one.
    pub countries: Option<Vec<Country>>,
    /// Currencies, of which a product has one.
    pub currencies: Option<Vec<Currency>>,
    /// Payout types, of which a product has one.
    pub payout_types: Option<Vec<PayoutTypeName>>,
}

impl Selector {
    /// Returns true if this selects whatever another selector does, in any catalog: each member here is there, too, with no other
    /// values.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        fn lies_in<T: PartialEq>(own: Option<&Vec<T>>, other: Option<&Vec<T>>) -> bool {
            own.is_none_or(|own| {
                other.is_some_and(|other| other.iter().all(|one| own.contains(one)))
            })
        }
        let Self {
            codes,
            categories,
            countries,
            currencies,
            payout_types,
        } = self;
        let has_codes = codes.as_ref().is_none_or(|own| {
            let other = other.codes.as_ref();
            other.is_some_and(|other| other.iter().all(|code| own.contains(code)))
        });
        has_codes
            && lies_in(categories.as_ref(), other.categories.as_ref())
            && lies_in(countries.as_ref(), other.countries.as_ref())
            && lies_in(currencies.as_ref(), other.currencies.as_ref())
            && lies_in(payout_types.as_ref(), other.payout_types.as_ref())
    }

    /// Returns true if the selector holds for the product with this code and these attributes.
    pub(super) fn selects(&self, code: &str, facts: &FactsView<'_>) -> bool {
        let Self {
            codes,
            categories,
            countries,
            currencies,
            payout_types,
        } = self;
        codes.as_ref().is_none_or(|codes| codes.contains(code))
            && (categories.as_deref()).is_none_or(|names| facts.has_category(names))
            && (countries.as_deref()).is_none_or(|countries| facts.has_country(countries))
            && (currencies.as_deref()).is_none_or(|currencies| facts.has_currency(currencies))
            && (payout_types.as_deref()).is_none_or(|names| facts.has_payout_type(names))
    }

    /// Returns the values of each list except that of codes, as products have them encoded.
    pub(super) fn lists(&self) -> ValueLists<'_> {
        let Self {
            codes: _,
            categories,
            countries,
            currencies,
            payout_types,
        } = self;
        let categories = categories.as_ref();
        let (countries, currencies) = (countries.as_ref(), currencies.as_ref());
        let payout_types = payout_types.as_ref();
        // In the order of the kinds.
        [
            categories.map(|all| all.iter().map(String::as_bytes).collect()),
            countries.map(|all| all.iter().map(|one| one.as_str().as_bytes()).collect()),
            currencies.map(|all| all.iter().map(|one| one.as_str().as_bytes()).collect()),
            payout_types.map(|all| all.iter().map(|one| one.as_str().as_bytes()).collect()),
        ]
    }

    /// Returns a group of facets for each list except that of codes.
    pub(super) fn groups(&self, snapshot: &Snapshot) -> Groups {
        let Self {
            // Looked up one by one.
            codes: _,
            categories,
            countries,
            currencies,
            payout_types,
        } = self;
        let mut groups = Groups::default();
        if let Some(categories) = categories {
            let names = categories.iter().map(String::as_str);
            groups.push_named(snapshot, FacetKind::Category, names);
        }
        if let Some(countries) = countries {
            groups.push(snapshot, countries.iter().copied().map(Facet::country));
        }
        if let Some(currencies) = currencies {
            let names = currencies.iter().map(Currency::as_str);
            groups.push_named(snapshot, FacetKind::Currency, names);
        }
        if let Some(payout_types) = payout_types {
            let names = payout_types.iter().map(PayoutTypeName::as_str);
            groups.push_named(snapshot, FacetKind::PayoutType, names);
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(categories: Option<&[&str]>, countries: Option<&[&str]>) -> Selector {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Selector {
            categories: categories.map(texts),
            countries: countries
                .map(|codes| codes.iter().map(|code| code.parse().unwrap()).collect()),
            ..Selector::default()
        }
    }

    #[test]
    fn selector_includes_those_with_fewer_values_or_more_members() {
        let food = of(Some(&["food"]), None);
        let both = of(Some(&["food", "books"]), None);
        let nordic = of(Some(&["food"]), Some(&["SE"]));
        for (wide, narrow) in [
            (&food, &food),
            (&both, &food),
            (&food, &nordic),
            (&both, &nordic),
            (&of(None, None), &nordic),
        ] {
            assert!(wide.includes(narrow), "{wide:?} {narrow:?}");
            assert!(
                wide == narrow || !narrow.includes(wide),
                "{wide:?} {narrow:?}"
            );
        }
        assert!(!food.includes(&of(Some(&["books"]), Some(&["SE"]))));
    }
}
