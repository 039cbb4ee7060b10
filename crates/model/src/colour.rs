//! Colours of brands.

use std::str::FromStr;

use crate::Invalid;

/// A colour in `#RRGGBB` form (docs/contract/resources.md#detail-objects).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Colour(Box<str>);

impl Colour {
    /// Returns the colour as it was loaded.
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
    fn colours_other_than_rrggbb_are_refused() {
        assert!("#51559E".parse::<Colour>().is_ok());
        for wrong in ["51559E", "#5155", "#51559G", "#51559E0", "red"] {
            assert!(wrong.parse::<Colour>().is_err(), "{wrong}");
        }
    }
}
