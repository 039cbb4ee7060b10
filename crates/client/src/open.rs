//! Open enums: values unknown to this crate are kept as text (docs/contract/resources.md#values).

/// Defines an enum of a field's values, with `Unknown` for those added later.
macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
            /// A value that this crate doesn't know, unchanged.
            Unknown(String),
        }

        impl $name {
            /// All values that this crate knows.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the value in the contract's spelling.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $text,)+ Self::Unknown(text) => text }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text { $($text => Self::$variant,)+ _ => Self::Unknown(text.to_owned()) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Ok(Self::from(&*text))
            }
        }
    };
}

pub(crate) use open_enum;

open_enum!(
    /// State of a product, independent of its being orderable.
    State {
        /// The product is live.
        Live = "LIVE",
        /// The product is temporarily disabled.
        TemporarilyDisabled = "TEMPORARILY_DISABLED",
        /// The product is temporarily degraded.
        TemporarilyDegraded = "TEMPORARILY_DEGRADED",
    }
);

open_enum!(
    /// Payout type, also the name of the object with the product's details.
    PayoutType {
        /// A gift card.
        GiftCard = "gift_card",
        /// A subscription.
        Subscription = "subscription",
        /// A payment.
        Payment = "payment",
    }
);

open_enum!(
    /// Fulfilment of orders.
    Availability {
        /// From a stock of codes.
        Stocked = "stocked",
        /// By asking the issuer at the time of the order.
        Realtime = "realtime",
    }
);

open_enum!(
    /// Places of redemption.
    RedeemableAt {
        /// Online and in stores.
        All = "all",
        /// Online only.
        Online = "online",
        /// In stores only.
        InStore = "in-store",
    }
);

open_enum!(
    /// Format of a barcode.
    BarcodeFormat {
        /// Code 128.
        Code128 = "code-128",
        /// Code 39.
        Code39 = "code-39",
        /// QR code.
        Qr = "QR",
        /// EAN-13.
        Ean13 = "ean-13",
        /// PDF417.
        Pdf417 = "pdf417",
        /// Interleaved 2 of 5.
        Itf = "ITF",
        /// Data Matrix.
        DataMatrix = "DATA_MATRIX",
        /// Another format.
        Other = "other",
    }
);

open_enum!(
    /// Intended use of the e-code.
    ECodeUsageType {
        /// Undefined.
        Undefined = "undefined",
        /// Preferably by its URL.
        UrlRecommended = "url-recommended",
        /// Only by its URL.
        UrlOnly = "url-only",
    }
);

open_enum!(
    /// Start of the months until expiry.
    ExpiryType {
        /// From the last use.
        FromLastUse = "from-last-use",
        /// From the last balance check.
        FromLastBalanceCheck = "from-last-balance-check",
        /// From the date of issue.
        FromIssueDate = "from-issue-date",
        /// Never expires.
        Indefinite = "indefinite",
        /// The expiry must not be shown.
        DoNotShow = "do-not-show",
    }
);

open_enum!(
    /// Type of denominations.
    DenominationType {
        /// Any amount from the minimum to the maximum.
        Open = "open",
        /// Only the listed amounts.
        Fixed = "fixed",
    }
);

open_enum!(
    /// Unit of a plan's length.
    LengthUnit {
        /// Days.
        Days = "DAYS",
        /// Months.
        Months = "MONTHS",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_kept() {
        for (text, is_known) in [
            ("LIVE", true),
            ("TEMPORARILY_DISABLED", true),
            ("RETIRED", false),
            ("", false),
            ("live", false),
        ] {
            let json = format!("{text:?}");
            let state: State = serde_json::from_str(&json).unwrap();
            assert_eq!(matches!(state, State::Unknown(_)), !is_known, "{text}");
            assert_eq!(serde_json::to_string(&state).unwrap(), json);
        }
        assert!(
            State::KNOWN
                .iter()
                .all(|state| State::from(state.as_str()) == *state)
        );
    }
}
