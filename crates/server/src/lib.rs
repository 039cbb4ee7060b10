//! The `vitrine` program as a library, so that its tests can reach every room.
//!
//! # Layout
//!
//! - [`admin`]: the port for those who watch a server
//! - [`browser`]: pages on that port for the people who look after a catalog
//! - [`cli`]: the commands, one file each
//! - [`limits`]: quotas that several servers share
//! - [`live`]: the snapshot and the keys that requests read
//! - [`edge`]: where clients connect: listening, TLS, limits, the end
//! - [`http`]: requests and answers
//! - [`app`]: joins `http`, `docs` and what is live
//! - [`docs`]: the documentation site
//! - [`metrics`]: what a running server counts
//! - [`web`]: what all pages for people share
//! - [`traces`]: spans of requests for an OpenTelemetry collector
//! - `error_chain`: an error with its causes, for logs
//! - `log_output`: log lines, queued and written without blocking anybody
//! - `panics`: what becomes of them; [`panic_point`]: where tests let a thread panic

pub mod admin;
pub mod app;
pub mod browser;
pub mod cli;
pub mod docs;
pub mod edge;
mod error_chain;
pub mod http;
pub mod limits;
pub mod live;
mod log_output;
pub mod metrics;
pub mod panic_point;
mod panics;
pub mod traces;
pub mod web;
