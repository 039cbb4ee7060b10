//! Quotas shared by several servers, in a Redis (or Valkey): the only thing outside this process that a request may
//! wait for, and never for long.
//!
//! One script charges a quota, in one round trip. A circuit breaker stands in front of it: while Redis doesn't respond,
//! each server limits by its own counts, without waiting, and a task tries to reconnect. So an unreachable Redis costs
//! a few requests 20 ms each.
//!
//! - `address`: the address of that Redis
//! - `backoff`: pauses between attempts to connect
//! - `script`: the script that charges a quota

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

use crate::metrics::table::{Breaker, LimitFailure, SharedMetrics};
use backoff::Backoff;
use script::Script;

pub use address::Address;

/// Time limit of a charge in Redis.
const REPLY_TIMEOUT: Duration = Duration::from_millis(20);
/// Number of consecutive timeouts that open the breaker. More than one, because Redis may pause for a moment, and a
/// server alone limits less exactly.
const MAX_LATE_REPLIES: u32 = 3;
/// Time limit of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of queued commands.
const QUEUE: usize = 1024;

/// Shared quotas of keys.
#[derive(Debug)]
pub struct SharedLimits {
    address: Address,
    /// `None` while the breaker is open.
    connection: ArcSwapOption<Connection>,
    /// Wakes the task that reconnects.
    opened: Notify,
    /// Counters of requests to Redis.
    pub metrics: SharedMetrics,
}

/// A connection that works as far as known.
struct Connection {
    link: MultiplexedConnection,
    script: Script,
    /// Number of consecutive timeouts.
    overdue: AtomicU32,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Reason for which the breaker opens.
#[derive(Debug, thiserror::Error)]
enum ConnectionFault {
    #[error("timeout")]
    Late,
    #[error(transparent)]
    Failed(#[from] RedisError),
}

impl SharedLimits {
    /// Returns shared quotas at this address, not connected yet.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self {
            address,
            connection: ArcSwapOption::empty(),
            opened: Notify::new(),
            metrics: SharedMetrics::default(),
        }
    }

    /// Tries to connect once, then starts a task that reconnects for as long as the runtime lives. A failure isn't an
    /// error: the server answers without shared quotas.
    pub async fn start(self: &Arc<Self>) {
        let first = self.connect().await;
        let limits = Arc::clone(self);
        tokio::spawn(async move { limits.stay_connected(first).await });
    }

    /// Returns true if the breaker is closed, so that Redis is used.
    #[must_use]
    pub fn are_reachable(&self) -> bool {
        self.connection.load().is_some()
    }

    /// Charges one request to the quota of the key with this prefix. `None` if Redis doesn't answer in time: then the
    /// server's own count decides.
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
                self.metrics.failures.of(LimitFailure::Error).increment();
                self.open(&connection, &error.into());
            }
            Err(_) => {
                self.metrics.failures.of(LimitFailure::Timeout).increment();
                if overdue.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_LATE_REPLIES {
                    self.open(&connection, &ConnectionFault::Late);
                }
            }
        }
        None
    }

    /// Opens the breaker, if this connection is still the current one: only the first request that finds a fault logs
    /// it.
    fn open(&self, faulty: &Option<Arc<Connection>>, fault: &ConnectionFault) {
        let before = self.connection.compare_and_swap(faulty, None);
        let was_first = match (before.as_ref(), faulty) {
            (Some(before), Some(faulty)) => Arc::ptr_eq(before, faulty),
            _ => false,
        };
        if was_first {
            self.metrics.transitions.of(Breaker::Open).increment();
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
                    self.metrics.transitions.of(Breaker::Closed).increment();
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
            // Jitter, so that servers that lost Redis together don't reconnect together.
            tokio::time::sleep(jitter::slight(backoff.take())).await;
            attempt = self.connect().await;
        }
    }

    /// Connects, and checks that the script works within the time limit of a request.
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
