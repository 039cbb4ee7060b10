//! What a list request asks for: filters, and which stretch of the ordered result.

use std::num::NonZeroU16;

use crate::code::ProductCode;
use crate::geo::Country;

/// The most items of a page, and how many it has by default (docs/contract/listing.md#limit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(NonZeroU16);

impl Limit {
    /// The greatest limit, which is also the default.
    pub const MAX: u16 = 500;

    /// A limit, if `value` is from 1 to [`MAX`](Self::MAX).
    #[must_use]
    pub fn new(value: u16) -> Option<Self> {
        NonZeroU16::new(value)
            .filter(|value| value.get() <= Self::MAX)
            .map(Self)
    }

    /// The number of items.
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

/// Where a page lies in the ordered codes. The code named need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cursor {
    /// At the start.
    #[default]
    Start,
    /// The codes that follow this one.
    After(ProductCode),
    /// The last codes ahead of this one, in ascending order.
    Before(ProductCode),
}

/// Which products are meant. Values of one filter are alternatives; filters narrow each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Redeemable in any of these; empty: anywhere.
    pub countries: Vec<Country>,
    /// In any of these categories; empty: in any or none.
    pub categories: Vec<String>,
    /// What `is_orderable` asks for.
    pub orderable: Orderable,
}

/// The `is_orderable` filter: `false`, like its absence, filters nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Orderable {
    /// All products.
    #[default]
    Any,
    /// Only those that can be ordered.
    Only,
}

/// A list request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListQuery {
    /// Which products.
    pub filter: Filter,
    /// From where.
    pub cursor: Cursor,
    /// How many at most.
    pub limit: Limit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_from_1_to_500() {
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
