//! API keys: creation, stored records, and authentication of presented keys.

mod count;
mod expiry;
mod fault;
#[cfg(test)]
mod fixture;
mod new;
mod shards;
mod status;
mod visible;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::assortment::AssortmentTable;
use crate::quota::{Quota, QuotaState};

pub use count::{KeyRequests, RequestCounts};
use shards::Shards;

pub use new::{NewKey, contains_key};
pub use status::KeyStatus;
pub use visible::{UnknownCatalog, VisibleCatalog};

/// SHA-256 of a key's secret. A fast hash suffices: the secret is 256 random bits, which are in no dictionary, and a
/// slow hash would let clients exhaust the server.
#[derive(Clone, Copy)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Returns the hash's bytes, for a store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the hash with these bytes, from a store.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretHash(…)")
    }
}

/// Purpose of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Reads the catalog.
    Live,
    /// Reads the catalog, and may ask for errors with `X-Simulate`.
    Test,
}

impl KeyKind {
    /// Returns the part of the prefix that stands for the kind.
    fn infix(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::Test => "test_",
        }
    }
}

/// Stored record of a key.
#[derive(Debug, Clone)]
pub struct KeyRecord {
    /// Name in lists and logs.
    pub prefix: String,
    /// Name for people.
    pub label: String,
    /// Hash of the secret.
    pub secret_hash: SecretHash,
    /// Live or test.
    pub kind: KeyKind,
    /// Pinned API version, as text: a later release may no longer serve it.
    pub api_version: Option<String>,
    /// Rate limit; `None` is unlimited.
    pub quota: Option<Quota>,
    /// Name of its assortment; `None` shows everything.
    pub assortment: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time from which it is refused.
    pub expires_at: Option<Timestamp>,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
    /// Time of the rotation that created its successor.
    pub rotated_at: Option<Timestamp>,
    /// Time of last use, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// State of a key in a running server; survives swaps of the [`KeyTable`].
#[derive(Debug, Default)]
pub struct KeyUsage {
    last_used_second: AtomicI64,
    /// State of its quota.
    pub quota: QuotaState,
    /// Memory of response bodies that were built and aren't sent yet, in bytes.
    pub sending_bytes: Arc<AtomicU64>,
    /// Number of requests that wait for changes.
    pub waits: AtomicUsize,
    /// Counts of its requests.
    pub counts: RequestCounts,
}

/// A key that a server knows.
#[derive(Debug, Clone)]
pub struct KnownKey {
    /// Stored record.
    pub record: KeyRecord,
    /// State in this server.
    pub usage: Arc<KeyUsage>,
    /// Catalog that it sees.
    pub visible: VisibleCatalog,
}

/// All keys that a server knows: immutable, swapped as a whole.
#[derive(Debug, Clone, Default)]
pub struct KeyTable {
    by_prefix: Shards,
    assortments: Arc<AssortmentTable>,
}

impl KeyTable {
    /// Builds a table of `records`, keeping the usage from `previous`.
    #[must_use]
    pub fn new(records: Vec<KeyRecord>, previous: &Self) -> Self {
        Self::default().written(records, previous)
    }

    /// Returns the table with `records` in the place of those with the same prefix, or beside them.
    #[must_use]
    pub fn with_changed(&self, records: Vec<KeyRecord>) -> Self {
        self.clone().written(records, self)
    }

    /// Writes `records`, keeping the usage from `previous`.
    fn written(mut self, records: Vec<KeyRecord>, previous: &Self) -> Self {
        for record in records {
            let known = previous.by_prefix.get(&record.prefix);
            self.by_prefix.insert(KnownKey {
                usage: known.map_or_else(Arc::default, |key| Arc::clone(&key.usage)),
                visible: VisibleCatalog::of(&record, &self.assortments),
                record,
            });
        }
        self
    }

    /// Returns the number of keys, including expired and revoked ones.
    #[must_use]
    pub fn count(&self) -> usize {
        self.by_prefix.len()
    }

    /// Iterates over the stored records, in no order.
    pub fn records(&self) -> impl Iterator<Item = &KeyRecord> {
        self.by_prefix.values().map(|key| &key.record)
    }

    /// Returns the key that `presented` names, if it is accepted at `now`.
    ///
    /// Unknown, wrong, revoked and expired keys are refused alike at the same cost: one hash and one comparison in
    /// constant time.
    #[must_use]
    pub fn authenticate(&self, presented: &str, now: Timestamp) -> Option<&KnownKey> {
        let (prefix, secret) = presented.split_once('.').unwrap_or((presented, ""));
        let hash = SecretHash::of(secret);
        let key = self.by_prefix.get(prefix);
        let stored = key.map_or(SecretHash([0; 32]), |key| key.record.secret_hash);
        let matches = stored.matches(&hash);
        let key = key.filter(|key| matches && key.record.is_active(now))?;
        key.usage
            .last_used_second
            .fetch_max(now.as_second(), Ordering::Relaxed);
        Some(key)
    }

    /// Iterates over the keys used since their last use was stored, with the minute of the last use.
    pub fn used_since_recorded(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.by_prefix.values().filter_map(|key| {
            let minute = key.usage.last_used_second.load(Ordering::Relaxed) / 60 * 60;
            let recorded = key.record.last_used_at.map_or(0, Timestamp::as_second);
            let used_at = Timestamp::from_second(minute).ok()?;
            (minute > recorded).then_some((key.record.prefix.as_str(), used_at))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::record;
    use super::*;

    #[test]
    fn keys_wrong_expired_or_revoked_are_refused() {
        let key = NewKey::from_random(KeyKind::Live, &[7; 40]);
        let second = |second| Timestamp::from_second(second).unwrap();
        let now = second(1_000_000);
        let table = |record: KeyRecord| KeyTable::new(vec![record], &KeyTable::default());
        let plain = table(record(&key));
        assert_eq!((plain.count(), KeyTable::default().count()), (1, 0));
        let prefixes: Vec<&str> = plain.records().map(|record| &*record.prefix).collect();
        assert_eq!(prefixes, [key.prefix()]);
        assert!(plain.authenticate(&key.reveal(), now).is_some());
        let other = NewKey::from_random(KeyKind::Live, &[8; 40]).reveal();
        let wrong_secret = format!("{}.x", key.prefix());
        for refused in ["", ".", key.prefix(), &wrong_secret, &other, "a.b.c"] {
            assert!(plain.authenticate(refused, now).is_none(), "{refused}");
        }
        let expired = table(KeyRecord {
            expires_at: Some(now),
            ..record(&key)
        });
        assert!(expired.authenticate(&key.reveal(), now).is_none());
        assert!(
            expired
                .authenticate(&key.reveal(), second(999_999))
                .is_some()
        );
        let revoked = table(KeyRecord {
            revoked_at: Some(second(1)),
            ..record(&key)
        });
        assert!(revoked.authenticate(&key.reveal(), now).is_none());
    }

    #[test]
    fn last_use_survives_a_swap_to_the_minute() {
        let key = NewKey::from_random(KeyKind::Test, &[9; 40]);
        let table = KeyTable::new(vec![record(&key)], &KeyTable::default());
        assert_eq!(table.used_since_recorded().count(), 0);
        let now = Timestamp::from_second(1_000_019).unwrap();
        table.authenticate(&key.reveal(), now).unwrap();
        let swapped = KeyTable::new(vec![record(&key)], &table);
        let used: Vec<_> = swapped.used_since_recorded().collect();
        assert_eq!(used[0].1.as_second(), 999_960);
        let recorded = KeyRecord {
            last_used_at: Some(used[0].1),
            ..record(&key)
        };
        assert_eq!(
            KeyTable::new(vec![recorded], &swapped)
                .used_since_recorded()
                .count(),
            0
        );
    }

    #[test]
    fn changed_keys_replace_their_records_alone() {
        let keys = [7, 8, 9].map(|seed| NewKey::from_random(KeyKind::Live, &[seed; 40]));
        let now = Timestamp::from_second(1_000_019).unwrap();
        let table = KeyTable::new(keys[..2].iter().map(record).collect(), &KeyTable::default());
        let accepts = |table: &KeyTable| {
            let is_accepted = |key: &NewKey| table.authenticate(&key.reveal(), now).is_some();
            keys.each_ref().map(is_accepted)
        };
        assert_eq!(accepts(&table), [true, true, false]);
        let revoked = KeyRecord {
            revoked_at: Some(now),
            ..record(&keys[0])
        };
        let changed = table.with_changed(vec![revoked, record(&keys[2])]);
        assert_eq!(accepts(&changed), [false, true, true]);
        assert_eq!(accepts(&table), [true, true, false], "it is another table");
        assert_eq!((changed.count(), changed.records().count()), (3, 3));
        let of =
            |table: &KeyTable, key: &NewKey| Arc::clone(&table.get(key.prefix()).unwrap().usage);
        for key in &keys[..2] {
            assert!(Arc::ptr_eq(&of(&table, key), &of(&changed, key)));
        }
        assert!(changed.see_the_same(&table) && table.see_the_same(&changed));
        assert!(table.with_changed(Vec::new()).see_the_same(&table));
        let hidden = KeyRecord {
            assortment: Some("north".to_owned()),
            ..record(&keys[1])
        };
        let hidden = changed.with_changed(vec![hidden]);
        assert!(!hidden.see_the_same(&changed));
        assert_eq!((hidden.unavailable(now), changed.unavailable(now)), (1, 0));
    }

    #[test]
    fn debug_of_keys_hides_the_secret() {
        let key = NewKey::from_random(KeyKind::Test, &[255; 40]);
        assert!(key.prefix().starts_with("vitrine_test_"));
        assert_ne!(
            key.reveal(),
            NewKey::from_random(KeyKind::Test, &[254; 40]).reveal()
        );
        let secret = key.reveal().split_once('.').unwrap().1.to_owned();
        assert_eq!(secret.len(), 44);
        for shown in [format!("{key:?}"), format!("{:?}", record(&key))] {
            assert!(shown.contains(key.prefix()), "{shown}");
            assert!(!shown.contains(&secret), "{shown}");
        }
        assert_eq!(format!("{:?}", key.secret_hash()), "SecretHash(…)");
    }

    #[test]
    fn stored_hash_is_the_sha256_of_the_secret() {
        let key = NewKey::from_random(KeyKind::Live, &[7; 40]);
        let presented = key.reveal();
        let (_, secret) = presented.split_once('.').unwrap();
        let hash: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        assert_eq!(key.secret_hash().as_bytes(), &hash);
        let stored = KeyRecord {
            secret_hash: SecretHash::from_bytes(hash),
            ..record(&key)
        };
        let table = KeyTable::new(vec![stored], &KeyTable::default());
        assert!(
            table
                .authenticate(&presented, Timestamp::UNIX_EPOCH)
                .is_some()
        );
    }
}
