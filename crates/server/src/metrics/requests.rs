//! Counters of every request: number by route and status, duration and bytes by route.
//!
//! The counters are one table of atomics, allocated at the start: a request adds to four of them, found by its route's
//! index. The table is sharded: each thread adds to one of several copies, so that cores don't contend for cache lines,
//! and a scrape sums the copies. A scrape isn't atomic: requests in flight may be counted in part.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::histogram::{Histogram, HistogramCounts};
use super::table::{RequestMetrics, RequestTimes};
use super::text::Counted;
use super::values::Counter;

/// Statuses with a counter of their own; `other` counts the rest.
const STATUSES: [&str; 18] = [
    "200", "204", "302", "304", "400", "401", "403", "404", "405", "410", "413", "414", "429",
    "431", "500", "503", "504", "other",
];
const OTHER: u8 = STATUSES.len() as u8 - 1;

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
#[derive(Debug, Default)]
struct Route {
    by_status: [Counter; STATUSES.len()],
    times: Histogram<RequestTimes, 17>,
    bytes: Counter,
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
        route.by_status[usize::from(status)].increment();
        route.times.observe(took);
        route.bytes.add(bytes);
    }

    /// Returns the sums so far.
    #[must_use]
    pub fn metrics(&self) -> RequestMetrics {
        let mut metrics = RequestMetrics::default();
        for (place, route) in self.routes.iter().enumerate() {
            let label = ("route", *route);
            let copies = || self.shards.iter().map(move |Shard(routes)| &routes[place]);
            let sum = |of: &dyn Fn(&Route) -> &Counter| -> u64 {
                let counts = copies().map(|route| of(route).get());
                counts.fold(0, u64::wrapping_add)
            };
            for (status, text) in STATUSES.iter().enumerate() {
                let count = sum(&|route| &route.by_status[status]);
                metrics
                    .answered
                    .push(([label, ("status", *text)], Counted(count)));
            }
            let times = copies().map(|route| route.times.times());
            let times = times.reduce(HistogramCounts::and).unwrap_or_default();
            metrics.times.push(([label], times));
            metrics
                .bytes
                .push(([label], Counted(sum(&|route| &route.bytes))));
        }
        metrics
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
        let metrics = requests.metrics();
        let bytes: Vec<_> = metrics
            .bytes
            .iter()
            .map(|([(_, route)], bytes)| (*route, bytes.0))
            .collect();
        assert_eq!(bytes, [("/a", 0), ("/b", 120), ("none", 16)]);
        let status = |route, status| {
            let labels = [("route", route), ("status", status)];
            let found = metrics.answered.iter().find(|(of, _)| *of == labels);
            found.expect("a status").1.0
        };
        assert_eq!((status("/a", "200"), status("/b", "200")), (0, 40));
        assert_eq!((status("none", "404"), status("none", "other")), (8, 8));
        let (_, times_of_b) = &metrics.times[1];
        let times: Vec<u64> = times_of_b.at_most.iter().map(|(_, count)| *count).collect();
        assert_eq!(
            (times[0], times[1]),
            (16, 24),
            "an end belongs to its bucket"
        );
        assert_eq!((times[14], times[15], times[16]), (24, 32, 40));
        assert_eq!(times_of_b.total, 8 * Duration::from_nanos(10_000_100_002));
    }
}
