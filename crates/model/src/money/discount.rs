//! Discounts as responses show them: a number, cut at six digits, and its text.

use std::fmt;
use std::str::FromStr;

use super::{DiscountMultiplier, checked_discount};
use crate::Invalid;

/// Discount in millionths, from 0 to 1, cut and never rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Discount(u32);

impl Discount {
    pub(super) const ONE: u32 = 1_000_000;

    /// Number of fraction digits beyond which a discount is cut.
    pub(super) const MAX_DIGITS: usize = 6;

    /// Returns the discount of so many millionths; `None` above 1.
    #[must_use]
    pub const fn from_millionths(millionths: u32) -> Option<Self> {
        match millionths <= Self::ONE {
            true => Some(Self(millionths)),
            false => None,
        }
    }

    /// Returns the discount in millionths.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// Reads a discount with at most six digits behind the point, none of which is dropped.
    ///
    /// # Errors
    ///
    /// If it isn't one.
    pub fn exact(text: &str) -> Result<Self, Invalid> {
        let invalid = Invalid::new(
            "discount",
            "a decimal from 0 to 1 with a point and at most six digits behind it, such as `0.0125`",
        );
        let (_, fraction) = checked_discount(text).map_err(|_| invalid)?;
        match fraction.trim_end_matches('0').len() <= Self::MAX_DIGITS {
            true => text.parse(),
            false => Err(invalid),
        }
    }

    /// Returns the discount cut at two fraction digits.
    #[must_use]
    pub const fn cut(self) -> Self {
        Self(self.0 - self.0 % 10_000)
    }

    /// Returns the text: two to six fraction digits, without zeros beyond the second.
    #[must_use]
    pub fn text(self) -> DiscountText {
        let mut bytes = *b"0.000000";
        let mut rest = self.0;
        for digit in bytes[2..].iter_mut().rev() {
            *digit += digit_of(rest);
            rest /= 10;
        }
        bytes[0] += digit_of(rest);
        let zeros = bytes[4..].iter().rev().take_while(|digit| **digit == b'0');
        let length = bytes.len() - zeros.count();
        DiscountText { bytes, length }
    }
}

/// Returns the last decimal digit of a number.
fn digit_of(number: u32) -> u8 {
    u8::try_from(number % 10).unwrap_or_default()
}

impl From<&DiscountMultiplier> for Discount {
    fn from(exact: &DiscountMultiplier) -> Self {
        // It was checked when it was made.
        exact.exact().parse().unwrap_or_default()
    }
}

/// Reads what [`DiscountMultiplier`] reads, and drops the digits beyond the sixth.
impl FromStr for Discount {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (whole, fraction) = checked_discount(text)?;
        let digits = fraction.bytes().chain(std::iter::repeat(b'0'));
        let digits = digits.take(Self::MAX_DIGITS);
        let start = u32::from(whole.ends_with('1'));
        Ok(Self(digits.fold(start, |number, digit| {
            number * 10 + u32::from(digit - b'0')
        })))
    }
}

/// Text of a discount, such as `0.0125`.
#[derive(Debug, Clone, Copy)]
pub struct DiscountText {
    bytes: [u8; Self::MAX_BYTES],
    length: usize,
}

impl DiscountText {
    /// Length of a text with two fraction digits, the shortest, in bytes.
    pub const MIN_BYTES: usize = "0.00".len();
    /// Length of a text with six fraction digits, the longest, in bytes.
    pub const MAX_BYTES: usize = "0.000000".len();

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Display for Discount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text().as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Cuts a decimal below ten as a person does with a pencil: at `digits` digits, without zeros beyond the second.
    fn by_hand(text: &str, digits: usize) -> String {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let mut fraction: String = fraction.chars().take(digits).collect();
        while fraction.len() > 2 && fraction.ends_with('0') {
            fraction.pop();
        }
        while fraction.len() < 2 {
            fraction.push('0');
        }
        let whole = whole.trim_start_matches('0');
        format!("{}.{fraction}", if whole.is_empty() { "0" } else { whole })
    }

    proptest! {
        #[test]
        fn texts_are_the_loaded_number_cut(text in r"0{1,3}(\.[0-9]{1,12})?|0{0,2}1(\.0{1,9})?") {
            let loaded: DiscountMultiplier = text.parse().unwrap();
            let discount = Discount::from(&loaded);
            prop_assert_eq!(discount.to_string(), by_hand(&text, 6));
            prop_assert_eq!(discount.cut().to_string(), by_hand(&text, 2));
            prop_assert_eq!(discount.cut().to_string(), loaded.cut());
            prop_assert_eq!(discount.to_string().parse::<Discount>(), Ok(discount));
            prop_assert_eq!(Discount::from_millionths(discount.millionths()), Some(discount));
        }
    }

    #[test]
    fn discounts_above_one_are_refused() {
        assert_eq!(Discount::from_millionths(1_000_001), None);
        for wrong in ["1.000001", "2", "-0.1", "", "0,1", "1e-3"] {
            assert!(wrong.parse::<Discount>().is_err(), "{wrong}");
            assert!(Discount::exact(wrong).is_err(), "{wrong}");
        }
        assert!(Discount::exact("0.0123456").is_err());
        assert_eq!(Discount::exact("0.1234560"), "0.123456".parse());
        let one = Discount::from_millionths(1_000_000).unwrap();
        assert_eq!(one.text().as_str(), "1.00");
    }
}
