//! The discount of a product, and the place of its text in the product's bytes.

use std::ops::Range;

use crate::money::{Discount, DiscountText};

/// Discount of a product, with the place of its text. Rendered products have the text of the [cut](Discount::cut).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedDiscount {
    /// The exact discount.
    pub exact: Discount,
    /// Start of the text in the product's bytes, never 0.
    pub start: usize,
}

impl PlacedDiscount {
    /// Returns the range of the text in the product's bytes.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + DiscountText::MIN_BYTES
    }

    /// Returns the numbers that a directory has for a product.
    pub(super) fn encode(discount: Option<Self>) -> [usize; 2] {
        discount.map_or([0, 0], |Self { exact, start }| {
            [exact.millionths() as usize, start]
        })
    }

    /// Reads the numbers of a directory; `None` for a product without a place, and for a discount above 1.
    pub(super) fn decode(millionths: u32, start: usize) -> Option<Self> {
        let exact = Discount::from_millionths(millionths)?;
        (start > 0).then_some(Self { exact, start })
    }
}
