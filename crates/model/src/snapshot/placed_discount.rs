//! The discount of a product, and the place of its text in the product's bytes.

use std::ops::Range;

use crate::money::{Discount, DiscountText, ExactDiscount, MoreDigits};

/// Discount of a product, with the place of its text. Rendered products have the text of the [cut](Discount::cut).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedDiscount {
    /// The exact discount.
    pub exact: ExactDiscount,
    /// Start of the text in the product's bytes, never 0.
    pub start: usize,
}

/// Number of bits for millionths; those above have the place of further digits in the block, plus 1.
const MILLIONTHS_BITS: u32 = 20;

impl PlacedDiscount {
    /// Returns the range of the text in the product's bytes.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + DiscountText::MIN_BYTES
    }

    /// Returns the number of the discount in a directory. Digits beyond the sixth are appended to `more`, those of the block.
    pub(super) fn encode(exact: ExactDiscount, more: &mut Vec<MoreDigits>) -> u32 {
        let millionths = exact.shown().millionths();
        if !exact.has_more_digits() {
            return millionths;
        }
        more.push(*exact.more_digits());
        // A block has few products.
        let place = u32::try_from(more.len()).unwrap_or_default();
        millionths | place << MILLIONTHS_BITS
    }

    /// Reads the numbers of a directory; `more` returns digits beyond the sixth. `None` for a product without a place, and for
    /// an impossible discount.
    pub(super) fn decode(
        [number, start]: [u32; 2],
        more: impl FnOnce(usize) -> Option<MoreDigits>,
    ) -> Option<Self> {
        let shown = Discount::from_millionths(number & ((1 << MILLIONTHS_BITS) - 1))?;
        let exact = match (number >> MILLIONTHS_BITS).checked_sub(1) {
            None => shown.into(),
            Some(place) => ExactDiscount::new(shown, more(usize::try_from(place).ok()?)?)?,
        };
        let start = usize::try_from(start).ok()?;
        (start > 0).then_some(Self { exact, start })
    }
}
