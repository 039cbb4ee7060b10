//! The edge: listening, TLS, admission, timeouts, shutdown.
//!
//! It brings requests to `http` over HTTP/1.1 or HTTP/2, and sends the responses. `docs/operate/configuration.md` lists all limits.
//!
//! - [`listen`]: addresses, Unix sockets, sockets that systemd opened
//! - [`tls`]: certificates and their reload
//! - [`server`]: accept loop and shutdown; `listeners`: the listeners, which close without losing connections
//! - `connection`: one connection of either protocol; `http1`: of HTTP/1.1
//! - `socket`: time limits for reading and writing; `reading`: read deadlines of HTTP/1.1
//! - `http2`: time limit of the streams of HTTP/2; `sent_body`: their bodies
//! - [`admission`]: limits of connections, and which one is closed for another; `limits`: their numbers; `presence`: use of one
//!   connection
//! - [`descriptors`]: limit of file descriptors
//! - [`systemd`]: messages to the service manager

pub mod admission;
pub(crate) mod connection;
pub mod descriptors;
pub(crate) mod http1;
mod http2;
mod limits;
pub mod listen;
mod listeners;
pub(crate) mod presence;
pub(crate) mod reading;
mod sent_body;
pub mod server;
pub(crate) mod socket;
pub mod systemd;
pub mod tls;
