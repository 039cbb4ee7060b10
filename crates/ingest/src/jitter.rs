//! Jitter of pauses, so that clients that failed together don't retry together.

use std::time::Duration;

/// Returns a random time between three quarters of a pause and all of it.
pub fn slight(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + chance() / 4.0)
}

/// Returns a random time within a fifth of a pause, either way.
pub fn fifth(pause: Duration) -> Duration {
    pause.mul_f64(0.8 + chance() * 0.4)
}

/// Returns a random number from 0 to 1; 1 if the system has no random numbers.
fn chance() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    f64::from(random) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_stay_within_their_range_and_differ() {
        let pause = Duration::from_secs(4);
        let drawn = |jitter: fn(Duration) -> Duration| -> Vec<Duration> {
            let mut drawn: Vec<_> = (0..1_000).map(|_| jitter(pause)).collect();
            drawn.sort_unstable();
            drawn
        };
        for (drawn, shortest, longest) in [(drawn(slight), 3.0, 4.0), (drawn(fifth), 3.2, 4.8)] {
            let [shortest, longest] = [shortest, longest].map(Duration::from_secs_f64);
            assert!(shortest <= drawn[0] && drawn[999] <= longest);
            // Of a thousand pauses, some are in each half.
            let middle = (shortest + longest) / 2;
            assert!(drawn[0] < middle && middle < drawn[999]);
        }
    }
}
