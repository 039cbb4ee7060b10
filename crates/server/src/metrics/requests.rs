//! Counters of every request: number by route and status, duration and bytes by route.
//!
//! The counters are one table of atomics, allocated at the start: a request adds to four of them, found by its route's
//! index. The table is sharded: each thread adds to one of several copies, so that cores don't contend for cache lines,
//! and a scrape sums the copies. A scrape isn't atomic: requests in flight may be counted in part.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::histogram::{Ends, Histogram, HistogramCounts, NO_END};

/// Bucket ends of a request's duration.
const ENDS: Ends<17> = [
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
    NO_END,
];

/// Statuses with a counter of their own; `other` counts the rest.
const STATUSES: [&str; 16] = [
    "200", "304", "400", "401", "403", "404", "405", "410", "413", "414", "429", "431", "500",
    "503", "504", "other",
];
const OTHER: u8 = 15;

/// Index of each status in [`STATUSES`].
const PLACES: [u8; 600] = {
    let mut places = [OTHER; 600];
    let mut place = 0;
    while place < OTHER {
        let text = STATUSES[place as usize].as_bytes();
        let status = (text[0] - b'0') as usize * 100
            + (text[1] - b'0') as usize * 10
            + (text[2] - b'0') as usize;
        places[status] = place;
        place += 1;
    }
    places
};

/// Counters of one route in one shard.
#[derive(Debug)]
struct Route {
    by_status: [AtomicU64; STATUSES.len()],
    times: Histogram<{ ENDS.len() }>,
    bytes: AtomicU64,
}

impl Default for Route {
    fn default() -> Self {
        Self {
            by_status: Default::default(),
            times: Histogram::new(&ENDS),
            bytes: AtomicU64::default(),
        }
    }
}

/// Shard: a copy of the table, aligned so that two never share a cache line or the pair that processors fetch together.
#[derive(Debug)]
#[repr(align(128))]
struct Shard(Box<[Route]>);

/// Counters of one server's requests.
#[derive(Debug)]
pub struct Requests {
    routes: Vec<&'static str>,
    /// Their number is a power of two.
    shards: Box<[Shard]>,
}

/// Sums for one route.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteCounts {
    /// Template of the route; `none` for requests without a route.
    pub route: &'static str,
    /// Number of requests by status.
    pub by_status: Vec<(&'static str, u64)>,
    /// Durations of requests.
    pub times: HistogramCounts,
    /// Bytes of all response bodies.
    pub bytes: u64,
}

impl Requests {
    /// Returns empty counters for these routes.
    #[must_use]
    pub fn new(routes: &[&'static str]) -> Self {
        let routes: Vec<_> = routes.iter().copied().chain(["none"]).collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let shard = |_| Shard(routes.iter().map(|_| Route::default()).collect());
        let shards = (0..threads.clamp(1, 64).next_power_of_two())
            .map(shard)
            .collect();
        Self { routes, shards }
    }

    /// Counts one request: index of its route, status, length of the body in bytes, duration.
    pub fn observe(&self, route: Option<usize>, status: u16, bytes: u64, took: Duration) {
        let Shard(routes) = &self.shards[thread_number() & (self.shards.len() - 1)];
        let none = routes.len() - 1;
        let route = &routes[route.unwrap_or(none).min(none)];
        let status = PLACES.get(usize::from(status)).copied().unwrap_or(OTHER);
        route.by_status[usize::from(status)].fetch_add(1, Ordering::Relaxed);
        route.times.observe(took);
        route.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the sums so far, by route.
    #[must_use]
    pub fn counts(&self) -> Vec<RouteCounts> {
        let routes = self.routes.iter().enumerate();
        routes
            .map(|(place, route)| self.counts_of(place, route))
            .collect()
    }

    fn counts_of(&self, place: usize, route: &'static str) -> RouteCounts {
        let copies = || self.shards.iter().map(move |Shard(routes)| &routes[place]);
        let sum = |of: &dyn Fn(&Route) -> &AtomicU64| -> u64 {
            copies()
                .map(|route| of(route).load(Ordering::Relaxed))
                .fold(0, u64::wrapping_add)
        };
        let by_status = STATUSES
            .iter()
            .enumerate()
            .map(|(status, text)| (*text, sum(&|route| &route.by_status[status])));
        let times = copies().map(|route| route.times.times());
        RouteCounts {
            route,
            by_status: by_status.collect(),
            times: times.reduce(HistogramCounts::and).unwrap_or_default(),
            bytes: sum(&|route| &route.bytes),
        }
    }
}

/// Returns a number for the calling thread; threads are numbered in the order of their first call.
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    OWN.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        own.get()
    })
}

#[cfg(test)]
mod tests {
    use super::super::histogram::assert_written;
    use super::*;

    #[test]
    fn request_on_any_thread_is_counted_once() {
        let requests = Requests::new(&["/a", "/b"]);
        let nanoseconds = [0, 50_000, 50_001, 5_000_000_000, 5_000_000_001];
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for nanoseconds in nanoseconds {
                        let took = Duration::from_nanos(nanoseconds);
                        requests.observe(Some(1), 200, 3, took);
                    }
                    requests.observe(None, 404, 1, Duration::ZERO);
                    requests.observe(Some(7), 999, 1, Duration::ZERO);
                });
            }
        });
        let counts = requests.counts();
        let names: Vec<_> = counts.iter().map(|counts| counts.route).collect();
        assert_eq!(names, ["/a", "/b", "none"]);
        let [a, b, none] = &counts[..] else {
            panic!("{counts:?}")
        };
        assert_eq!((a.bytes, b.bytes, none.bytes), (0, 120, 16));
        let status = |counts: &RouteCounts, status| {
            let found = counts.by_status.iter().find(|(text, _)| *text == status);
            found.expect("a status").1
        };
        assert_eq!((status(a, "200"), status(b, "200")), (0, 40));
        assert_eq!((status(none, "404"), status(none, "other")), (8, 8));
        let times: Vec<u64> = b.times.at_most.iter().map(|(_, count)| *count).collect();
        assert_eq!(
            (times[0], times[1]),
            (16, 24),
            "an end belongs to its bucket"
        );
        assert_eq!((times[14], times[15], times[16]), (24, 32, 40));
        assert_eq!(b.times.at_most.last().expect("a bucket").0, "+Inf");
        assert_eq!(b.times.total, 8 * Duration::from_nanos(10_000_100_002));
    }

    #[test]
    fn bucket_labels_equal_their_ends() {
        assert_written(&ENDS);
    }
}
