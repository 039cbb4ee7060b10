//! State that all requests share: the snapshot and keys, caches, memory for bodies, counters.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::access::Access;
use super::body::budget::{Account, Budget};
use super::body::cache::BodyCache;
use super::endpoints::Endpoints;
use super::response::resource::SendContext;
use super::waits::Waits;
use crate::live::Live;
use crate::metrics::{CacheState, Metrics};

/// State that all connections share.
#[derive(Debug)]
pub struct App {
    /// The snapshot and the keys.
    pub live: Arc<Live>,
    /// Limits and trust settings.
    pub access: Access,
    /// Parts that resources are made of.
    pub endpoints: Endpoints,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// True while the server shuts down: it takes no new connections and closes open ones after their next answer.
    pub draining: Arc<AtomicBool>,
    /// Requests that wait for changes.
    pub waits: Waits,
    /// Cache of bodies.
    pub(crate) bodies: BodyCache,
    /// Memory for bodies that are being sent.
    pub(crate) budget: Budget,
    /// The zero of the clock that quotas are kept by.
    pub(crate) started: Instant,
}

impl App {
    /// Creates an application over a snapshot and keys. `cache_bytes` is the memory for cached bodies.
    #[must_use]
    pub fn new(
        live: Arc<Live>,
        metrics: Arc<Metrics>,
        endpoints: Endpoints,
        cache_bytes: u64,
    ) -> Self {
        Self {
            live,
            access: Access::default(),
            endpoints,
            metrics,
            draining: Arc::default(),
            waits: Waits::default(),
            bodies: BodyCache::new(cache_bytes),
            budget: Budget::default(),
            started: Instant::now(),
        }
    }

    /// Returns the memory for an answer over a connection, on the account of its key if the request has one.
    pub(crate) fn send_context<'a>(
        &'a self,
        key: Option<&'a Account>,
        connection: &'a Account,
    ) -> SendContext<'a> {
        SendContext {
            cache: &self.bodies,
            budget: &self.budget,
            payer: self.budget.payer(key, connection),
        }
    }

    /// Requests refused because of overload, by what there was too much of.
    #[must_use]
    pub fn requests_shed(&self) -> [(&'static str, u64); 3] {
        [
            ("compression", self.bodies.shed.get()),
            ("html", self.endpoints.html.shed.get()),
            ("memory", self.budget.refused.get()),
        ]
    }

    /// Memory reserved for bodies that are being sent, in bytes.
    #[must_use]
    pub fn sending_bytes(&self) -> u64 {
        self.budget.reserved_bytes()
    }

    /// The caches by name.
    #[must_use]
    pub fn caches(&self) -> [(&'static str, CacheState); 3] {
        let [compressed, plain] = self.bodies.states();
        [
            compressed,
            plain,
            ("html", self.endpoints.html.cache_state()),
        ]
    }
}
