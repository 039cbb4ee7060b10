//! Counters of limits: decisions on quotas, requests to the shared limits, requests with invalid keys.

use super::Counter;
use super::histogram::{Ends, Histogram, NO_END};

/// Place that decided on a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaScope {
    /// The count that all servers share.
    Shared,
    /// This server's own count.
    Local,
}

/// Decision on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The request was answered.
    Granted,
    /// The request was refused with 429.
    Refused,
}

/// A counter for each decision.
#[derive(Debug, Default)]
pub struct Decisions([Counter; 2]);

impl Decisions {
    /// Returns the counter of a decision.
    #[must_use]
    pub fn of(&self, decision: Decision) -> &Counter {
        &self.0[decision as usize]
    }
}

/// Counters of a server's limits.
#[derive(Debug, Default)]
pub struct LimitMetrics {
    quotas: [Decisions; 2],
    /// Requests with invalid keys: refused as such, or with 429 because their address sent too many.
    pub failed_keys: Decisions,
}

impl LimitMetrics {
    /// Returns the counters of decisions made in this place.
    #[must_use]
    pub fn quotas(&self, place: QuotaScope) -> &Decisions {
        &self.quotas[place as usize]
    }
}

/// A state of the circuit breaker in front of shared limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaker {
    /// Redis is used: servers share quotas.
    Closed,
    /// Redis isn't used: each server limits alone.
    Open,
}

/// Bucket ends of a request to the shared limits.
const ENDS: Ends<9> = [
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    NO_END,
];

/// Counters of requests to the shared limits.
#[derive(Debug)]
pub struct SharedMetrics {
    /// Durations of requests, successful or not.
    pub round_trips: Histogram<{ ENDS.len() }>,
    /// Number of requests that timed out.
    pub timeouts: Counter,
    /// Number of requests that failed otherwise.
    pub failures: Counter,
    turns: [Counter; 2],
}

impl Default for SharedMetrics {
    fn default() -> Self {
        Self {
            round_trips: Histogram::new(&ENDS),
            timeouts: Counter::default(),
            failures: Counter::default(),
            turns: Default::default(),
        }
    }
}

impl SharedMetrics {
    /// Returns the counter of changes of the breaker to a state.
    #[must_use]
    pub fn transitions(&self, to: Breaker) -> &Counter {
        &self.turns[to as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::histogram::assert_written;
    use super::*;

    #[test]
    fn round_trips_are_counted_by_their_time() {
        let trips = SharedMetrics::default().round_trips;
        for microseconds in [0, 100, 101, 20_000, 20_001] {
            trips.observe(Duration::from_micros(microseconds));
        }
        let times = trips.times();
        let counts: Vec<_> = times.at_most.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 3, 3, 3, 3, 3, 3, 4, 5]);
        assert_eq!(times.total, Duration::from_micros(40_202));
        assert_written(&ENDS);
    }
}
