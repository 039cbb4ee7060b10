//! The last contact with the store about keys.
//!
//! A revocation can't be seen while the store is unreachable. So keys are trusted only for some time after the last
//! contact, by the clock of the machine while the server runs, and by the wall clock across a restart.
//!
//! A process that was stopped for a while, or whose machine slept, doesn't know yet what happened meanwhile. Its requests wait
//! until the store was asked.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::boot_time::BootTime;

/// Default time for which keys are trusted without the store.
pub const DEFAULT_MAX_STALE_KEYS: Duration = Duration::from_secs(60 * 60);

/// Tolerated difference of clocks for a contact in the future.
const CLOCK_SLACK: Duration = Duration::from_secs(60);

/// Mark of no contact yet.
const NEVER: i64 = i64::MIN;

/// Time after which the store is asked again at the latest, whether that failed or not. Later, the process was stopped.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Maximum time that requests wait for the store after a stop.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Time of the last contact with the store about keys. All times are in milliseconds since the machine started.
#[derive(Debug)]
pub struct Contact {
    max_stale: Duration,
    /// Negative if it is from an earlier run's file.
    last: AtomicI64,
    /// Time at which the store has to be asked again.
    ask_by: AtomicI64,
    /// Time until which requests wait for the answer, if the store was asked too late.
    wait_until: AtomicI64,
    asked: Notify,
}

impl Contact {
    pub(super) fn new(max_stale: Duration) -> Self {
        Self {
            max_stale,
            last: AtomicI64::new(NEVER),
            ask_by: AtomicI64::new(i64::MAX),
            wait_until: AtomicI64::new(i64::MAX),
            asked: Notify::new(),
        }
    }

    /// Records a contact. `asked` is the time of the query: a later revocation may be missing from its result.
    pub(super) fn record(&self, asked: BootTime) {
        self.last.store(asked.milliseconds(), Ordering::Relaxed);
    }

    /// Records that the store is being asked.
    pub(super) fn begin_asking(&self, now: BootTime) {
        // A store that hangs doesn't make requests wait; after a stop, for a moment.
        let (deadline, value) = match self.is_overdue(now) {
            true => (&self.wait_until, (now + MAX_WAIT).milliseconds()),
            false => (&self.ask_by, i64::MAX),
        };
        deadline.store(value, Ordering::Relaxed);
    }

    /// Records that the store was asked, with or without an answer.
    pub(super) fn end_asking(&self, now: BootTime) {
        let ask_by = (now + MAX_PAUSE).milliseconds();
        self.ask_by.store(ask_by, Ordering::Relaxed);
        self.wait_until.store(i64::MAX, Ordering::Relaxed);
        self.asked.notify_waiters();
    }

    /// Returns true if the store should have been asked before: the process was stopped.
    #[must_use]
    pub fn is_overdue(&self, now: BootTime) -> bool {
        let now = now.milliseconds();
        now > self.ask_by.load(Ordering::Relaxed) && now < self.wait_until.load(Ordering::Relaxed)
    }

    /// Waits until the store was asked, if it is overdue, for a moment at most.
    pub async fn asked(&self) {
        let mut asked = std::pin::pin!(self.asked.notified());
        asked.as_mut().enable();
        if self.is_overdue(BootTime::now()) {
            // Without an answer, the age of the keys decides.
            let _ = tokio::time::timeout(MAX_WAIT, asked).await;
        }
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
        let last = BootTime::now().milliseconds().saturating_sub(age);
        self.last.store(last.max(NEVER + 1), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the age of the keys at `now`; `None` before the first contact.
    #[must_use]
    pub fn age(&self, now: BootTime) -> Option<Duration> {
        let last = self.last.load(Ordering::Relaxed);
        let age = now.milliseconds().saturating_sub(last);
        (last != NEVER).then(|| Duration::from_millis(u64::try_from(age).unwrap_or(0)))
    }

    /// Returns true if the keys are recent enough to be trusted (docs/contract/errors.md#types).
    #[must_use]
    pub fn is_fresh(&self, now: BootTime) -> bool {
        self.age(now).is_some_and(|age| age <= self.max_stale)
    }

    /// Returns the maximum age of trusted keys.
    #[must_use]
    pub fn max_stale(&self) -> Duration {
        self.max_stale
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
        let start = BootTime::now();
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
        let after = |minutes: u64| BootTime::now() + Duration::from_secs(60 * minutes);
        assert!(contact.is_fresh(after(29)));
        assert!(!contact.is_fresh(after(31)));
        let soon = "2026-11-21T12:00:30Z".parse().unwrap();
        contact.resume(soon, now).unwrap();
        assert!(contact.age(BootTime::now()) < Some(Duration::from_secs(60)));
        let ahead = "2026-11-21T13:00:00Z".parse().unwrap();
        assert!(contact.resume(ahead, now).is_err());
        let ancient = "1970-01-01T00:00:00Z".parse().unwrap();
        contact.resume(ancient, now).unwrap();
        assert!(!contact.is_fresh(after(0)));
    }

    #[test]
    fn requests_wait_for_the_store_after_a_stop_only() {
        let contact = Contact::new(Duration::from_secs(3600));
        let start = BootTime::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        assert!(!contact.is_overdue(after(60_000)), "before the first read");
        contact.begin_asking(start);
        assert!(!contact.is_overdue(after(60_000)), "the store hangs");
        contact.end_asking(start);
        assert!(!contact.is_overdue(after(1_900)));
        assert!(contact.is_overdue(after(15_000)), "nobody has asked");
        contact.begin_asking(after(15_000));
        assert!(contact.is_overdue(after(15_900)), "not answered yet");
        assert!(!contact.is_overdue(after(16_100)), "the store hangs");
        contact.end_asking(after(15_001));
        assert!(!contact.is_overdue(after(15_002)));
    }
}
