//! The HTTP side: requests in, answers out, from memory alone.
//!
//! An answer is a plain function of the request's head and what is live: no handler awaits, locks or
//! calls anything out. Only a long body that nobody asked for before is waited for, while another
//! thread compresses it. Only `server` and `connection` know sockets.
//!
//! # The way of a request
//!
//! `server` accepts → `connection` reads the head under its limits → `service` gives it an id, drains
//! its body and logs → `pipeline` judges it step by step → a handler asks the snapshot → `answer`
//! takes the body from the `body_cache`, or makes and compresses it.
//!
//! - [`routes`]: every route on one page
//! - [`parameters`]: every query parameter, and how it is read
//! - [`error`]: every error with its status
//! - [`openapi`]: the document made of those tables

pub mod access_log;
pub mod answer;
pub mod body;
mod body_cache;
pub mod compress;
pub mod conditional;
mod connection;
pub mod encoding;
pub mod error;
mod handlers;
pub mod html;
pub mod openapi;
pub mod parameters;
mod pipeline;
mod quota;
mod ready;
pub mod routes;
pub mod server;
mod service;
mod texts;

use std::sync::Arc;
use std::time::Instant;

use crate::live::Live;

/// What answers are made of: shared by all connections.
#[derive(Debug)]
pub struct App {
    /// The snapshot and the keys.
    pub live: Arc<Live>,
    /// Renders Markdown.
    html: html::HtmlRenderer,
    /// What was sent before and may be asked for again.
    bodies: body_cache::BodyCache,
    /// What is the same for every request of a revision.
    ready: ready::Ready,
    /// The zero of the clock that quotas are kept by.
    started: Instant,
}

impl App {
    /// An application over what is live; `cache_bytes` is how much memory kept bodies may take.
    #[must_use]
    pub fn new(live: Arc<Live>, cache_bytes: u64) -> Self {
        Self {
            live,
            html: html::HtmlRenderer::new(),
            bodies: body_cache::BodyCache::new(cache_bytes),
            ready: ready::Ready::default(),
            started: Instant::now(),
        }
    }
}
