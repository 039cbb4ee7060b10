//! Payout types added later, which are served as they were loaded.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// Name of a payout type added later: `^[a-z][a-z0-9_]{0,63}$`, and not the name of another field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PayoutTypeName(Box<str>);

impl PayoutTypeName {
    /// Fields of the product, which a detail object of the same name would overwrite.
    pub const FIELDS: [&str; 11] = [
        "name",
        "code",
        "currency",
        "state",
        "is_orderable",
        "payout_type",
        "categories",
        "countries_redeemable_in",
        "customer_service",
        "discount_multiplier",
        "availability",
    ];

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PayoutTypeName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for PayoutTypeName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let in_alphabet =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !text.starts_with(|first: char| first.is_ascii_lowercase())
            || text.len() > 64
            || !text.bytes().all(in_alphabet)
        {
            return Err(Invalid::new(
                "payout_type",
                "`gift_card`, `subscription`, `payment`, or the name of a later payout type: a lower-case letter, then up to 63 lower-case letters, digits or `_`",
            ));
        }
        if Self::FIELDS.contains(&text) {
            return Err(Invalid::new(
                "payout_type",
                "a payout type that isn't named like another field of the product",
            ));
        }
        Ok(Self(text.into()))
    }
}

/// Detail object of a payout type added later: its JSON as it was loaded, split around the value of
/// `content_resources`, the only part with rules (docs/contract/resources.md#later-payout-types).
#[derive(Debug, Clone, PartialEq)]
pub struct OtherDetail {
    /// Payout type, also the object's key.
    pub payout_type: PayoutTypeName,
    /// JSON up to the value of `content_resources`; all of it if there is none.
    pub head: String,
    /// JSON after that value, if there is one.
    pub tail: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payout_types_named_like_a_field_are_refused() {
        assert!("prepaid_card".parse::<PayoutTypeName>().is_ok());
        for wrong in [
            "name",
            "code",
            "",
            "Card",
            "_card",
            "9card",
            "a-b",
            &"a".repeat(65),
        ] {
            assert!(wrong.parse::<PayoutTypeName>().is_err(), "{wrong}");
        }
    }
}
