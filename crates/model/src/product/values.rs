//! The enums of the contract (docs/contract/resources.md#values), in the contract's spelling.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// Defines an enum of the contract, with its values in the contract's spelling.
macro_rules! contract_enum {
    ($(#[$meta:meta])* $name:ident, $rule:literal, $expected:literal, { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            /// All values, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the value in the contract's spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(Invalid::new($rule, $expected)),
                }
            }
        }
    };
}

contract_enum!(
    /// State of a product (docs/contract/resources.md#product).
    State, "state", "`LIVE`, `TEMPORARILY_DISABLED` or `TEMPORARILY_DEGRADED`", {
    /// The product is live.
    Live = "LIVE",
    /// The product is disabled for now.
    TemporarilyDisabled = "TEMPORARILY_DISABLED",
    /// The product is degraded for now.
    TemporarilyDegraded = "TEMPORARILY_DEGRADED",
});

contract_enum!(
    /// Fulfilment of orders.
    Availability, "availability", "`stocked` or `realtime`", {
    /// Out of a stock of codes.
    Stocked = "stocked",
    /// By asking the issuer at the time of the order.
    Realtime = "realtime",
});

contract_enum!(
    /// Places in which a payout can be spent.
    RedeemableAt, "redeemable_at", "`all`, `online` or `in-store`", {
    /// Everywhere.
    All = "all",
    /// On the web only.
    Online = "online",
    /// In shops only.
    InStore = "in-store",
});

contract_enum!(
    /// The barcode that carries the code.
    BarcodeFormat, "barcode_format",
    "`code-128`, `code-39`, `QR`, `ean-13`, `pdf417`, `ITF`, `DATA_MATRIX`, `other` or null", {
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
});

contract_enum!(
    /// Delivery of the e-code to its user.
    ECodeUsageType, "e_code_usage_type", "`undefined`, `url-recommended` or `url-only`", {
    /// Not defined.
    Undefined = "undefined",
    /// A link is recommended.
    UrlRecommended = "url-recommended",
    /// Only as a link.
    UrlOnly = "url-only",
});

contract_enum!(
    /// Start of the months until expiry.
    ExpiryType, "expiry_type",
    "`from-last-use`, `from-last-balance-check`, `from-issue-date`, `indefinite` or `do-not-show`", {
    /// From the last use.
    FromLastUse = "from-last-use",
    /// From the last balance check.
    FromLastBalanceCheck = "from-last-balance-check",
    /// From the date of issue.
    FromIssueDate = "from-issue-date",
    /// Never expires.
    Indefinite = "indefinite",
    /// Not to be shown.
    DoNotShow = "do-not-show",
});

contract_enum!(
    /// Type of denominations: any amount can be ordered, or only listed ones.
    DenominationType, "denominations_type", "`open` or `fixed`", {
    /// Any amount from minimum to maximum.
    Open = "open",
    /// Only the listed amounts.
    Fixed = "fixed",
});

contract_enum!(
    /// The unit of a subscription's length.
    LengthUnit, "length_unit", "`DAYS` or `MONTHS`", {
    /// Days.
    Days = "DAYS",
    /// Months.
    Months = "MONTHS",
});
