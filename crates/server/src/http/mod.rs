//! HTTP: answers requests from memory alone.
//!
//! Endpoints are plain functions of a request's head and the live snapshot. Requests await three things
//! only: a shared quota, a long body that another thread compresses, and, in the changes feed, a change. Sockets belong to
//! `edge`.
//!
//! # Path of a request
//!
//! `edge` accepts a connection and reads the head under its limits → `service` assigns the request id, drains the body
//! and logs → `pipeline`: authenticate → resolve (`endpoints`) → charge → respond (`response`, with a body that is
//! cached, or made and compressed).
//!
//! # Layout
//!
//! - [`routes`]: table of all routes
//! - [`error`]: errors; `error/types` has a row for each error type
//! - [`versions`]: the served API versions, each with its differences; `discounts`: the form of discounts that a response shows;
//!   `visible`: what a key is shown
//! - `service`, `pipeline`, `observe`: path of a request; `connection`: what it uses of its connection; `state`: state that all
//!   requests share
//! - `changes_path`, [`waits`]: path of the changes feed, and its waiting requests, which share `verdicts`
//! - [`endpoints`]: product pages, products, texts, lists, the documentation
//! - [`request`]: headers and queries; `request/parameters` has a row for each query parameter
//! - [`access`]: authentication, quotas, client addresses, CORS, simulated errors
//! - [`response`]: responses with their headers and entity tags
//! - [`body`]: bodies, their compression, cache and memory
//! - [`openapi`]: the OpenAPI documents
//! - [`access_log`]: a line for each request

pub mod access;
pub mod access_log;
pub mod body;
mod changes_path;
pub(crate) mod connection;
pub(crate) mod discounts;
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
mod verdicts;
pub mod versions;
mod visible;
pub mod waits;

pub use access::Access;
pub use state::App;
