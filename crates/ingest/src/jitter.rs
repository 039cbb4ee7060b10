//! Chance in pauses: many who lost something at once don't all come back to it at once.

use std::time::Duration;

/// By chance something between nothing and a whole pause.
pub fn full(pause: Duration) -> Duration {
    pause.mul_f64(chance())
}

/// By chance something between three quarters of a pause and the whole.
pub fn slight(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + chance() / 4.0)
}

/// A number from 0 to 1. Without random numbers all pauses are whole.
fn chance() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    f64::from(random) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_never_longer_than_they_may_be_and_differ() {
        let pause = Duration::from_secs(4);
        let drawn = |jitter: fn(Duration) -> Duration| -> Vec<Duration> {
            let mut drawn: Vec<_> = (0..1_000).map(|_| jitter(pause)).collect();
            drawn.sort_unstable();
            drawn
        };
        for (drawn, shortest) in [(drawn(full), 0), (drawn(slight), 3)] {
            assert!(drawn[0] >= Duration::from_secs(shortest));
            assert!(drawn[999] <= pause);
            // Of a thousand, half an end is never missed by chance.
            let half = (pause - Duration::from_secs(shortest)) / 2;
            assert!(drawn[0] < pause - half && pause - half < drawn[999]);
        }
    }
}
