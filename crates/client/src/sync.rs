//! Syncs: the requests that keep a copy of the catalog right, as a stream of changes and tokens.
//!
//! The server promises (docs/contract/changes.md#promise) that an answer may repeat a product, and none is left out. So a
//! request that failed is repeated with the same token, and the token that comes with changes is the one to store with them.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::Result;
use crate::changes::{Change, ChangesPage, ChangesRequest};
use crate::error::Error;
use crate::pacing::{Answer, Pacing};
use crate::product::Product;
use crate::retry::Failure;

/// Default time for which the server may hold an answer: below the time limits of common proxies.
const DEFAULT_WAIT: Duration = Duration::from_secs(45);

/// Maximum `Retry-After` that is waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// Event of a sync. `T` is the type of each product.
#[derive(Debug)]
#[non_exhaustive]
pub enum SyncEvent<T = Product> {
    /// The changes that follow are the whole catalog: remove all products of the copy in the transaction of the next
    /// [`Changes`](Self::Changes), so that the old copy stays until something replaces it. It comes at the start if there is no
    /// stored token, and later if the server no longer knows the token.
    StartOver,
    /// Changes: apply them and store the token, in one transaction.
    #[non_exhaustive]
    Changes {
        /// The changes, ordered by code. They can be none, and can repeat what the copy has.
        changes: Vec<Change<T>>,
        /// Token to store, at most 400 characters of `A-Z`, `a-z`, `0-9`, `_` and `-`.
        token: String,
        /// True if the server has more changes now. A copy that begins has had all products once this is false.
        has_more: bool,
        /// True if the copy now is at rest: it equals the catalog at one moment, with this key and these filters.
        at_rest: bool,
    },
    /// A request failed, and will be repeated after a pause. Nothing is to be done.
    Retrying(Error),
}

type Outcome<T> = std::result::Result<ChangesPage<T>, Failure>;
type InFlight<T> = Pin<Box<dyn Future<Output = (Outcome<T>, Instant)> + Send>>;

/// Stream of the changes of a catalog, which ends only with an error. [`ChangesRequest::sync`] returns it.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in.in"));
/// # use std::collections::BTreeMap;
/// # use vitrine_client::{Client, Key, Product};
/// use vitrine_client::SyncEvent;
///
/// # #[derive(Default)]
/// # struct Copy { products: BTreeMap<String, Product>, token: Option<String> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = StandIn::start();
/// # let client = Client::new(&server.base_url(), Key::new("partner.s3cret")?)?;
/// # let mut copy = Copy::default();
/// // The copy is a table of products and the token, in one database.
/// let mut sync = client.changes().country("SE").sync(copy.token.clone());
/// let mut starts_over = false;
/// while let Some(event) = sync.next().await {
///     match event? {
///         SyncEvent::StartOver => starts_over = true,
///         SyncEvent::Changes { changes, token, at_rest, .. } => {
///             // One transaction begins…
///             if std::mem::take(&mut starts_over) {
///                 copy.products.clear();
///             }
///             for change in changes {
///                 match change.product {
///                     Some(product) => copy.products.insert(change.code, product),
///                     None => copy.products.remove(&change.code),
///                 };
///             }
///             copy.token = Some(token);
///             // … and ends.
///             if at_rest {
///                 println!("{} products", copy.products.len());
/// #               break;
///             }
///         }
///         SyncEvent::Retrying(error) => eprintln!("{error}; trying again"),
///         _ => {}
///     }
/// }
/// # assert_eq!(copy.products.len(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Requests
///
/// - Until the copy is at rest, one request follows the other. From then on they have a
///   [`wait`](ChangesRequest::wait): the server holds its answer until something changes.
/// - Requests that fail for a time ([`Retries`](crate::Retries)) are repeated with the same token, without an end; of
///   `Retries` only the pauses count. All other failures, such as a revoked key, end the stream.
/// - `Retry-After` is waited for, of answers too, up to an hour. Answers without progress are followed by pauses as failures are, so that
///   no server keeps the sync busy.
///
/// # Crashes
///
/// If changes and token are stored together, a sync that begins with the stored token continues without a loss. If storing
/// fails, drop the stream and begin again with the stored token: the next request would build on changes that the
/// copy doesn't have. Dropping the future of [`next`](Self::next) loses nothing.
#[must_use = "a stream does nothing until it is asked for its next item"]
pub struct SyncEvents<T = Product> {
    /// Next request; its token is that of the last changes.
    request: ChangesRequest<T>,
    wait: Duration,
    in_flight: Option<InFlight<T>>,
    pacing: Pacing,
    /// Pause before the next request.
    pause: Duration,
    /// True if the next page is the first one of a walk, which lasts until `has_more` is false.
    is_walk_start: bool,
    /// True if the copy was at rest with the last walk.
    is_at_rest: bool,
    /// True if the start of a copy is still to be told.
    starts_over: bool,
    is_over: bool,
}

impl<T: DeserializeOwned + Send + 'static> SyncEvents<T> {
    pub(crate) fn new(request: ChangesRequest<T>) -> Self {
        let begins = request.since.is_none();
        Self {
            wait: request.wait.unwrap_or(DEFAULT_WAIT),
            pacing: Pacing::new(*request.retries()),
            request,
            in_flight: None,
            pause: Duration::ZERO,
            // A stored token may be one from the middle of a walk. An empty copy, which has none, is at rest.
            is_walk_start: begins,
            is_at_rest: begins,
            starts_over: begins,
            is_over: false,
        }
    }

    /// Returns the next event.
    pub async fn next(&mut self) -> Option<Result<SyncEvent<T>>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns true if the server may hold the next answer.
    fn waits(&self) -> bool {
        self.is_at_rest && self.request.since.is_some()
    }

    /// Begins the next request, after the pause. Only at rest the server may hold its answer: until then the answer tells
    /// the state of the copy.
    fn send(&mut self) -> InFlight<T> {
        let wait = if self.waits() {
            self.wait
        } else {
            Duration::ZERO
        };
        self.request.wait = Some(wait);
        let (request, pause) = (self.request.clone(), self.pause);
        Box::pin(async move {
            sleep(pause).await;
            let sent = Instant::now();
            (request.attempt().await, sent)
        })
    }

    /// Takes a page over: its token is that of the next request.
    fn accept(&mut self, page: ChangesPage<T>, sent: Instant) -> SyncEvent<T> {
        let answer = Answer {
            last_code: page.changes.iter().map(|change| &*change.code).max(),
            is_same_token: self.request.since.as_ref() == Some(&page.next),
            has_more: page.has_more,
            wait: self.request.wait.filter(|_| self.waits()),
        };
        let pause = self.pacing.after_page(&answer, sent, Instant::now());
        self.pause = pause.saturating_add(requested(page.retry_after));
        // A walk of one page shows one moment, one of several pages doesn't.
        self.is_at_rest =
            !page.has_more && self.is_walk_start && (self.is_at_rest || page.changes.is_empty());
        self.is_walk_start = !page.has_more;
        self.request.since = Some(page.next.clone());
        SyncEvent::Changes {
            changes: page.changes,
            token: page.next,
            has_more: page.has_more,
            at_rest: self.is_at_rest,
        }
    }

    /// Decides on a failure: the copy starts over, the request is repeated, or the sync ends.
    fn recover(&mut self, failure: Failure) -> Result<SyncEvent<T>> {
        let Failure { error, retry_after } = failure;
        let is_gone = error.is_changes_gone();
        if !is_gone && !error.is_transient() {
            self.is_over = true;
            return Err(error);
        }
        let pause = self.pacing.after_failure(Instant::now());
        self.pause = pause.saturating_add(requested(retry_after));
        if is_gone && self.request.since.take().is_some() {
            self.pacing.restart_walk();
            (self.is_walk_start, self.is_at_rest) = (true, true);
            return Ok(SyncEvent::StartOver);
        }
        Ok(SyncEvent::Retrying(error))
    }
}

/// Returns the pause that a server asked for, up to the maximum.
fn requested(retry_after: Option<Duration>) -> Duration {
    retry_after.unwrap_or_default().min(MAX_RETRY_AFTER)
}

impl<T: DeserializeOwned + Send + 'static> Stream for SyncEvents<T> {
    type Item = Result<SyncEvent<T>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if std::mem::take(&mut self.starts_over) {
            return Poll::Ready(Some(Ok(SyncEvent::StartOver)));
        }
        let mut in_flight = match self.in_flight.take() {
            Some(in_flight) => in_flight,
            None => self.send(),
        };
        let Poll::Ready((outcome, sent)) = in_flight.as_mut().poll(context) else {
            self.in_flight = Some(in_flight);
            return Poll::Pending;
        };
        Poll::Ready(Some(match outcome {
            Ok(page) => Ok(self.accept(page, sent)),
            Err(failure) => self.recover(failure),
        }))
    }
}

// Nothing in it is pinned.
impl<T> Unpin for SyncEvents<T> {}

impl<T> fmt::Debug for SyncEvents<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SyncEvents").field(&self.request).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, Key};

    #[test]
    fn retry_after_is_obeyed_up_to_an_hour() {
        let client = Client::new("http://127.0.0.1", Key::new("a.b").unwrap()).unwrap();
        for (asked, expected) in [(1_800, 1_800), (3_600, 3_600), (u64::MAX, 3_600)] {
            let asked = Some(Duration::from_secs(asked));
            let within = Duration::from_secs(expected)..=Duration::from_secs(expected + 60);
            let mut events = client.changes().sync(Some("t0".to_owned()));
            let failure = Failure {
                error: Error::Timeout,
                retry_after: asked,
            };
            events.recover(failure).unwrap();
            assert!(within.contains(&events.pause), "{:?}", events.pause);
            let page = ChangesPage {
                changes: Vec::new(),
                next: "t1".to_owned(),
                has_more: false,
                retry_after: asked,
            };
            events.accept(page, Instant::now());
            assert!(within.contains(&events.pause), "{:?}", events.pause);
        }
    }
}
