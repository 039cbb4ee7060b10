//! Pauses between attempts to connect to Redis.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);

/// The pauses between attempts to connect: each is twice as long as the one before, up to a second.
pub(super) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(super) fn new() -> Self {
        Self { next: SHORTEST }
    }

    /// A connection has ended that was good for so long. After one that failed at once, pauses go on growing.
    pub(super) fn was_connected(&mut self, duration: Duration) {
        if duration > LONGEST {
            self.next = SHORTEST;
        }
    }

    /// Returns the next pause.
    pub(super) fn take(&mut self) -> Duration {
        let doubled = (self.next * 2).min(LONGEST);
        std::mem::replace(&mut self.next, doubled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_reset_after_a_lasting_connection() {
        let mut pauses = Pauses::new();
        let mut taken = || pauses.take().as_millis();
        let six: [u128; 6] = std::array::from_fn(|_| taken());
        assert_eq!(six, [100, 200, 400, 800, 1_000, 1_000]);
        pauses.was_connected(LONGEST);
        assert_eq!(pauses.take(), LONGEST);
        pauses.was_connected(LONGEST + Duration::from_millis(1));
        assert_eq!(pauses.take(), SHORTEST);
    }
}
