//! Products and texts that were corrupt in the store when a snapshot was built.

use std::collections::BTreeSet;

use crate::content::TextDigest;

/// Products and texts that are corrupt in the store. The snapshot has their last good state, or doesn't have them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damage {
    /// Codes of products, as far as they are readable. These products aren't retired.
    pub products: BTreeSet<String>,
    /// Digests of texts.
    pub texts: BTreeSet<TextDigest>,
}

impl Damage {
    /// Returns true if nothing is corrupt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.products.is_empty() && self.texts.is_empty()
    }
}
