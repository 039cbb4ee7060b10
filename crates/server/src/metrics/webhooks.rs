//! Metrics of webhooks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::histogram::{Ends, Histogram, HistogramCounts, NO_END};
use super::{Counter, Gauge};

/// States of endpoints, in the order of [`WebhookMetrics::endpoints`].
pub(super) const ENDPOINT_STATES: [&str; 4] = ["active", "paused", "disabled", "ended"];

/// Outcomes of attempts, in the order of [`WebhookMetrics::attempts`].
pub(super) const ATTEMPT_OUTCOMES: [&str; 3] = ["taken", "refused", "failed"];

const BUCKETS: usize = 9;

static ENDS: Ends<BUCKETS> = [
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (5_000_000_000, "5"),
    (30_000_000_000, "30"),
    (300_000_000_000, "300"),
    NO_END,
];

/// Counters of a deliverer.
#[derive(Debug)]
pub struct WebhookMetrics {
    endpoints: [AtomicU64; ENDPOINT_STATES.len()],
    attempts: [Counter; ATTEMPT_OUTCOMES.len()],
    /// Age of the oldest change that an active endpoint wasn't told or didn't acknowledge, in seconds.
    pub oldest_seconds: Gauge,
    told: Histogram<BUCKETS>,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        Self {
            endpoints: Default::default(),
            attempts: Default::default(),
            oldest_seconds: Gauge::default(),
            told: Histogram::new(&ENDS),
        }
    }
}

impl WebhookMetrics {
    /// Counts an attempt with this status, or without a response.
    pub fn count(&self, status: Option<u16>) {
        let outcome = match status {
            Some(200..300) => 0,
            Some(_) => 1,
            None => 2,
        };
        self.attempts[outcome].increment();
    }

    /// Records the time from a commit to the acknowledgement of its event, at the first attempt.
    pub fn observe(&self, took: Duration) {
        self.told.observe(took);
    }

    /// Sets the number of endpoints in each state, and the age of the oldest change, in seconds.
    pub fn set(&self, endpoints: [u64; ENDPOINT_STATES.len()], oldest_seconds: f64) {
        for (gauge, count) in self.endpoints.iter().zip(endpoints) {
            gauge.store(count, Ordering::Relaxed);
        }
        self.oldest_seconds.set(oldest_seconds);
    }

    /// Returns the number of endpoints in each state.
    pub fn endpoints(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self
            .endpoints
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        ENDPOINT_STATES.into_iter().zip(counts)
    }

    /// Returns the number of attempts by outcome.
    pub fn attempts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.attempts.iter().map(Counter::get);
        ATTEMPT_OUTCOMES.into_iter().zip(counts)
    }

    /// Returns the times from commits to acknowledgements.
    #[must_use]
    pub fn told(&self) -> HistogramCounts {
        self.told.times()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ends_are_written_in_seconds() {
        super::super::histogram::assert_written(&super::ENDS);
    }
}
