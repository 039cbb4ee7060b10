//! The HTTP side: requests in, answers out, from memory alone.
//!
//! An answer is a plain function of the request's head and what is live: no handler awaits, locks or
//! calls anything out. Two things are waited for, by `service` alone: a long body that nobody asked for before, while
//! another thread makes and compresses it; and a quota that servers share. Nothing here knows sockets:
//! that is `edge`.
//!
//! # The path of a request
//!
//! `edge` accepts and reads the head under its limits → `service` gives it an id, drains its body
//! and logs → `pipeline` judges it step by step → an endpoint asks the snapshot → `response`
//! takes the body from the cache, or makes and compresses it.
//!
//! # Layout
//!
//! - [`routes`]: every route on one page
//! - [`error`]: every error with its status
//! - `service`, `pipeline`, `observe`: the path of a request; `state`: what all requests share
//! - [`endpoints`]: product pages, products, texts, lists, the documentation
//! - [`request`]: query parameters and headers as clients send them
//! - [`access`]: clients, quotas, origins, simulated errors
//! - [`response`]: responses with their headers and entity tags
//! - [`body`]: bodies, their compression, cache and memory
//! - [`openapi`]: the document made of these tables
//! - [`access_log`]: a line for each request

pub mod access;
pub mod access_log;
pub mod body;
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

pub use access::Access;
pub use state::App;
