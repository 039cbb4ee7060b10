//! The product object (docs/contract/resources.md).
//!
//! All keys are present, with null for a missing value, except the detail objects of other payout types, and
//! `availability` if it wasn't loaded. The detail object is last and ends with its `content_resources`: the server relies
//! on that to replace the form of the texts in place.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::content::ContentResources;

/// A product that can be ordered as a payout.
///
/// The object named by `payout_type` has the details. Payout types may be added later: such a
/// product has an object of that name, which clients that don't know it skip.
#[derive(Debug, Serialize)]
pub struct Product<'a> {
    /// Name of the product.
    pub name: Cow<'a, str>,
    /// Unique code of the product, used in orders. The code of a subscription names the top-level product; orders use a `subscription_plan_code`.
    pub code: Cow<'a, str>,
    /// ISO 4217 code of the currency of all amounts.
    pub currency: Cow<'a, str>,
    /// State of the product, independent of `is_orderable`.
    pub state: Cow<'a, str>,
    /// True if the product can be ordered. Orders for other products are rejected; show only products that can be ordered to end users.
    pub is_orderable: bool,
    /// Payout type, also the name of the object with the product's details.
    pub payout_type: Cow<'a, str>,
    /// Categories of the product.
    pub categories: Vec<Cow<'a, str>>,
    /// ISO 3166-1 alpha-2 codes of the countries in which the payout can be spent.
    pub countries_redeemable_in: Vec<Cow<'a, str>>,
    /// Contact information to show to customers.
    pub customer_service: CustomerService<'a>,
    /// Discount on the price of the order item before fees: `0.10` is 10 %. It has two to six fraction digits, without zeros beyond the second; further digits are cut off, never rounded up.
    pub discount_multiplier: Cow<'a, str>,
    /// Fulfilment of orders: from a stock of codes, or by asking the issuer at the time of the order. Absent if it isn't known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability: Option<Cow<'a, str>>,
    /// Details of a gift card; present if `payout_type` is `gift_card`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gift_card: Option<GiftCard<'a>>,
    /// Details of a subscription; present if `payout_type` is `subscription`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<Subscription<'a>>,
    /// Details of a payment; present if `payout_type` is `payment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment: Option<Payment<'a>>,
    /// Details of a payout type added later, under its own name.
    #[serde(flatten)]
    pub other: Option<OtherDetail<'a>>,
}

/// Detail object of a payout type added later, as it was loaded.
#[derive(Debug)]
pub struct OtherDetail<'a> {
    /// Key of the object.
    pub payout_type: &'a str,
    /// JSON of the object.
    pub detail: Box<RawValue>,
}

impl Serialize for OtherDetail<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.payout_type, &self.detail)])
    }
}

/// Contact information to show to customers.
#[derive(Debug, Serialize)]
pub struct CustomerService<'a> {
    /// Telephone number in international format with a leading plus sign.
    pub phone_number: Option<Cow<'a, str>>,
    /// URL of a customer-service page.
    pub website_url: Option<Cow<'a, str>>,
}

/// Details of a gift card.
#[derive(Debug, Serialize)]
pub struct GiftCard<'a> {
    /// Amounts that can be ordered.
    pub denominations: Denominations<'a>,
    /// Common details of gift cards and subscriptions.
    #[serde(flatten)]
    pub voucher: Voucher<'a>,
}

/// Details of a subscription.
#[derive(Debug, Serialize)]
pub struct Subscription<'a> {
    /// Plans that can be ordered; at least one.
    pub subscription_plans: Vec<SubscriptionPlan<'a>>,
    /// Common details of gift cards and subscriptions.
    #[serde(flatten)]
    pub voucher: Voucher<'a>,
}

/// Common details of gift cards and subscriptions.
#[derive(Debug, Serialize)]
pub struct Voucher<'a> {
    /// Images and colour.
    pub assets: Assets<'a>,
    /// URL of a page on which the balance can be checked.
    pub balance_check_url: Option<Cow<'a, str>>,
    /// Expiry of the payout.
    pub expiry: Expiry<'a>,
    /// Places of redemption.
    pub redeemable_at: Cow<'a, str>,
    /// URL of the brand's page.
    pub website_url: Option<Cow<'a, str>>,
    /// Format of the barcode, null if there is none.
    pub barcode_format: Option<Cow<'a, str>>,
    /// Intended use of the e-code.
    pub e_code_usage_type: Cow<'a, str>,
    /// Texts of the product.
    pub content_resources: ContentResources<'a>,
}

/// Images and colour.
#[derive(Debug, Serialize)]
pub struct Assets<'a> {
    /// URL of the card's image.
    pub card_image_url: Option<Cow<'a, str>>,
    /// URL of the icon's image.
    pub icon_image_url: Option<Cow<'a, str>>,
    /// Colour of the brand.
    pub primary_color: Option<Cow<'a, str>>,
}

/// Expiry of the payout.
#[derive(Debug, Serialize)]
pub struct Expiry<'a> {
    /// Policy in words.
    pub date_policy: Option<Cow<'a, str>>,
    /// Months until it expires.
    pub in_months: u32,
    /// Start of the months until expiry.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
}

/// Amounts that can be ordered.
#[derive(Debug, Serialize)]
pub struct Denominations<'a> {
    /// `open`: any amount from minimum to maximum; `fixed`: only the listed amounts.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// Minimum amount, with two fraction digits.
    pub minimum_value: Cow<'a, str>,
    /// Maximum amount, with two fraction digits.
    pub maximum_value: Cow<'a, str>,
    /// Amounts with two fraction digits: all that can be ordered, or suggestions if the type is `open`.
    pub available_list: Option<Vec<Cow<'a, str>>>,
}

/// One plan of a subscription.
#[derive(Debug, Serialize)]
pub struct SubscriptionPlan<'a> {
    /// Unit of the plan's length.
    pub length_unit: Cow<'a, str>,
    /// Length of the plan in that unit.
    pub length: u32,
    /// Name of the plan.
    pub name: Cow<'a, str>,
    /// Price of the plan, with two fraction digits.
    pub price: Cow<'a, str>,
    /// Code used in orders.
    pub subscription_plan_code: Cow<'a, str>,
}

/// Details of a payment.
#[derive(Debug, Serialize)]
pub struct Payment<'a> {
    /// Image and colour.
    pub assets: PaymentAssets<'a>,
    /// Amounts that can be paid.
    pub denominations: PaymentDenominations<'a>,
    /// Texts of the product.
    pub content_resources: ContentResources<'a>,
}

/// Image and colour of a payment.
#[derive(Debug, Serialize)]
pub struct PaymentAssets<'a> {
    /// URL of the icon's image.
    pub icon_image_url: Option<Cow<'a, str>>,
    /// Colour of the brand.
    pub primary_color: Option<Cow<'a, str>>,
}

/// Amounts that can be paid.
#[derive(Debug, Serialize)]
pub struct PaymentDenominations<'a> {
    /// Minimum amount, with two fraction digits.
    pub minimum_value: Cow<'a, str>,
    /// Maximum amount, with two fraction digits.
    pub maximum_value: Cow<'a, str>,
}
