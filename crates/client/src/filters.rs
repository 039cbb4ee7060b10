//! Filters, which lists and changes share, and the targets of their requests.

use std::fmt::Write as _;

use crate::address::encode;

/// Filters of a request. Values of one filter are alternatives; filters narrow each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters {
    pub(crate) countries: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) currencies: Vec<String>,
    pub(crate) payout_types: Vec<String>,
    pub(crate) codes: Vec<String>,
    pub(crate) is_orderable: Option<bool>,
}

impl Filters {
    /// Adds the filters to a target.
    pub(crate) fn put(&self, target: &mut Target) {
        for (name, values) in [
            ("countries_redeemable_in", &self.countries),
            ("categories", &self.categories),
            ("currencies", &self.currencies),
            ("payout_types", &self.payout_types),
            ("codes", &self.codes),
        ] {
            for value in values {
                target.put(name, value);
            }
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

        /// Adds a currency, an ISO 4217 code: products must have one of the added currencies.
        pub fn currency(mut self, currency: &str) -> Self {
            self.filters.currencies.push(currency.to_owned());
            self
        }

        /// Adds currencies: products must have one of the added currencies.
        pub fn currencies<C: AsRef<str>>(self, currencies: impl IntoIterator<Item = C>) -> Self {
            currencies.into_iter().fold(self, |request, currency| {
                request.currency(currency.as_ref())
            })
        }

        /// Adds a payout type, such as `gift_card`: products must have one of the added payout types.
        pub fn payout_type(mut self, payout_type: &str) -> Self {
            self.filters.payout_types.push(payout_type.to_owned());
            self
        }

        /// Adds payout types: products must have one of the added payout types.
        pub fn payout_types<P: AsRef<str>>(
            self,
            payout_types: impl IntoIterator<Item = P>,
        ) -> Self {
            payout_types.into_iter().fold(self, |request, payout_type| {
                request.payout_type(payout_type.as_ref())
            })
        }

        /// Adds a code: products must have one of the added codes, of which the server takes 100.
        pub fn code(mut self, code: &str) -> Self {
            self.filters.codes.push(code.to_owned());
            self
        }

        /// Adds codes: products must have one of the added codes, of which the server takes 100.
        pub fn codes<C: AsRef<str>>(self, codes: impl IntoIterator<Item = C>) -> Self {
            codes
                .into_iter()
                .fold(self, |request, code| request.code(code.as_ref()))
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
