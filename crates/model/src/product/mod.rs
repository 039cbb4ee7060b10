//! A product and the details of its payout type (docs/contract/resources.md#product).
//!
//! A product's texts aren't part of it: [`Content`](crate::content::Content) has them, because a load may leave them
//! unchanged.
//!
//! - `values`: the contract's enums
//! - `amounts`: amounts that can be ordered
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
use crate::money::{Amount, Currency, Discount};
use crate::single_line::SingleLine;
use crate::url::WebUrl;

/// A validated product without its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// Name shown to people.
    pub name: SingleLine,
    /// Code used in orders.
    pub code: ProductCode,
    /// Currency of all amounts.
    pub currency: Currency,
    /// State; independent of `is_orderable`.
    pub state: State,
    /// True if it can be ordered.
    pub is_orderable: bool,
    /// Categories, each once, as loaded; may be empty.
    pub categories: Vec<SingleLine>,
    /// Countries in which the payout can be spent, each once, as loaded; may be empty.
    pub countries_redeemable_in: Vec<Country>,
    /// Contact for customers.
    pub customer_service: CustomerService,
    /// Discount on the price before fees.
    pub discount_multiplier: Discount,
    /// Fulfilment of orders, if it was loaded.
    pub availability: Option<Availability>,
    /// Details of the payout type.
    pub detail: Detail,
}

/// Contact information for customers (docs/contract/resources.md#product).
#[derive(Debug, Clone, PartialEq)]
pub struct CustomerService {
    /// Telephone number.
    pub phone_number: Option<PhoneNumber>,
    /// URL of a customer-service page.
    pub website_url: Option<WebUrl>,
}

/// The details of a payout type; the variant is the payout type.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    /// `gift_card` (docs/contract/resources.md#detail-objects).
    GiftCard(Voucher, Denominations),
    /// `subscription` (docs/contract/resources.md#detail-objects).
    Subscription(Voucher, Vec<SubscriptionPlan>),
    /// `payment` (docs/contract/resources.md#detail-objects).
    Payment(Payment),
    /// Any other payout type, served as it was loaded.
    Other(OtherDetail),
}

impl Detail {
    /// Returns the payout type's name.
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

/// Common details of gift cards and subscriptions.
#[derive(Debug, Clone, PartialEq)]
pub struct Voucher {
    /// Images and colour.
    pub assets: Assets,
    /// URL of a page on which the balance can be checked.
    pub balance_check_url: Option<WebUrl>,
    /// Expiry.
    pub expiry: Expiry,
    /// Places of redemption.
    pub redeemable_at: RedeemableAt,
    /// URL of the issuer's page.
    pub website_url: Option<WebUrl>,
    /// Format of the barcode, if there is one.
    pub barcode_format: Option<BarcodeFormat>,
    /// Use of the e-code.
    pub e_code_usage_type: ECodeUsageType,
}

/// Images and colour (docs/contract/resources.md#detail-objects).
#[derive(Debug, Clone, PartialEq)]
pub struct Assets {
    /// URL of the card's image.
    pub card_image_url: Option<WebUrl>,
    /// URL of the icon's image.
    pub icon_image_url: Option<WebUrl>,
    /// Colour of the brand.
    pub primary_color: Option<Colour>,
}

/// Expiry of a payout (docs/contract/resources.md#detail-objects).
#[derive(Debug, Clone, PartialEq)]
pub struct Expiry {
    /// Policy in words.
    pub date_policy: Option<SingleLine>,
    /// Months until expiry.
    pub in_months: u32,
    /// Start of the months until expiry.
    pub kind: ExpiryType,
}

/// One plan of a subscription (docs/contract/resources.md#detail-objects).
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionPlan {
    /// Unit of the length.
    pub length_unit: LengthUnit,
    /// Length in units; at least one.
    pub length: u32,
    /// Name of the plan.
    pub name: SingleLine,
    /// Price.
    pub price: Amount,
    /// Code used in orders.
    pub subscription_plan_code: SingleLine,
}

/// Details of a payment (docs/contract/resources.md#detail-objects).
#[derive(Debug, Clone, PartialEq)]
pub struct Payment {
    /// URL of the icon's image.
    pub icon_image_url: Option<WebUrl>,
    /// Colour of the brand.
    pub primary_color: Option<Colour>,
    /// Minimum and maximum payment.
    pub range: AmountRange,
}
