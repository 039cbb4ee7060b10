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

/// Maximum time between two ticks of a process that runs. After a longer one, it was stopped.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Interval of ticks.
pub(super) const TICK: Duration = Duration::from_millis(500);

/// Maximum time that requests wait for the store after a stop.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Time of the last contact with the store about keys. All times are in milliseconds since the machine started.
#[derive(Debug)]
pub struct Contact {
    max_stale: Duration,
    /// Negative if it is from an earlier run's file.
    last: AtomicI64,
    /// Time of the last tick.
    ticked: AtomicI64,
    /// Time at which the last stop was noticed: a store that was asked before may not have known a revocation.
    resumed: AtomicI64,
    /// Time at which the store was asked for its last answer, or failure.
    asked: AtomicI64,
    answers: Notify,
}

impl Contact {
    pub(super) fn new(max_stale: Duration) -> Self {
        Self {
            max_stale,
            last: AtomicI64::new(NEVER),
            ticked: AtomicI64::new(i64::MAX),
            resumed: AtomicI64::new(NEVER),
            asked: AtomicI64::new(NEVER),
            answers: Notify::new(),
        }
    }

    /// Records a contact. `asked` is the time of the query: a later revocation may be missing from its result.
    pub(super) fn record(&self, asked: BootTime) {
        self.last.store(asked.milliseconds(), Ordering::Relaxed);
    }

    /// Notices a stop: called at each [`TICK`], whether the store answers or hangs.
    pub(super) fn tick(&self, now: BootTime) {
        if self.is_late(now) {
            self.resumed.store(now.milliseconds(), Ordering::Relaxed);
        }
        // After `resumed`, so that no request misses both.
        self.ticked.store(now.milliseconds(), Ordering::Release);
    }

    fn is_late(&self, now: BootTime) -> bool {
        let ticked = self.ticked.load(Ordering::Acquire);
        now.milliseconds().saturating_sub(ticked) > milliseconds(MAX_PAUSE)
    }

    /// Records that the store, asked at `asked`, answered or failed.
    pub(super) fn record_answer(&self, asked: BootTime) {
        self.asked.store(asked.milliseconds(), Ordering::Relaxed);
        self.answers.notify_waiters();
    }

    /// Returns true if the process was stopped and hasn't asked the store since. A store that hangs doesn't make requests
    /// wait, save for a moment after a stop.
    #[must_use]
    pub fn is_overdue(&self, now: BootTime) -> bool {
        if self.is_late(now) {
            return true;
        }
        let resumed = self.resumed.load(Ordering::Relaxed);
        let waited = now.milliseconds().saturating_sub(resumed);
        self.asked.load(Ordering::Relaxed) < resumed && waited < milliseconds(MAX_WAIT)
    }

    /// Waits until the store was asked, if it is overdue, for a moment at most.
    pub async fn asked(&self) {
        let asked = async {
            loop {
                let mut answer = std::pin::pin!(self.answers.notified());
                answer.as_mut().enable();
                if !self.is_overdue(BootTime::now()) {
                    return;
                }
                answer.await;
            }
        };
        // Without an answer, the age of the keys decides.
        let _ = tokio::time::timeout(MAX_WAIT, asked).await;
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

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
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
        assert!(!contact.is_overdue(after(60_000)), "before the first tick");
        contact.tick(start);
        contact.record_answer(start);
        assert!(!contact.is_overdue(after(1_900)));
        contact.tick(after(1_900));
        assert!(!contact.is_overdue(after(3_800)), "the store hangs");
        assert!(contact.is_overdue(after(15_000)), "nobody noticed the stop");
        contact.tick(after(15_000));
        assert!(contact.is_overdue(after(15_900)), "not answered yet");
        contact.tick(after(15_900));
        assert!(!contact.is_overdue(after(16_100)), "the store hangs");
    }

    #[test]
    fn answer_to_a_question_before_a_stop_does_not_count() {
        let contact = Contact::new(Duration::from_secs(3600));
        let start = BootTime::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        contact.tick(start);
        contact.record_answer(start);
        contact.record_answer(after(100));
        assert!(contact.is_overdue(after(15_000)));
        contact.tick(after(15_000));
        contact.record_answer(after(200));
        assert!(contact.is_overdue(after(15_001)));
        contact.record_answer(after(15_002));
        assert!(!contact.is_overdue(after(15_003)));
    }
}
