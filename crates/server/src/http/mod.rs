//! HTTP: answers requests from memory alone.
//!
//! Endpoints are plain functions of a request's head and of what is live. Three things are waited for: a quota that servers
//! share, a long body while another thread compresses it, and, by the changes feed, a change.
//! Sockets belong to `edge`.
//!
//! # Path of a request
//!
//! `edge` accepts a connection and reads the head under its limits → `service` gives the request an id, drains its body
//! and logs → `pipeline`: authenticate → resolve (`endpoints`) → charge → respond (`response`, with a body that is
//! cached, or made and compressed).
//!
//! # Layout
//!
//! - [`routes`]: every route on one page
//! - [`error`]: errors; `error/types` has a row for each error type
//! - [`versions`]: the served API versions, each with its conversion from the newest
//! - `service`, `pipeline`, `observe`: the path of a request; `state`: what all requests share
//! - `changes_path`, [`waits`]: requests of the changes feed, and their waiting
//! - [`endpoints`]: product pages, products, texts, lists, the documentation
//! - [`request`]: headers and queries; `request/parameters` has a row for each query parameter
//! - [`access`]: clients, quotas, origins, simulated errors
//! - [`response`]: responses with their headers and entity tags
//! - [`body`]: bodies, their compression, cache and memory
//! - [`openapi`]: the document made of these tables
//! - [`access_log`]: a line for each request

pub mod access;
pub mod access_log;
pub mod body;
mod changes_path;
pub mod endpoints;
pub mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod observe;
pub mod openapi;
mod pipeline;
pub mod request;
pub mod response;
pub mod routes;
pub(crate) mod service;
mod state;
pub mod versions;
pub mod waits;

pub use access::Access;
pub use state::App;
