//! The query of a list request: filter, cursor and limit.

use std::num::NonZeroU16;

use crate::code::ProductCode;
use crate::search::Search;
use crate::selector::Selector;

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

/// A list request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListQuery {
    /// Filter: values of one parameter are alternatives; parameters narrow each other.
    pub filter: Selector,
    /// Words that each product matches, if there are any.
    pub search: Option<Search>,
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
