//! The HTTP side: requests in, answers out, from memory alone.
//!
//! An answer is a plain function of the request's head and what is live: no handler awaits, locks or
//! calls anything out. Only `server` and `connection` know sockets.
//!
//! # The way of a request
//!
//! `server` accepts → `connection` reads the head under its limits → `service` gives it an id, drains
//! its body and logs → `pipeline` judges it step by step → a handler asks the snapshot → `answer`
//! makes the bytes.
//!
//! - [`routes`]: every route on one page
//! - [`parameters`]: every query parameter, and how it is read
//! - [`error`]: every error with its status
//! - [`openapi`]: the document made of those tables

pub mod access_log;
pub mod answer;
pub mod conditional;
mod connection;
pub mod error;
mod handlers;
pub mod html;
pub mod openapi;
pub mod parameters;
mod pipeline;
mod quota;
pub mod routes;
pub mod server;
mod service;

use std::sync::Arc;
use std::time::Instant;

use crate::live::Live;
use crate::view::TextAddresses;

/// What answers are made of: shared by all connections.
#[derive(Debug)]
pub struct App {
    /// The snapshot and the keys.
    pub live: Arc<Live>,
    /// Where clients find texts.
    addresses: TextAddresses,
    /// Renders Markdown.
    html: html::HtmlRenderer,
    /// The zero of the clock that quotas are kept by.
    started: Instant,
}

impl App {
    /// An application over what is live, whose texts clients find at `addresses`.
    #[must_use]
    pub fn new(live: Arc<Live>, addresses: TextAddresses) -> Self {
        Self {
            live,
            addresses,
            html: html::HtmlRenderer::new(),
            started: Instant::now(),
        }
    }
}
