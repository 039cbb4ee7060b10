//! Histograms of durations, in Prometheus's form.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of a histogram.
pub trait Buckets<const N: usize> {
    /// Upper ends of the buckets in nanoseconds, ascending. The last one is [`NO_END`].
    const ENDS: &'static [u64; N];
}

/// End of the last bucket.
pub const NO_END: u64 = u64::MAX;

/// Histogram of durations.
#[derive(Debug)]
pub struct Histogram<B, const N: usize> {
    by_time: [AtomicU64; N],
    nanoseconds: AtomicU64,
    buckets: PhantomData<B>,
}

/// Snapshot of a histogram.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistogramCounts {
    /// Number of durations up to each bucket's end, ascending; the last has no end and is the number of all.
    pub at_most: Vec<(Option<Duration>, u64)>,
    /// Sum of all durations.
    pub total: Duration,
}

impl<B, const N: usize> Default for Histogram<B, N> {
    fn default() -> Self {
        Self {
            by_time: [const { AtomicU64::new(0) }; N],
            nanoseconds: AtomicU64::new(0),
            buckets: PhantomData,
        }
    }
}

impl<B: Buckets<N>, const N: usize> Histogram<B, N> {
    /// Counts a duration.
    pub fn observe(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = B::ENDS.iter().position(|end| nanoseconds <= *end);
        let bucket = bucket.unwrap_or(N - 1);
        self.by_time[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn times(&self) -> HistogramCounts {
        let mut before = 0;
        let at_most = B::ENDS.iter().zip(&self.by_time);
        let at_most = at_most.map(|(end, count)| {
            before += count.load(Ordering::Relaxed);
            let end = (*end != NO_END).then(|| Duration::from_nanos(*end));
            (end, before)
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

#[cfg(test)]
mod tests {
    use super::super::table::{Deliveries, RequestTimes, RoundTrips};
    use super::super::text::Exposition;
    use super::*;

    /// Returns the ends of the buckets as they are exposed.
    fn ends<B: Buckets<N>, const N: usize>() -> String {
        let mut text = Exposition::default();
        text.add("a", "", &Histogram::<B, N>::default());
        let text = text.into_text();
        let buckets = text.split("a_bucket{le=\"").skip(1);
        let ends = buckets.filter_map(|bucket| bucket.split('"').next());
        ends.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ends_of_buckets_are_exposed_in_seconds() {
        assert_eq!(
            ends::<RequestTimes, 17>(),
            "0.00005 0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 +Inf"
        );
        assert_eq!(
            ends::<RoundTrips, 9>(),
            "0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.02 +Inf"
        );
        assert_eq!(ends::<Deliveries, 9>(), "0.05 0.1 0.25 0.5 1 5 30 300 +Inf");
    }

    #[test]
    fn durations_are_counted_up_to_the_end_of_their_bucket() {
        let histogram = Histogram::<RoundTrips, 9>::default();
        for microseconds in [0, 100, 101, 20_000, 20_001] {
            histogram.observe(Duration::from_micros(microseconds));
        }
        let times = histogram.times();
        let counts: Vec<_> = times.at_most.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 3, 3, 3, 3, 3, 3, 4, 5]);
        assert_eq!(times.total, Duration::from_micros(40_202));
    }
}
