//! Values that are kept unchanged: decimals, and JSON that this crate doesn't know.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A decimal number as the received text, such as `20.00`. There is no conversion to a float, because that isn't exact.
///
/// Two decimals are equal if their texts are: `20.0` isn't `20.00`. To compare or add amounts, use
/// [`hundredths`](Self::hundredths), or pass [`as_str`](Self::as_str) to a decimal library.
///
/// ```
/// let price: vitrine_client::Decimal = serde_json::from_str("\"20.50\"")?;
/// assert_eq!((price.as_str(), price.hundredths()), ("20.50", Some(2050)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Decimal(String);

impl Decimal {
    /// Returns the received text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number in hundredths: 2050 for `20.50`, `20.5` and `20.500`. `None` if it isn't a whole number of
    /// hundredths, has anything but digits and one point, or is too large.
    #[must_use]
    pub fn hundredths(&self) -> Option<u64> {
        let (whole, fraction) = self.0.split_once('.').unwrap_or((&self.0, "0"));
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !are_digits(whole) || !are_digits(fraction) {
            return None;
        }
        let cents = match fraction.trim_end_matches('0') {
            "" => 0,
            one if one.len() == 1 => one.parse::<u64>().ok()? * 10,
            two if two.len() == 2 => two.parse().ok()?,
            _ => return None,
        };
        whole
            .parse::<u64>()
            .ok()?
            .checked_mul(100)?
            .checked_add(cents)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// JSON as it was received, byte for byte: order, spaces and the spelling of numbers.
///
/// Only `serde_json` can read and write it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Returns the text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads it as any type, such as `serde_json::Value`.
    ///
    /// # Errors
    ///
    /// If it isn't of that type.
    pub fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.get())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundredths_of_inexact_decimals_are_none() {
        for (text, expected) in [
            ("20.00", Some(2000)),
            ("20", Some(2000)),
            ("0.5", Some(50)),
            ("0.07", Some(7)),
            ("1.230", Some(123)),
            ("0.0130", None),
            ("-1.00", None),
            ("+1.00", None),
            ("1e3", None),
            (".5", None),
            ("5.", None),
            ("", None),
            ("1.2.3", None),
            ("184467440737095516.15", Some(u64::MAX)),
            ("184467440737095516.16", None),
            ("99999999999999999999.00", None),
        ] {
            assert_eq!(Decimal(text.to_owned()).hundredths(), expected, "{text}");
        }
    }
}
