//! Counters of a running server, for those who watch it.
//!
//! Rooms count here what they do; only the admin port reads it. Nothing here knows HTTP, a catalog or a
//! store. Names and labels come from tables of the program, never from a request: no path, code or key.
//!
//! - [`heartbeat`]: whether a thread still turns
//! - [`histogram`]: times, by how long they were
//! - [`limits`]: quotas, and keys that aren't valid
//! - [`mirror`]: the metrics file of `vitrine mirror`
//! - [`requests`]: what every request pays for
//! - [`text`]: Prometheus's text format
//! - [`process`]: what the system knows of the process
//!
//! # Why no library
//!
//! A request may cost a few atomic additions: no lock, no allocation, no hashing of labels. Libraries find
//! a counter by hashing its labels under a lock, or keep a summary of their own. What is left for them, the
//! text, is a hundred lines here, which `vitrine mirror` uses as well.

pub mod heartbeat;
pub mod histogram;
pub mod limits;
pub mod mirror;
pub mod process;
pub mod requests;
pub mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use vitrine_wire::error::ErrorType;

use heartbeat::Heartbeat;
use limits::LimitMetrics;
use requests::Requests;

/// Counts up, from the start of the process on.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// So many more.
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

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Sets it.
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    /// Sets it to a moment, in seconds since 1970.
    pub fn set_moment(&self, moment: Timestamp) {
        self.set(moment.as_duration().as_secs_f64());
    }

    /// Returns the value that was set last.
    #[must_use]
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// Counters of one server's requests.
#[derive(Debug)]
pub struct Metrics {
    /// Requests, answered.
    pub requests: Requests,
    /// Errors, answered.
    pub errors: Errors,
    /// Quotas, and keys that aren't valid.
    pub limits: LimitMetrics,
    /// Connections of clients.
    pub connections: Arc<Connections>,
    /// TLS of clients' connections, if there is any.
    pub tls: Option<Arc<TlsMetrics>>,
    /// Start of the process, as nearly as it knows.
    pub started: Timestamp,
}

impl Metrics {
    /// Nothing counted yet, of a server with these routes.
    #[must_use]
    pub fn new(routes: &[&'static str]) -> Self {
        Self {
            requests: Requests::new(routes),
            errors: Errors::default(),
            limits: LimitMetrics::default(),
            connections: Arc::default(),
            tls: None,
            started: Timestamp::now(),
        }
    }
}

/// Cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// It happened.
    Real,
    /// A test key asked for it with `X-Simulate`: nothing to wake anybody for.
    Simulated,
}

/// Errors by their type.
#[derive(Debug, Default)]
pub struct Errors {
    real: [Counter; ErrorType::ALL.len()],
    simulated: [Counter; ErrorType::ALL.len()],
}

impl Errors {
    /// Returns the number of errors of a type that were answered.
    #[must_use]
    pub fn of(&self, kind: ErrorType, cause: ErrorOrigin) -> &Counter {
        let counters = match cause {
            ErrorOrigin::Real => &self.real,
            ErrorOrigin::Simulated => &self.simulated,
        };
        &counters[kind as usize]
    }
}

/// Reason for which a connection is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There are as many as there may be.
    Full,
    /// There are as many from its address.
    Address,
}

/// Caller by the key it showed, with a request or on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// One was.
    WithKey,
    /// None was.
    WithoutKey,
}

/// Connections of clients.
#[derive(Debug, Default)]
pub struct Connections {
    /// Number of connections accepted.
    pub accepted: Counter,
    /// Number of connections that couldn't be accepted, for instance for want of descriptors.
    pub not_accepted: Counter,
    /// Number of connections turned away at the limit of all.
    refused_full: Counter,
    /// Number of connections turned away at the limit of their address.
    refused_address: Counter,
    evicted_with_key: Counter,
    evicted_without_key: Counter,
    closed: Counter,
}

/// A connection, counted as open until this is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<Connections>);

impl Connections {
    /// One more.
    #[must_use]
    pub fn open(self: &Arc<Self>) -> OpenConnection {
        self.accepted.increment();
        OpenConnection(Arc::clone(self))
    }

    /// Returns the number of connections turned away for a reason.
    #[must_use]
    pub fn refused(&self, reason: Refusal) -> &Counter {
        match reason {
            Refusal::Full => &self.refused_full,
            Refusal::Address => &self.refused_address,
        }
    }

    /// Connections that were closed while they were idle, for a new one.
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
        // In this order: one that closes in between must not make it negative.
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
    /// Until when the certificate may be used.
    pub not_after: Gauge,
    /// Number of successful reloads.
    pub reloads: Counter,
    /// Number of failed reloads.
    pub reload_failures: Counter,
    /// Handshakes that failed.
    pub handshake_failures: Counter,
}

/// Counters of following the store.
#[derive(Debug, Default)]
pub struct LiveMetrics {
    /// Swaps of the catalog.
    pub swaps: Swaps,
    /// Rounds of following the catalog.
    pub follow_catalog: Following,
    /// Rounds of following the keys.
    pub follow_keys: Following,
    /// Snapshot files that weren't used because they were damaged.
    pub damaged_snapshot_files: Counter,
    /// Size of the log beside an SQLite store, in bytes.
    pub store_log_bytes: Gauge,
}

/// Origin of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuild {
    /// From all that the store holds.
    Full,
    /// From the one before and what changed since.
    Changes,
}

/// Swaps of the catalog.
#[derive(Debug, Default)]
pub struct Swaps {
    full: Counter,
    changes: Counter,
    /// Duration of the last swap, from the change being noticed to its being live, in seconds.
    pub last_seconds: Gauge,
    /// Time at which the live snapshot became so.
    pub live_since: Gauge,
    /// Time from the publish of the last followed revision to its being live, in seconds, by the clocks of
    /// the two machines.
    pub last_lag: Gauge,
}

impl Swaps {
    /// A snapshot was made, to become live.
    pub fn record(&self, rebuild: Rebuild, took: Duration) {
        self.of(rebuild).increment();
        self.last_seconds.set(took.as_secs_f64());
    }

    /// Returns the number of swaps of a kind.
    #[must_use]
    pub fn of(&self, rebuild: Rebuild) -> &Counter {
        match rebuild {
            Rebuild::Full => &self.full,
            Rebuild::Changes => &self.changes,
        }
    }
}

/// Rounds of following the store.
#[derive(Debug, Default)]
pub struct Following {
    /// Rounds in which the store couldn't be read.
    pub failures: Counter,
    /// Time at which the store was last read.
    pub last_success: Gauge,
    /// Signs of life of the thread.
    pub heartbeat: Heartbeat,
    failing: AtomicBool,
}

impl Following {
    /// Takes note of a round.
    pub fn record<T, E>(&self, outcome: &Result<T, E>) {
        match outcome {
            Ok(_) => self.last_success.set_moment(Timestamp::now()),
            Err(_) => self.failures.increment(),
        }
        self.failing.store(outcome.is_err(), Ordering::Relaxed);
    }

    /// Returns true if the last round failed.
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
