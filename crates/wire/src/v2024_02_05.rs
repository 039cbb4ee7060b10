//! Fields that version 2024-02-05 has in another form than the newest version.

use std::borrow::Cow;

/// Fields of a product.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Product<'a> {
    /// Discount on the price of the order item before fees: `0.10` is 10 %. It has two fraction digits, truncated and never rounded up.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^[0-9]+\.[0-9]{2}$")))]
    pub discount_multiplier: Cow<'a, str>,
}
