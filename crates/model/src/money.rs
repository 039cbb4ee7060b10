//! Money: currencies, amounts and the discount, as exact decimals and never as binary floats.

mod decimal;
mod discount;

use std::fmt;
use std::str::FromStr;

pub use self::decimal::{Decimal, DecimalText};
pub use self::discount::Discount;
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

impl fmt::Display for Currency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
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

/// An amount of money with two fraction digits, for all currencies: the contract shows two for all
/// (docs/contract/resources.md#amounts).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(Decimal);

impl Amount {
    /// Returns the number.
    #[must_use]
    pub const fn value(self) -> Decimal {
        self.0
    }

    /// Returns the text: two fraction digits.
    #[must_use]
    pub fn text(self) -> DecimalText {
        self.0.text()
    }
}

impl FromStr for Amount {
    type Err = Invalid;

    /// Reads a decimal in any of its spellings (`20`, `20.5`, `20.500`, `020.50`).
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let limit = Decimal::new(100_000_000_000_000_000, 2);
        let read = Decimal::parse(text).filter(|read| *read == read.cut(2));
        let amount = read.map(|read| read.cut(2).trimmed(2));
        (amount.filter(|amount| *amount < limit).map(Self)).ok_or(Invalid::new(
                "amount",
                "a decimal amount with a point and at most two significant fraction digits, without comma, sign or exponent, below 10^15, such as `25.50`",
            ))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
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
    fn tenfold_amounts_are_recognised_exactly() {
        for (less, more, expected) in [
            ("25.00", "250.00", true),
            ("25", "249.99", false),
            ("5", "5", false),
            ("0", "0", false),
        ] {
            let [a, b] = [less, more].map(|text| text.parse::<Amount>().unwrap().value());
            assert_eq!(
                [a.is_tenfold(b), b.is_tenfold(a)],
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
