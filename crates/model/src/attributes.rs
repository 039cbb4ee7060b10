//! Attributes of products that filters select by.

use crate::geo::Country;
use crate::money::Currency;

/// Attributes of a product that filters select by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// True if the product can be ordered.
    pub is_orderable: bool,
    /// Currency.
    pub currency: Currency,
    /// Payout type.
    pub payout_type: &'a str,
    /// Countries in which it can be redeemed.
    pub countries: &'a [Country],
    /// Categories.
    pub categories: &'a [Box<str>],
}
