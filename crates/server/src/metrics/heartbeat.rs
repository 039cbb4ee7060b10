//! Heartbeats of threads, which tell that one hangs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Deadline of a thread that hasn't started.
const NOT_STARTED: u64 = u64::MAX;

/// Deadline for the next beat of a thread.
#[derive(Debug)]
pub struct Heartbeat {
    created: Instant,
    /// In milliseconds since `created`.
    deadline: AtomicU64,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self {
            created: Instant::now(),
            deadline: AtomicU64::new(NOT_STARTED),
        }
    }
}

impl Heartbeat {
    /// Beats, and sets the deadline of the next beat to `limit` from now.
    pub fn beat(&self, limit: Duration) {
        self.deadline
            .store(self.milliseconds(Instant::now() + limit), Ordering::Relaxed);
    }

    /// Returns whether the thread has missed its deadline.
    #[must_use]
    pub fn is_late(&self, now: Instant) -> bool {
        self.milliseconds(now) > self.deadline.load(Ordering::Relaxed)
    }

    fn milliseconds(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.created).as_millis();
        u64::try_from(since).unwrap_or(NOT_STARTED - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeat_is_late_after_its_deadline_only() {
        let heartbeat = Heartbeat::default();
        let after = |seconds| Instant::now() + Duration::from_secs(seconds);
        assert!(!heartbeat.is_late(after(3600)), "before the thread starts");
        heartbeat.beat(Duration::from_secs(10));
        assert!(!heartbeat.is_late(after(9)));
        assert!(heartbeat.is_late(after(11)));
        heartbeat.beat(Duration::from_secs(60));
        assert!(!heartbeat.is_late(after(11)));
    }
}
