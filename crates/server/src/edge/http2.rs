//! What only HTTP/2 needs. One connection carries many requests at once, and each has a window of its own for what
//! the client is willing to take: so a socket that is never full doesn't mean that anything is taken, and one
//! that is quiet doesn't mean that nothing is asked for.
//!
//! Bodies are handed over in pieces that tell when they have gone to the socket. From that follows, for a stream and
//! for a connection, when the client last took something.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Instant, Sleep, sleep};

use super::socket::Timeouts;
use crate::http::body::Body;

/// The longest piece of a body that is handed over at once: what a stream that is given up may leave behind.
const PIECE_BYTES: usize = 16 << 10;

tokio::task_local! {
    /// The stream that a task answers.
    static STREAM: Arc<Stream>;
}

/// What one connection is doing; shared by its streams and whoever watches it.
#[derive(Debug)]
pub(super) struct Activity {
    start: Instant,
    timeouts: Timeouts,
    /// How many streams were begun.
    begun: AtomicU64,
    /// How many of them haven't ended.
    open: AtomicUsize,
    /// How many of those have something for the client to take.
    sending: AtomicUsize,
    /// When the client last took something or something began to be there for it, in milliseconds after the start.
    taken: AtomicU64,
    /// When a stream ended last, in the same way.
    ended: AtomicU64,
}

/// What is to be thought of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is of use.
    Busy,
    /// Nothing was asked for in a while.
    Idle,
    /// Nothing was ever asked for, or nothing of what was is taken.
    Useless,
}

impl Activity {
    pub(super) fn new(timeouts: Timeouts) -> Self {
        Self {
            start: Instant::now(),
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

    /// Whether that moment is so long ago.
    fn is_over(&self, moment: &AtomicU64, limit: Duration) -> bool {
        let since = self.now().saturating_sub(moment.load(Ordering::Relaxed));
        Duration::from_millis(since) >= limit
    }

    /// How long the connection has been open.
    pub(super) fn age(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn verdict(&self) -> Verdict {
        let Timeouts {
            head, write, idle, ..
        } = self.timeouts;
        if self.begun.load(Ordering::Relaxed) == 0 {
            return match self.age() >= head {
                true => Verdict::Useless,
                false => Verdict::Busy,
            };
        }
        if self.sending.load(Ordering::Relaxed) > 0 && self.is_over(&self.taken, write) {
            return Verdict::Useless;
        }
        match self.open.load(Ordering::Relaxed) == 0 && self.is_over(&self.ended, idle) {
            true => Verdict::Idle,
            false => Verdict::Busy,
        }
    }
}

/// One request and its answer, until the client has taken that or is given up.
#[derive(Debug)]
pub(super) struct Stream {
    activity: Arc<Activity>,
    sending: AtomicBool,
    /// How many pieces of its body went to the socket, wholly or in part.
    taken: AtomicU64,
}

impl Stream {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        activity.open.fetch_add(1, Ordering::Relaxed);
        Self {
            activity: Arc::clone(activity),
            sending: AtomicBool::new(false),
            taken: AtomicU64::new(0),
        }
    }

    /// The stream that this task answers.
    fn current() -> Option<Arc<Self>> {
        STREAM.try_with(Arc::clone).ok()
    }

    fn begin_sending(&self) {
        self.sending.store(true, Ordering::Relaxed);
        let activity = &self.activity;
        // Where others wait already, this one is no news of the client.
        if activity.sending.fetch_add(1, Ordering::Relaxed) == 0 {
            activity.taken.store(activity.now(), Ordering::Relaxed);
        }
    }

    fn note_taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        let now = self.activity.now();
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
            limit: self.0.timeouts.stream,
            stream: Arc::clone(&stream),
            taken: 0,
            timer: None,
        };
        tokio::spawn(STREAM.scope(stream, limited));
    }
}

/// A stream that is reset where the client takes nothing of it for too long.
struct Limited<F> {
    answering: Pin<Box<F>>,
    limit: Duration,
    stream: Arc<Stream>,
    /// What was taken when it was last looked at.
    taken: u64,
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
        loop {
            let limit = self.limit;
            let taken = self.stream.taken.load(Ordering::Relaxed);
            if std::mem::replace(&mut self.taken, taken) != taken {
                self.timer = None;
            }
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
            ready!(timer.as_mut().poll(context));
            if self.stream.taken.load(Ordering::Relaxed) == self.taken {
                tracing::debug!("a stream was reset: nobody takes it");
                return Poll::Ready(());
            }
        }
    }
}

/// A body of an answer, in pieces that tell when they were taken.
pub(super) struct SentBody {
    body: Body,
    /// The rest of the string that is being handed over.
    rest: Bytes,
    stream: Option<Arc<Stream>>,
}

impl SentBody {
    /// The body of the answer to the stream of this task.
    pub(super) fn new(body: Body) -> Self {
        let stream = Stream::current();
        if let Some(stream) = &stream {
            stream.begin_sending();
        }
        Self {
            body,
            rest: Bytes::new(),
            stream,
        }
    }
}

impl hyper::body::Body for SentBody {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                Some(Err(never)) => match never {},
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = Piece {
            bytes: self.rest.split_to(length),
            stream: self.stream.clone(),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.rest.len() + self.body.len()) as u64)
    }
}

/// A piece of a body. Its stream lasts at least as long: until all of it went to the socket.
pub(super) struct Piece {
    bytes: Bytes,
    stream: Option<Arc<Stream>>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(stream) = &self.stream {
            stream.note_taken();
        }
    }
}
