//! Requests that wait apart from their connection's protocol: a parser and buffers would take several times the memory of
//! a wait. The request's head is read again afterwards.

use std::fmt;
use std::time::{Duration, Instant};

use http::HeaderValue;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;

use super::body::budget::Account;
use super::changes_path::Waited;
use super::waits::Wait;
use crate::metrics::table::Caller;

/// State of the connection after the response: open or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepAlive {
    Yes,
    No,
}

/// Possibility to park a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CanPark {
    Never,
    /// Not before the response before it is sent.
    Later,
    Now,
}

/// Interval at which it is checked whether a request can be parked.
const PARK_PAUSE: Duration = Duration::from_millis(100);

/// Connection of a request.
pub(crate) trait Connection: fmt::Debug + Sync {
    /// Returns the memory account.
    fn account(&self) -> &Account;

    /// Records the caller of a request, once it is known.
    fn note(&self, _caller: Caller) {}

    /// Returns the state after the response.
    fn keep_alive(&self) -> KeepAlive {
        KeepAlive::Yes
    }

    /// Returns whether a request can be parked.
    fn parking(&self) -> CanPark {
        CanPark::Never
    }
}

/// Waits until a request can be parked, and returns true; false if it can't until then.
pub(super) async fn can_park(connection: &dyn Connection, until: tokio::time::Instant) -> bool {
    loop {
        match connection.parking() {
            CanPark::Now => return true,
            CanPark::Never => return false,
            CanPark::Later if tokio::time::Instant::now() >= until => return false,
            // Its client must read the response before first.
            CanPark::Later => tokio::time::sleep(PARK_PAUSE).await,
        }
    }
}

/// A connection that nothing else is known of.
impl Connection for Account {
    fn account(&self) -> &Account {
        self
    }
}

/// A wait of a request that is to be parked, and results of its earlier ones.
pub(super) struct ParkedWait {
    pub(super) wait: Wait,
    pub(super) waited: Waited,
}

/// A request that waits, and the head from which it goes on.
#[derive(Debug, thiserror::Error)]
#[error("the request is parked")]
pub(crate) struct Parked {
    pub(super) wait: Wait,
    head: Vec<u8>,
    resumed: Resumed,
}

/// A request that goes on after its wait.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(super) started: Instant,
    pub(super) id: HeaderValue,
    /// Time for which it waited.
    pub(super) wait_time: Duration,
    /// Results of its waits; none after a panic.
    pub(super) waited: Option<Waited>,
}

impl Parked {
    /// Parks a request. Nothing refers to the memory that it was read to.
    pub(super) fn new(
        ParkedWait { wait, waited }: ParkedWait,
        request: &Parts,
        id: &HeaderValue,
        started: Instant,
        wait_time: Duration,
    ) -> Self {
        Self {
            wait,
            head: head(request),
            resumed: Resumed {
                started,
                // It is valid, since it is one.
                id: HeaderValue::from_bytes(id.as_bytes()).unwrap_or_else(|_| id.clone()),
                wait_time,
                waited: Some(waited),
            },
        }
    }

    /// Splits it into the wait, and what remains of it afterwards.
    pub(super) fn into_parts(self) -> (Wait, Vec<u8>, Resumed) {
        (self.wait, self.head, self.resumed)
    }
}

/// Returns the bytes of a head, without a body: that was read and dropped.
fn head(request: &Parts) -> Vec<u8> {
    let (method, uri, version) = (&request.method, &request.uri, request.version);
    let mut head = format!("{method} {uri} {version:?}\r\n").into_bytes();
    for (name, value) in &request.headers {
        if [CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
            continue;
        }
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    if request.headers.contains_key(TRANSFER_ENCODING) {
        // The connection closes after a chunked body.
        head.extend_from_slice(b"connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head.shrink_to_fit();
    head
}
