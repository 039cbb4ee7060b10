//! Discounts on prices.

use std::fmt;
use std::str::FromStr;

use super::{Decimal, DecimalText};
use crate::Invalid;

/// Discount on the price before fees, from 0 to 1, kept exactly as loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Discount(Decimal);

/// Number of fraction digits beyond which responses cut discounts.
const SHOWN_DIGITS: u32 = 6;

impl Discount {
    /// Length of the text of a [cut](Self::cut) discount, in bytes.
    pub const CUT_BYTES: usize = "0.00".len();

    /// Returns the discount of this value; `None` above 1.
    pub(crate) fn new(value: Decimal) -> Option<Self> {
        (value <= Decimal::new(1, 0)).then_some(Self(value))
    }

    /// Reads a discount with at most six digits behind the point, as responses show it.
    ///
    /// # Errors
    ///
    /// If it isn't one.
    pub fn exact(text: &str) -> Result<Self, Invalid> {
        let read = text.parse::<Self>().ok();
        read.filter(|read| *read == read.shown())
            .map(Self::shown)
            .ok_or(Invalid::new(
                "discount",
                "a decimal from 0 to 1 with a point and at most six digits behind it, such as `0.0125`",
            ))
    }

    /// Returns the discount as responses show it: cut at six fraction digits, with two at least and no zeros beyond them.
    #[must_use]
    pub fn shown(self) -> Self {
        Self(self.0.cut(SHOWN_DIGITS).trimmed(2))
    }

    /// Returns the discount with two fraction digits, truncated and never rounded up: the catalog must not promise
    /// more discount than there is (docs/contract/resources.md#discounts).
    #[must_use]
    pub fn cut(self) -> Self {
        Self(self.0.cut(2).trimmed(2))
    }

    /// Returns the same number with two fraction digits at least, and no zeros beyond them.
    #[must_use]
    pub fn respelt(self) -> Self {
        Self(self.0.trimmed(2))
    }

    /// Returns the number of millionths, cut.
    #[must_use]
    pub fn millionths(self) -> u64 {
        self.0.units(SHOWN_DIGITS)
    }

    /// Returns the exact share of the discount, as responses show it; `None` above 1.
    pub(crate) fn times(self, share: Decimal) -> Option<Self> {
        let product = self.0.times(share, SHOWN_DIGITS)?;
        Self::new(product.trimmed(2))
    }

    /// Returns the number.
    #[must_use]
    pub const fn value(self) -> Decimal {
        self.0
    }

    /// Returns the text.
    #[must_use]
    pub fn text(self) -> DecimalText {
        self.0.text()
    }
}

impl FromStr for Discount {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let value = Decimal::parse(text).and_then(Self::new);
        value.ok_or(Invalid::new(
            "discount_multiplier",
            "a decimal from 0 to 1 with a point and at most 28 digits, without comma, sign, exponent or percent sign, such as `0.05` for 5 %",
        ))
    }
}

impl fmt::Display for Discount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Discount {
        text.parse().expect("a discount")
    }

    #[test]
    fn discounts_are_truncated_and_never_rounded_up() {
        for (given, cut, shown) in [
            ("0.0130", "0.01", "0.013"),
            ("0.0199", "0.01", "0.0199"),
            ("0.1", "0.10", "0.10"),
            ("0", "0.00", "0.00"),
            ("1", "1.00", "1.00"),
            ("1.000", "1.00", "1.00"),
            ("0.0100", "0.01", "0.01"),
            ("0.12345678", "0.12", "0.123456"),
        ] {
            let discount = read(given);
            assert_eq!(discount.to_string(), given);
            assert_eq!(discount.cut().to_string(), cut);
            assert_eq!(discount.cut().text().as_str().len(), Discount::CUT_BYTES);
            assert_eq!(discount.shown().to_string(), shown);
        }
        for wrong in ["-0.1", "1.01", "2", "1e-2", "", ".", "0,1", "1.0000001"] {
            assert!(wrong.parse::<Discount>().is_err(), "{wrong}");
            assert!(Discount::exact(wrong).is_err(), "{wrong}");
        }
        assert!(Discount::exact("0.0123456").is_err());
        assert_eq!(Discount::exact("0.1234560"), "0.123456".parse());
    }

    #[test]
    fn equal_discounts_have_one_spelling() {
        for given in ["0.01", "0.010", "00.01000"] {
            assert_eq!(read(given).respelt().to_string(), "0.01");
            assert_eq!(read(given), read("0.01"));
        }
        assert_eq!(read("0.0130").respelt().to_string(), "0.013");
    }

    #[test]
    fn tenfold_discounts_are_recognised_exactly() {
        for (less, more, expected) in [
            ("0.07", "0.7", true),
            ("0.07", "0.699999", false),
            ("0.1", "0.10", false),
            ("0", "0.01", true),
            ("0.1", "1", true),
            ("00.100000000000000001", "1.0", false),
            ("0.099999999999999999", "1.0", true),
        ] {
            let [a, b] = [less, more].map(|text| read(text).value());
            assert_eq!(
                [a.is_tenfold(b), b.is_tenfold(a)],
                [expected; 2],
                "{less} {more}"
            );
        }
    }
}
