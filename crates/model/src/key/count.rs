//! Counts of a key's requests in a running server, which its store adds up by day.

use std::sync::atomic::{AtomicU64, Ordering};

use super::KeyTable;

/// Requests of a key that were not yet taken for the store. Counting costs one relaxed addition.
#[derive(Debug, Default)]
pub struct RequestCounts {
    requests: AtomicU64,
    charged: AtomicU64,
}

/// Numbers of requests of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyRequests {
    /// Answered requests.
    pub requests: u64,
    /// Those among them that cost quota, or would if the key had one.
    pub charged: u64,
}

impl RequestCounts {
    /// Counts an answered request.
    pub fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that costs quota, or would if the key had one.
    pub fn count_charged(&self) {
        self.charged.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts and sets them to zero; no request is returned twice.
    fn take(&self) -> KeyRequests {
        KeyRequests {
            requests: self.requests.swap(0, Ordering::Relaxed),
            charged: self.charged.swap(0, Ordering::Relaxed),
        }
    }
}

impl KeyTable {
    /// Takes the counts of the keys with new requests, with their prefixes.
    pub fn take_counts(&self) -> impl Iterator<Item = (&str, KeyRequests)> {
        self.by_prefix.values().filter_map(|key| {
            let taken = key.usage.counts.take();
            (taken != KeyRequests::default()).then_some((key.record.prefix.as_str(), taken))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::fixture::record;
    use crate::key::{KeyKind, NewKey};

    #[test]
    fn counts_are_taken_once_across_a_swap() {
        let keys = [7, 8].map(|seed| NewKey::from_random(KeyKind::Live, &[seed; 40]));
        let records = || keys.iter().map(record).collect();
        let table = KeyTable::new(records(), &KeyTable::default());
        assert_eq!(table.take_counts().count(), 0);
        let now = jiff::Timestamp::UNIX_EPOCH;
        let counts = |table: &KeyTable| {
            let key = table.authenticate(&keys[0].reveal(), now).unwrap();
            key.usage.counts.count_request();
            key.usage.counts.count_charged();
            key.usage.counts.count_request();
        };
        counts(&table);
        let swapped = KeyTable::new(records(), &table);
        counts(&swapped);
        let taken: Vec<_> = swapped.take_counts().collect();
        let expected = KeyRequests {
            requests: 4,
            charged: 2,
        };
        assert_eq!(taken, [(keys[0].prefix(), expected)]);
        assert_eq!(
            table.take_counts().count() + swapped.take_counts().count(),
            0
        );
    }
}
