//! The catalog that a key sees (docs/contract/assortments.md#visibility).

use std::sync::Arc;

use jiff::Timestamp;

use super::{KeyRecord, KeyTable, KnownKey};
use crate::assortment::{AssortmentTable, KnownAssortment};

/// Catalog that a key sees.
#[derive(Debug, Clone)]
pub enum VisibleCatalog {
    /// All products at their own discounts: the key has no assortment.
    Everything,
    /// The products of an assortment, at its discounts.
    Assortment(Arc<KnownAssortment>),
    /// Unknown: the key has an assortment whose rules aren't known here. Nothing may be shown.
    Unknown,
}

/// The rules of a key's assortment aren't known here: it must be shown nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the catalog that the key sees isn't known")]
pub struct UnknownCatalog;

impl VisibleCatalog {
    /// Returns the assortment; none for everything.
    ///
    /// # Errors
    ///
    /// If the catalog isn't known.
    pub fn assortment(&self) -> Result<Option<&KnownAssortment>, UnknownCatalog> {
        match self {
            Self::Everything => Ok(None),
            Self::Assortment(known) => Ok(Some(known)),
            Self::Unknown => Err(UnknownCatalog),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everything, Self::Everything) | (Self::Unknown, Self::Unknown) => true,
            (Self::Assortment(one), Self::Assortment(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    pub(super) fn of(record: &KeyRecord, assortments: &AssortmentTable) -> Self {
        match &record.assortment {
            _ if assortments.held.contains(&record.prefix) => Self::Unknown,
            None => Self::Everything,
            Some(name) => match assortments.get(name) {
                Some(known) => Self::Assortment(Arc::clone(known)),
                None => Self::Unknown,
            },
        }
    }
}

impl KeyTable {
    /// Returns the table with assortments: keys and what they see change together. Without it, keys with an assortment
    /// see nothing.
    #[must_use]
    pub fn with_assortments(mut self, assortments: Arc<AssortmentTable>) -> Self {
        let visible = |key: &KnownKey| VisibleCatalog::of(&key.record, &assortments);
        self.by_prefix.update(
            |key| !key.visible.is_same(&visible(key)),
            |key| key.visible = visible(key),
        );
        self.assortments = assortments;
        self
    }

    /// Returns the number of keys that are accepted at `now` and see nothing, since that is unknown.
    #[must_use]
    pub fn unavailable(&self, now: Timestamp) -> usize {
        let is_unavailable = |key: &&KnownKey| {
            matches!(key.visible, VisibleCatalog::Unknown) && key.record.is_active(now)
        };
        self.by_prefix.values().filter(is_unavailable).count()
    }

    /// Returns the same keys with other assortments.
    #[must_use]
    pub fn with_other_assortments(&self, assortments: AssortmentTable) -> Self {
        self.clone().with_assortments(Arc::new(assortments))
    }

    /// Returns the assortments.
    #[must_use]
    pub fn assortments(&self) -> &Arc<AssortmentTable> {
        &self.assortments
    }

    /// Returns true if every key sees what it does in another table.
    #[must_use]
    pub fn see_the_same(&self, other: &Self) -> bool {
        let is_same = |key: &KnownKey| {
            let before = other.get(&key.record.prefix);
            before.is_none_or(|before| key.visible.is_same(&before.visible))
        };
        self.by_prefix
            .values_unshared(&other.by_prefix)
            .all(is_same)
    }

    /// Returns the key with this prefix.
    #[must_use]
    pub fn get(&self, prefix: &str) -> Option<&KnownKey> {
        self.by_prefix.get(prefix)
    }
}
