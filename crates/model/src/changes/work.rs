//! Limit of the work of one search.

use std::fmt;

/// Limit of the work of a search: a number of products to look at, and whatever else its caller measures. A search looks at
/// one product in any case, so that the next one gets further.
pub struct Work<'t> {
    left: usize,
    is_time_over: &'t dyn Fn() -> bool,
}

impl<'t> Work<'t> {
    /// Returns a limit of so many products, or until `is_time_over` is true.
    #[must_use]
    pub fn new(products: usize, is_time_over: &'t dyn Fn() -> bool) -> Self {
        Self {
            left: products,
            is_time_over,
        }
    }

    /// Returns no limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(usize::MAX, &|| false)
    }

    /// Takes what was looked at into account. Returns true if there may be more.
    pub(super) fn spend(&mut self, looked_at: usize) -> bool {
        self.left = self.left.saturating_sub(looked_at);
        self.left > 0 && !(self.is_time_over)()
    }
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Work").field(&self.left).finish()
    }
}
