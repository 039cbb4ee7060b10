//! A client's connection with limits on time: for the head, for writing, for doing nothing.
//!
//! hyper has none for writing, and one that counts a quiet connection as a slow head. So the socket
//! itself keeps the time: it knows when it was last of use, and the service tells it when a request
//! is being answered.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From a head's first byte to its last, and from a connection's start to its first byte.
    pub head: Duration,
    /// For the client to take any of what is being written.
    pub write: Duration,
    /// Between one answer and the next request's first byte.
    pub idle: Duration,
    /// For a body to arrive.
    pub body: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(5),
            write: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            body: Duration::from_secs(10),
        }
    }
}

/// What the service tells the socket; shared by the two.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    answering: AtomicBool,
    answered: AtomicU64,
    reading_head: AtomicBool,
}

impl Progress {
    /// A head has arrived. Until it is answered, the socket doesn't watch the clock for reading.
    pub(crate) fn begin(&self) {
        self.0.answering.store(true, Ordering::Relaxed);
        self.0.reading_head.store(false, Ordering::Relaxed);
    }

    /// Whether a part of a head has arrived and the rest hasn't.
    pub(crate) fn is_reading_head(&self) -> bool {
        self.0.reading_head.load(Ordering::Relaxed)
    }

    /// The answer is ready.
    pub(crate) fn end(&self) {
        self.0.answered.fetch_add(1, Ordering::Relaxed);
        self.0.answering.store(false, Ordering::Relaxed);
    }
}

/// What the socket waits for when it waits to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The first byte of a head.
    ForRequest,
    /// The rest of a head.
    ForHead,
}

/// A socket that gives up on a client that takes too long.
pub(crate) struct TimedSocket<S> {
    socket: S,
    timeouts: Timeouts,
    progress: Progress,
    answered: u64,
    waiting: Waiting,
    /// None where a head has begun and was never waited for: most arrive whole.
    read_by: Option<Instant>,
    write_by: Option<Instant>,
    read_timer: Pin<Box<Sleep>>,
    write_timer: Pin<Box<Sleep>>,
}

impl<S> TimedSocket<S> {
    pub(crate) fn new(socket: S, timeouts: Timeouts, progress: Progress) -> Self {
        let read_by = Instant::now() + timeouts.head;
        let (read_timer, write_timer) = (sleep_until(read_by), sleep_until(read_by));
        Self {
            socket,
            timeouts,
            progress,
            answered: 0,
            waiting: Waiting::ForRequest,
            read_by: Some(read_by),
            write_by: None,
            read_timer: Box::pin(read_timer),
            write_timer: Box::pin(write_timer),
        }
    }

    /// A read would wait: has it waited too long?
    fn check_reading(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.progress.0.answering.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        if self.has_answered() {
            self.waiting = Waiting::ForRequest;
            self.read_by = Some(Instant::now() + self.timeouts.idle);
        }
        let read_by = *self
            .read_by
            .get_or_insert_with(|| Instant::now() + self.timeouts.head);
        wait_until(&mut self.read_timer, read_by, context)
    }

    /// Bytes arrived: the first ones of a head start its clock.
    fn note_read(&mut self) {
        if self.progress.0.answering.load(Ordering::Relaxed) {
            return;
        }
        if self.has_answered() || self.waiting == Waiting::ForRequest {
            self.waiting = Waiting::ForHead;
            self.read_by = None;
            self.progress.0.reading_head.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a request was answered since this was last asked.
    fn has_answered(&mut self) -> bool {
        let answered = self.progress.0.answered.load(Ordering::Relaxed);
        std::mem::replace(&mut self.answered, answered) != answered
    }

    /// A write would wait: has it waited too long?
    fn check_writing(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let write_by = *self
            .write_by
            .get_or_insert_with(|| Instant::now() + self.timeouts.write);
        wait_until(&mut self.write_timer, write_by, context)
    }

    /// Bytes went out: a slow reader that makes progress isn't idle.
    fn note_written(&mut self, outcome: &Poll<io::Result<usize>>) {
        if outcome.is_ready() && self.waiting == Waiting::ForRequest {
            self.read_by = Some(Instant::now() + self.timeouts.idle);
        }
    }

    fn settle_write<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_pending() {
            return self.check_writing(context).map(|waited| match waited {
                Err(error) => Err(error),
                Ok(()) => Err(io::ErrorKind::TimedOut.into()),
            });
        }
        self.write_by = None;
        outcome
    }
}

/// Pending until `deadline`, then an error.
fn wait_until(
    timer: &mut Pin<Box<Sleep>>,
    deadline: Instant,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    if timer.deadline() != deadline {
        timer.as_mut().reset(deadline);
    }
    ready!(timer.as_mut().poll(context));
    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        match Pin::new(&mut self.socket).poll_read(context, buffer) {
            Poll::Pending => self.check_reading(context),
            Poll::Ready(outcome) => {
                if buffer.filled().len() > filled {
                    self.note_read();
                }
                Poll::Ready(outcome)
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.note_written(&outcome);
        self.settle_write(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.note_written(&outcome);
        self.settle_write(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.socket).poll_flush(context);
        self.settle_write(outcome, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.socket).poll_shutdown(context);
        self.settle_write(outcome, context)
    }
}
