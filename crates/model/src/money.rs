//! Money: currencies, amounts and the discount, as exact decimals and never as binary floats.

mod discount;
mod exact_discount;

use std::fmt;
use std::str::FromStr;

pub use self::discount::{Discount, DiscountText};
pub use self::exact_discount::ExactDiscount;
pub(crate) use self::exact_discount::{GROUPS as DIGIT_GROUPS, MoreDigits};
use crate::Invalid;

/// A currency; products have those of ISO 4217.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// Returns the code, three capitals.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the currency of a well-formed code, `^[A-Z]{3}$`; it may not exist. Filters take any: one that no product has
    /// gives an empty page (docs/contract/listing.md#filters).
    #[must_use]
    pub fn well_formed(code: &str) -> Option<Self> {
        let code: [u8; 3] = code.as_bytes().try_into().ok()?;
        code.iter()
            .all(u8::is_ascii_uppercase)
            .then_some(Self(code))
    }
}

/// Parses the code of an existing currency.
impl FromStr for Currency {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let is_assigned = iso_currency::Currency::from_code(text).is_some();
        let currency = Self::well_formed(text).filter(|_| is_assigned);
        currency.ok_or(Invalid::new(
            "currency",
            "the ISO 4217 code of a currency, three capitals such as `EUR`",
        ))
    }
}

/// Splits a plain decimal into its digits before and after the point.
///
/// Returns `None` for a sign, an exponent, a missing digit on either side of the point, and anything but ASCII digits.
pub(crate) fn split_decimal(text: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    (!whole.is_empty() && digits(whole) && digits(fraction)).then_some((whole, fraction))
}

/// Returns true for a number with an exponent, as spreadsheets shorten long ones: `4.41E+11`, `4,93E+11`.
#[must_use]
pub fn is_scientific(text: &str) -> bool {
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa = mantissa.trim_start_matches(['+', '-']);
    let (whole, fraction) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, "0"));
    digits(whole) && digits(fraction) && digits(exponent.trim_start_matches(['+', '-']))
}

/// An amount of money in hundredths of the currency's unit, for all currencies: the contract shows two fraction digits
/// for all (docs/contract/resources.md#amounts).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    hundredths: u64,
}

impl Amount {
    /// Returns true if one amount is at least ten times the other, as when a decimal point was lost. Any other amount
    /// is tenfold zero.
    #[must_use]
    pub fn is_tenfold(&self, other: &Self) -> bool {
        let (less, more) = (self.min(other), self.max(other));
        less != more && u128::from(more.hundredths) >= 10 * u128::from(less.hundredths)
    }

    const INVALID: Invalid = Invalid::new(
        "amount",
        "a decimal amount with a point and at most two significant fraction digits, without comma, sign or exponent, below 10^15, such as `25.50`",
    );
}

impl FromStr for Amount {
    type Err = Invalid;

    /// Reads a decimal in any of its spellings (`20`, `20.5`, `20.500`, `020.50`).
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (whole, fraction) = split_decimal(text).ok_or(Self::INVALID)?;
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if whole.len() > 15 || fraction.len() > 2 {
            return Err(Self::INVALID);
        }
        let number = |digits: &str| {
            let digits = digits.bytes().map(|digit| u64::from(digit - b'0'));
            digits.fold(0, |number, digit| number * 10 + digit)
        };
        let tenths_missing = if fraction.len() == 1 { 10 } else { 1 };
        let (units, rest) = (number(whole), number(fraction) * tenths_missing);
        Ok(Self {
            hundredths: units * 100 + rest,
        })
    }
}

impl Amount {
    /// Returns the text: two fraction digits.
    #[must_use]
    pub fn text(self) -> AmountText {
        let mut bytes = [b'0'; AmountText::MAX_BYTES];
        let mut rest = self.hundredths;
        let mut start = bytes.len();
        while rest > 0 || start > bytes.len() - AmountText::MIN_BYTES {
            start -= 1;
            if start == bytes.len() - ".00".len() {
                bytes[start] = b'.';
                continue;
            }
            bytes[start] += u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
        }
        AmountText { bytes, start }
    }
}

/// Text of an amount, such as `25.50`.
#[derive(Debug, Clone, Copy)]
pub struct AmountText {
    bytes: [u8; Self::MAX_BYTES],
    start: usize,
}

impl AmountText {
    const MIN_BYTES: usize = "0.00".len();
    const MAX_BYTES: usize = u64::MAX.ilog10() as usize + 1 + ".".len();

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[self.start..]).unwrap_or_default()
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text().as_str())
    }
}

/// Discount on the price before fees, from 0 to 1, kept exactly as loaded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DiscountMultiplier(Box<str>);

impl DiscountMultiplier {
    /// Returns the decimal as it was loaded, such as `0.0130`.
    #[must_use]
    pub fn exact(&self) -> &str {
        &self.0
    }

    /// Returns the value with two fraction digits, truncated and never rounded up: the catalog must not promise
    /// more discount than there is (docs/contract/resources.md#discounts).
    #[must_use]
    pub fn cut(&self) -> String {
        let (whole, fraction) = split_decimal(&self.0).unwrap_or(("0", ""));
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let kept = &fraction[..fraction.len().min(2)];
        format!("{whole}.{kept:0<2}")
    }

    /// Returns true if both are the same number in any spelling (`0.1`, `0.10`).
    #[must_use]
    pub fn is_same_number(&self, other: &Self) -> bool {
        let digits = |discount: &Self| {
            let (whole, fraction) = split_decimal(&discount.0).unwrap_or_default();
            let whole = whole.trim_start_matches('0').to_owned();
            (whole, fraction.trim_end_matches('0').to_owned())
        };
        digits(self) == digits(other)
    }

    /// Returns the same number as clients are shown it: with two fraction digits at least, and no zeros behind them.
    #[must_use]
    pub fn respelt(&self) -> Self {
        let (_, fraction) = split_decimal(&self.0).unwrap_or_default();
        let more = fraction.get(2..).unwrap_or_default();
        let more = more.trim_end_matches('0');
        Self(format!("{}{more}", self.cut()).into())
    }

    /// Returns true if one discount is at least ten times the other. Any other discount is tenfold zero.
    #[must_use]
    pub fn is_tenfold(&self, other: &Self) -> bool {
        let parts = [self, other].map(|discount| split_decimal(&discount.0).unwrap_or_default());
        let fraction_digits = parts.map(|(_, fraction)| fraction.len()).into_iter().max();
        let whole_digits = parts.map(|(whole, _)| whole.len()).into_iter().max();
        // Padded to equal lengths, so that the digits compare as the numbers do.
        let [a, b] = parts.map(|(whole, fraction)| {
            let (whole_digits, fraction_digits) = (
                whole_digits.unwrap_or_default(),
                fraction_digits.unwrap_or_default(),
            );
            format!("0{whole:0>whole_digits$}{fraction:0<fraction_digits$}0")
        });
        let (less, more) = if a <= b { (a, b) } else { (b, a) };
        // Without its first zero, a number of as many digits is ten times as large.
        less != more && more[..more.len() - 1] >= less[1..]
    }

    /// Returns true if [`cut`](Self::cut) shows less than was loaded.
    #[must_use]
    pub fn loses_digits(&self) -> bool {
        let fraction = split_decimal(&self.0).map_or("", |(_, fraction)| fraction);
        fraction.trim_end_matches('0').len() > 2
    }
}

impl FromStr for DiscountMultiplier {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        checked_discount(text).map(|_| Self(text.into()))
    }
}

/// Maximum length of a discount as loaded, in bytes.
const MAX_DISCOUNT_BYTES: usize = 64;

/// Splits a discount into its digits before and after the point.
fn checked_discount(text: &str) -> Result<(&str, &str), Invalid> {
    let invalid = Invalid::new(
        "discount_multiplier",
        "a decimal from 0 to 1 with a point, without comma, sign, exponent or percent sign, such as `0.05` for 5 %",
    );
    let too_long = Invalid::new(
        "discount_multiplier",
        "a decimal from 0 to 1 of at most 64 characters, such as `0.05` for 5 %",
    );
    if text.len() > MAX_DISCOUNT_BYTES {
        return Err(too_long);
    }
    let (whole, fraction) = split_decimal(text).ok_or(invalid)?;
    let is_zero = |digits: &str| digits.bytes().all(|byte| byte == b'0');
    let is_one = whole.trim_start_matches('0') == "1" && is_zero(fraction);
    match is_zero(whole) || is_one {
        true => Ok((whole, fraction)),
        false => Err(invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_two_digits() {
        for (given, shown) in [
            ("20", "20.00"),
            ("20.5", "20.50"),
            ("0", "0.00"),
            ("0.01", "0.01"),
            ("20.500", "20.50"),
            ("007.10", "7.10"),
            ("0.1", "0.10"),
            ("9", "9.00"),
            ("1000", "1000.00"),
            ("999999999999999.99", "999999999999999.99"),
        ] {
            assert_eq!(given.parse::<Amount>().unwrap().to_string(), shown);
        }
        for wrong in [
            "",
            ".",
            "5.",
            ".5",
            "-1",
            "+1",
            "1e2",
            "1,5",
            "1.005",
            " 1",
            "٣",
            "1.2.3",
            "1000000000000000",
        ] {
            assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_with_an_exponent_are_recognised() {
        for (text, expected) in [
            ("+4.41E+11", true),
            ("4,93E+11", true),
            ("1e5", true),
            ("1.2E-05", true),
            ("E+11", false),
            ("4.E+1", false),
            ("1E", false),
            ("+49 30 1E2x", false),
        ] {
            assert_eq!(is_scientific(text), expected, "{text}");
        }
    }

    #[test]
    fn discounts_are_truncated_and_never_rounded_up() {
        for (given, shown, loses) in [
            ("0.0130", "0.01", true),
            ("0.0199", "0.01", true),
            ("0.1", "0.10", false),
            ("0", "0.00", false),
            ("1", "1.00", false),
            ("1.000", "1.00", false),
            ("0.0100", "0.01", false),
        ] {
            let discount: DiscountMultiplier = given.parse().unwrap();
            assert_eq!(
                (discount.cut().as_str(), discount.loses_digits()),
                (shown, loses)
            );
            assert_eq!(discount.exact(), given);
            let shown: DiscountMultiplier = shown.parse().unwrap();
            assert_eq!(discount.is_same_number(&shown), !loses, "{given}");
        }
        for wrong in ["-0.1", "1.01", "2", "1e-2", "", ".", "0,1", "1.0000001"] {
            assert!(wrong.parse::<DiscountMultiplier>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn equal_discounts_have_one_spelling() {
        for given in ["0.01", "0.010", "00.01000"] {
            let discount: DiscountMultiplier = given.parse().unwrap();
            assert_eq!(discount.respelt().exact(), "0.01");
        }
        let exact: DiscountMultiplier = "0.0130".parse().unwrap();
        assert_eq!(exact.respelt().exact(), "0.013");
    }

    #[test]
    fn tenfold_values_are_recognised_exactly() {
        for (less, more, expected) in [
            ("0.07", "0.7", true),
            ("0.07", "0.699999", false),
            ("0.1", "0.10", false),
            ("0", "0.01", true),
            ("0.1", "1", true),
            ("00.100000000000000001", "1.0", false),
            ("0.099999999999999999", "1.0", true),
        ] {
            let [a, b] = [less, more].map(|text| text.parse::<DiscountMultiplier>().unwrap());
            assert_eq!(
                [a.is_tenfold(&b), b.is_tenfold(&a)],
                [expected; 2],
                "{less} {more}"
            );
        }
        for (less, more, expected) in [
            ("25.00", "250.00", true),
            ("25", "249.99", false),
            ("5", "5", false),
            ("0", "0", false),
        ] {
            let [a, b] = [less, more].map(|text| text.parse::<Amount>().unwrap());
            assert_eq!(
                [a.is_tenfold(&b), b.is_tenfold(&a)],
                [expected; 2],
                "{less} {more}"
            );
        }
    }

    #[test]
    fn well_formed_currencies_not_in_use_are_refused() {
        for code in ["EUR", "JPY", "GBP", "HUF"] {
            assert_eq!(code.parse::<Currency>().unwrap().as_str(), code);
        }
        for code in ["eur", "EURO", "QQQ", "ZZZ", "", "E1R"] {
            assert!(code.parse::<Currency>().is_err(), "{code}");
        }
    }
}
