//! The use of one connection, as its own tasks note it: whether it is idle and since when, and whether it has shown a
//! good key. `admission` reads it to choose a connection that is closed for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::metrics::Caller;

/// The use of one connection.
#[derive(Debug)]
pub(super) struct Presence {
    start: Instant,
    /// Requests that are being answered.
    requests: AtomicUsize,
    /// The end of the last answer, in milliseconds after the start.
    idle_since: AtomicU64,
    /// True while something waits to be sent; shared with the socket.
    unsent: Arc<AtomicBool>,
    has_key: AtomicBool,
    evicted: Notify,
}

impl Default for Presence {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            requests: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            unsent: Arc::default(),
            has_key: AtomicBool::new(false),
            evicted: Notify::new(),
        }
    }
}

impl Presence {
    /// Notes that a request has arrived.
    pub(super) fn begin_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a request was answered.
    pub(super) fn end_request(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.idle_since.store(now, Ordering::Relaxed);
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes who asked. Once a good key was shown, the connection counts as one with a key.
    pub(super) fn note(&self, caller: Caller) {
        // Reading first leaves the line with every core that has it.
        if caller == Caller::WithKey && !self.has_key.load(Ordering::Relaxed) {
            self.has_key.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a good key was shown.
    pub(super) fn caller(&self) -> Caller {
        match self.has_key.load(Ordering::Relaxed) {
            true => Caller::WithKey,
            false => Caller::WithoutKey,
        }
    }

    /// Flag for what waits to be sent, for the socket to set.
    pub(super) fn unsent(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unsent)
    }

    /// Returns since when nothing was asked for; none while something is answered or sent.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let in_use =
            self.requests.load(Ordering::Relaxed) > 0 || self.unsent.load(Ordering::Relaxed);
        let since = Duration::from_millis(self.idle_since.load(Ordering::Relaxed));
        (!in_use).then(|| self.start + since)
    }

    /// Tells the connection to close for another.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Waits until the connection is told to close for another.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

#[cfg(test)]
impl Presence {
    /// A connection that has been idle for so long.
    pub(super) fn idle_for(time: Duration, caller: Caller) -> Self {
        let presence = Self {
            start: Instant::now() - time,
            ..Self::default()
        };
        presence.note(caller);
        presence
    }

    /// Notes that the last answer ended so many milliseconds after the start.
    pub(super) fn use_for(&self, milliseconds: u64) {
        self.idle_since.store(milliseconds, Ordering::Relaxed);
    }
}
