//! State that all requests share: the snapshot and keys, caches, memory for bodies, counters.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::access::Access;
use super::body::budget::{Account, Budget};
use super::body::cache::BodyCache;
use super::endpoints::html::HtmlRenderer;
use super::endpoints::precomputed::{Document, Ready};
use super::endpoints::site::Site;
use super::response::resource::SendContext;
use crate::live::Live;
use crate::metrics::{CacheState, Metrics};
use crate::traces::Traces;
use crate::view::TextAddresses;

/// State that all connections share.
#[derive(Debug)]
pub struct App {
    /// The snapshot and the keys.
    pub live: Arc<Live>,
    /// How often who may ask.
    pub access: Access,
    /// Where clients find texts.
    pub(crate) addresses: TextAddresses,
    /// The documentation.
    pub(crate) site: Site,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Where spans of requests go; nowhere at first.
    pub traces: Traces,
    /// Whether the server is ending: it takes no new connections, and says goodbye on open ones.
    pub draining: Arc<AtomicBool>,
    /// Renders Markdown.
    pub(crate) html: HtmlRenderer,
    /// What was sent before and may be asked for again.
    pub(crate) bodies: BodyCache,
    /// Memory for bodies that are being sent.
    pub(crate) budget: Budget,
    /// What is the same for every request of a revision.
    pub(crate) ready: Ready,
    /// The OpenAPI document.
    pub(crate) document: Document,
    /// The zero of the clock that quotas are kept by.
    pub(crate) started: Instant,
}

impl App {
    /// An application over what is live, whose texts clients find at `addresses`; `cache_bytes` is how much
    /// memory kept bodies may take.
    #[must_use]
    pub fn new(
        live: Arc<Live>,
        metrics: Arc<Metrics>,
        addresses: TextAddresses,
        cache_bytes: u64,
    ) -> Self {
        Self {
            live,
            access: Access::default(),
            site: Site::new(addresses.public_url()),
            addresses,
            metrics,
            traces: Traces::default(),
            draining: Arc::default(),
            html: HtmlRenderer::new(),
            bodies: BodyCache::new(cache_bytes),
            budget: Budget::default(),
            ready: Ready::default(),
            document: Document::default(),
            started: Instant::now(),
        }
    }

    /// With these limits.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Memory for an answer to a key, if the request bears one, over a connection.
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
    pub fn requests_shed(&self) -> [(&'static str, u64); 2] {
        [
            ("compression", self.bodies.shed.get()),
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
        [compressed, plain, ("html", self.html.cache_state())]
    }
}
