//! The discount of a product, and the place of its text in the product's bytes.

use std::ops::Range;

use crate::money::{Decimal, Discount};

/// Discount of a product, with the place of its text. Rendered products have the text of the [cut](Discount::cut).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedDiscount {
    /// The exact discount.
    pub exact: Discount,
    /// Start of the text in the product's bytes, never 0.
    pub start: usize,
}

/// Size of a discount in a directory, in bytes.
pub(super) const ENCODED_BYTES: usize = 16;

impl PlacedDiscount {
    /// Returns the range of the text in the product's bytes.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + Discount::CUT_BYTES
    }

    /// Returns the discount as a directory has it.
    pub(super) fn encode(exact: Discount) -> [u8; ENCODED_BYTES] {
        exact.respelt().value().bits().to_le_bytes()
    }

    /// Reads a discount of a directory. `None` for a product without a place, and for an impossible discount.
    pub(super) fn decode(discount: [u8; ENCODED_BYTES], start: usize) -> Option<Self> {
        let exact = Discount::new(Decimal::from_bits(u128::from_le_bytes(discount))?)?;
        (start > 0).then_some(Self { exact, start })
    }
}
