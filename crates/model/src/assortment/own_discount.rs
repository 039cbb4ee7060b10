//! Discounts of a client's own: one that replaces the product's, or a share of it (docs/contract/assortments.md#discounts).

use std::fmt;
use std::str::FromStr;

use crate::Invalid;
use crate::money::{Decimal, Discount};
use crate::selector::Selector;

/// Discount of a client's own for some products.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnDiscount {
    /// Selector of the products.
    pub selector: Selector,
    /// Change of their discounts.
    pub change: DiscountChange,
}

/// Change of a product's discount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscountChange {
    /// Replaces it.
    Set(Discount),
    /// Multiplies it.
    Share(Share),
}

impl DiscountChange {
    /// Returns the discount that is shown instead of a product's; `None` if it would be above 1.
    #[must_use]
    pub fn of(self, discount: Discount) -> Option<Discount> {
        match self {
            Self::Set(own) => Some(own),
            Self::Share(share) => share.of(discount),
        }
    }
}

/// Share of a discount, from 0 to 1,000 with at most six fraction digits; above 1, it is more than the product's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(Decimal);

impl DiscountChange {
    /// Returns true if the changed discount can be above 1.
    #[must_use]
    pub fn may_exceed(self) -> bool {
        matches!(self, Self::Share(Share(share)) if share > Decimal::new(1, 0))
    }
}

impl Share {
    /// Returns the share of a discount: the exact product, cut at six digits; `None` above 1.
    #[must_use]
    pub fn of(self, discount: Discount) -> Option<Discount> {
        discount.times(self.0)
    }
}

/// Reads an exact decimal, in any of its spellings (`1`, `0.8`, `0.80`).
impl FromStr for Share {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let is_share = |read: &Decimal| *read == read.cut(6) && *read <= Decimal::new(1000, 0);
        let read = Decimal::parse(text).filter(is_share);
        read.map(|read| Self(read.trimmed(0))).ok_or(Invalid::new(
            "share",
            "a decimal from 0 to 1000 with a point and at most six digits behind it, such as `0.8`",
        ))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share_of(share: &str, discount: &str) -> Option<String> {
        let share: Share = share.parse().expect("a share");
        let discount = discount.parse().expect("a discount");
        share.of(discount).map(|discount| discount.to_string())
    }

    #[test]
    fn shares_are_exact_products_cut_at_six_digits() {
        for (share, discount, product) in [
            ("0.8", "0.0125", "0.01"),
            ("0.8", "0.013", "0.0104"),
            ("0", "0.5", "0.00"),
            ("1", "0.123456", "0.123456"),
            ("0.333333", "0.000003", "0.00"),
            ("0.666667", "0.000003", "0.000002"),
            ("0.999999", "0.999999", "0.999998"),
            ("1.000001", "0.999999", "0.999999"),
            ("1000", "0.001", "1.00"),
            ("2.5", "0.4", "1.00"),
            ("3", "0.1234567", "0.37037"),
            ("3", "0.3333333333333333333333333333", "0.999999"),
            ("3", "0.3333333333333333333333333334", "1.00"),
            ("1000", "0.0010000001", "1.00"),
            ("0.999999", "0.99999999999999999999", "0.999998"),
        ] {
            assert_eq!(share_of(share, discount).as_deref(), Some(product));
        }
        for (share, discount) in [("1.000001", "1"), ("1000", "0.001001"), ("1000", "1")] {
            assert_eq!(share_of(share, discount), None, "{share} {discount}");
        }
    }

    /// Returns the product of two decimals as a person does with a pencil: digit by digit, then cut at six fraction digits and
    /// written without zeros beyond the second.
    fn by_hand(share: &str, discount: &str) -> String {
        let digits = |text: &str| -> Vec<u32> {
            let digits = text.chars().rev();
            digits.filter_map(|digit| digit.to_digit(10)).collect()
        };
        let fraction = |text: &str| {
            text.split_once('.')
                .map_or(0, |(_, fraction)| fraction.len())
        };
        let (left, right) = (digits(share), digits(discount));
        let mut product = vec![0; left.len() + right.len() + 8];
        for (at, one) in left.iter().enumerate() {
            let mut carried = 0;
            for (place, other) in right.iter().chain(&[0; 8]).enumerate() {
                let sum = product[at + place] + one * other + carried;
                (product[at + place], carried) = (sum % 10, sum / 10);
            }
        }
        let point = fraction(share) + fraction(discount);
        product.resize(product.len().max(point + 1), 0);
        let written = |digits: &[u32]| -> String {
            let digits = digits.iter().rev();
            digits.map(u32::to_string).collect()
        };
        let whole = written(&product[point..]);
        let mut fraction = written(&product[..point]);
        fraction.truncate(6);
        let kept = fraction.trim_end_matches('0').len().max(2);
        let whole = whole.trim_start_matches('0');
        format!("{whole:0>1}.{:0<2}", &fraction[..kept.min(fraction.len())])
    }

    /// Generates discounts: any digits, and those that a third or a seventh is written with, cut or rounded up.
    fn discount() -> impl Strategy<Value = String> {
        let near = (
            prop::sample::select(vec!["3", "142857", "9", "0"]),
            1..28_usize,
            "[0-9]?",
        );
        prop_oneof![
            r"0{1,2}(\.[0-9]{1,28})?",
            r"0?1(\.0{1,20})?",
            near.prop_map(|(digits, count, last)| format!(
                "0.{}{last}",
                &digits.repeat(count)[..count]
            )),
        ]
    }

    fn share() -> impl Strategy<Value = String> {
        prop_oneof![
            r"[0-9](\.[0-9]{1,6})?",
            r"[0-9]{1,3}(\.[0-9]{1,6}0{0,3})?",
            Just("1000".to_owned()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn shares_equal_products_by_hand(share in share(), discount in discount()) {
            let product = by_hand(&share, &discount);
            let is_discount = product == "1.00" || product.starts_with("0.");
            prop_assert_eq!(share_of(&share, &discount), is_discount.then_some(product));
        }
    }

    #[test]
    fn shares_are_read_and_written_exactly() {
        for (text, written) in [
            ("0", "0"),
            ("0.8", "0.8"),
            ("00.80", "0.8"),
            ("1.0000000", "1"),
            ("10", "10"),
            ("0.000001", "0.000001"),
            ("1000", "1000"),
        ] {
            assert_eq!(text.parse::<Share>().expect("a share").to_string(), written);
        }
        for wrong in [
            "",
            ".5",
            "1.",
            "-1",
            "+1",
            "1e2",
            "0,8",
            "0.0000001",
            "1000.1",
            "1001",
            "10000",
            "½",
        ] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
