//! Metrics of a running server, exposed by the admin port, and of `vitrine mirror`.
//!
//! All parts of the server count here; only the admin port reads it. This module knows no HTTP, catalog or store. Names
//! and labels come from tables of the program, never from a request, so they hold no path, code or key.
//!
//! - [`table`]: every metric with its name, type and help
//! - [`values`]: counters, gauges and labels; [`histogram`]: durations
//! - [`requests`]: counters of every request
//! - [`heartbeat`]: deadlines of threads that must not hang
//! - [`state_files`]: writes of the state directory's files
//! - [`process`]: figures of the process, from the system
//! - [`text`]: Prometheus's text format
//! - [`mirror`]: metrics file of `vitrine mirror`
//!
//! # Why no library
//!
//! A request may cost a few atomic additions: no lock, no allocation, no hashing of labels. The histograms of
//! `prometheus-client` take a lock, and no library shards its counters by thread. Half of the values are made at a scrape,
//! which libraries want a collector for. The text format, which would remain for them, takes a hundred lines here.

pub mod heartbeat;
pub mod histogram;
pub mod mirror;
pub mod process;
pub mod requests;
pub mod state_files;
pub mod table;
pub mod text;
pub(crate) mod text_file;
pub mod values;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use heartbeat::Heartbeat;
use requests::Requests;
use state_files::StateFiles;
use table::{
    Connections, ErrorMetrics, InstantMetrics, LimitMetrics, Rebuild, SwapMetrics, TlsMetrics,
    WebhookMetrics,
};
use values::{Counter, Gauge};

/// Number of panics, on any thread: each is a bug.
pub static PANICS: Counter = Counter::new();

/// Lines of the access log that were dropped.
pub static ACCESS_LOG_DROPPED: Counter = Counter::new();

/// Lines of the server's messages, on standard error, that were dropped.
pub static MESSAGES_DROPPED: Counter = Counter::new();

/// Metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    /// Requests by route and status.
    pub requests: Requests,
    /// Error responses.
    pub errors: ErrorMetrics,
    /// Decisions on quotas and invalid keys.
    pub limits: LimitMetrics,
    /// Connections of clients.
    pub connections: Arc<Connections>,
    /// TLS of clients' connections; none without a certificate.
    pub tls: Option<Arc<TlsMetrics>>,
    /// Deliveries to webhook endpoints.
    pub webhooks: Arc<WebhookMetrics>,
    /// Beginnings and ends of overrides.
    pub instants: Arc<InstantMetrics>,
    /// Start of the process, to about a second.
    pub started: Timestamp,
}

impl Metrics {
    /// Returns empty metrics of a server with these routes.
    #[must_use]
    pub fn new(routes: &[&'static str]) -> Self {
        Self {
            requests: Requests::new(routes),
            errors: ErrorMetrics::default(),
            limits: LimitMetrics::default(),
            connections: Arc::default(),
            tls: None,
            webhooks: Arc::default(),
            instants: Arc::default(),
            started: Timestamp::now(),
        }
    }
}

/// A connection, counted as open until this is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<Connections>);

impl OpenConnection {
    /// Counts a connection as accepted and open.
    #[must_use]
    pub fn new(connections: &Arc<Connections>) -> Self {
        connections.accepted.increment();
        connections.open.increment();
        Self(Arc::clone(connections))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.decrement();
    }
}

/// Counters of following the store.
#[derive(Debug, Default)]
pub struct LiveMetrics {
    /// Swaps of the catalog.
    pub swaps: SwapMetrics,
    /// Time at which the live snapshot went live.
    pub live_since: Gauge,
    /// Polls of the catalog.
    pub follow_catalog: Following,
    /// Polls of the keys.
    pub follow_keys: Following,
    /// Writes of the state directory's files.
    pub state_files: StateFiles,
}

impl SwapMetrics {
    /// Counts a snapshot that was built to go live, and sets its duration.
    pub fn record(&self, rebuild: Rebuild, took: Duration) {
        self.swapped.of(rebuild).increment();
        self.last_seconds.set(took.as_secs_f64());
    }
}

/// Polls of the store by one thread.
#[derive(Debug, Default)]
pub struct Following {
    /// Number of polls in which the store couldn't be read.
    pub failures: Counter,
    /// Time at which the store was last read.
    pub last_success: Gauge,
    /// Heartbeat of the thread.
    pub heartbeat: Heartbeat,
    failing: AtomicBool,
}

impl Following {
    /// Counts the outcome of a poll.
    pub fn record<T, E>(&self, outcome: &Result<T, E>) {
        match outcome {
            Ok(_) => self.last_success.set_moment(Timestamp::now()),
            Err(_) => self.failures.increment(),
        }
        self.failing.store(outcome.is_err(), Ordering::Relaxed);
    }

    /// Returns true if the last poll failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }
}

/// State of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheState {
    /// Number of lookups that found an entry.
    pub hits: u64,
    /// Number of lookups that found none.
    pub misses: u64,
    /// Size of its entries, in bytes.
    pub bytes: u64,
}
