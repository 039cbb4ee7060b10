//! Values of the contract's enums, which are open: those unknown to this crate are kept as text
//! (docs/contract/resources.md#values).

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vitrine_wire::named;
use vitrine_wire::names::Named;

/// Value of an enum of the contract. It can be compared with a `T`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Open<T> {
    /// A value that this crate knows.
    Known(T),
    /// A value that this crate doesn't know, unchanged.
    Unknown(String),
}

impl<T: Named> Open<T> {
    /// Returns the value in the contract's spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(value) => value.as_str(),
            Self::Unknown(text) => text,
        }
    }

    /// Returns the value, if this crate knows it.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Unknown(_) => None,
        }
    }
}

impl<T: Named> From<&str> for Open<T> {
    fn from(text: &str) -> Self {
        match T::ALL.iter().find(|value| value.as_str() == text) {
            Some(value) => Self::Known(*value),
            None => Self::Unknown(text.to_owned()),
        }
    }
}

impl<T: PartialEq> PartialEq<T> for Open<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(value) if value == other)
    }
}

impl<T: Named> fmt::Display for Open<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<T: Named> Serialize for Open<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: Named> Deserialize<'de> for Open<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Self::from(&*text))
    }
}

named!(
    /// State of a product, independent of its being orderable.
    #[non_exhaustive]
    State {
        /// The product is live.
        Live = "LIVE",
        /// The product is temporarily disabled.
        TemporarilyDisabled = "TEMPORARILY_DISABLED",
        /// The product is temporarily degraded.
        TemporarilyDegraded = "TEMPORARILY_DEGRADED",
    }
);

named!(
    /// Payout type, also the name of the object with the product's details.
    #[non_exhaustive]
    PayoutType {
        /// A gift card.
        GiftCard = "gift_card",
        /// A subscription.
        Subscription = "subscription",
        /// A payment.
        Payment = "payment",
    }
);

named!(
    /// Fulfilment of orders.
    #[non_exhaustive]
    Availability {
        /// From a stock of codes.
        Stocked = "stocked",
        /// By asking the issuer at the time of the order.
        Realtime = "realtime",
    }
);

named!(
    /// Places of redemption.
    #[non_exhaustive]
    RedeemableAt {
        /// Online and in stores.
        All = "all",
        /// Online only.
        Online = "online",
        /// In stores only.
        InStore = "in-store",
    }
);

named!(
    /// Format of a barcode.
    #[non_exhaustive]
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

named!(
    /// Intended use of the e-code.
    #[non_exhaustive]
    ECodeUsageType {
        /// Undefined.
        Undefined = "undefined",
        /// Preferably by its URL.
        UrlRecommended = "url-recommended",
        /// Only by its URL.
        UrlOnly = "url-only",
    }
);

named!(
    /// Start of the months until expiry.
    #[non_exhaustive]
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

named!(
    /// Type of denominations.
    #[non_exhaustive]
    DenominationType {
        /// Any amount from the minimum to the maximum.
        Open = "open",
        /// Only the listed amounts.
        Fixed = "fixed",
    }
);

named!(
    /// Unit of a plan's length.
    #[non_exhaustive]
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
            let state: Open<State> = serde_json::from_str(&json).unwrap();
            assert_eq!(state.known().is_some(), is_known, "{text}");
            assert_eq!(serde_json::to_string(&state).unwrap(), json);
        }
    }
}
