//! Discounts that responses show. Snapshots have the rendered form of a product's own discount; another one is spliced into
//! its bytes.

use vitrine_model::money::Discount;
use vitrine_model::snapshot::{PlacedDiscount, ProductView};

/// Form of the discounts of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discounts {
    /// Cut at two digits, as rendered.
    Rendered,
    /// Exact, cut at six digits.
    Exact,
}

impl Discounts {
    /// Returns the discount to show instead of the rendered one; `None` if they are the same. `own` is that of the key's
    /// assortment, if it has one for the product.
    pub(crate) fn replacement(
        self,
        product: ProductView<'_>,
        own: Option<Discount>,
    ) -> Option<PlacedDiscount> {
        let PlacedDiscount { exact, start } = product.discount()?;
        let shown = match (self, own.unwrap_or(exact)) {
            (Self::Rendered, discount) => discount.cut(),
            (Self::Exact, discount) => discount,
        };
        let shown = PlacedDiscount {
            exact: shown,
            start,
        };
        (shown.exact != exact.cut()).then_some(shown)
    }
}

/// Returns the bytes of a product, or of its beginning, with another discount in place.
pub(crate) fn spliced(bytes: &[u8], discount: PlacedDiscount) -> Vec<u8> {
    let range = discount.range();
    let head = bytes.get(..range.start).unwrap_or_default();
    let tail = bytes.get(range.end..).unwrap_or_default();
    [head, discount.exact.text().as_str().as_bytes(), tail].concat()
}
