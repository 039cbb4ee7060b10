//! A product and the details of its payout type (specification, part 2).
//!
//! The product's texts aren't part of it: they live beside it as [`Content`](crate::content::Content),
//! since a later load may leave them as they are.

use std::str::FromStr;

use crate::Invalid;
use crate::code::ProductCode;
use crate::line::Line;
use crate::money::{Amount, Currency, DiscountMultiplier};
use crate::place::Country;
use crate::web::{Colour, PhoneNumber, WebUrl};

/// Makes an enum of the contract: its values in the contract's spelling, known in this one place.
macro_rules! contract_enum {
    ($(#[$meta:meta])* $name:ident, $rule:literal, $expected:literal, { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            /// Every value, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The value in the contract's spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
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
    /// Whether a product is live (specification, part 3).
    State, "state", "`LIVE`, `TEMPORARILY_DISABLED` or `TEMPORARILY_DEGRADED`", {
    /// The product is live.
    Live = "LIVE",
    /// The product is disabled for now.
    TemporarilyDisabled = "TEMPORARILY_DISABLED",
    /// The product is degraded for now.
    TemporarilyDegraded = "TEMPORARILY_DEGRADED",
});

contract_enum!(
    /// How an order is filled.
    Availability, "availability", "`stocked` or `realtime`", {
    /// Out of a stock of codes.
    Stocked = "stocked",
    /// By asking the issuer at the time of the order.
    Realtime = "realtime",
});

contract_enum!(
    /// Where a payout can be spent.
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
    /// How the e-code reaches its user.
    ECodeUsageType, "e_code_usage_type", "`undefined`, `url-recommended` or `url-only`", {
    /// Not defined.
    Undefined = "undefined",
    /// A link is recommended.
    UrlRecommended = "url-recommended",
    /// Only as a link.
    UrlOnly = "url-only",
});

contract_enum!(
    /// From when the expiry counts.
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
    /// Whether any amount can be ordered, or only listed ones.
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

/// A product, checked. What orders need beside its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// The name shown to people.
    pub name: Line,
    /// The code used when ordering.
    pub code: ProductCode,
    /// The currency of its amounts.
    pub currency: Currency,
    /// Its state; independent of `is_orderable`.
    pub state: State,
    /// Whether orders are taken.
    pub is_orderable: bool,
    /// Categories, each once, as loaded; may be empty.
    pub categories: Vec<Line>,
    /// Countries where the payout can be spent, each once, as loaded; may be empty.
    pub countries_redeemable_in: Vec<Country>,
    /// Whom a customer can ask.
    pub customer_service: CustomerService,
    /// The discount on the price before fees.
    pub discount_multiplier: DiscountMultiplier,
    /// How orders are filled, where it was loaded.
    pub availability: Option<Availability>,
    /// What the payout type adds.
    pub detail: Detail,
}

/// Contact information for customers (specification 2.2).
#[derive(Debug, Clone, PartialEq)]
pub struct CustomerService {
    /// A telephone number.
    pub phone_number: Option<PhoneNumber>,
    /// A customer-service page.
    pub website_url: Option<WebUrl>,
}

/// The details of a payout type; the variant is the payout type.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    /// `gift_card` (specification 2.3).
    GiftCard(Voucher, Denominations),
    /// `subscription` (specification 2.4).
    Subscription(Voucher, Vec<SubscriptionPlan>),
    /// `payment` (decisions, "Fields").
    Payment(Payment),
    /// A payout type added later, served as it was loaded.
    Later(LaterDetail),
}

impl Detail {
    /// The payout type's name.
    #[must_use]
    pub fn payout_type(&self) -> &str {
        match self {
            Self::GiftCard(..) => "gift_card",
            Self::Subscription(..) => "subscription",
            Self::Payment(_) => "payment",
            Self::Later(later) => later.payout_type.as_str(),
        }
    }
}

/// What gift cards and subscriptions share.
#[derive(Debug, Clone, PartialEq)]
pub struct Voucher {
    /// Pictures and colour.
    pub assets: Assets,
    /// Where a balance can be checked.
    pub balance_check_url: Option<WebUrl>,
    /// When it expires.
    pub expiry: Expiry,
    /// Where it can be spent.
    pub redeemable_at: RedeemableAt,
    /// The issuer's page.
    pub website_url: Option<WebUrl>,
    /// The barcode, if there is one.
    pub barcode_format: Option<BarcodeFormat>,
    /// How the e-code is used.
    pub e_code_usage_type: ECodeUsageType,
}

/// Pictures and colour (specification 2.5).
#[derive(Debug, Clone, PartialEq)]
pub struct Assets {
    /// The card's image.
    pub card_image_url: Option<WebUrl>,
    /// The icon's image.
    pub icon_image_url: Option<WebUrl>,
    /// The brand's colour.
    pub primary_color: Option<Colour>,
}

/// When a payout expires (specification 2.7).
#[derive(Debug, Clone, PartialEq)]
pub struct Expiry {
    /// The policy in words.
    pub date_policy: Option<Line>,
    /// Months until expiry.
    pub in_months: u32,
    /// From when they count.
    pub kind: ExpiryType,
}

/// The least and the greatest amount, in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AmountRange {
    minimum: Amount,
    maximum: Amount,
}

impl AmountRange {
    /// A range from `minimum` to `maximum`, both included.
    ///
    /// # Errors
    ///
    /// Where the minimum is above the maximum.
    pub fn new(minimum: Amount, maximum: Amount) -> Result<Self, Invalid> {
        if minimum > maximum {
            return Err(Invalid::new(
                "amount_order",
                "a minimum_value not above maximum_value",
            ));
        }
        Ok(Self { minimum, maximum })
    }

    /// The least amount.
    #[must_use]
    pub fn minimum(&self) -> Amount {
        self.minimum
    }

    /// The greatest amount.
    #[must_use]
    pub fn maximum(&self) -> Amount {
        self.maximum
    }

    /// Whether `amount` lies within.
    #[must_use]
    pub fn contains(&self, amount: Amount) -> bool {
        (self.minimum..=self.maximum).contains(&amount)
    }
}

/// Which amounts of a gift card can be ordered (specification 2.8).
#[derive(Debug, Clone, PartialEq)]
pub struct Denominations {
    kind: DenominationType,
    range: AmountRange,
    available_list: Option<Vec<Amount>>,
}

impl Denominations {
    /// Any amount in `range`; `suggestions` are shown as the available list.
    #[must_use]
    pub fn open(range: AmountRange, suggestions: Option<Vec<Amount>>) -> Self {
        Self {
            kind: DenominationType::Open,
            range,
            available_list: suggestions,
        }
    }

    /// Only the amounts of `list`.
    ///
    /// # Errors
    ///
    /// Where the list is empty or an amount lies outside `range`.
    pub fn fixed(range: AmountRange, list: Vec<Amount>) -> Result<Self, Invalid> {
        if list.is_empty() {
            return Err(Invalid::new(
                "list_empty",
                "a list of at least one amount, since the denominations are `fixed`",
            ));
        }
        if !list.iter().all(|amount| range.contains(*amount)) {
            return Err(Self::OUTSIDE);
        }
        Ok(Self {
            kind: DenominationType::Fixed,
            range,
            available_list: Some(list),
        })
    }

    /// An amount beyond minimum and maximum.
    pub const OUTSIDE: Invalid = Invalid::new(
        "amount_outside",
        "amounts from minimum_value to maximum_value",
    );

    /// Open or fixed.
    #[must_use]
    pub fn kind(&self) -> DenominationType {
        self.kind
    }

    /// Minimum and maximum.
    #[must_use]
    pub fn range(&self) -> AmountRange {
        self.range
    }

    /// The listed amounts: all there are, or suggestions.
    #[must_use]
    pub fn available_list(&self) -> Option<&[Amount]> {
        self.available_list.as_deref()
    }
}

/// One plan of a subscription (specification 2.4).
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionPlan {
    /// The unit of the length.
    pub length_unit: LengthUnit,
    /// How many units; at least one.
    pub length: u32,
    /// The plan's name.
    pub name: Line,
    /// Its price.
    pub price: Amount,
    /// The code used when ordering it.
    pub subscription_plan_code: Line,
}

/// What a payment adds (decisions, "Fields").
#[derive(Debug, Clone, PartialEq)]
pub struct Payment {
    /// The icon's image.
    pub icon_image_url: Option<WebUrl>,
    /// The brand's colour.
    pub primary_color: Option<Colour>,
    /// The least and the greatest payment.
    pub range: AmountRange,
}

/// The name of a payout type added later: `^[a-z][a-z0-9_]{0,63}$`, and no other field's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutTypeName(Box<str>);

impl PayoutTypeName {
    /// The product's own fields, which a detail object named alike would overwrite.
    const FIELDS: [&str; 11] = [
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
/// around the value of its `content_resources`, which alone obeys rules (decisions, "Fields").
#[derive(Debug, Clone, PartialEq)]
pub struct LaterDetail {
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

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn denominations_cannot_contradict_themselves() {
        assert_eq!(
            AmountRange::new(amount("5"), amount("4")).unwrap_err().rule,
            "amount_order"
        );
        let range = AmountRange::new(amount("5"), amount("10")).unwrap();
        assert_eq!(
            Denominations::fixed(range, vec![]).unwrap_err().rule,
            "list_empty"
        );
        let outside = vec![amount("5"), amount("10.01")];
        assert_eq!(
            Denominations::fixed(range, outside).unwrap_err().rule,
            "amount_outside"
        );
        assert!(Denominations::fixed(range, vec![amount("5"), amount("10")]).is_ok());
    }

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
