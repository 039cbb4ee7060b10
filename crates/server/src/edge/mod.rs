//! The edge: listening, TLS, admission, timeouts and shutdown.
//!
//! Requests are answered by `http`; this module brings them there, over HTTP/1.1 or HTTP/2, and takes the
//! answers away. `docs/edges.md` tells operators every limit and its reason.
//!
//! - [`listen`]: addresses, Unix sockets, sockets that systemd opened
//! - [`tls`]: certificates, and their reload
//! - [`server`]: the accept loop, and the end; `listeners`: what it accepts from, which ends without losing anybody
//! - `connection`: one connection, by its protocol
//! - `socket`: a socket that gives up on clients that take too long; `reading` knows what they are sending
//! - `http2`: what only HTTP/2 needs: streams that nobody takes, connections without any; `sent_body`: its bodies
//! - [`admission`]: how many connections there may be, and which is closed for another; `open`: those
//!   that count, `presence`: the use of each
//! - [`descriptors`]: how many the system lets this process have
//! - [`systemd`]: what the service manager is told

pub mod admission;
pub(crate) mod connection;
pub mod descriptors;
mod http2;
pub mod listen;
mod listeners;
mod open;
mod presence;
pub(crate) mod reading;
mod sent_body;
pub mod server;
pub(crate) mod socket;
pub mod systemd;
pub mod tls;
