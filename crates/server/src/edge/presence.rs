//! Use of one connection, recorded by its tasks: idle time, and whether a valid key was presented. `admission` reads it
//! to choose the connection that is closed for another.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::metrics::table::Caller;

/// Use of one connection.
#[derive(Debug)]
pub(crate) struct Presence {
    start: Instant,
    /// Number of requests in flight.
    requests: AtomicUsize,
    /// End of the last response, in milliseconds after the start.
    idle_since: AtomicU64,
    /// True while bytes wait to be sent.
    unsent: AtomicBool,
    has_key: AtomicBool,
    /// True if a request waits for changes, and the client has closed its side.
    is_closed: AtomicBool,
    closed: Notify,
    evicted: Notify,
}

impl Default for Presence {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            requests: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            unsent: AtomicBool::new(false),
            has_key: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            closed: Notify::new(),
            evicted: Notify::new(),
        }
    }
}

impl Presence {
    /// Records that a request has arrived.
    pub(super) fn begin_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a request was answered.
    pub(super) fn end_request(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.idle_since.store(now, Ordering::Relaxed);
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records a request that is being answered, until the result is dropped.
    pub(crate) fn in_use(&self) -> InUse<'_> {
        self.begin_request();
        InUse(self)
    }

    /// Records the caller of a request. Once a valid key was presented, the connection counts as one with a key.
    pub(crate) fn note(&self, caller: Caller) {
        // Reading first keeps the cache line shared between cores.
        if caller == Caller::WithKey && !self.has_key.load(Ordering::Relaxed) {
            self.has_key.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a valid key was presented.
    pub(super) fn caller(&self) -> Caller {
        match self.has_key.load(Ordering::Relaxed) {
            true => Caller::WithKey,
            false => Caller::WithoutKey,
        }
    }

    /// Records whether bytes wait to be sent.
    pub(super) fn note_unsent(&self, waits: bool) {
        self.unsent.store(waits, Ordering::Relaxed);
    }

    /// Returns true while bytes wait to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Records that a request waits for changes, and that the client has closed its side.
    pub(super) fn note_closed(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.closed.notify_one();
    }

    /// Waits until the client closes its side while a request waits for changes.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Returns true if a request waits for changes, and the client has closed its side.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Returns true if a request has been answered, or is being answered.
    pub(super) fn has_asked(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0 || self.idle_since.load(Ordering::Relaxed) > 0
    }

    /// Returns the end of the last response, or the start.
    pub(super) fn last_use(&self) -> Instant {
        self.start + Duration::from_millis(self.idle_since.load(Ordering::Relaxed))
    }

    /// Returns the time since which the connection is idle; none while a request is in flight or bytes wait to be sent.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let in_use = self.requests.load(Ordering::Relaxed) > 0 || self.has_unsent();
        (!in_use).then(|| self.last_use())
    }

    /// Tells the connection to close for another.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Waits until the connection is told to close for another.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

/// Request that is being answered, until this is dropped. It doesn't make the connection younger: however busy others are, a
/// new connection isn't the first to be closed.
#[derive(Debug)]
pub(crate) struct InUse<'p>(&'p Presence);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
impl Presence {
    /// Returns a connection that has been idle for this time.
    pub(super) fn idle_for(time: Duration, caller: Caller) -> Self {
        let presence = Self {
            start: Instant::now() - time,
            ..Self::default()
        };
        presence.note(caller);
        presence
    }

    /// Sets the end of the last response, in milliseconds after the start.
    pub(super) fn use_for(&self, milliseconds: u64) {
        self.idle_since.store(milliseconds, Ordering::Relaxed);
    }
}
