//! Discounts of products with all digits, for products with a share.

use std::array;
use std::iter;
use std::str::FromStr;

use super::{Discount, MAX_DISCOUNT_BYTES, checked_discount};
use crate::Invalid;

/// Number of digits in a group.
const GROUP_DIGITS: usize = 9;

/// Values of a group.
const GROUP: u64 = 1_000_000_000;

/// Maximum number of groups beyond the sixth digit.
pub(crate) const GROUPS: usize =
    (MAX_DISCOUNT_BYTES - "0.".len() - Discount::MAX_DIGITS).div_ceil(GROUP_DIGITS);

/// Fraction digits beyond the sixth, in groups of nine.
pub(crate) type MoreDigits = [u32; GROUPS];

/// Discount of a product exactly as loaded, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExactDiscount {
    shown: Discount,
    more: MoreDigits,
}

impl ExactDiscount {
    /// Returns the discount of these digits; `None` if it is above 1, or a group is too large.
    pub(crate) fn new(shown: Discount, more: MoreDigits) -> Option<Self> {
        let is_group = |group: &u32| u64::from(*group) < GROUP;
        let exact = Self { shown, more };
        let is_discount = shown.millionths() < Discount::ONE || !exact.has_more_digits();
        (more.iter().all(is_group) && is_discount).then_some(exact)
    }

    /// Returns the discount as responses show it, cut at six digits.
    #[must_use]
    pub const fn shown(self) -> Discount {
        self.shown
    }

    /// Returns the digits beyond the sixth.
    pub(crate) const fn more_digits(&self) -> &MoreDigits {
        &self.more
    }

    /// Returns true if a digit beyond the sixth isn't zero.
    pub(crate) fn has_more_digits(&self) -> bool {
        self.more != MoreDigits::default()
    }

    /// Returns the exact product with a factor in millionths, cut at six digits, in millionths.
    pub(crate) fn times_millionths(&self, factor: u32) -> u64 {
        let factor = u64::from(factor);
        // From the last group to the first, as by hand: what lies below a unit can't change the digits that are kept.
        let groups = self.more.iter().rev().skip_while(|group| **group == 0);
        let carried = groups.fold(0, |carried, group| {
            (factor * u64::from(*group) + carried) / GROUP
        });
        (factor * u64::from(self.shown.millionths()) + carried) / u64::from(Discount::ONE)
    }
}

impl From<Discount> for ExactDiscount {
    fn from(shown: Discount) -> Self {
        Self {
            shown,
            more: MoreDigits::default(),
        }
    }
}

/// Reads what [`DiscountMultiplier`](super::DiscountMultiplier) reads, and keeps all digits.
impl FromStr for ExactDiscount {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (_, fraction) = checked_discount(text)?;
        let shown: Discount = text.parse()?;
        let Some((_, more)) = fraction.split_at_checked(Discount::MAX_DIGITS) else {
            return Ok(shown.into());
        };
        let mut digits = more.bytes().chain(iter::repeat(b'0'));
        let mut group = || {
            let digits = digits.by_ref().take(GROUP_DIGITS);
            digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
        };
        Ok(Self {
            shown,
            more: array::from_fn(|_| group()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ExactDiscount {
        text.parse().expect("a discount")
    }

    #[test]
    fn digits_beyond_the_sixth_are_kept() {
        let longest = format!("0.{}", "9".repeat(62));
        assert!(longest.len() == MAX_DISCOUNT_BYTES && read(&longest).has_more_digits());
        assert_eq!(read(&longest).times_millionths(1_000_000), 999_999);
        assert_ne!(read(&longest), read(&format!("0.{}8", "9".repeat(61))));
        for short in ["0", "1", "0.123456", "0.12345600000", "1.000000000"] {
            assert!(!read(short).has_more_digits(), "{short}");
            assert_eq!(read(short), read(short).shown().into());
        }
        let too_long = format!("0.{}", "9".repeat(63));
        for wrong in [too_long.as_str(), "1.00000000000000000001", "", "0,1234567"] {
            assert!(wrong.parse::<ExactDiscount>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn impossible_digits_are_refused() {
        let [one, less] = [1_000_000, 999_999].map(Discount::from_millionths);
        let [mut digits, mut group] = [MoreDigits::default(); 2];
        *digits.last_mut().unwrap() = 1;
        *group.last_mut().unwrap() = 1_000_000_000;
        assert_eq!(ExactDiscount::new(one.unwrap(), digits), None, "above 1");
        assert_eq!(ExactDiscount::new(less.unwrap(), group), None);
        let exact = ExactDiscount::new(less.unwrap(), digits).expect("a discount");
        assert_eq!(
            (exact.shown(), exact.more_digits()),
            (less.unwrap(), &digits)
        );
        assert_eq!(exact.times_millionths(u32::MAX), 4_294_963_000);
    }
}
