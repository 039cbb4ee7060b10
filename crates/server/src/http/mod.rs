//! The HTTP side: requests in, answers out, from memory alone.
//!
//! An answer is a plain function of the request's head and what is live: no handler awaits, locks or
//! calls anything out. Two things are waited for, by `service` alone: a long body that nobody asked for before, while
//! another thread makes and compresses it; and a quota that servers share. Nothing here knows sockets:
//! that is `edge`.
//!
//! # The way of a request
//!
//! `edge` accepts and reads the head under its limits → `service` gives it an id, drains its body
//! and logs → `pipeline` judges it step by step → a handler asks the snapshot → `answer`
//! takes the body from the `body_cache`, or makes and compresses it.
//!
//! - [`routes`]: every route on one page
//! - [`parameters`]: every query parameter, and how it is read
//! - [`error`]: every error with its status
//! - [`openapi`]: the document made of those tables

mod accept;
pub mod access_log;
pub mod answer;
pub mod body;
mod body_cache;
pub(crate) mod budget;
pub mod client;
pub mod compress;
pub mod conditional;
pub mod cors;
pub mod encoding;
pub mod error;
pub mod failed_keys;
mod fair_queue;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handlers;
mod host;
pub mod html;
mod observe;
pub mod openapi;
mod pages;
pub mod parameters;
mod piece;
mod pipeline;
pub(crate) mod query;
mod quota;
mod ready;
pub(crate) mod request_id;
pub mod resource;
pub mod routes;
pub(crate) mod service;
mod simulation;
mod site;
mod texts;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::limits::SharedLimits;
use crate::live::Live;
use crate::metrics::{CacheState, Metrics};
use crate::traces::Traces;
use crate::view::TextAddresses;

/// How often who may ask, and who that is. By default only the quotas of keys count, for this server alone.
#[derive(Debug, Default)]
pub struct Access {
    /// Where quotas are shared with other servers.
    pub shared: Option<Arc<SharedLimits>>,
    /// The counts of keys that aren't valid.
    pub failed_keys: failed_keys::FailedKeys,
    /// Whose word is taken for a client's address.
    pub proxies: client::Proxies,
    /// The origins whose pages may read what needs a key.
    pub cors: Arc<cors::Cors>,
}

/// What answers are made of: shared by all connections.
#[derive(Debug)]
pub struct App {
    /// The snapshot and the keys.
    pub live: Arc<Live>,
    /// How often who may ask.
    pub access: Access,
    /// Where clients find texts.
    pub(crate) addresses: TextAddresses,
    /// The documentation.
    site: site::Site,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Where spans of requests go; nowhere at first.
    pub traces: Traces,
    /// Whether the server is ending: it takes no new connections, and says goodbye on open ones.
    pub draining: Arc<AtomicBool>,
    /// Renders Markdown.
    pub(crate) html: html::HtmlRenderer,
    /// What was sent before and may be asked for again.
    bodies: body_cache::BodyCache,
    /// Memory for bodies that are being sent.
    budget: budget::Budget,
    /// What is the same for every request of a revision.
    ready: ready::Ready,
    /// The OpenAPI document.
    document: ready::Document,
    /// The zero of the clock that quotas are kept by.
    started: Instant,
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
            site: site::Site::new(addresses.public_url()),
            addresses,
            metrics,
            traces: Traces::default(),
            draining: Arc::default(),
            html: html::HtmlRenderer::new(),
            bodies: body_cache::BodyCache::new(cache_bytes),
            budget: budget::Budget::default(),
            ready: ready::Ready::default(),
            document: ready::Document::default(),
            started: Instant::now(),
        }
    }

    /// With these limits.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Memory for an answer to a key, if the request bears one, over a connection.
    fn send_context<'a>(
        &'a self,
        key: Option<&'a budget::Account>,
        connection: &'a budget::Account,
    ) -> resource::SendContext<'a> {
        resource::SendContext {
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
