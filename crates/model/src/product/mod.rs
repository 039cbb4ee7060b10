//! A product and the details of its payout type (docs/contract/resources.md#product).
//!
//! The product's texts aren't part of it: they live beside it as [`Content`](crate::content::Content),
//! since a later load may leave them as they are.
//!
//! - `values`: the contract's enums
//! - `amounts`: which amounts can be ordered
//! - `other`: payout types added later

mod amounts;
mod other;
mod values;

pub use amounts::{AmountRange, Denominations};
pub use other::{OtherDetail, PayoutTypeName};
pub use values::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, LengthUnit,
    RedeemableAt, State,
};

use crate::code::ProductCode;
use crate::colour::Colour;
use crate::contact::PhoneNumber;
use crate::geo::Country;
use crate::money::{Amount, Currency, DiscountMultiplier};
use crate::single_line::SingleLine;
use crate::url::WebUrl;

/// A product, checked. What orders need beside its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// The name shown to people.
    pub name: SingleLine,
    /// The code used when ordering.
    pub code: ProductCode,
    /// The currency of its amounts.
    pub currency: Currency,
    /// Its state; independent of `is_orderable`.
    pub state: State,
    /// Whether orders are taken.
    pub is_orderable: bool,
    /// Categories, each once, as loaded; may be empty.
    pub categories: Vec<SingleLine>,
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

/// Contact information for customers (docs/contract/resources.md#customer-service).
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
    /// `gift_card` (docs/contract/resources.md#gift-card).
    GiftCard(Voucher, Denominations),
    /// `subscription` (docs/contract/resources.md#subscription).
    Subscription(Voucher, Vec<SubscriptionPlan>),
    /// `payment` (docs/contract/resources.md#payment).
    Payment(Payment),
    /// A payout type added later, served as it was loaded.
    Other(OtherDetail),
}

impl Detail {
    /// The payout type's name.
    #[must_use]
    pub fn payout_type(&self) -> &str {
        match self {
            Self::GiftCard(..) => "gift_card",
            Self::Subscription(..) => "subscription",
            Self::Payment(_) => "payment",
            Self::Other(other) => other.payout_type.as_str(),
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

/// Pictures and colour (docs/contract/resources.md#assets).
#[derive(Debug, Clone, PartialEq)]
pub struct Assets {
    /// The card's image.
    pub card_image_url: Option<WebUrl>,
    /// The icon's image.
    pub icon_image_url: Option<WebUrl>,
    /// The brand's colour.
    pub primary_color: Option<Colour>,
}

/// When a payout expires (docs/contract/resources.md#expiry).
#[derive(Debug, Clone, PartialEq)]
pub struct Expiry {
    /// The policy in words.
    pub date_policy: Option<SingleLine>,
    /// Months until expiry.
    pub in_months: u32,
    /// From when they count.
    pub kind: ExpiryType,
}

/// One plan of a subscription (docs/contract/resources.md#subscription).
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionPlan {
    /// The unit of the length.
    pub length_unit: LengthUnit,
    /// How many units; at least one.
    pub length: u32,
    /// The plan's name.
    pub name: SingleLine,
    /// Its price.
    pub price: Amount,
    /// The code used when ordering it.
    pub subscription_plan_code: SingleLine,
}

/// Details of a payment (docs/contract/resources.md#payment).
#[derive(Debug, Clone, PartialEq)]
pub struct Payment {
    /// The icon's image.
    pub icon_image_url: Option<WebUrl>,
    /// The brand's colour.
    pub primary_color: Option<Colour>,
    /// The least and the greatest payment.
    pub range: AmountRange,
}
