//! Discounts that responses show. Snapshots have the rendered form of a product's own discount; another one is spliced into
//! its bytes.

use std::ops::Range;

use vitrine_model::content_hash::ContentHash;
use vitrine_model::money::{DecimalText, Discount};
use vitrine_model::snapshot::ProductView;

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
    ) -> Option<ShownDiscount> {
        let placed = product.discount()?;
        let listed = placed.exact.shown();
        let discount = match (self, own.unwrap_or(listed)) {
            (Self::Rendered, discount) => discount.cut(),
            (Self::Exact, discount) => discount,
        };
        (discount != listed.cut()).then(|| ShownDiscount {
            discount,
            range: placed.range(),
        })
    }
}

/// Discount that is shown instead of the rendered one.
#[derive(Debug)]
pub(crate) struct ShownDiscount {
    discount: Discount,
    range: Range<usize>,
}

impl ShownDiscount {
    /// Returns its text.
    pub(crate) fn text(&self) -> DecimalText {
        self.discount.text()
    }

    /// Returns the range of the rendered text in the product's bytes.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Returns the bytes of a product, or of its beginning, before and behind the rendered text.
    fn around<'b>(&self, bytes: &'b [u8]) -> [&'b [u8]; 2] {
        let Range { start, end } = self.range;
        [bytes.get(..start), bytes.get(end..)].map(Option::unwrap_or_default)
    }
}

/// Returns the bytes of a product, or of its beginning, with another discount in place.
pub(crate) fn spliced(bytes: &[u8], discount: &ShownDiscount) -> Vec<u8> {
    let [head, tail] = discount.around(bytes);
    [head, discount.text().as_str().as_bytes(), tail].concat()
}

/// Returns the hash of these bytes, without making them. A tag made of the rendered discount would tell it to a key that
/// isn't shown it.
pub(crate) fn spliced_hash(bytes: &[u8], discount: &ShownDiscount) -> ContentHash {
    let [head, tail] = discount.around(bytes);
    ContentHash::of_parts([head, discount.text().as_str().as_bytes(), tail])
}
