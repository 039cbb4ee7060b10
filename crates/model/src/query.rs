//! The query of a list request: filters, cursor and limit.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::ops::Bound;

use crate::code::ProductCode;
use crate::geo::Country;
use crate::money::Currency;
use crate::product::PayoutTypeName;

/// Maximum number of items on a page (docs/contract/listing.md#limit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(NonZeroU16);

impl Limit {
    /// The lowest limit.
    pub const ONE: Self = Self(NonZeroU16::MIN);

    /// The highest limit, also the default.
    pub const MAX: u16 = 500;

    /// Returns the limit if `value` is from 1 to [`MAX`](Self::MAX).
    #[must_use]
    pub fn new(value: u16) -> Option<Self> {
        NonZeroU16::new(value)
            .filter(|value| value.get() <= Self::MAX)
            .map(Self)
    }

    /// Returns the number of items.
    #[must_use]
    pub fn get(self) -> usize {
        usize::from(self.0.get())
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(NonZeroU16::MIN.saturating_add(Self::MAX - 1))
    }
}

/// Position of a page in the ordered codes. The code named need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cursor {
    /// The first codes.
    #[default]
    Start,
    /// The first codes after this one.
    After(ProductCode),
    /// The last codes before this one, in ascending order.
    Before(ProductCode),
}

/// Filters of a list. Values of one filter are alternatives; filters narrow each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Countries, of which products have at least one; empty: no filter.
    pub countries: Vec<Country>,
    /// Categories, of which products have at least one; empty: no filter.
    pub categories: Vec<String>,
    /// Currencies, of which products have one; empty: no filter.
    pub currencies: Vec<Currency>,
    /// Payout types, of which products have one; empty: no filter.
    pub payout_types: Vec<PayoutTypeName>,
    /// Codes, of which products have one; empty: no filter. At most [`MAX_CODES`](Self::MAX_CODES) in a request.
    pub codes: BTreeSet<ProductCode>,
    /// The `is_orderable` filter.
    pub orderable: Orderable,
}

impl Filter {
    /// Maximum number of codes in a request (docs/contract/listing.md#filters).
    pub const MAX_CODES: usize = 100;

    /// Returns true if the filter on codes, if there is one, selects this code.
    #[must_use]
    pub fn selects_code(&self, code: &str) -> bool {
        self.codes.is_empty() || self.codes.contains(code)
    }

    /// Iterates over the codes of the filter from `code` on.
    pub(crate) fn codes_from(&self, code: &str) -> impl Iterator<Item = &ProductCode> {
        let range = (Bound::Included(code), Bound::Unbounded);
        self.codes.range::<str, _>(range)
    }
}

/// The `is_orderable` filter; `false` filters nothing, as if it were absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Orderable {
    /// All products.
    #[default]
    Any,
    /// Only products that can be ordered.
    Only,
}

/// A list request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListQuery {
    /// Filters.
    pub filter: Filter,
    /// Position of the page.
    pub cursor: Cursor,
    /// Maximum number of products.
    pub limit: Limit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_outside_1_to_500_are_refused() {
        for number in [1, 2, 499, 500] {
            assert_eq!(
                Limit::new(number).map(Limit::get),
                Some(usize::from(number))
            );
        }
        for number in [0, 501, u16::MAX] {
            assert_eq!(Limit::new(number), None);
        }
        assert_eq!(Limit::default().get(), 500);
    }
}
