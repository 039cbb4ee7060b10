//! Histograms of durations, in Prometheus's form.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of buckets, ascending: in nanoseconds, and as text in seconds. The last bucket is unbounded.
pub(super) type Ends<const BUCKETS: usize> = [(u64, &'static str); BUCKETS];

/// End of the last bucket.
pub(super) const NO_END: (u64, &str) = (u64::MAX, "+Inf");

/// Histogram of durations.
#[derive(Debug)]
pub struct Histogram<const BUCKETS: usize> {
    ends: &'static Ends<BUCKETS>,
    by_time: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

/// Snapshot of a histogram.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistogramCounts {
    /// Number of durations up to each bucket's end in seconds, ascending; the last is the number of all.
    pub at_most: Vec<(&'static str, u64)>,
    /// Sum of all durations.
    pub total: Duration,
}

impl<const BUCKETS: usize> Histogram<BUCKETS> {
    pub(super) fn new(ends: &'static Ends<BUCKETS>) -> Self {
        Self {
            ends,
            by_time: [const { AtomicU64::new(0) }; BUCKETS],
            nanoseconds: AtomicU64::new(0),
        }
    }

    /// Counts a duration.
    pub fn observe(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.ends.iter().position(|(end, _)| nanoseconds <= *end);
        let bucket = bucket.unwrap_or(BUCKETS - 1);
        self.by_time[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn times(&self) -> HistogramCounts {
        let mut before = 0;
        let at_most = self.ends.iter().zip(&self.by_time);
        let at_most = at_most.map(|((_, end), count)| {
            before += count.load(Ordering::Relaxed);
            (*end, before)
        });
        HistogramCounts {
            at_most: at_most.collect(),
            total: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)),
        }
    }
}

impl HistogramCounts {
    /// Adds the counts of a histogram with the same buckets.
    #[must_use]
    pub(super) fn and(mut self, others: Self) -> Self {
        for ((_, count), (_, more)) in self.at_most.iter_mut().zip(others.at_most) {
            *count += more;
        }
        self.total += others.total;
        self
    }
}

/// Checks that each end in nanoseconds is the one written in seconds.
#[cfg(test)]
pub(super) fn assert_written(ends: &[(u64, &str)]) {
    assert!(ends.is_sorted());
    assert_eq!(ends.last(), Some(&NO_END));
    for (nanoseconds, seconds) in &ends[..ends.len() - 1] {
        let seconds: f64 = seconds.parse().expect("a number");
        assert_eq!(
            Duration::from_nanos(*nanoseconds),
            Duration::from_secs_f64(seconds)
        );
    }
}
