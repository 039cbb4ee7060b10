//! Metrics of a running server, exposed by the admin port, and of `vitrine mirror`.
//!
//! All parts of the server count here; only the admin port reads it. This module knows no HTTP, catalog or store. Names
//! and labels come from tables of the program, never from a request, so they hold no path, code or key.
//!
//! - [`heartbeat`]: deadlines of threads that must not hang
//! - [`histogram`]: histograms of durations
//! - [`limits`]: decisions on quotas and invalid keys
//! - [`mirror`]: metrics file of `vitrine mirror`
//! - [`requests`]: counters of every request
//! - [`state_files`]: writes of the state directory's files
//! - [`text`]: Prometheus's text format
//! - [`process`]: figures of the process, from the system
//!
//! # Why no library
//!
//! A request may cost a few atomic additions: no lock, no allocation, no hashing of labels. Metrics libraries look a
//! counter up by its labels under a lock, or keep a summary of their own. The text format, which would remain for them,
//! takes a hundred lines here, and `vitrine mirror` uses it too.

pub mod heartbeat;
pub mod histogram;
mod instants;
pub mod limits;
pub mod mirror;
pub mod process;
pub mod requests;
pub mod state_files;
pub mod text;
pub(crate) mod text_file;
mod webhooks;

pub use instants::InstantMetrics;
pub use webhooks::WebhookMetrics;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use vitrine_wire::error::ErrorType;

use heartbeat::Heartbeat;
use limits::LimitMetrics;
use requests::Requests;
use state_files::StateFiles;

/// Counter since the start of the process.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds 1.
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the count.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Number of panics, on any thread: each is a bug.
pub static PANICS: Counter = Counter(AtomicU64::new(0));

/// Lines of the access log that were dropped.
pub static ACCESS_LOG_DROPPED: Counter = Counter(AtomicU64::new(0));

/// Lines of the server's messages, on standard error, that were dropped.
pub static MESSAGES_DROPPED: Counter = Counter(AtomicU64::new(0));

/// Gauge: a number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    /// Sets the value to a time, in seconds since 1970.
    pub fn set_moment(&self, moment: Timestamp) {
        self.set(moment.as_duration().as_secs_f64());
    }

    /// Returns the value that was set last.
    #[must_use]
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// Metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    /// Requests by route and status.
    pub requests: Requests,
    /// Error responses by type.
    pub errors: Errors,
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
            errors: Errors::default(),
            limits: LimitMetrics::default(),
            connections: Arc::default(),
            tls: None,
            webhooks: Arc::default(),
            instants: Arc::default(),
            started: Timestamp::now(),
        }
    }
}

/// Cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// The request failed.
    Real,
    /// A test key requested it with `X-Simulate`; not a reason for an alert.
    Simulated,
}

/// Errors by their type.
#[derive(Debug, Default)]
pub struct Errors {
    real: [Counter; ErrorType::ALL.len()],
    simulated: [Counter; ErrorType::ALL.len()],
}

impl Errors {
    /// Returns the counter of a type's errors.
    #[must_use]
    pub fn of(&self, kind: ErrorType, cause: ErrorOrigin) -> &Counter {
        let counters = match cause {
            ErrorOrigin::Real => &self.real,
            ErrorOrigin::Simulated => &self.simulated,
        };
        &counters[kind as usize]
    }
}

/// Limit at which a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The limit of all connections.
    Full,
    /// The limit of its address.
    Address,
}

/// Kind of caller, by whether a valid key was presented with a request or on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// With a valid key.
    WithKey,
    /// Without one.
    WithoutKey,
}

/// Connections of clients.
#[derive(Debug, Default)]
pub struct Connections {
    /// Number of connections accepted.
    pub accepted: Counter,
    /// Number of failed accepts, for instance for lack of descriptors.
    pub not_accepted: Counter,
    /// Number of connections refused at the limit of all.
    refused_full: Counter,
    /// Number of connections refused at the limit of their address.
    refused_address: Counter,
    evicted_with_key: Counter,
    evicted_without_key: Counter,
    closed: Counter,
}

/// A connection, counted as open until this is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<Connections>);

impl Connections {
    /// Counts a connection as accepted and open.
    #[must_use]
    pub fn open(self: &Arc<Self>) -> OpenConnection {
        self.accepted.increment();
        OpenConnection(Arc::clone(self))
    }

    /// Returns the counter of connections refused at a limit.
    #[must_use]
    pub fn refused(&self, reason: Refusal) -> &Counter {
        match reason {
            Refusal::Full => &self.refused_full,
            Refusal::Address => &self.refused_address,
        }
    }

    /// Returns the counter of idle connections that were closed for a new one.
    #[must_use]
    pub fn evicted(&self, caller: Caller) -> &Counter {
        match caller {
            Caller::WithKey => &self.evicted_with_key,
            Caller::WithoutKey => &self.evicted_without_key,
        }
    }

    /// Returns the number of connections that are open now.
    #[must_use]
    pub fn open_now(&self) -> u64 {
        // In this order, so that a connection that closes in between doesn't make the difference negative.
        let closed = self.closed.get();
        self.accepted.get().saturating_sub(closed)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.closed.increment();
    }
}

/// TLS of clients' connections.
#[derive(Debug, Default)]
pub struct TlsMetrics {
    /// End of the certificate's validity.
    pub not_after: Gauge,
    /// Number of successful reloads.
    pub reloads: Counter,
    /// Number of failed reloads.
    pub reload_failures: Counter,
    /// Number of failed handshakes.
    pub handshake_failures: Counter,
}

/// Counters of following the store.
#[derive(Debug, Default)]
pub struct LiveMetrics {
    /// Swaps of the catalog.
    pub swaps: Swaps,
    /// Polls of the catalog.
    pub follow_catalog: Following,
    /// Polls of the keys.
    pub follow_keys: Following,
    /// Number of snapshot files not used because they were damaged.
    pub damaged_snapshot_files: Counter,
    /// Writes of the state directory's files.
    pub state_files: StateFiles,
    /// Size of the log beside an SQLite store, in bytes.
    pub store_log_bytes: Gauge,
}

/// Origin of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuild {
    /// The whole catalog in the store.
    Full,
    /// The previous snapshot and the changes since.
    Changes,
}

/// Snapshots that were swapped in.
#[derive(Debug, Default)]
pub struct Swaps {
    full: Counter,
    changes: Counter,
    /// Time from noticing the last change to its being live, in seconds.
    pub last_seconds: Gauge,
    /// Time at which the live snapshot went live.
    pub live_since: Gauge,
    /// Time from the publish of the last followed revision to its being live, in seconds; the two times come from the
    /// clocks of two machines.
    pub last_lag: Gauge,
}

impl Swaps {
    /// Counts a snapshot that was built to go live, and sets its duration.
    pub fn record(&self, rebuild: Rebuild, took: Duration) {
        self.of(rebuild).increment();
        self.last_seconds.set(took.as_secs_f64());
    }

    /// Returns the counter of swaps of a kind.
    #[must_use]
    pub fn of(&self, rebuild: Rebuild) -> &Counter {
        match rebuild {
            Rebuild::Full => &self.full,
            Rebuild::Changes => &self.changes,
        }
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
