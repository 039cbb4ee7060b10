//! Syncs: the requests that keep a copy of the catalog right, as a stream of changes and tokens.
//!
//! The server promises (docs/contract/changes.md#promise) that an answer may repeat a product, and none is left out. So a
//! request that failed is repeated with the same token, and the token that comes with changes is the one to store with them.

use std::time::Duration;

use futures_util::stream::try_unfold;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::Result;
use crate::changes::{Change, ChangesPage, ChangesRequest};
use crate::error::Error;
use crate::pacing::{Answer, Pacing};
use crate::product::Product;
use crate::stream::Results;

/// Default time for which the server may hold an answer: below the time limits of common proxies.
const DEFAULT_WAIT: Duration = Duration::from_secs(45);

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

/// State of a sync between two requests.
struct Sync<T> {
    /// Next request; its token is that of the last changes.
    request: ChangesRequest<T>,
    wait: Duration,
    pacing: Pacing,
    /// Pause before the next request.
    pause: Duration,
    /// True if the next page is the first one of a walk, which lasts until `has_more` is false.
    is_walk_start: bool,
    /// True if the copy was at rest with the last walk.
    is_at_rest: bool,
    /// True if the start of a copy is still to be told.
    starts_over: bool,
}

/// Returns the events of a sync that continues from the request's token.
pub(crate) fn events<T: DeserializeOwned + Send + 'static>(
    request: ChangesRequest<T>,
) -> Results<SyncEvent<T>> {
    Results::new(try_unfold(Sync::new(request), |mut sync| async move {
        let event = sync.next().await?;
        Ok(Some((event, sync)))
    }))
}

impl<T: DeserializeOwned> Sync<T> {
    fn new(request: ChangesRequest<T>) -> Self {
        let begins = request.since.is_none();
        Self {
            wait: request.wait.unwrap_or(DEFAULT_WAIT),
            pacing: Pacing::new(*request.retries()),
            request,
            pause: Duration::ZERO,
            // A stored token may be one from the middle of a walk. An empty copy, which has none, is at rest.
            is_walk_start: begins,
            is_at_rest: begins,
            starts_over: begins,
        }
    }

    /// Makes the next request, after the pause. Only at rest the server may hold its answer: until then the answer tells
    /// the state of the copy.
    async fn next(&mut self) -> Result<SyncEvent<T>> {
        if std::mem::take(&mut self.starts_over) {
            return Ok(SyncEvent::StartOver);
        }
        let wait = self.waits().then_some(self.wait);
        self.request.wait = wait;
        sleep(self.pause).await;
        let sent = Instant::now();
        match self.request.attempt().await {
            Ok(page) => Ok(self.accept(page, sent)),
            Err(error) => self.recover(error),
        }
    }

    /// Returns true if the server may hold the next answer.
    fn waits(&self) -> bool {
        self.is_at_rest && self.request.since.is_some()
    }

    /// Takes a page over: its token is that of the next request.
    fn accept(&mut self, page: ChangesPage<T>, sent: Instant) -> SyncEvent<T> {
        let answer = Answer {
            last_code: page.changes.iter().map(|change| &*change.code).max(),
            is_same_token: self.request.since.as_ref() == Some(&page.next),
            has_more: page.has_more,
            wait: self.request.wait,
            asks_for_pause: page.retry_after.is_some_and(|pause| !pause.is_zero()),
        };
        let pause = self.pacing.after_page(&answer, sent, Instant::now());
        self.pause = pause.saturating_add(self.requested(page.retry_after));
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
    fn recover(&mut self, error: Error) -> Result<SyncEvent<T>> {
        let is_gone = error.is_changes_gone();
        if !is_gone && !error.is_transient() {
            return Err(error);
        }
        let pause = self.pacing.after_failure(Instant::now());
        self.pause = pause.saturating_add(self.requested(error.retry_after()));
        if is_gone && self.request.since.take().is_some() {
            self.pacing.restart_walk();
            (self.is_walk_start, self.is_at_rest) = (true, true);
            return Ok(SyncEvent::StartOver);
        }
        Ok(SyncEvent::Retrying(error))
    }

    /// Returns the pause that a server asked for, up to the maximum.
    fn requested(&self, retry_after: Option<Duration>) -> Duration {
        let longest = self.request.retries().longest_requested;
        retry_after.unwrap_or_default().min(longest)
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
            let mut sync = Sync::new(client.changes().since("t0"));
            let failure = Error::Unexpected {
                status: 503,
                what: String::new(),
                retry_after: asked,
            };
            sync.recover(failure).unwrap();
            assert!(within.contains(&sync.pause), "{:?}", sync.pause);
            let page = ChangesPage {
                changes: Vec::new(),
                next: "t1".to_owned(),
                has_more: false,
                retry_after: asked,
            };
            sync.accept(page, Instant::now());
            assert!(within.contains(&sync.pause), "{:?}", sync.pause);
        }
    }
}
