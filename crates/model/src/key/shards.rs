//! Keys by prefix, in shards that tables share: a change of one key copies only its shard, however many keys there are.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use super::KnownKey;

/// Number of shards. A change copies one of them, and a pointer to each.
const SHARDS: usize = 256;

/// Keys whose prefixes have the same hash, by prefix.
type Shard = HashMap<String, KnownKey>;

/// Keys by prefix.
#[derive(Debug, Clone)]
pub(super) struct Shards(Vec<Arc<Shard>>);

impl Default for Shards {
    fn default() -> Self {
        Self(vec![Arc::default(); SHARDS])
    }
}

impl Shards {
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|shard| shard.len()).sum()
    }

    pub(super) fn get(&self, prefix: &str) -> Option<&KnownKey> {
        self.0[place(prefix)].get(prefix)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &KnownKey> {
        self.0.iter().flat_map(|shard| shard.values())
    }

    /// Iterates over the keys of shards that another map doesn't share.
    pub(super) fn values_unshared<'k>(
        &'k self,
        other: &Self,
    ) -> impl Iterator<Item = &'k KnownKey> {
        let pairs = self.0.iter().zip(&other.0);
        let unshared = pairs.filter(|(own, other)| !Arc::ptr_eq(own, other));
        unshared.flat_map(|(own, _)| own.values())
    }

    pub(super) fn insert(&mut self, key: KnownKey) {
        let shard = Arc::make_mut(&mut self.0[place(&key.record.prefix)]);
        shard.insert(key.record.prefix.clone(), key);
    }

    /// Calls `update` with the keys of the shards in which `is_old` is true for one.
    pub(super) fn update(
        &mut self,
        is_old: impl Fn(&KnownKey) -> bool,
        update: impl Fn(&mut KnownKey),
    ) {
        let old = (self.0.iter_mut()).filter(|shard| shard.values().any(&is_old));
        for shard in old {
            Arc::make_mut(shard).values_mut().for_each(&update);
        }
    }
}

/// Returns the shard of a prefix, the same in all maps.
fn place(prefix: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    prefix.hash(&mut hasher);
    hasher.finish() as usize % SHARDS
}
