//! How long ago the store last said which keys open the door.
//!
//! A revocation can't be seen while the store is away. So what is known of keys is good for a while only, by
//! the monotonic clock while the server runs, and by the wall clock across a restart.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// How long keys stay good without the store, unless told otherwise.
pub const USUAL_MAX_STALE_KEYS: Duration = Duration::from_secs(60 * 60);

/// A contact so little in the future is the clocks' unevenness, not an unknown past.
const CLOCK_SLACK: Duration = Duration::from_secs(60);

/// No contact yet.
const NEVER: i64 = i64::MIN;

/// When the keys were last known to be the store's.
#[derive(Debug)]
pub struct Contact {
    max_stale: Duration,
    started: Instant,
    /// In milliseconds since `started`; before it where a file of an earlier run says so.
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

    /// The keys are what the store said when it was asked at this moment: a revocation may have come while it answered.
    pub(super) fn note(&self, asked: Instant) {
        self.last.store(self.milliseconds(asked), Ordering::Relaxed);
    }

    /// The keys are what a file says that the store said at `moment`. Refused where that lies ahead: nobody
    /// knows how old they are then.
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

    /// How old the keys are at `now`; `None` before the first contact.
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

    /// How old keys may be.
    #[must_use]
    pub fn max_stale(&self) -> Duration {
        self.max_stale
    }

    fn milliseconds(&self, now: Instant) -> i64 {
        let since = now.saturating_duration_since(self.started).as_millis();
        i64::try_from(since).unwrap_or(i64::MAX)
    }
}

/// The clock shows an earlier time than when the keys were read.
#[derive(Debug, thiserror::Error)]
#[error("they were read at a time that is still to come by this machine's clock")]
pub(super) struct ClockWentBack;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_good_for_so_long_after_the_last_contact() {
        let contact = Contact::new(Duration::from_secs(10));
        let start = Instant::now();
        assert_eq!(contact.age(start), None);
        assert!(!contact.is_fresh(start), "before the first contact");
        contact.note(start);
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(contact.age(after(9)), Some(Duration::from_secs(9)));
        assert!(contact.is_fresh(after(9)));
        assert!(!contact.is_fresh(after(11)));
        contact.note(after(10));
        assert!(contact.is_fresh(after(19)));
    }

    #[test]
    fn a_file_s_keys_are_as_old_as_the_clock_says() {
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
