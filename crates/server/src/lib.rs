//! The `vitrine` program as a library, so that tests can reach all modules.
//!
//! # Layout
//!
//! - [`admin`]: admin port: health and metrics
//! - [`browser`]: catalog browser on the admin port, for operators
//! - [`cli`]: commands, one file each
//! - [`instants`]: the thread that lets overrides begin and end
//! - [`limits`]: quotas shared by several servers
//! - [`live`]: live snapshot and keys, and the threads that follow the store
//! - [`edge`]: listeners, TLS, connections and their limits, shutdown
//! - [`http`]: requests and responses
//! - [`app`]: wiring of `http`, `docs` and `live`
//! - [`docs`]: documentation site
//! - [`metrics`]: metrics of a server
//! - [`web`]: assets and headers shared by all pages
//! - [`webhooks`]: deliveries to webhook endpoints
//! - `assortments`: edits of assortments
//! - `boot_time`: time since the machine started
//! - `error_chain`: error with its causes, for logs
//! - `keys`: changes of API keys
//! - `log_output`: log queues that never block
//! - `password`: passwords of operators; `times`: times as operators write them
//! - `panics`: handling of panics; [`panic_point`]: places where tests cause one

pub mod admin;
pub mod app;
mod assortments;
mod boot_time;
pub mod browser;
pub mod cli;
pub mod docs;
pub mod edge;
mod error_chain;
pub mod http;
pub mod instants;
mod keys;
pub mod limits;
pub mod live;
mod log_output;
pub mod metrics;
mod operators;
pub mod panic_point;
mod panics;
mod password;
mod times;
pub mod web;
pub mod webhooks;
