//! Expiry of keys in use: operators are warned before a partner's key ends.

use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};

use super::{KeyTable, KnownKey};

/// Time before expiry at which a key expires soon, and since its last use in which it is in use.
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

impl KeyTable {
    /// Iterates over the expiries of keys in use that end within a week of `now`, in no order. Keys that are accepted and
    /// were used within the last week are in use; rotated ones, too.
    pub fn expiring(&self, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.by_prefix.values().filter_map(move |key| {
            let expires = key.record.expires_at?;
            let is_soon = key.record.is_active(now) && expires.duration_since(now) <= WEEK;
            (is_soon && key.is_in_use(now)).then_some(expires)
        })
    }
}

impl KnownKey {
    fn is_in_use(&self, now: Timestamp) -> bool {
        let here = self.usage.last_used_second.load(Ordering::Relaxed);
        let recorded = self.record.last_used_at.map_or(0, Timestamp::as_second);
        now.as_second() - here.max(recorded) <= WEEK.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyKind, KeyRecord, NewKey, fixture};

    const DAY: i64 = 86_400;
    const NOW: i64 = 1_000 * DAY;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn record(expires: Option<i64>, last_used: Option<i64>) -> KeyRecord {
        KeyRecord {
            expires_at: expires.map(second),
            last_used_at: last_used.map(second),
            ..fixture::record(&NewKey::from_random(KeyKind::Live, &[7; 40]))
        }
    }

    fn expiring(record: KeyRecord) -> Vec<i64> {
        let table = KeyTable::new(vec![record], &KeyTable::default());
        let expiries = table.expiring(second(NOW));
        expiries.map(Timestamp::as_second).collect()
    }

    #[test]
    fn keys_in_use_expire_soon_within_a_week() {
        let used = Some(NOW - 7 * DAY);
        let week = NOW + 7 * DAY;
        assert_eq!(expiring(record(Some(week), used)), [week]);
        let rotated = KeyRecord {
            rotated_at: Some(second(1)),
            ..record(Some(NOW + 1), used)
        };
        assert_eq!(expiring(rotated), [NOW + 1]);
        let revoked = KeyRecord {
            revoked_at: Some(second(1)),
            ..record(Some(week), used)
        };
        for other in [
            record(Some(week + 1), used),
            record(Some(NOW), used),
            record(None, used),
            record(Some(week), None),
            record(Some(week), Some(NOW - 7 * DAY - 1)),
            revoked,
        ] {
            assert!(expiring(other.clone()).is_empty(), "{other:?}");
        }
    }

    #[test]
    fn use_on_this_server_counts_before_it_is_recorded() {
        let key = NewKey::from_random(KeyKind::Live, &[7; 40]);
        let stored = record(Some(NOW + DAY), None);
        let table = KeyTable::new(vec![stored], &KeyTable::default());
        assert_eq!(table.expiring(second(NOW)).count(), 0);
        table.authenticate(&key.reveal(), second(NOW)).unwrap();
        assert_eq!(table.expiring(second(NOW)).count(), 1);
    }
}
