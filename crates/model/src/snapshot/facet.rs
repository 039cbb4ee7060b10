//! Facets: the attributes of products that filters select by, as numbers.

use std::collections::HashMap;

use crate::geo::Country;

/// A country, a category, or being orderable. Numbers of categories are valid only with the [`Categories`] that
/// assigned them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facet(u32);

/// First number of a category, after being orderable and all countries.
const FIRST_CATEGORY: u32 = 1 + Country::NUMBERS;

impl Facet {
    /// Facet of products that can be ordered.
    pub const ORDERABLE: Self = Self(0);

    /// Returns the facet of products that can be redeemed in `country`.
    #[must_use]
    pub fn country(country: Country) -> Self {
        Self(1 + country.number())
    }

    /// Returns the country, if it is a country's facet.
    pub(super) fn as_country(self) -> Option<Country> {
        Country::from_number(self.0.checked_sub(1)?)
    }

    pub(super) fn from_number(number: u32) -> Self {
        Self(number)
    }

    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// All categories ever seen, numbered in order of appearance. Numbers never change: newer snapshots share blocks with
/// older ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Categories {
    names: Vec<Box<str>>,
    facets: HashMap<Box<str>, Facet>,
}

impl Categories {
    /// Returns the facet of a category, if it was ever seen.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Facet> {
        self.facets.get(name).copied()
    }

    /// Returns the facet of a category, adding the category if it is new.
    pub fn get_or_add(&mut self, name: &str) -> Facet {
        if let Some(facet) = self.get(name) {
            return facet;
        }
        // There can't be as many names as numbers: they wouldn't fit into memory.
        let count = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let facet = Facet(FIRST_CATEGORY.saturating_add(count));
        self.names.push(name.into());
        self.facets.insert(name.into(), facet);
        facet
    }

    /// Returns all facets of a product, adding new categories.
    pub fn facets_of(
        &mut self,
        is_orderable: bool,
        countries: &[Country],
        categories: &[Box<str>],
    ) -> Vec<Facet> {
        let orderable = is_orderable.then_some(Facet::ORDERABLE);
        let countries = countries.iter().copied().map(Facet::country);
        let categories = categories.iter().map(|name| self.get_or_add(name));
        orderable
            .into_iter()
            .chain(countries)
            .chain(categories)
            .collect()
    }

    /// Returns the names, in order of their numbers.
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Returns the name of a facet, if it is a category's.
    pub(super) fn name(&self, facet: Facet) -> Option<&str> {
        let number = facet.0.checked_sub(FIRST_CATEGORY)?;
        self.names.get(number as usize).map(AsRef::as_ref)
    }

    /// Returns the number of facets, the upper bound of all facet numbers.
    pub(super) fn facet_count(&self) -> usize {
        FIRST_CATEGORY as usize + self.names.len()
    }
}

impl<N: AsRef<str>> FromIterator<N> for Categories {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        let mut categories = Self::default();
        for name in names {
            categories.get_or_add(name.as_ref());
        }
        categories
    }
}
