//! Connection of a request, as far as the request uses it. `edge` implements it.

use std::fmt;
use std::pin::Pin;

use super::body::budget::Account;
use crate::metrics::table::Caller;

/// State of the connection after the response: open or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepAlive {
    Yes,
    No,
}

/// Event of a connection that a request waits for.
pub(crate) type Event<'c> = Pin<Box<dyn Future<Output = ()> + Send + 'c>>;

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

    /// Waits until the client closes its side: it sends no more, and mostly is gone. Streams of HTTP/2 are reset instead.
    fn closed(&self) -> Event<'_> {
        Box::pin(std::future::pending())
    }
}

/// A connection that nothing else is known of.
impl Connection for Account {
    fn account(&self) -> &Account {
        self
    }
}
