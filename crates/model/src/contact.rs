//! Contact data other than web addresses: telephone numbers.

use std::str::FromStr;

use crate::Invalid;
use crate::money::is_scientific;

/// A telephone number in international format: a plus sign, a digit, and any characters but control
/// characters, 64 bytes at most (docs/contract/resources.md#product).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PhoneNumber(Box<str>);

impl PhoneNumber {
    /// Returns the number as it was loaded.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PhoneNumber {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = Invalid::new(
            "phone_number",
            "a telephone number in international format with a leading plus sign, such as `+442079460123`",
        );
        let rest = text.strip_prefix('+').ok_or(invalid)?;
        let begins_right = rest.starts_with(|first: char| first.is_ascii_digit());
        if !begins_right || text.len() > 64 || text.chars().any(char::is_control) {
            return Err(invalid);
        }
        if is_scientific(text) {
            return Err(Invalid::new(
                "phone_number",
                "all digits of a telephone number, not a number with an exponent",
            ));
        }
        Ok(Self(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phone_numbers_without_plus_or_with_exponent_are_refused() {
        assert!("+18002425353".parse::<PhoneNumber>().is_ok());
        assert!("+44 (0)20 7946-0123 ext. 5".parse::<PhoneNumber>().is_ok());
        assert!("+49 30 1234 ext e5".parse::<PhoneNumber>().is_ok());
        for wrong in [
            "18002425353",
            "+",
            "+abc",
            "",
            "+12\n3",
            "+4.41E+11",
            "+4,93e11",
        ] {
            assert!(wrong.parse::<PhoneNumber>().is_err(), "{wrong}");
        }
    }
}
