//! Checks that only HTTP/2 needs. One connection carries many requests at once, and each has a window of its
//! own for what the client is willing to take: so a socket that is never full doesn't mean that anything is
//! taken, and one that is quiet doesn't mean that nothing is asked for.
//!
//! Bodies are handed over in pieces that tell when they have gone to the socket (`sent_body`). From that follows, for a stream and
//! for a connection, when the client last took something.

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
    /// The stream that a task answers.
    static STREAM: Arc<Stream>;
}

/// Streams of one connection: how many are open, and when the client last took something. Shared by its
/// streams and its watcher.
#[derive(Debug)]
pub(super) struct Activity {
    start: Instant,
    presence: Arc<Presence>,
    timeouts: Timeouts,
    /// Number of streams begun.
    begun: AtomicU64,
    /// Number of streams that haven't ended.
    open: AtomicUsize,
    /// Number of open streams that have something for the client to take.
    sending: AtomicUsize,
    /// Time at which the client last took something or something began to be there for it, in milliseconds
    /// after the start.
    taken: AtomicU64,
    /// Time at which a stream last ended, in milliseconds after the start.
    ended: AtomicU64,
}

/// Judgement of a connection's use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// Requests are being answered, or the last one ended recently.
    Busy,
    /// Nothing was asked for in a while.
    Idle,
    /// Nothing was ever asked for, or nothing of what was is taken.
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

    /// Returns the time for which the connection has been open.
    pub(super) fn age(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns true if no stream is open: all answers have been taken.
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

/// One request and its answer, until the client has taken that or is given up.
#[derive(Debug)]
pub(super) struct Stream {
    activity: Arc<Activity>,
    sending: AtomicBool,
    /// Time at which the client last took something of it, in milliseconds after the connection's start.
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

    /// The stream that this task answers.
    pub(super) fn current() -> Option<Arc<Self>> {
        STREAM.try_with(Arc::clone).ok()
    }

    pub(super) fn begin_sending(&self) {
        let activity = &self.activity;
        let now = activity.now();
        self.taken.store(now, Ordering::Relaxed);
        self.sending.store(true, Ordering::Relaxed);
        // Where others wait already, this one is no news of the client.
        if activity.sending.fetch_add(1, Ordering::Relaxed) == 0 {
            activity.taken.store(now, Ordering::Relaxed);
        }
    }

    /// Until when the client must take something.
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

/// Runs the streams of a connection.
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

/// Stream that is reset if the client takes nothing of it for too long.
struct Limited<F> {
    answering: Pin<Box<F>>,
    stream: Arc<Stream>,
    /// There once it had to wait for the client.
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
            // Something may have been taken since it was set.
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

    /// A connection whose limits are long, but for those that `change` makes short.
    fn activity(change: impl FnOnce(&mut Timeouts)) -> Arc<Activity> {
        let mut timeouts = Timeouts::default();
        change(&mut timeouts);
        Arc::new(Activity::new(timeouts, Arc::default()))
    }

    #[test]
    fn connection_is_idle_once_its_last_stream_was_taken() {
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
    fn silent_or_stuck_connection_is_useless() {
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
