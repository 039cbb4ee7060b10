//! The `vitrine` program as a library, so that its tests can reach every room.
//!
//! # Layout
//!
//! - [`admin`]: the port for those who watch a server
//! - [`browser`]: pages on that port for the people who look after a catalog
//! - [`cli`]: the commands, one file each
//! - [`load`]: from files to a revision: read, check, apply
//! - [`fetch`]: texts that are known by outside addresses, brought into the store
//! - [`escape`]: what would steer a terminal
//! - [`export`]: from stored products back to records
//! - [`mirror`]: the catalog of another server, made the store's
//! - [`outside`]: the clients that ask other servers; `text_spool`: where texts from there wait
//! - [`view`]: where the model and the wire meet
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
//! - `jitter`: chance in pauses
//! - `log_output`: log lines, queued and written without blocking anybody
//! - `panics`: what becomes of them; [`panic_point`]: where tests let a thread panic

pub mod admin;
pub mod app;
pub mod browser;
pub mod cli;
pub mod docs;
pub mod edge;
mod error_chain;
pub mod escape;
pub mod export;
pub mod fetch;
pub mod http;
mod jitter;
pub mod limits;
pub mod live;
pub mod load;
mod log_output;
pub mod metrics;
pub mod mirror;
pub mod outside;
pub mod panic_point;
mod panics;
mod text_spool;
pub mod traces;
pub mod view;
pub mod web;
