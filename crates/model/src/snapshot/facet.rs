//! Facets: the attributes of products that filters select by, as numbers.

use std::collections::HashMap;

use crate::facts::Facts;
use crate::geo::Country;

/// A country, a category, a currency, a payout type, a state, or being orderable. Numbers of facets with a name are valid only with
/// the [`FacetNumbers`] that assigned them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facet(u32);

/// First number of a facet with a name, after being orderable and all countries.
const FIRST_NAMED: u32 = 1 + Country::NUMBERS;

impl Facet {
    /// Facet of products that can be ordered.
    pub const ORDERABLE: Self = Self(0);

    /// Returns the facet of products that can be redeemed in `country`.
    #[must_use]
    pub fn country(country: Country) -> Self {
        Self(1 + country.number())
    }

    /// Returns the country, if it is a country's facet.
    #[must_use]
    pub fn as_country(self) -> Option<Country> {
        Country::from_number(self.0.checked_sub(1)?)
    }

    pub(super) fn from_number(number: u32) -> Self {
        Self(number)
    }

    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// Kind of facets with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FacetKind {
    /// Categories.
    Category,
    /// Currencies.
    Currency,
    /// Payout types.
    PayoutType,
    /// States, which only the console filters by.
    State,
}

impl FacetKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::Category,
        Self::Currency,
        Self::PayoutType,
        Self::State,
    ];
}

/// All facets with a name ever seen, numbered in order of appearance. Numbers never change: newer snapshots share blocks
/// with older ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FacetNumbers {
    names: Vec<(FacetKind, Box<str>)>,
    /// Facets by name, for each kind.
    facets: [HashMap<Box<str>, Facet>; FacetKind::ALL.len()],
}

impl FacetNumbers {
    /// Returns the facet with this name, if it was ever seen.
    #[must_use]
    pub fn get(&self, kind: FacetKind, name: &str) -> Option<Facet> {
        self.facets[kind as usize].get(name).copied()
    }

    /// Returns the facet with this name, adding it if it is new.
    pub fn get_or_add(&mut self, kind: FacetKind, name: &str) -> Facet {
        if let Some(facet) = self.get(kind, name) {
            return facet;
        }
        // There can't be as many names as numbers: they wouldn't fit into memory.
        let count = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let facet = Facet(FIRST_NAMED.saturating_add(count));
        self.names.push((kind, name.into()));
        self.facets[kind as usize].insert(name.into(), facet);
        facet
    }

    /// Returns all facets of a product but its state, adding new ones.
    pub fn facets_of(&mut self, facts: &Facts<'_>) -> Vec<Facet> {
        let Facts {
            is_orderable,
            currency,
            payout_type,
            countries,
            categories,
        } = facts;
        let orderable = is_orderable.then_some(Facet::ORDERABLE);
        let countries = countries.iter().copied().map(Facet::country);
        let mut facets: Vec<Facet> = orderable.into_iter().chain(countries).collect();
        facets.push(self.get_or_add(FacetKind::Currency, currency.as_str()));
        facets.push(self.get_or_add(FacetKind::PayoutType, payout_type));
        let categories = categories.iter();
        facets.extend(categories.map(|name| self.get_or_add(FacetKind::Category, name)));
        facets
    }

    /// Returns kinds and names, in order of their numbers.
    #[must_use]
    pub fn names(&self) -> &[(FacetKind, Box<str>)] {
        &self.names
    }

    /// Returns kind and name of a facet, if it has a name.
    #[must_use]
    pub fn name(&self, facet: Facet) -> Option<(FacetKind, &str)> {
        let number = facet.0.checked_sub(FIRST_NAMED)?;
        let (kind, name) = self.names.get(number as usize)?;
        Some((*kind, name))
    }

    /// Returns the name of a facet, if it is a category's.
    pub(crate) fn category(&self, facet: Facet) -> Option<&str> {
        let (kind, name) = self.name(facet)?;
        (kind == FacetKind::Category).then_some(name)
    }

    /// Returns the number of facets, the upper bound of all facet numbers.
    pub(super) fn facet_count(&self) -> usize {
        FIRST_NAMED as usize + self.names.len()
    }
}

impl<N: AsRef<str>> FromIterator<(FacetKind, N)> for FacetNumbers {
    fn from_iter<I: IntoIterator<Item = (FacetKind, N)>>(names: I) -> Self {
        let mut numbers = Self::default();
        for (kind, name) in names {
            numbers.get_or_add(kind, name.as_ref());
        }
        numbers
    }
}
