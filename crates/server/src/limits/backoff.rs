//! Exponential backoff between attempts to connect to Redis.

use std::time::Duration;

const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Backoff: each pause is twice as long as the one before, up to a second.
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: MIN_PAUSE }
    }

    /// Records that a connection ended after this time. One that lasted resets the backoff; one that failed at once
    /// doesn't.
    pub(super) fn was_connected(&mut self, duration: Duration) {
        if duration > MAX_PAUSE {
            self.next = MIN_PAUSE;
        }
    }

    /// Returns the next pause.
    pub(super) fn take(&mut self) -> Duration {
        let doubled = (self.next * 2).min(MAX_PAUSE);
        std::mem::replace(&mut self.next, doubled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_reset_after_a_lasting_connection() {
        let mut backoff = Backoff::new();
        let mut taken = || backoff.take().as_millis();
        let six: [u128; 6] = std::array::from_fn(|_| taken());
        assert_eq!(six, [100, 200, 400, 800, 1_000, 1_000]);
        backoff.was_connected(MAX_PAUSE);
        assert_eq!(backoff.take(), MAX_PAUSE);
        backoff.was_connected(MAX_PAUSE + Duration::from_millis(1));
        assert_eq!(backoff.take(), MIN_PAUSE);
    }
}
