//! The product object (docs/contract/resources.md).
//!
//! Every key is present, with null where there is no value, but for the detail objects of the other
//! payout types and `availability` where it wasn't loaded. The detail object comes last and ends
//! with its `content_resources`: the server relies on that to exchange the texts' form in place.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::content::ContentResources;

/// A product that can be ordered as a payout.
///
/// The object named by `payout_type` carries its details. Payout types may be added later: such a
/// product has an object of that name, which a client that doesn't know it skips.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Product<'a> {
    /// The product's name.
    pub name: Cow<'a, str>,
    /// The product's unique code, which orders name. For a subscription it names the top-level product; orders then name a `subscription_plan_code`.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[A-Za-z0-9._~-]{1,64}$"))
    )]
    pub code: Cow<'a, str>,
    /// The ISO 4217 code of the currency of all its amounts.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[A-Z]{3}$")))]
    pub currency: Cow<'a, str>,
    /// The product's state. It says nothing of whether the product can be ordered: see `is_orderable`.
    pub state: Cow<'a, str>,
    /// Whether the product can be ordered. Orders for a product where it is false are rejected; show products to end users only where it is true.
    pub is_orderable: bool,
    /// The payout type, which is also the name of the object with the product's details.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[a-z][a-z0-9_]{0,63}$"))
    )]
    pub payout_type: Cow<'a, str>,
    /// The categories that the product belongs to.
    pub categories: Vec<Cow<'a, str>>,
    /// ISO 3166-1 alpha-2 codes of the countries where the payout can be spent.
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = "^[A-Z]{2}$"))))]
    pub countries_redeemable_in: Vec<Cow<'a, str>>,
    /// Contact information suitable for showing to the customer.
    pub customer_service: CustomerService<'a>,
    /// The discount on the price of the order item before fees: `0.10` is 10 %. Shown with two fraction digits, cut and never rounded up.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^[0-9]+\.[0-9]{2}$")))]
    pub discount_multiplier: Cow<'a, str>,
    /// How orders are filled: out of a stock of codes, or by asking the issuer at the time of the order. Absent where it isn't known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub availability: Option<Cow<'a, str>>,
    /// The details of a gift card; present where `payout_type` is `gift_card`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "GiftCard<'a>"))]
    pub gift_card: Option<GiftCard<'a>>,
    /// The details of a subscription; present where `payout_type` is `subscription`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Subscription<'a>"))]
    pub subscription: Option<Subscription<'a>>,
    /// The details of a payment; present where `payout_type` is `payment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Payment<'a>"))]
    pub payment: Option<Payment<'a>>,
    /// The details of a payout type added later, under its own name.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub other: Option<OtherDetail<'a>>,
}

/// The detail object of a payout type added later, as it was loaded.
#[derive(Debug)]
pub struct OtherDetail<'a> {
    /// The object's key.
    pub payout_type: &'a str,
    /// The object.
    pub detail: Box<RawValue>,
}

impl Serialize for OtherDetail<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.payout_type, &self.detail)])
    }
}

/// Contact information suitable for showing to the customer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CustomerService<'a> {
    /// A telephone number in international format with a leading plus sign.
    pub phone_number: Option<Cow<'a, str>>,
    /// The address of a customer-service page.
    pub website_url: Option<Cow<'a, str>>,
}

/// The details of a gift card.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GiftCard<'a> {
    /// Which amounts can be ordered.
    pub denominations: Denominations<'a>,
    /// What gift cards and subscriptions share.
    #[serde(flatten)]
    pub voucher: Voucher<'a>,
}

/// The details of a subscription.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subscription<'a> {
    /// The plans that can be ordered; at least one.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub subscription_plans: Vec<SubscriptionPlan<'a>>,
    /// What gift cards and subscriptions share.
    #[serde(flatten)]
    pub voucher: Voucher<'a>,
}

/// What gift cards and subscriptions share.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Voucher<'a> {
    /// Pictures and colour.
    pub assets: Assets<'a>,
    /// The address of a page where the balance can be checked.
    pub balance_check_url: Option<Cow<'a, str>>,
    /// When it expires.
    pub expiry: Expiry<'a>,
    /// Where it can be redeemed.
    pub redeemable_at: Cow<'a, str>,
    /// The address of the brand's page.
    pub website_url: Option<Cow<'a, str>>,
    /// The barcode's format, null where there is no barcode.
    pub barcode_format: Option<Cow<'a, str>>,
    /// How the e-code is to be used.
    pub e_code_usage_type: Cow<'a, str>,
    /// The product's texts.
    pub content_resources: ContentResources<'a>,
}

/// Pictures and colour.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Assets<'a> {
    /// The address of the card's image.
    pub card_image_url: Option<Cow<'a, str>>,
    /// The address of the icon's image.
    pub icon_image_url: Option<Cow<'a, str>>,
    /// The brand's colour.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^#[0-9A-Fa-f]{6}$")))]
    pub primary_color: Option<Cow<'a, str>>,
}

/// When it expires.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expiry<'a> {
    /// The policy in words.
    pub date_policy: Option<Cow<'a, str>>,
    /// Months until it expires.
    pub in_months: u32,
    /// From when the months count.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
}

/// Which amounts can be ordered.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Denominations<'a> {
    /// `open`: any amount from minimum to maximum; `fixed`: only the listed amounts.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The least amount, with two fraction digits.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^[0-9]+\.[0-9]{2}$")))]
    pub minimum_value: String,
    /// The greatest amount, with two fraction digits.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^[0-9]+\.[0-9]{2}$")))]
    pub maximum_value: String,
    /// Amounts with two fraction digits: all that can be ordered, or suggestions where the type is `open`.
    #[cfg_attr(
        feature = "schema",
        schemars(inner(regex(pattern = r"^[0-9]+\.[0-9]{2}$")))
    )]
    pub available_list: Option<Vec<String>>,
}

/// One plan of a subscription.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscriptionPlan<'a> {
    /// The unit of the plan's length.
    pub length_unit: Cow<'a, str>,
    /// The plan's length in that unit.
    pub length: u32,
    /// The plan's name.
    pub name: Cow<'a, str>,
    /// The plan's price, with two fraction digits.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^[0-9]+\.[0-9]{2}$")))]
    pub price: String,
    /// The code that orders name.
    pub subscription_plan_code: Cow<'a, str>,
}

/// The details of a payment.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Payment<'a> {
    /// Picture and colour.
    pub assets: PaymentAssets<'a>,
    /// Which amounts can be paid.
    pub denominations: PaymentDenominations,
    /// The product's texts.
    pub content_resources: ContentResources<'a>,
}

/// A payment's picture and colour.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaymentAssets<'a> {
    /// The address of the icon's image.
    pub icon_image_url: Option<Cow<'a, str>>,
    /// The brand's colour.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^#[0-9A-Fa-f]{6}$")))]
    pub primary_color: Option<Cow<'a, str>>,
}

/// Which amounts can be paid.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaymentDenominations {
    /// The least amount, with two fraction digits.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^[0-9]+\.[0-9]{2}$")))]
    pub minimum_value: String,
    /// The greatest amount, with two fraction digits.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^[0-9]+\.[0-9]{2}$")))]
    pub maximum_value: String,
}
