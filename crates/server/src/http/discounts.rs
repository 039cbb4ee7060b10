//! Discounts that responses show. Snapshots have the rendered form; another one is spliced into its bytes.

use vitrine_model::snapshot::{PlacedDiscount, ProductView, Run, Snapshot};

use super::body::PartsBuilder;

/// Form of the discounts of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discounts {
    /// Cut at two digits, as rendered.
    Rendered,
    /// Exactly as loaded, cut at six digits.
    Exact,
}

impl Discounts {
    /// Returns the discount to show instead of the rendered one; `None` if they are the same.
    pub(crate) fn replacement(self, product: ProductView<'_>) -> Option<PlacedDiscount> {
        match self {
            Self::Rendered => None,
            Self::Exact => product
                .discount()
                .filter(|discount| discount.exact != discount.exact.cut()),
        }
    }

    /// Appends the products of a run to the parts of a page.
    pub(crate) fn push(self, parts: &mut PartsBuilder, snapshot: &Snapshot, run: Run) {
        match self {
            Self::Rendered => parts.run(snapshot, run),
            Self::Exact => parts.run_with(snapshot, run, |product| self.replacement(product)),
        }
    }
}

/// Returns the bytes of a product, or of its beginning, with another discount in place.
pub(crate) fn spliced(bytes: &[u8], discount: PlacedDiscount) -> Vec<u8> {
    let range = discount.range();
    let head = bytes.get(..range.start).unwrap_or_default();
    let tail = bytes.get(range.end..).unwrap_or_default();
    [head, discount.exact.text().as_str().as_bytes(), tail].concat()
}
