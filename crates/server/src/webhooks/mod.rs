//! Webhooks: endpoints are sent changes, in order, until they acknowledge them (docs/contract/webhooks.md).
//!
//! An endpoint is a durable reader of the changes feed. Its deliverer, one of perhaps many, has a thread of its own: requests of
//! clients never wait for it.
//!
//! - `work`: the deliverer's loop, over an `entry` for each endpoint; `attempt`: an attempt, from the lease to its outcome
//! - `event`: what an endpoint is sent; `updates`: that of the format `product.update`, from its `place`, with the `state` of
//!   products
//! - `schedule`: pauses between attempts; `hosts`: turns of endpoints at their host
//! - `position`: positions for new endpoints and replays; `seen`: those of the catalog; `gauges`: metrics
//! - `secret`: the key file and signatures; `sender`: requests to receivers; `listen`: a receiver for trying things out

mod attempt;
mod entry;
mod event;
mod gauges;
mod hosts;
pub mod listen;
mod place;
mod position;
mod schedule;
pub mod secret;
mod seen;
pub mod sender;
mod state;
mod updates;
mod work;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::bail;
use ipnet::IpNet;
use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::watch;
use vitrine_model::key::KeyRecord;
use vitrine_store::Store;
use vitrine_store::webhooks::Endpoint;

use crate::http::request::parameters;
use crate::live::{Live, lower_priority};
use crate::metrics::table::WebhookMetrics;
use crate::panics::caught;
pub use position::{has_changes_since, position_now, replay_position};
use sender::Sender;
use work::Work;

/// Pause after a panic, which is likely to repeat.
const PAUSE_AFTER_PANIC: Duration = Duration::from_secs(5);

/// Maximum number of attempts in flight. Receivers that hang take one each, for 15 s.
const MAX_IN_FLIGHT: usize = 512;

/// Maximum number of sockets: of attempts in flight, and as many that are idle.
pub const MAX_SOCKETS: usize = 2 * MAX_IN_FLIGHT;

/// Settings of a deliverer.
pub struct DelivererSettings {
    /// Store of the endpoints, with connections that nobody else uses.
    pub store: Arc<Store>,
    /// Public URL of the service, without `/v2`.
    pub public_url: String,
    /// File from which secrets are derived.
    pub key_file: PathBuf,
    /// Private networks that may be sent to.
    pub networks: Vec<IpNet>,
    /// True in a server: attempts begin at a pace that its clients' requests don't wait for.
    pub is_paced: bool,
    /// Maximum number of sockets, at most [`MAX_SOCKETS`].
    pub sockets: usize,
}

impl DelivererSettings {
    /// Returns the maximum number of attempts in flight.
    fn max_in_flight(&self) -> usize {
        (self.sockets / 2).max(1)
    }

    /// Returns the maximum number of attempts in flight at endpoints whose last attempt failed. The other places are kept
    /// for those that don't fail.
    fn max_failing(&self) -> usize {
        (self.max_in_flight() / 4).max(1)
    }
}

impl fmt::Debug for DelivererSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (formatter.debug_struct("DelivererSettings"))
            .field("public_url", &self.public_url)
            .field("key_file", &self.key_file)
            .field("networks", &self.networks)
            .field("is_paced", &self.is_paced)
            .field("sockets", &self.sockets)
            .finish_non_exhaustive()
    }
}

/// Refuses an endpoint that ended with its key.
///
/// # Errors
///
/// If its key isn't accepted any more, or the store can't be read.
pub(crate) fn require_key(store: &Store, endpoint: &Endpoint) -> anyhow::Result<()> {
    let (key, now) = (&endpoint.key, Timestamp::now());
    let is_active = |record: &KeyRecord| record.prefix == *key && record.is_active(now);
    if !store.keys()?.iter().any(is_active) {
        bail!("its key {key} was revoked or has expired, and the endpoint ended with it");
    }
    Ok(())
}

/// Parts that a deliverer works with.
struct Shared {
    live: Arc<Live>,
    metrics: Arc<WebhookMetrics>,
    settings: DelivererSettings,
    sender: Sender,
    /// Runtime whose one thread calls the store.
    store_calls: Handle,
}

/// A running deliverer. Dropping it ends attempts in flight, after a short time, and their leases.
#[derive(Debug)]
pub struct Deliverer {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Deliverer {
    /// Starts to deliver what `live` shows to the endpoints of a store.
    ///
    /// # Errors
    ///
    /// If TLS or the thread can't be set up.
    pub fn start(
        live: &Arc<Live>,
        metrics: &Arc<WebhookMetrics>,
        settings: DelivererSettings,
    ) -> anyhow::Result<Self> {
        // A thread of their own: lookups of names by the system, which take as long as somebody's name servers want, would
        // hold up outcomes and leases.
        let store_calls = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_IN_FLIGHT)
            .build()?;
        let shared = Arc::new(Shared {
            live: Arc::clone(live),
            metrics: Arc::clone(metrics),
            sender: Sender::new(&settings.networks, settings.max_in_flight())?,
            settings,
            store_calls: store_calls.handle().clone(),
        });
        let (stop, stopped) = watch::channel(false);
        let run = move || {
            lower_priority();
            while !*stopped.borrow() {
                let mut work = Work::new(Arc::clone(&shared));
                let ended = caught(|| runtime.block_on(work.run(stopped.clone())));
                if ended.is_err() {
                    // Leases of its attempts end by themselves.
                    let mut stopped = stopped.clone();
                    let pause =
                        async { tokio::time::timeout(PAUSE_AFTER_PANIC, stopped.changed()).await };
                    let _ = runtime.block_on(pause);
                }
            }
            runtime.shutdown_background();
            store_calls.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("webhooks".to_owned());
        Ok(Self {
            stop,
            thread: Some(thread.spawn(run)?),
        })
    }
}

impl Drop for Deliverer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the webhooks' thread panicked");
        }
    }
}

/// Checks the filters of an endpoint, a query string.
///
/// # Errors
///
/// If one is refused: what is wrong.
pub fn check_filters(filters: &str) -> Result<(), String> {
    let query = Some(filters).filter(|filters| !filters.is_empty());
    let checked = parameters::changes(query);
    checked.map(drop).map_err(|error| {
        let details = error.details.into_iter().map(|fault| fault.message);
        let details: Vec<String> = details.collect();
        format!("{}: {}", error.message, details.join("; "))
    })
}
