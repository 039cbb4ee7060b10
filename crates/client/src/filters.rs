//! Filters and the limit, which lists and changes share, and the targets of their requests.

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
    /// Maximum number of products on a page.
    pub(crate) limit: Option<u16>,
}

impl Filters {
    /// Adds the filters and the limit to a target.
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
        if let Some(limit) = self.limit {
            target.put("limit", &limit.to_string());
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
        filter_methods!(country countries "a country, an ISO 3166-1 alpha-2 code" "redeemable in one of the added countries");
        filter_methods!(category categories "a category" "in one of the added categories");
        filter_methods!(currency currencies "a currency, an ISO 4217 code" "in one of the added currencies");
        filter_methods!(payout_type payout_types "a payout type, such as `gift_card`" "of one of the added payout types");
        filter_methods!(code codes "a code, of which the server takes 100" "those of the added codes");

        /// Selects only products that can be ordered: those to show to end users.
        pub fn orderable(self) -> Self {
            self.is_orderable(true)
        }

        /// Sets the parameter `is_orderable`; `false` filters nothing.
        pub fn is_orderable(mut self, is_orderable: bool) -> Self {
            self.filters.is_orderable = Some(is_orderable);
            self
        }

        /// Sets the maximum number of products on a page, from 1 to 500. The server's default is 500.
        pub fn limit(mut self, limit: u16) -> Self {
            self.filters.limit = Some(limit);
            self
        }
    };
    ($one:ident $many:ident $what:literal $effect:literal) => {
        #[doc = concat!("Adds ", $what, ": products must be ", $effect, ".")]
        pub fn $one(mut self, value: &str) -> Self {
            self.filters.$many.push(value.to_owned());
            self
        }

        #[doc = concat!("Adds several values, as [`", stringify!($one), "`](Self::", stringify!($one), ") adds one.")]
        pub fn $many<V: AsRef<str>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
            let values = values.into_iter().map(|value| value.as_ref().to_owned());
            self.filters.$many.extend(values);
            self
        }
    };
}

pub(crate) use filter_methods;
