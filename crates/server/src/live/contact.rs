//! The last contact with the store about keys.
//!
//! A revocation can't be seen while the store is unreachable. So keys are trusted only for some time after the last
//! contact, by the monotonic clock while the server runs, and by the wall clock across a restart.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Default time for which keys are trusted without the store.
pub const DEFAULT_MAX_STALE_KEYS: Duration = Duration::from_secs(60 * 60);

/// Tolerated difference of clocks for a contact in the future.
const CLOCK_SLACK: Duration = Duration::from_secs(60);

/// Mark of no contact yet.
const NEVER: i64 = i64::MIN;

/// Time of the last contact with the store about keys.
#[derive(Debug)]
pub struct Contact {
    max_stale: Duration,
    started: Instant,
    /// In milliseconds since `started`; negative if it is from an earlier run's file.
    last: AtomicI64,
}

impl Contact {
    pub(super) fn new(max_stale: Duration) -> Self {
        Self {
            max_stale,
            started: Instant::now(),
            last: AtomicI64::new(NEVER),
        }
    }

    /// Records a contact. `asked` is the time of the query: a later revocation may be missing from its result.
    pub(super) fn record(&self, asked: Instant) {
        self.last.store(self.milliseconds(asked), Ordering::Relaxed);
    }

    /// Resumes from the contact of an earlier run at `moment`.
    ///
    /// # Errors
    ///
    /// If `moment` is in the future: the age of the keys is unknown then.
    pub(super) fn resume(&self, moment: Timestamp, now: Timestamp) -> Result<(), ClockWentBack> {
        let age = now.duration_since(moment);
        if age.is_negative() && age.unsigned_abs() > CLOCK_SLACK {
            return Err(ClockWentBack);
        }
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX).max(0);
        let last = self.milliseconds(Instant::now()).saturating_sub(age);
        self.last.store(last.max(NEVER + 1), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the age of the keys at `now`; `None` before the first contact.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let last = self.last.load(Ordering::Relaxed);
        let age = self.milliseconds(now).saturating_sub(last);
        (last != NEVER).then(|| Duration::from_millis(u64::try_from(age).unwrap_or(0)))
    }

    /// Returns true if the keys are recent enough to be trusted (docs/contract/errors.md#types).
    #[must_use]
    pub fn is_fresh(&self, now: Instant) -> bool {
        self.age(now).is_some_and(|age| age <= self.max_stale)
    }

    /// Returns the maximum age of trusted keys.
    #[must_use]
    pub fn max_stale(&self) -> Duration {
        self.max_stale
    }

    fn milliseconds(&self, now: Instant) -> i64 {
        let since = now.saturating_duration_since(self.started).as_millis();
        i64::try_from(since).unwrap_or(i64::MAX)
    }
}

/// The clock is behind the time at which the keys were read.
#[derive(Debug, thiserror::Error)]
#[error("they were read at a time that is in the future by this machine's clock")]
pub(super) struct ClockWentBack;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_trusted_until_their_maximum_age() {
        let contact = Contact::new(Duration::from_secs(10));
        let start = Instant::now();
        assert_eq!(contact.age(start), None);
        assert!(!contact.is_fresh(start), "before the first contact");
        contact.record(start);
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(contact.age(after(9)), Some(Duration::from_secs(9)));
        assert!(contact.is_fresh(after(9)));
        assert!(!contact.is_fresh(after(11)));
        contact.record(after(10));
        assert!(contact.is_fresh(after(19)));
    }

    #[test]
    fn age_of_resumed_keys_is_by_the_wall_clock() {
        let contact = Contact::new(Duration::from_secs(3600));
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        contact
            .resume("2026-11-21T11:30:00Z".parse().unwrap(), now)
            .unwrap();
        let after = |minutes: u64| Instant::now() + Duration::from_secs(60 * minutes);
        assert!(contact.is_fresh(after(29)));
        assert!(!contact.is_fresh(after(31)));
        let soon = "2026-11-21T12:00:30Z".parse().unwrap();
        contact.resume(soon, now).unwrap();
        assert!(contact.age(Instant::now()) < Some(Duration::from_secs(60)));
        let ahead = "2026-11-21T13:00:00Z".parse().unwrap();
        assert!(contact.resume(ahead, now).is_err());
        let ancient = "1970-01-01T00:00:00Z".parse().unwrap();
        contact.resume(ancient, now).unwrap();
        assert!(!contact.is_fresh(after(0)));
    }
}
