//! Requests of keys by day: taken from the counters in memory, and added to the store.
//!
//! Requests that were taken stay here until the store has them. If a commit breaks so that nobody knows whether it took
//! effect, they are added again: they may be counted twice, but none is lost. What a killed server counted within the last
//! minute is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use vitrine_model::key::{KeyRequests, KeyTable};
use vitrine_store::record::KeyDay;
use vitrine_store::{Store, StoreError};

use super::Live;
use crate::error_chain::ErrorChain;

/// Number of days that the store keeps.
const KEPT_DAYS: i64 = 400;

/// Maximum time that the end of a server waits for another writer.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Pause between the last tries.
const LAST_PAUSE: Duration = Duration::from_millis(20);

const SECONDS_A_DAY: i64 = 24 * 60 * 60;

/// Requests that the store doesn't have yet.
pub(super) struct KeyDays {
    store: Arc<Store>,
    live: Arc<Live>,
    /// Keys at the last time: those that are gone since may have new requests.
    keys: Arc<KeyTable>,
    /// Day of the requests since the last time.
    day: Date,
    pending: BTreeMap<(Date, String), KeyRequests>,
    failing: bool,
}

impl KeyDays {
    pub(super) fn new(store: &Arc<Store>, live: &Arc<Live>) -> Self {
        Self {
            store: Arc::clone(store),
            live: Arc::clone(live),
            keys: live.keys(),
            day: day(Timestamp::now()),
            pending: BTreeMap::new(),
            failing: false,
        }
    }

    /// Adds new requests to the store.
    ///
    /// # Errors
    ///
    /// If another process is writing; other errors are logged. Requests that weren't added are kept.
    pub(super) fn flush(&mut self) -> Result<(), Busy> {
        self.take(Timestamp::now());
        let kept_since = self.day.saturating_sub(Span::new().days(KEPT_DAYS));
        self.pending.retain(|(day, _), _| *day >= kept_since);
        if self.pending.is_empty() {
            return Ok(());
        }
        let pending = self.pending.iter();
        let days: Vec<KeyDay> = pending
            .map(|((day, prefix), counts)| KeyDay {
                day: *day,
                prefix: prefix.clone(),
                counts: *counts,
            })
            .collect();
        match self.store.add_key_days(&days, kept_since) {
            Ok(()) => {
                self.pending.clear();
                self.failing = false;
            }
            Err(StoreError::Busy { .. }) => return Err(Busy),
            Err(error) => self.log(&error),
        }
        Ok(())
    }

    /// Adds new requests for the last time.
    pub(super) fn finish(&mut self) {
        let end = Instant::now() + LAST_WAIT;
        while self.flush().is_err() && Instant::now() < end {
            std::thread::sleep(LAST_PAUSE);
        }
        let requests: u64 = self.pending.values().map(|counts| counts.requests).sum();
        if requests > 0 {
            tracing::warn!(requests, "the days of keys may lack these requests");
        }
    }

    /// Takes the requests since the last time; they belong to the day of that time.
    fn take(&mut self, now: Timestamp) {
        let keys = self.live.keys();
        for table in [&self.keys, &keys] {
            for (prefix, taken) in table.take_counts() {
                let name = (self.day, prefix.to_owned());
                let counts = self.pending.entry(name).or_default();
                counts.requests += taken.requests;
                counts.charged += taken.charged;
            }
        }
        (self.keys, self.day) = (keys, day(now));
    }

    fn log(&mut self, error: &StoreError) {
        let is_unknown = matches!(
            error,
            StoreError::UnreachableAtCommit { .. } | StoreError::DiskAtCommit { .. }
        );
        let error = ErrorChain(error);
        if is_unknown {
            tracing::warn!(%error, "requests may be counted twice in the days of keys");
        } else if !self.failing {
            tracing::warn!(%error, "can't store the days of keys; trying again every minute");
        }
        self.failing = true;
    }
}

/// Another process is writing.
pub(super) struct Busy;

fn day(moment: Timestamp) -> Date {
    moment.to_zoned(TimeZone::UTC).date()
}

/// Returns the time until the next day begins.
pub(super) fn until_next_day(now: Timestamp) -> Duration {
    let rest = SECONDS_A_DAY - now.as_second().rem_euclid(SECONDS_A_DAY);
    Duration::from_secs(rest.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use vitrine_model::key::{KeyKind, KeyRecord, NewKey};
    use vitrine_store::{IfMissing, StoreAddress};

    use super::*;
    use crate::live::JournalLimits;

    #[test]
    fn requests_wait_for_their_store_and_are_added_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("late.db");
        let Ok(address) = format!("sqlite:{}", path.display()).parse::<StoreAddress>();
        let followed = address.open_to_follow(IfMissing::Refuse, Duration::ZERO);
        let store = followed.unwrap();
        let live = Arc::new(Live::new(Duration::MAX, JournalLimits::default()));
        let key = NewKey::from_random(KeyKind::Live, &[7; NewKey::RANDOM_BYTES]);
        let record = KeyRecord::new(&key, KeyKind::Live, "test", Timestamp::UNIX_EPOCH);
        live.set_keys(KeyTable::new(vec![record], &live.keys()));
        let count = || {
            let keys = live.keys();
            let known = keys.authenticate(&key.reveal(), Timestamp::UNIX_EPOCH);
            known.unwrap().usage.counts.count_request();
        };
        let mut days = KeyDays::new(&store, &live);
        let today = days.day;
        days.day = today.yesterday().unwrap();
        count();
        assert!(days.flush().is_ok(), "it isn't another writer");
        count();
        count();
        // The key is gone, such as by a restore.
        live.set_keys(KeyTable::default());
        address.open(IfMissing::Create, Duration::ZERO).unwrap();
        for _ in 0..2 {
            assert!(days.flush().is_ok());
            let found = store.key_days(Date::MIN).unwrap();
            let found: Vec<_> = found.iter().map(|one| one.counts.requests).collect();
            assert_eq!(found, [2, 1], "today's, and yesterday's");
        }
    }

    #[test]
    fn next_day_begins_at_midnight_in_utc() {
        for (now, seconds) in [
            ("2026-01-31T00:00:00Z", SECONDS_A_DAY),
            ("2026-01-31T23:59:59.5Z", 1),
            ("1969-12-31T23:59:00Z", 60),
        ] {
            let now: Timestamp = now.parse().unwrap();
            assert_eq!(until_next_day(now).as_secs(), seconds.unsigned_abs());
        }
    }
}
