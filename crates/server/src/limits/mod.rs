//! Quotas that several servers share, kept in a Redis (or Valkey): the one thing that a request may wait for
//! beside memory, and never for long.
//!
//! One script takes a request off a quota, in one round trip. A circuit breaker stands in front of it: if
//! Redis doesn't answer, servers limit by what they know themselves, at once and without waiting, and a task of its own
//! looks when Redis is back. So a Redis that is gone or hangs costs a few requests 20 ms each, and no more.
//!
//! - `address`: the address of that Redis
//! - `backoff`: how long it takes until it is tried again
//! - `script`: what is asked of it

mod address;
mod backoff;
mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use tokio::sync::Notify;
use tokio::time::timeout;
use vitrine_ingest::jitter;
use vitrine_model::quota::{Quota, Taken};

use crate::metrics::limits::{Breaker, SharedMetrics};
use backoff::Backoff;
use script::Script;

pub use address::Address;

/// Maximum time that a request waits for Redis.
const REPLY_TIMEOUT: Duration = Duration::from_millis(20);
/// Number of late answers in a row that open the breaker. More than one: Redis may pause for a moment, and a
/// server limits less well alone.
const MAX_LATE_REPLIES: u32 = 3;
/// Maximum time for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of requests that wait to be written to Redis's socket.
const QUEUE: usize = 1024;

/// The quotas of a fleet's keys.
#[derive(Debug)]
pub struct SharedLimits {
    address: Address,
    /// None while the breaker is open.
    connection: ArcSwapOption<Connection>,
    /// Wakes the task that connects again.
    opened: Notify,
    /// Counters of requests to Redis.
    pub metrics: SharedMetrics,
}

/// A connection that is good as far as anybody knows.
struct Connection {
    link: MultiplexedConnection,
    script: Script,
    /// Number of late answers in a row.
    overdue: AtomicU32,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Fault of a connection.
#[derive(Debug, thiserror::Error)]
enum ConnectionFault {
    #[error("timeout")]
    Late,
    #[error(transparent)]
    Failed(#[from] RedisError),
}

impl SharedLimits {
    /// Limits kept at this address, of which nothing is known yet.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self {
            address,
            connection: ArcSwapOption::empty(),
            opened: Notify::new(),
            metrics: SharedMetrics::default(),
        }
    }

    /// Tries to connect once, and goes on trying in a task of its own, which lives as long as the runtime. Who can't
    /// connect serves all the same: reads depend on nothing.
    pub async fn start(self: &Arc<Self>) {
        let first = self.connect().await;
        let limits = Arc::clone(self);
        tokio::spawn(async move { limits.stay_connected(first).await });
    }

    /// Returns true if the breaker is closed: Redis is asked.
    #[must_use]
    pub fn are_reachable(&self) -> bool {
        self.connection.load().is_some()
    }

    /// Takes one request off the quota of the key with this prefix. None if Redis doesn't answer in time: the
    /// server limits by what it knows itself then.
    pub async fn take(&self, prefix: &str, quota: Quota) -> Option<Taken> {
        let connection = self.connection.load_full();
        let Connection {
            link,
            script,
            overdue,
        } = connection.as_deref()?;
        let asked = Instant::now();
        let answer = timeout(REPLY_TIMEOUT, script.take(&mut link.clone(), prefix, quota)).await;
        self.metrics.round_trips.observe(asked.elapsed());
        match answer {
            Ok(Ok(taken)) => {
                overdue.store(0, Ordering::Relaxed);
                return Some(taken);
            }
            Ok(Err(error)) => {
                self.metrics.failures.increment();
                self.open(&connection, &error.into());
            }
            Err(_) => {
                self.metrics.timeouts.increment();
                if overdue.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_LATE_REPLIES {
                    self.open(&connection, &ConnectionFault::Late);
                }
            }
        }
        None
    }

    /// Opens the breaker, if this connection is still the one that is used: only the first who finds a
    /// fault says so.
    fn open(&self, faulty: &Option<Arc<Connection>>, fault: &ConnectionFault) {
        let before = self.connection.compare_and_swap(faulty, None);
        let was_first = match (before.as_ref(), faulty) {
            (Some(before), Some(faulty)) => Arc::ptr_eq(before, faulty),
            _ => false,
        };
        if was_first {
            self.metrics.transitions(Breaker::Open).increment();
            tracing::warn!(redis = %self.address, %fault, "shared limits: Redis fails; each server limits by itself");
            self.opened.notify_one();
        }
    }

    async fn stay_connected(&self, first: Result<Connection, ConnectionFault>) {
        let mut backoff = Backoff::new();
        let mut attempt = first;
        let mut is_told = false;
        loop {
            match attempt {
                Ok(connection) => {
                    let since = Instant::now();
                    self.metrics.transitions(Breaker::Closed).increment();
                    tracing::info!(redis = %self.address, "shared limits: Redis answers; servers limit together again");
                    is_told = true;
                    self.connection.store(Some(Arc::new(connection)));
                    self.opened.notified().await;
                    backoff.was_connected(since.elapsed());
                }
                Err(fault) if !is_told => {
                    is_told = true;
                    tracing::warn!(redis = %self.address, %fault, "shared limits: Redis can't be used; each server \
                         limits by itself");
                }
                Err(_) => {}
            }
            // Servers that lost Redis together come back apart.
            tokio::time::sleep(jitter::slight(backoff.take())).await;
            attempt = self.connect().await;
        }
    }

    /// A connection over which the script works, as fast as requests need it.
    async fn connect(&self) -> Result<Connection, ConnectionFault> {
        let attempt = async {
            let client = Client::open(self.address.connection())?;
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(None)
                .set_response_timeout(None)
                .set_pipeline_buffer_size(QUEUE);
            let mut link = client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            let script = Script::load(&mut link).await?;
            Ok::<_, RedisError>((link, script))
        };
        let late = |_| ConnectionFault::Late;
        let (mut link, script) = timeout(CONNECT_TIMEOUT, attempt).await.map_err(late)??;
        timeout(REPLY_TIMEOUT, script.probe(&mut link))
            .await
            .map_err(late)??;
        Ok(Connection {
            link,
            script,
            overdue: AtomicU32::new(0),
        })
    }
}
