//! Time limits that only HTTP/2 needs. One connection carries many requests, each with a flow-control window of its
//! own. So a writable socket doesn't mean that the client reads, and a quiet one doesn't mean that no requests are in
//! flight.
//!
//! Bodies are passed to hyper in pieces that report when they were written to the socket (`sent_body`). So streams and
//! connections know when the client last read.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::{Instant, Sleep, sleep_until};

use super::presence::Presence;
use super::socket::Timeouts;

tokio::task_local! {
    /// Stream that the current task answers.
    static STREAM: Arc<Stream>;
}

/// Activity of one connection: number of open streams, and time of the client's last read. Shared by its streams and
/// its watcher.
#[derive(Debug)]
pub(super) struct Activity {
    start: Instant,
    presence: Arc<Presence>,
    timeouts: Timeouts,
    /// Number of streams opened so far.
    begun: AtomicU64,
    /// Number of streams that haven't ended.
    open: AtomicUsize,
    /// Number of open streams with data for the client to read.
    sending: AtomicUsize,
    /// Time at which the client last read, or at which data for it first became available, in milliseconds after the
    /// start.
    taken: AtomicU64,
    /// Time at which a stream last ended, in milliseconds after the start.
    ended: AtomicU64,
}

/// State of a connection's use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// Requests are in flight, or the last one ended recently.
    Busy,
    /// No request arrived for a while.
    Idle,
    /// No request ever arrived, or the client doesn't read its responses.
    Stalled,
}

impl Activity {
    pub(super) fn new(timeouts: Timeouts, presence: Arc<Presence>) -> Self {
        Self {
            start: Instant::now(),
            presence,
            timeouts,
            begun: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            sending: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns true if `limit` has passed since `moment` (milliseconds after the start).
    fn is_over(&self, moment: &AtomicU64, limit: Duration) -> bool {
        let since = self.now().saturating_sub(moment.load(Ordering::Relaxed));
        Duration::from_millis(since) >= limit
    }

    /// Returns the age of the connection.
    pub(super) fn age(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns true if no stream is open: the client has read all responses.
    pub(super) fn is_quiet(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    pub(super) fn state(&self) -> ConnectionState {
        let Timeouts {
            head, write, idle, ..
        } = self.timeouts;
        if self.begun.load(Ordering::Relaxed) == 0 {
            return match self.age() >= head {
                true => ConnectionState::Stalled,
                false => ConnectionState::Busy,
            };
        }
        if self.sending.load(Ordering::Relaxed) > 0 && self.is_over(&self.taken, write) {
            return ConnectionState::Stalled;
        }
        match self.is_quiet() && self.is_over(&self.ended, idle) {
            true => ConnectionState::Idle,
            false => ConnectionState::Busy,
        }
    }
}

/// One request and its response, until the client has read it or the stream is reset.
#[derive(Debug)]
pub(super) struct Stream {
    activity: Arc<Activity>,
    sending: AtomicBool,
    /// Time at which the client last read from this stream, in milliseconds after the connection's start.
    taken: AtomicU64,
}

impl Stream {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        activity.open.fetch_add(1, Ordering::Relaxed);
        activity.presence.begin_request();
        Self {
            activity: Arc::clone(activity),
            sending: AtomicBool::new(false),
            taken: AtomicU64::new(0),
        }
    }

    /// Returns the stream that this task answers.
    pub(super) fn current() -> Option<Arc<Self>> {
        STREAM.try_with(Arc::clone).ok()
    }

    pub(super) fn begin_sending(&self) {
        let activity = &self.activity;
        let now = activity.now();
        self.taken.store(now, Ordering::Relaxed);
        self.sending.store(true, Ordering::Relaxed);
        // If other streams have data already, this is no sign of the client.
        if activity.sending.fetch_add(1, Ordering::Relaxed) == 0 {
            activity.taken.store(now, Ordering::Relaxed);
        }
    }

    /// Returns the time by which the client must read.
    fn deadline(&self) -> Instant {
        let taken = Duration::from_millis(self.taken.load(Ordering::Relaxed));
        self.activity.start + taken + self.activity.timeouts.stream
    }

    pub(super) fn note_taken(&self) {
        let now = self.activity.now();
        self.taken.store(now, Ordering::Relaxed);
        self.activity.taken.store(now, Ordering::Relaxed);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let activity = &self.activity;
        if *self.sending.get_mut() {
            activity.sending.fetch_sub(1, Ordering::Relaxed);
        }
        activity.ended.store(activity.now(), Ordering::Relaxed);
        activity.open.fetch_sub(1, Ordering::Relaxed);
        activity.presence.end_request();
    }
}

/// Executor of a connection's streams.
#[derive(Debug, Clone)]
pub(super) struct Streams(pub(super) Arc<Activity>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, answering: F) {
        let stream = Arc::new(Stream::begin(&self.0));
        let limited = Limited {
            answering: Box::pin(answering),
            stream: Arc::clone(&stream),
            timer: None,
        };
        tokio::spawn(STREAM.scope(stream, limited));
    }
}

/// Future that resets its stream if the client reads nothing of it for too long.
struct Limited<F> {
    answering: Pin<Box<F>>,
    stream: Arc<Stream>,
    /// Set once the stream had to wait for the client.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future<Output = ()>> Future for Limited<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.answering.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        if !self.stream.sending.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let Self { stream, timer, .. } = &mut *self;
        loop {
            let deadline = stream.deadline();
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            ready!(timer.as_mut().poll(context));
            // The client may have read since the timer was set.
            let deadline = stream.deadline();
            if Instant::now() >= deadline {
                tracing::debug!("reset a stream: write timeout");
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Buf as _, Bytes};

    use super::super::sent_body::Piece;
    use super::*;

    /// Returns the activity of a connection with long limits, apart from those that `change` shortens.
    fn activity(change: impl FnOnce(&mut Timeouts)) -> Arc<Activity> {
        let mut timeouts = Timeouts::default();
        change(&mut timeouts);
        Arc::new(Activity::new(timeouts, Arc::default()))
    }

    #[test]
    fn connection_is_idle_after_its_last_stream() {
        let activity = activity(|timeouts| timeouts.idle = Duration::ZERO);
        assert_eq!(
            activity.state(),
            ConnectionState::Busy,
            "its first request may come"
        );
        let stream = Arc::new(Stream::begin(&activity));
        stream.begin_sending();
        let mut piece = Piece::of(Some(Arc::clone(&stream)));
        piece.push(Bytes::from_static(b"abc"));
        drop(stream);
        piece.advance(2);
        assert_eq!(
            activity.state(),
            ConnectionState::Busy,
            "a piece is on its way"
        );
        assert_eq!((piece.remaining(), piece.chunk()), (1, &b"c"[..]));
        drop(piece);
        assert_eq!(activity.state(), ConnectionState::Idle);
        assert!(activity.is_quiet());
    }

    #[test]
    fn silent_or_stuck_connection_is_stalled() {
        let silent = activity(|timeouts| timeouts.head = Duration::ZERO);
        assert_eq!(silent.state(), ConnectionState::Stalled);
        let stuck = activity(|timeouts| timeouts.write = Duration::ZERO);
        let stream = Stream::begin(&stuck);
        assert_eq!(
            stuck.state(),
            ConnectionState::Busy,
            "the answer is being made"
        );
        stream.begin_sending();
        assert_eq!(stuck.state(), ConnectionState::Stalled);
        drop(stream);
        assert_eq!(stuck.state(), ConnectionState::Busy);
    }
}
