//! Selectors of products: lists of values, each any-of, all of which must hold
//! (docs/contract/assortments.md#rules).

mod code_set;
mod codes;

pub use code_set::CodeSet;
pub use codes::{CodePattern, Codes};

use crate::facts::{FactsView, ValueKind};
use crate::geo::Country;
use crate::money::Currency;
use crate::product::{PayoutTypeName, State};
use crate::snapshot::{Facet, FacetKind, Groups, Snapshot};

/// Values of each list of a selector that rules have, except that of codes, by [`ValueKind`]; `None` for a list that is
/// absent.
pub(crate) type ValueLists<'s> = [Option<Vec<&'s [u8]>>; ValueKind::COUNT];

/// Selector of products: holds for a product for which each of its members holds. A member that is absent holds for all
/// products, an empty list for none.
///
/// Those that are evaluated for a snapshot or a journal, filters of requests and rules of assortments, have only what is
/// known there. Their readers take no patterns, states, names or products that can't be ordered; such a selector would
/// hold for no product.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Selector {
    /// Codes, of which a product has one.
    pub codes: Option<Codes>,
    /// Categories, of which a product has at least one.
    pub categories: Option<Vec<String>>,
    /// Countries, of which a product has at least one.
    pub countries: Option<Vec<Country>>,
    /// Currencies, of which a product has one.
    pub currencies: Option<Vec<Currency>>,
    /// Payout types, of which a product has one.
    pub payout_types: Option<Vec<PayoutTypeName>>,
    /// States, of which a product has one.
    pub states: Option<Vec<State>>,
    /// Part of a product's name, in any case.
    pub name: Option<String>,
    /// True for products that can be ordered, false for the others.
    pub is_orderable: Option<bool>,
}

/// Returns true if a list is absent, or one of its values has a property.
pub fn any_of<T>(list: Option<&Vec<T>>, has: impl FnMut(&T) -> bool) -> bool {
    list.is_none_or(|values| values.iter().any(has))
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
            states,
            name,
            is_orderable,
        } = self;
        let has_codes = codes.as_ref().is_none_or(|own| {
            let other = other.codes.as_ref();
            other.is_some_and(|other| own.include(other))
        });
        has_codes
            && lies_in(categories.as_ref(), other.categories.as_ref())
            && lies_in(countries.as_ref(), other.countries.as_ref())
            && lies_in(currencies.as_ref(), other.currencies.as_ref())
            && lies_in(payout_types.as_ref(), other.payout_types.as_ref())
            && lies_in(states.as_ref(), other.states.as_ref())
            && (name.is_none() || *name == other.name)
            && (is_orderable.is_none() || *is_orderable == other.is_orderable)
    }

    /// Iterates over the codes that are named, without patterns, ascending.
    pub fn named_codes(&self) -> impl Iterator<Item = &str> {
        let codes = self.codes.iter().map(Codes::exact);
        codes.flat_map(CodeSet::iter)
    }

    /// Returns true if the list of codes holds for a product with this code.
    #[must_use]
    pub fn selects_code(&self, code: &str) -> bool {
        (self.codes.as_ref()).is_none_or(|codes| codes.contain(code))
    }

    /// Returns the first of the named codes that isn't below `code`.
    pub(crate) fn named_from(&self, code: &str) -> Option<&str> {
        let codes = self.codes.as_ref()?.exact();
        let first = codes.first_from(code, 0);
        (first < codes.len()).then(|| codes.get(first))
    }

    /// Returns true if the selector holds for a product with this code and these attributes.
    pub(crate) fn selects(&self, code: &str, facts: &FactsView<'_>) -> bool {
        self.selects_code(code) && self.selects_facts(facts)
    }

    /// Returns true if all but the list of codes holds for a product with these attributes.
    pub(crate) fn selects_facts(&self, facts: &FactsView<'_>) -> bool {
        let Self {
            codes: _,
            categories,
            countries,
            currencies,
            payout_types,
            states,
            name,
            is_orderable,
        } = self;
        (states.is_none() && name.is_none())
            && is_orderable.is_none_or(|wanted| wanted == facts.is_orderable())
            && (currencies.as_deref()).is_none_or(|currencies| facts.has_currency(currencies))
            && (payout_types.as_deref()).is_none_or(|names| facts.has_payout_type(names))
            && (countries.as_deref()).is_none_or(|countries| facts.has_country(countries))
            && (categories.as_deref()).is_none_or(|names| facts.has_category(names))
    }

    /// Returns the values of each list except that of codes, as products have them encoded.
    pub(crate) fn lists(&self) -> ValueLists<'_> {
        let Self {
            categories,
            countries,
            currencies,
            payout_types,
            ..
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

    /// Returns a group of facets for each member except the list of codes.
    pub(crate) fn groups(&self, snapshot: &Snapshot) -> Groups {
        let Self {
            // Looked up one by one.
            codes,
            categories,
            countries,
            currencies,
            payout_types,
            states,
            name,
            is_orderable,
        } = self;
        let mut groups = Groups::default();
        let has_patterns = (codes.as_ref()).is_some_and(|codes| codes.pattern_count() > 0);
        if has_patterns || states.is_some() || name.is_some() || *is_orderable == Some(false) {
            groups.push_nothing();
        }
        if *is_orderable == Some(true) {
            groups.push(snapshot, [Facet::ORDERABLE]);
        }
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
