//! What points out of the catalog: web addresses, telephone numbers, colours.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;
use crate::money::is_scientific;

/// An absolute `http` or `https` address, kept to the letter as it was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebUrl(Box<str>);

impl WebUrl {
    /// The longest address, in bytes: what browsers and proxies reliably carry.
    pub const MAX_LENGTH_BYTES: usize = 2_048;

    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = Invalid::new(
            "url",
            "an absolute http or https URL without blanks, at most 2048 bytes, such as `https://shop.example/help`",
        );
        if text.len() > Self::MAX_LENGTH_BYTES
            || text.chars().any(|c| c.is_whitespace() || c.is_control())
            // The parser below forgives these; those who put the address into a page would not.
            || text.contains(['"', '<', '>', '\\', '`'])
        {
            return Err(invalid);
        }
        let url = url::Url::parse(text).map_err(|_| invalid)?;
        let has_slashes = text
            .split_once(':')
            .is_some_and(|(_, rest)| rest.starts_with("//"));
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !has_slashes {
            return Err(invalid);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A telephone number in international format: a leading plus sign and a digit, and whatever people
/// put behind that (docs/contract/resources.md#customer-service).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PhoneNumber(Box<str>);

impl PhoneNumber {
    /// The number as it was loaded.
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

/// A colour in `#RRGGBB` form (docs/contract/resources.md#assets).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Colour(Box<str>);

impl Colour {
    /// The colour as it was loaded.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Colour {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.as_bytes() {
            [b'#', digits @ ..]
                if digits.len() == 6 && digits.iter().all(u8::is_ascii_hexdigit) =>
            {
                Ok(Self(text.into()))
            }
            _ => Err(Invalid::new(
                "colour",
                "a colour of the form #RRGGBB, such as `#1A2B3C`",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_web_addresses_pass() {
        for url in [
            "https://shop.example/help?a=b#c",
            "http://shop.example",
            "HTTPS://Shop.example/%20",
        ] {
            assert_eq!(url.parse::<WebUrl>().unwrap().as_str(), url);
        }
        for url in [
            "javascript:alert(1)",
            "data:text/html,x",
            "//shop.example",
            "/help",
            "ftp://shop.example",
            "https:shop.example",
            "https://",
            "https://shop.example/a b",
            "java\nscript:alert(1)",
            "https://shop.example/\"onload=",
            "mailto:a@shop.example",
            "",
        ] {
            assert!(url.parse::<WebUrl>().is_err(), "{url}");
        }
    }

    #[test]
    fn numbers_and_colours_have_their_form() {
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
        assert!("#51559E".parse::<Colour>().is_ok());
        for wrong in ["51559E", "#5155", "#51559G", "#51559E0", "red"] {
            assert!(wrong.parse::<Colour>().is_err(), "{wrong}");
        }
    }
}
