//! Requests that wait for changes. A wait holds a connection, but no thread and no snapshot (docs/contract/changes.md#limits).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use vitrine_model::changes::{ChangesQuery, Position};
use vitrine_model::key::{KeyTable, KeyUsage};

use super::body::fair_queue::FairQueue;
use super::connection::Event;
use super::request::changes_token::FilterDigest;
use super::verdicts::{Interest, Outcome, Verdicts};
use crate::live::{Feed, Live, VisibleFeed};
use crate::metrics::values::Counter;

/// Default maximum number of requests that wait.
pub const DEFAULT_MAX_WAITS: usize = 8_000;

/// Part of all waits that one key may have: one of so many.
const KEY_PART: usize = 4;

/// Waits of a server.
#[derive(Debug)]
pub struct Waits {
    max: usize,
    waiting: Arc<AtomicUsize>,
    /// Turns in which waits are judged, one at a time and round-robin over keys. A wait takes its turn behind all requests that
    /// have arrived meanwhile, so that a change that ends thousands of waits doesn't delay these.
    turns: Arc<FairQueue>,
    /// Results that waits share.
    pub(super) verdicts: Verdicts,
    draining: watch::Sender<bool>,
    /// Number of requests that were answered at once because too many waited.
    pub refused: Counter,
}

impl Default for Waits {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_WAITS)
    }
}

/// Place of one wait, given back when it is dropped or released.
#[derive(Debug)]
pub(crate) struct Place {
    all: Arc<AtomicUsize>,
    usage: Arc<KeyUsage>,
    is_held: bool,
}

impl Place {
    fn release(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.all.fetch_sub(1, Ordering::Relaxed);
            self.usage.waits.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.release();
    }
}

/// A wait for changes since a position.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) query: ChangesQuery,
    /// Digest of the filters.
    pub(crate) filter: FilterDigest,
    pub(crate) since: Position,
    /// Prefix of the key.
    pub(crate) key: Box<str>,
    pub(crate) until: Instant,
    pub(crate) place: Place,
}

impl Waits {
    /// Returns the waits of a server, at most so many at a time.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            max,
            waiting: Arc::default(),
            turns: FairQueue::unbounded(),
            verdicts: Verdicts::default(),
            draining: watch::Sender::new(false),
            refused: Counter::default(),
        }
    }

    /// Returns the number of requests that wait.
    #[must_use]
    pub fn count(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Ends all waits, and lets none begin: the server shuts down.
    pub fn end(&self) {
        self.draining.send_replace(true);
    }

    /// Returns a place for a wait of a key; `None` if too many wait, or if the server shuts down.
    pub(crate) fn place(&self, usage: &Arc<KeyUsage>) -> Option<Place> {
        // Taken before it is judged, so that it is given back in one way.
        let all = self.waiting.fetch_add(1, Ordering::Relaxed);
        let of_key = usage.waits.fetch_add(1, Ordering::Relaxed);
        let place = Place {
            all: Arc::clone(&self.waiting),
            usage: Arc::clone(usage),
            is_held: true,
        };
        let has_room =
            !*self.draining.borrow() && of_key < self.max.div_ceil(KEY_PART) && all < self.max;
        if !has_room {
            self.refused.increment();
        }
        has_room.then_some(place)
    }

    /// Waits until something visible changes, the time is over, or the server shuts down. Returns the position since which
    /// nothing visible changed. Once the client has closed its side (`closed`), the wait holds no place: mostly nobody reads its
    /// answer.
    // No `async fn`: its future would have room for the arguments twice, and thousands of these are held.
    pub(crate) fn wait<'w>(
        &'w self,
        live: &'w Live,
        mut wait: Wait,
        mut closed: Event<'w>,
    ) -> impl Future<Output = Position> + 'w {
        let mut feeds = live.subscribe_feed();
        let mut draining = self.draining.subscribe();
        let is_judged = |feed: &Arc<Feed>| {
            let seen = |seen: VisibleFeed<'_>| seen.position() == wait.since;
            with_visible(live, feed, &wait.key, seen).unwrap_or(false)
        };
        if !feeds.borrow().as_ref().is_some_and(is_judged) {
            feeds.mark_changed();
        }
        async move {
            'waiting: loop {
                tokio::select! {
                    biased;
                    _ = draining.wait_for(|draining| *draining) => break,
                    changed = feeds.changed() => if changed.is_err() { break },
                    () = &mut closed, if wait.place.is_held => {
                        wait.place.release();
                        continue;
                    }
                    () = tokio::time::sleep_until(wait.until) => {}
                }
                // A search that takes longer goes on in the next turn.
                loop {
                    let _turn = tokio::select! {
                        biased;
                        _ = draining.wait_for(|draining| *draining) => break 'waiting,
                        turn = self.turns.take(&wait.place.usage.sending_bytes) => turn,
                        () = tokio::time::sleep_until(wait.until) => break 'waiting,
                    };
                    // Requests that have arrived are read, and answered, before this goes on.
                    tokio::task::yield_now().await;
                    let feed = feeds.borrow_and_update().clone();
                    let judged = feed.and_then(|feed| self.judge(live, &feed, &wait));
                    match judged {
                        Some((position, Outcome::AtRest)) => wait.since = position,
                        Some((_, Outcome::Unfinished)) if Instant::now() < wait.until => continue,
                        Some((_, Outcome::Unfinished | Outcome::Changed)) | None => break 'waiting,
                    }
                    break;
                }
                if Instant::now() >= wait.until {
                    break;
                }
            }
            // A place that isn't named here would have been given back already.
            drop(wait.place);
            wait.since
        }
    }

    /// Returns the position of what the key of a wait sees now, and what is known of changes until then; `None` if the key sees
    /// nothing.
    fn judge(&self, live: &Live, feed: &Feed, wait: &Wait) -> Option<(Position, Outcome)> {
        with_visible(live, feed, &wait.key, |seen| {
            let interest = Interest {
                since: wait.since,
                until: seen.position(),
                filter: wait.filter,
            };
            (
                interest.until,
                self.verdicts.judge(seen, interest, &wait.query),
            )
        })
    }
}

/// Looks at the feed as a key sees it; `None` if that is unknown.
fn with_visible<T>(
    live: &Live,
    feed: &Feed,
    key: &str,
    look: impl FnOnce(VisibleFeed<'_>) -> T,
) -> Option<T> {
    let keys = live.keys();
    VisibleFeed::of_key(feed, keys.get(key)?, Timestamp::now()).map(look)
}

/// Maximum time that a request waits for a position that isn't known here yet (docs/contract/changes.md#tokens).
const MAX_LOOK: Duration = Duration::from_secs(1);

/// Waits for a position that isn't known here: the store is read at once. Returns true if catalog and keys were read and are
/// current, so that what is unknown now is unknown to the store, too.
pub(crate) async fn look(live: &Live, is_known: impl Fn(&Feed, &KeyTable) -> bool) -> bool {
    let began = std::time::Instant::now();
    let end = tokio::time::sleep(MAX_LOOK);
    let mut end = std::pin::pin!(end);
    let mut feeds = live.subscribe_feed();
    let mut keys_read = live.subscribe_keys_read();
    let mut reads = live.store_reads.ask();
    loop {
        let is_changed = tokio::select! {
            changed = feeds.changed() => changed,
            changed = reads.changed() => changed,
            changed = keys_read.changed() => changed,
            () = &mut end => return false,
        };
        if is_changed.is_err() {
            return false;
        }
        let feed = feeds.borrow_and_update().clone();
        if feed.is_some_and(|feed| is_known(&feed, &live.keys())) {
            return false;
        }
        let read = *reads.borrow_and_update();
        let is_current = read.is_some_and(|read| read.is_current && read.began >= began);
        let are_keys_read = keys_read
            .borrow_and_update()
            .as_ref()
            .is_some_and(|read| read.asked >= began);
        if is_current && are_keys_read {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};

    use vitrine_model::selector::Selector;

    use super::*;

    fn live() -> Live {
        Live::new(Duration::MAX, crate::live::JournalLimits::default())
    }

    /// Returns a wait of a key, which ends with its first turn, since there is no catalog.
    fn wait_of(waits: &Waits, usage: &Arc<KeyUsage>) -> Wait {
        Wait {
            query: ChangesQuery::default(),
            filter: FilterDigest::of(&Selector::default()),
            since: Position::default(),
            key: Box::default(),
            until: Instant::now() + Duration::from_secs(55),
            place: waits.place(usage).expect("a place"),
        }
    }

    #[tokio::test]
    async fn wait_for_a_turn_ends_with_the_drain() {
        let (waits, live) = (Waits::new(4), live());
        let _turn = waits.turns.try_take().expect("a turn");
        let wait = wait_of(&waits, &Arc::default());
        let mut waiting = pin!(waits.wait(&live, wait, Box::pin(pending())));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        waits.end();
        let ended = waiting.as_mut().poll(&mut context);
        assert_eq!(ended, Poll::Ready(Position::default()));
        assert_eq!(waits.count(), 0);
    }

    #[tokio::test]
    async fn keys_take_turns_to_end_their_waits() {
        let (waits, live) = (Arc::new(Waits::new(40)), Arc::new(live()));
        let turn = waits.turns.try_take().expect("a turn");
        let usages = [(); 2].map(|()| Arc::<KeyUsage>::default());
        let ended = Arc::new(Mutex::new(Vec::new()));
        for key in [0, 0, 0, 0, 1] {
            let wait = wait_of(&waits, &usages[key]);
            let (waits, live, ended) = (Arc::clone(&waits), Arc::clone(&live), Arc::clone(&ended));
            tokio::spawn(async move {
                waits.wait(&live, wait, Box::pin(pending())).await;
                ended.lock().unwrap().push(key);
            });
            // It queues for its turn.
            tokio::task::yield_now().await;
        }
        drop(turn);
        while waits.count() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*ended.lock().unwrap(), [0, 1, 0, 0, 0]);
    }
}
