//! What filters can ask of a product, as numbers: a country, a category, being orderable.

use std::collections::HashMap;

use crate::geo::Country;

/// Something that a filter can ask of a product. The numbers of categories hold only beside the
/// [`Categories`] that gave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facet(u32);

/// The first number of a category: countries come before, and they after being orderable.
const FIRST_CATEGORY: u32 = 1 + Country::NUMBERS;

impl Facet {
    /// That it can be ordered.
    pub const ORDERABLE: Self = Self(0);

    /// That it can be redeemed there.
    #[must_use]
    pub fn country(country: Country) -> Self {
        Self(1 + country.number())
    }

    /// The country that it stands for.
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

/// The categories that some product named, numbered in the order in which they came. A number once
/// given stays: blocks of older snapshots, which newer ones share, speak of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Categories {
    names: Vec<Box<str>>,
    facets: HashMap<Box<str>, Facet>,
}

impl Categories {
    /// The facet of a category, if some product named it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Facet> {
        self.facets.get(name).copied()
    }

    /// The facet of a category, which is new where no product named it before.
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

    /// All that filters can ask of a product.
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

    /// The names, each at its number.
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// The name of a facet, if it is a category's.
    pub(super) fn name(&self, facet: Facet) -> Option<&str> {
        let number = facet.0.checked_sub(FIRST_CATEGORY)?;
        self.names.get(number as usize).map(AsRef::as_ref)
    }

    /// How many facets there can be: all are numbered below.
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
