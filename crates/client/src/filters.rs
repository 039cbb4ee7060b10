//! Filters, which lists and changes share, and the targets of their requests.

use std::fmt::Write as _;

use crate::address::encode;

/// Filters of a request. Values of one filter are alternatives; filters narrow each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters {
    pub(crate) countries: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) is_orderable: Option<bool>,
}

impl Filters {
    /// Adds the filters to a target.
    pub(crate) fn put(&self, target: &mut Target) {
        for country in &self.countries {
            target.put("countries_redeemable_in", country);
        }
        for category in &self.categories {
            target.put("categories", category);
        }
        if let Some(is_orderable) = self.is_orderable {
            target.put("is_orderable", if is_orderable { "true" } else { "false" });
        }
    }
}

/// Path of an operation with its query.
pub(crate) struct Target(String);

impl Target {
    pub(crate) fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    /// Adds a parameter.
    pub(crate) fn put(&mut self, name: &str, value: &str) {
        let sign = if self.0.contains('?') { '&' } else { '?' };
        // Writing to a string can't fail.
        let _ = write!(self.0, "{sign}{name}={}", encode(value));
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// Defines the methods of a request that set its field `filters`.
macro_rules! filter_methods {
    () => {
        /// Adds a country, an ISO 3166-1 alpha-2 code: products must be redeemable in one of the added countries.
        pub fn country(mut self, country: &str) -> Self {
            self.filters.countries.push(country.to_owned());
            self
        }

        /// Adds countries: products must be redeemable in one of the added countries.
        pub fn countries<C: AsRef<str>>(self, countries: impl IntoIterator<Item = C>) -> Self {
            countries
                .into_iter()
                .fold(self, |request, country| request.country(country.as_ref()))
        }

        /// Adds a category: products must be in one of the added categories.
        pub fn category(mut self, category: &str) -> Self {
            self.filters.categories.push(category.to_owned());
            self
        }

        /// Adds categories: products must be in one of the added categories.
        pub fn categories<C: AsRef<str>>(self, categories: impl IntoIterator<Item = C>) -> Self {
            categories.into_iter().fold(self, |request, category| {
                request.category(category.as_ref())
            })
        }

        /// Selects only products that can be ordered: those to show to end users.
        pub fn orderable(self) -> Self {
            self.is_orderable(true)
        }

        /// Sets the parameter `is_orderable`; `false` filters nothing.
        pub fn is_orderable(mut self, is_orderable: bool) -> Self {
            self.filters.is_orderable = Some(is_orderable);
            self
        }
    };
}

pub(crate) use filter_methods;
