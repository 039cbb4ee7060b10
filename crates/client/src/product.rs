//! The product object (docs/contract/resources.md).
//!
//! Fields stand in the order in which the service sends them, so that a product is written as it came.

use crate::content::ContentUrls;
use crate::object::object;
use crate::open::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, LengthUnit,
    PayoutType, RedeemableAt, State,
};
use crate::value::{Decimal, Json};

object!(
    /// A product that can be ordered as a payout. `C` is the form of its texts.
    ///
    /// The object named by `payout_type` has its details: [`detail`](Self::detail) gives it.
    Product<C = ContentUrls> {
        /// The product's name.
        name: String,
        /// The product's unique code, which orders name. For a subscription it names the top-level product; orders then name a
        /// `subscription_plan_code`.
        code: String,
        /// The ISO 4217 code of the currency of all its amounts.
        currency: String,
        /// The product's state. It says nothing of whether the product can be ordered: see `is_orderable`.
        state: State,
        /// Whether the product can be ordered. Orders for a product where it is false are rejected; show products to end users
        /// only where it is true.
        is_orderable: bool,
        /// The payout type, which is also the name of the object with the product's details.
        payout_type: PayoutType,
        /// The categories that the product belongs to.
        categories: Vec<String>,
        /// ISO 3166-1 alpha-2 codes of the countries where the payout can be spent.
        countries_redeemable_in: Vec<String>,
        /// Contact information suitable for showing to the customer.
        customer_service: CustomerService,
        /// The discount on the price of the order item before fees: `0.10` is 10 %.
        discount_multiplier: Decimal,
        /// How orders are filled; `None` where it isn't known.
        availability [absent]: Option<Availability>,
        /// The details of a gift card.
        gift_card [absent]: Option<GiftCard<C>>,
        /// The details of a subscription.
        subscription [absent]: Option<Subscription<C>>,
        /// The details of a payment.
        payment [absent]: Option<Payment<C>>,
    }
);

/// The details of a product, from the object that its payout type names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail<'p, C = ContentUrls> {
    /// Of a gift card.
    GiftCard(&'p GiftCard<C>),
    /// Of a subscription.
    Subscription(&'p Subscription<C>),
    /// Of a payment.
    Payment(&'p Payment<C>),
    /// Of a payout type that this crate doesn't know: its object, to the letter.
    Unknown(&'p Json),
    /// The product has no object of its payout type.
    Missing,
}

impl<C> Product<C> {
    /// The details of the product.
    #[must_use]
    pub fn detail(&self) -> Detail<'_, C> {
        match &self.payout_type {
            PayoutType::GiftCard => self.gift_card.as_ref().map(Detail::GiftCard),
            PayoutType::Subscription => self.subscription.as_ref().map(Detail::Subscription),
            PayoutType::Payment => self.payment.as_ref().map(Detail::Payment),
            PayoutType::Unknown(name) => self.other.get(name).map(Detail::Unknown),
        }
        .unwrap_or(Detail::Missing)
    }

    /// The product's texts; `None` for a payout type that this crate doesn't know.
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
    /// Contact information suitable for showing to the customer.
    CustomerService {
        /// A telephone number in international format with a leading plus sign.
        phone_number: Option<String>,
        /// The address of a customer-service page.
        website_url: Option<String>,
    }
);

object!(
    /// The details of a gift card.
    GiftCard<C = ContentUrls> {
        /// Which amounts can be ordered.
        denominations: Denominations,
        /// Pictures and colour.
        assets: Assets,
        /// The address of a page where the balance can be checked.
        balance_check_url: Option<String>,
        /// When it expires.
        expiry: Expiry,
        /// Where it can be redeemed.
        redeemable_at: RedeemableAt,
        /// The address of the brand's page.
        website_url: Option<String>,
        /// The barcode's format; `None` where there is no barcode.
        barcode_format: Option<BarcodeFormat>,
        /// How the e-code is to be used.
        e_code_usage_type: ECodeUsageType,
        /// The product's texts.
        content_resources: C,
    }
);

object!(
    /// The details of a subscription.
    Subscription<C = ContentUrls> {
        /// The plans that can be ordered; at least one.
        subscription_plans: Vec<SubscriptionPlan>,
        /// Pictures and colour.
        assets: Assets,
        /// The address of a page where the balance can be checked.
        balance_check_url: Option<String>,
        /// When it expires.
        expiry: Expiry,
        /// Where it can be redeemed.
        redeemable_at: RedeemableAt,
        /// The address of the brand's page.
        website_url: Option<String>,
        /// The barcode's format; `None` where there is no barcode.
        barcode_format: Option<BarcodeFormat>,
        /// How the e-code is to be used.
        e_code_usage_type: ECodeUsageType,
        /// The product's texts.
        content_resources: C,
    }
);

object!(
    /// The details of a payment.
    Payment<C = ContentUrls> {
        /// Picture and colour.
        assets: PaymentAssets,
        /// Which amounts can be paid.
        denominations: PaymentDenominations,
        /// The product's texts.
        content_resources: C,
    }
);

object!(
    /// Pictures and colour.
    Assets {
        /// The address of the card's image.
        card_image_url: Option<String>,
        /// The address of the icon's image.
        icon_image_url: Option<String>,
        /// The brand's colour, in `#RRGGBB` form.
        primary_color: Option<String>,
    }
);

object!(
    /// When it expires.
    Expiry {
        /// The policy in words.
        date_policy: Option<String>,
        /// Months until it expires.
        in_months: u32,
        /// From when the months count.
        expiry_type ("type"): ExpiryType,
    }
);

object!(
    /// Which amounts can be ordered.
    Denominations {
        /// Any amount from minimum to maximum, or only the listed ones.
        denomination_type ("type"): DenominationType,
        /// The least amount.
        minimum_value: Decimal,
        /// The greatest amount.
        maximum_value: Decimal,
        /// All amounts that can be ordered, or suggestions where any can.
        available_list: Option<Vec<Decimal>>,
    }
);

object!(
    /// One plan of a subscription.
    SubscriptionPlan {
        /// The unit of the plan's length.
        length_unit: LengthUnit,
        /// The plan's length in that unit.
        length: u32,
        /// The plan's name.
        name: String,
        /// The plan's price.
        price: Decimal,
        /// The code that orders name.
        subscription_plan_code: String,
    }
);

object!(
    /// A payment's picture and colour.
    PaymentAssets {
        /// The address of the icon's image.
        icon_image_url: Option<String>,
        /// The brand's colour, in `#RRGGBB` form.
        primary_color: Option<String>,
    }
);

object!(
    /// Which amounts can be paid.
    PaymentDenominations {
        /// The least amount.
        minimum_value: Decimal,
        /// The greatest amount.
        maximum_value: Decimal,
    }
);
