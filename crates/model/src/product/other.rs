//! Payout types added later: known by name, served as they were loaded.

use std::str::FromStr;

use crate::Invalid;

/// The name of a payout type added later: `^[a-z][a-z0-9_]{0,63}$`, and no other field's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutTypeName(Box<str>);

impl PayoutTypeName {
    /// The product's own fields, which a detail object named alike would overwrite.
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

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
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

/// The detail object of a payout type added later: its JSON text as it was loaded, in two halves
/// around the value of its `content_resources`, which alone obeys rules (docs/contract/resources.md#later-payout-types).
#[derive(Debug, Clone, PartialEq)]
pub struct OtherDetail {
    /// The payout type, which is also the object's key.
    pub payout_type: PayoutTypeName,
    /// The object's text up to the value of `content_resources`; all of it where there is none.
    pub head: String,
    /// The object's text after that value, where there is one.
    pub tail: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_payout_type_never_shadows_a_field() {
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
