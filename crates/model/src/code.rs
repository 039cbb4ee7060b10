//! Product codes: the names in orders, the sort key of pages, the values of cursors.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// The unique code of a product: `[A-Za-z0-9._~-]{1,64}` and no reserved word, compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProductCode(Box<str>);

impl ProductCode {
    /// Maximum length of a code, in bytes.
    pub const MAX_LENGTH_BYTES: usize = 64;

    /// Codes that no product can have: they are paths of the API (docs/contract/resources.md#codes).
    pub const RESERVED: [&str; 5] = [".", "..", "categories", "countries", "changes"];

    /// Texts that programs write where a variable is empty (docs/contract/resources.md#codes). No product has such a code.
    pub const EMPTY_VARIABLES: [&str; 6] =
        ["undefined", "null", "None", "nil", "NaN", "[object Object]"];

    /// Returns the code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks that `text` can be a code, without allocating one.
    pub(crate) fn check(text: &str) -> Result<(), Invalid> {
        if Self::RESERVED.contains(&text) {
            return Err(Invalid::new(
                "code_reserved",
                "a code other than `.`, `..`, `categories`, `countries` and `changes`, which are paths of the API",
            ));
        }
        if Self::EMPTY_VARIABLES.contains(&text) {
            return Err(Invalid::new(
                "code_reserved",
                "a code; `undefined`, `null`, `None`, `nil` and `NaN` are what programs write where a variable is empty",
            ));
        }
        let in_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
        if text.is_empty() || text.len() > Self::MAX_LENGTH_BYTES || !text.bytes().all(in_alphabet)
        {
            return Err(Invalid::new(
                "code_pattern",
                "1 to 64 characters out of A-Z, a-z, 0-9, `.`, `_`, `~` and `-`",
            ));
        }
        Ok(())
    }
}

impl FromStr for ProductCode {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::check(text)?;
        Ok(Self(text.into()))
    }
}

impl Borrow<str> for ProductCode {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProductCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_outside_the_alphabet_or_reserved_are_refused() {
        for code in ["A", "brew.box_2~eu", "0-9", "...", &"x".repeat(64)] {
            let parsed: ProductCode = code.parse().unwrap();
            assert_eq!(parsed.as_str(), code);
            assert_eq!(parsed.to_string(), code);
        }
        for code in ["", " ", "A B", "A/B", "A%42", "Ä", "a\0", &"x".repeat(65)] {
            assert_eq!(
                code.parse::<ProductCode>().unwrap_err().rule,
                "code_pattern"
            );
        }
        for code in [&ProductCode::RESERVED[..], &ProductCode::EMPTY_VARIABLES].concat() {
            assert_eq!(
                code.parse::<ProductCode>().unwrap_err().rule,
                "code_reserved"
            );
        }
    }
}
