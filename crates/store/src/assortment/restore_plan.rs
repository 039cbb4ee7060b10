//! The keys that would see by other rules after a restore.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use vitrine_model::key::KeyRecord;

use super::AssortmentVersion;

/// Result of [`plan_restore`](crate::Store::plan_restore).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestorePlan {
    /// Keys that would be usable and see by other rules than now, oldest first.
    pub keys: Vec<RestoredKey>,
}

/// A key that a restore would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredKey {
    /// Name in lists and logs.
    pub prefix: String,
    /// Name for people, in the backup.
    pub label: String,
    /// View of the catalog now.
    pub now: KeyView,
    /// View of the catalog after the restore.
    pub then: KeyView,
}

/// A key's view of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyView {
    /// Nothing: there is no such key, or its assortment isn't live.
    Unknown,
    /// Everything: it has no assortment.
    Everything,
    /// The part that its assortment shows.
    Assortment {
        /// Name of the assortment.
        name: String,
        /// Rules, JSON.
        rules: Arc<str>,
    },
}

/// Keys of a store, and the rules of its live assortments.
pub(crate) struct View {
    keys: Vec<KeyRecord>,
    rules: HashMap<String, Arc<str>>,
}

impl View {
    pub(crate) fn new(keys: Vec<KeyRecord>, live: Vec<AssortmentVersion>) -> Self {
        let rules = |version: AssortmentVersion| Some((version.name, version.rules?.into()));
        Self {
            keys,
            rules: live.into_iter().filter_map(rules).collect(),
        }
    }

    fn of(&self, key: &KeyRecord) -> KeyView {
        let Some(name) = &key.assortment else {
            return KeyView::Everything;
        };
        match self.rules.get(name) {
            None => KeyView::Unknown,
            Some(rules) => KeyView::Assortment {
                name: name.clone(),
                rules: Arc::clone(rules),
            },
        }
    }
}

/// Compares the views of all keys that a restore would leave usable at `moment`: revoked keys stay revoked, and the earlier
/// expiry counts.
pub(super) fn plan(now: &View, then: &View, moment: Timestamp) -> RestorePlan {
    let standing = now.keys.iter().map(|key| (key.prefix.as_str(), key));
    let standing: HashMap<&str, &KeyRecord> = standing.collect();
    let restored = |key: &KeyRecord| {
        let before = standing.get(key.prefix.as_str());
        let is_usable =
            key.is_active(moment) && before.is_none_or(|before| before.is_active(moment));
        let restored = RestoredKey {
            prefix: key.prefix.clone(),
            label: key.label.clone(),
            now: before.map_or(KeyView::Unknown, |before| now.of(before)),
            then: then.of(key),
        };
        (is_usable && restored.now != restored.then).then_some(restored)
    };
    RestorePlan {
        keys: then.keys.iter().filter_map(restored).collect(),
    }
}
