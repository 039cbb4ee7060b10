//! Products and texts that were damaged in the store when a snapshot was built.

use std::collections::BTreeSet;

use crate::content::TextDigest;

/// Products and texts that are damaged in the store. The snapshot has them as they were last good, or hasn't got them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damage {
    /// Codes of products, as far as they can be read. They aren't retired.
    pub products: BTreeSet<String>,
    /// Digests of texts.
    pub texts: BTreeSet<TextDigest>,
}

impl Damage {
    /// Returns whether nothing is damaged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.products.is_empty() && self.texts.is_empty()
    }
}
