//! What is counted of limits: quotas of keys, how asking for shared ones goes, and keys that aren't valid.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Counter;

/// Where it was decided whether a request is within its key's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// By all servers together.
    Shared,
    /// By this one alone.
    Local,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The request is answered.
    Granted,
    /// It is refused, with 429.
    Refused,
}

/// A count for each decision.
#[derive(Debug, Default)]
pub struct Decisions([Counter; 2]);

impl Decisions {
    /// How often it was decided so.
    #[must_use]
    pub fn of(&self, decision: Decision) -> &Counter {
        &self.0[decision as usize]
    }
}

/// What a server counts of its limits.
#[derive(Debug, Default)]
pub struct LimitMetrics {
    quotas: [Decisions; 2],
    /// Requests with keys that aren't valid: told so, or refused since there were too many from their address.
    pub failed_keys: Decisions,
}

impl LimitMetrics {
    /// Decisions on quotas that were made in this place.
    #[must_use]
    pub fn quotas(&self, place: Place) -> &Decisions {
        &self.quotas[place as usize]
    }
}

/// A state of the circuit breaker in front of shared limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaker {
    /// Servers limit together.
    Closed,
    /// Each limits alone.
    Open,
}

/// What a server counts of asking for shared limits.
#[derive(Debug, Default)]
pub struct SharedMetrics {
    /// How long asking took, whatever came of it.
    pub round_trips: RoundTrips,
    /// How often no answer came in time.
    pub timeouts: Counter,
    /// How often asking failed otherwise.
    pub failures: Counter,
    turns: [Counter; 2],
}

impl SharedMetrics {
    /// How often the breaker came into this state.
    #[must_use]
    pub fn turned(&self, to: Breaker) -> &Counter {
        &self.turns[to as usize]
    }
}

/// The upper ends of the buckets of round trips, in nanoseconds, with how they are written, in seconds.
const BUCKETS: [(u64, &str); 8] = [
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
];

/// A histogram of round trips.
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// The last bucket has no upper end.
    by_time: [AtomicU64; BUCKETS.len() + 1],
    nanoseconds: AtomicU64,
}

impl RoundTrips {
    /// Counts one.
    pub fn observe(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.iter().position(|(end, _)| nanoseconds <= *end);
        self.by_time[bucket.unwrap_or(BUCKETS.len())].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// How many took at most so many seconds, ascending; the last are all.
    pub fn at_most(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let ends = BUCKETS.iter().map(|(_, text)| *text).chain(["+Inf"]);
        let mut before = 0;
        ends.zip(&self.by_time).map(move |(end, count)| {
            before += count.load(Ordering::Relaxed);
            (end, before)
        })
    }

    /// The time of all of them, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_counted_by_their_time() {
        let trips = RoundTrips::default();
        for microseconds in [0, 100, 101, 20_000, 20_001] {
            trips.observe(Duration::from_micros(microseconds));
        }
        let counts: Vec<_> = trips.at_most().map(|(_, count)| count).collect();
        assert_eq!(counts, [2, 3, 3, 3, 3, 3, 3, 4, 5]);
        assert!((trips.seconds() - 0.040_202).abs() < 1e-9);
        for (nanoseconds, seconds) in BUCKETS {
            let seconds: f64 = seconds.parse().expect("a number");
            assert_eq!(
                Duration::from_nanos(nanoseconds),
                Duration::from_secs_f64(seconds)
            );
        }
    }
}
