//! The product object (docs/contract/resources.md).
//!
//! Fields are in the server's order, so that serialising a product gives the received JSON.

use crate::content::ContentUrls;
use crate::object::object;
use crate::open::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, LengthUnit, Open,
    PayoutType, RedeemableAt, State,
};
use crate::value::{Decimal, Json};

object!(
    /// A product that can be ordered as a payout. `C` is the form of its texts.
    ///
    /// The object named by `payout_type` has the details: [`detail`](Self::detail) returns it.
    Product<C = ContentUrls> {
        /// Name of the product.
        name: String,
        /// Unique code of the product, used in orders. The code of a subscription names the top-level product; orders use a
        /// `subscription_plan_code`.
        code: String,
        /// ISO 4217 code of the currency of all amounts.
        currency: String,
        /// State of the product, independent of `is_orderable`.
        state: Open<State>,
        /// True if the product can be ordered. Orders for other products are rejected; show only products that can be ordered to
        /// end users.
        is_orderable: bool,
        /// Payout type, also the name of the object with the product's details.
        payout_type: Open<PayoutType>,
        /// Categories of the product.
        categories: Vec<String>,
        /// ISO 3166-1 alpha-2 codes of the countries in which the payout can be spent.
        countries_redeemable_in: Vec<String>,
        /// Contact information to show to customers.
        customer_service: CustomerService,
        /// Discount on the price of the order item before fees: `0.10` is 10 %. It has two fraction digits, truncated; from
        /// version 2026-12-01 on two to six, exact.
        discount_multiplier: Decimal,
        /// Fulfilment of orders; `None` if it isn't known.
        availability [absent]: Option<Open<Availability>>,
        /// Details of a gift card.
        gift_card [absent]: Option<GiftCard<C>>,
        /// Details of a subscription.
        subscription [absent]: Option<Subscription<C>>,
        /// Details of a payment.
        payment [absent]: Option<Payment<C>>,
    }
);

/// Details of a product, from the object that its payout type names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail<'p, C = ContentUrls> {
    /// Details of a gift card.
    GiftCard(&'p GiftCard<C>),
    /// Details of a subscription.
    Subscription(&'p Subscription<C>),
    /// Details of a payment.
    Payment(&'p Payment<C>),
    /// Object of a payout type that this crate doesn't know, byte for byte.
    Unknown(&'p Json),
    /// The product has no object of its payout type.
    Missing,
}

impl<C> Product<C> {
    /// Returns the details of the product.
    #[must_use]
    pub fn detail(&self) -> Detail<'_, C> {
        match &self.payout_type {
            Open::Known(PayoutType::GiftCard) => self.gift_card.as_ref().map(Detail::GiftCard),
            Open::Known(PayoutType::Subscription) => {
                self.subscription.as_ref().map(Detail::Subscription)
            }
            Open::Known(PayoutType::Payment) => self.payment.as_ref().map(Detail::Payment),
            Open::Unknown(name) => self.other.get(name).map(Detail::Unknown),
        }
        .unwrap_or(Detail::Missing)
    }

    /// Returns the product's texts; `None` for a payout type that this crate doesn't know.
    #[must_use]
    pub fn content_resources(&self) -> Option<&C> {
        match self.detail() {
            Detail::GiftCard(detail) => Some(&detail.content_resources),
            Detail::Subscription(detail) => Some(&detail.content_resources),
            Detail::Payment(detail) => Some(&detail.content_resources),
            Detail::Unknown(_) | Detail::Missing => None,
        }
    }
}

object!(
    /// Contact information to show to customers.
    CustomerService {
        /// Telephone number in international format with a leading plus sign.
        phone_number: Option<String>,
        /// URL of a customer-service page.
        website_url: Option<String>,
    }
);

object!(
    /// Details of a gift card.
    GiftCard<C = ContentUrls> {
        /// Amounts that can be ordered.
        denominations: Denominations,
        /// Images and colour.
        assets: Assets,
        /// URL of a page on which the balance can be checked.
        balance_check_url: Option<String>,
        /// Expiry of the payout.
        expiry: Expiry,
        /// Places of redemption.
        redeemable_at: Open<RedeemableAt>,
        /// URL of the brand's page.
        website_url: Option<String>,
        /// Format of the barcode; `None` if there is none.
        barcode_format: Option<Open<BarcodeFormat>>,
        /// Intended use of the e-code.
        e_code_usage_type: Open<ECodeUsageType>,
        /// Texts of the product.
        content_resources: C,
    }
);

object!(
    /// Details of a subscription.
    Subscription<C = ContentUrls> {
        /// Plans that can be ordered; at least one.
        subscription_plans: Vec<SubscriptionPlan>,
        /// Images and colour.
        assets: Assets,
        /// URL of a page on which the balance can be checked.
        balance_check_url: Option<String>,
        /// Expiry of the payout.
        expiry: Expiry,
        /// Places of redemption.
        redeemable_at: Open<RedeemableAt>,
        /// URL of the brand's page.
        website_url: Option<String>,
        /// Format of the barcode; `None` if there is none.
        barcode_format: Option<Open<BarcodeFormat>>,
        /// Intended use of the e-code.
        e_code_usage_type: Open<ECodeUsageType>,
        /// Texts of the product.
        content_resources: C,
    }
);

object!(
    /// Details of a payment.
    Payment<C = ContentUrls> {
        /// Image and colour.
        assets: PaymentAssets,
        /// Amounts that can be paid.
        denominations: PaymentDenominations,
        /// Texts of the product.
        content_resources: C,
    }
);

object!(
    /// Images and colour.
    Assets {
        /// URL of the card's image.
        card_image_url: Option<String>,
        /// URL of the icon's image.
        icon_image_url: Option<String>,
        /// Colour of the brand, in `#RRGGBB` form.
        primary_color: Option<String>,
    }
);

object!(
    /// Expiry of the payout.
    Expiry {
        /// Policy in words.
        date_policy: Option<String>,
        /// Months until it expires.
        in_months: u32,
        /// Start of the months until expiry.
        expiry_type ("type"): Open<ExpiryType>,
    }
);

object!(
    /// Amounts that can be ordered.
    Denominations {
        /// Type: any amount from minimum to maximum, or only the listed ones.
        denomination_type ("type"): Open<DenominationType>,
        /// Minimum amount.
        minimum_value: Decimal,
        /// Maximum amount.
        maximum_value: Decimal,
        /// All amounts that can be ordered, or suggestions if any amount can.
        available_list: Option<Vec<Decimal>>,
    }
);

object!(
    /// One plan of a subscription.
    SubscriptionPlan {
        /// Unit of the plan's length.
        length_unit: Open<LengthUnit>,
        /// Length of the plan in that unit.
        length: u32,
        /// Name of the plan.
        name: String,
        /// Price of the plan.
        price: Decimal,
        /// Code used in orders.
        subscription_plan_code: String,
    }
);

object!(
    /// Image and colour of a payment.
    PaymentAssets {
        /// URL of the icon's image.
        icon_image_url: Option<String>,
        /// Colour of the brand, in `#RRGGBB` form.
        primary_color: Option<String>,
    }
);

object!(
    /// Amounts that can be paid.
    PaymentDenominations {
        /// Minimum amount.
        minimum_value: Decimal,
        /// Maximum amount.
        maximum_value: Decimal,
    }
);
