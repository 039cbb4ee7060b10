//! A client's connection with time limits for reading, writing and idling.
//!
//! hyper has no write timeout, and its read timeout treats an idle connection like a slow head, so the socket enforces
//! the limits.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;

use super::presence::Presence;
use super::reading::Http1Watch;

/// Time for which a connection is read from after its last response, so that the client can read it.
const LINGER: Duration = Duration::from_secs(2);

/// Maximum number of bytes that are read behind a request that waits for changes, to notice if its client closes.
const MAX_AHEAD: usize = 1024;

/// Timeouts of connections and requests.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request head to its last, and from a connection's start to its first byte.
    pub head: Duration,
    /// For the client to read any byte that is being written.
    pub write: Duration,
    /// For the client to read a response of HTTP/2, from when it is ready.
    pub response: Duration,
    /// Between a response and the next request's first byte.
    pub idle: Duration,
    /// For a body to arrive.
    pub body: Duration,
    /// Age at which a connection is asked to end.
    pub age: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(5),
            write: Duration::from_secs(10),
            response: Duration::from_secs(60),
            idle: Duration::from_secs(75),
            body: Duration::from_secs(10),
            age: Duration::from_secs(3600),
        }
    }
}

/// Unsent bytes that the system buffers for a connection: a page of 500 products is written with a call or two. An
/// eighth of this made sending it take 1.5 times as long.
const UNSENT_BYTES: u32 = 1 << 20;

/// Unsent bytes for each connection beyond the first [`MAX_WIDE_SOCKETS`]: this memory counts in no other limit.
const UNSENT_BYTES_OF_MANY: u32 = 32 << 10;

/// Maximum number of connections with [`UNSENT_BYTES`].
const MAX_WIDE_SOCKETS: usize = 64;

/// Number of connections with [`UNSENT_BYTES`], from their first response until they are closed.
static WIDE_SOCKETS: AtomicUsize = AtomicUsize::new(0);

/// A client's connection, plain or TLS.
pub(crate) trait ClientSocket: AsyncRead + AsyncWrite + Unpin {
    /// Limits the unsent bytes that the system buffers.
    fn limit_unsent(&self, bytes: u32);

    /// Makes the system discard unread bytes when this is dropped.
    fn discard_unsent(&self);
}

impl ClientSocket for TcpStream {
    fn limit_unsent(&self, bytes: u32) {
        if let Err(error) = SockRef::from(self).set_tcp_notsent_lowat(bytes) {
            tracing::debug!(%error, "can't limit unsent bytes in the socket");
        }
    }

    fn discard_unsent(&self) {
        // A closed socket has discarded them already.
        let _ = self.set_zero_linger();
    }
}

impl ClientSocket for TlsStream<TcpStream> {
    fn limit_unsent(&self, bytes: u32) {
        self.get_ref().0.limit_unsent(bytes);
    }

    fn discard_unsent(&self) {
        self.get_ref().0.discard_unsent();
    }
}

impl ClientSocket for UnixStream {
    /// Does nothing: the system buffers some 200 KiB, without a setting.
    fn limit_unsent(&self, _bytes: u32) {}

    /// Does nothing: unread bytes are in the socket's own queue, which is dropped with it.
    fn discard_unsent(&self) {}
}

/// Socket that fails if the client takes too long.
pub(crate) struct TimedSocket<S: ClientSocket> {
    socket: S,
    presence: Arc<Presence>,
    /// Read deadlines of HTTP/1.1. `connection` limits the time without requests of HTTP/2, and its pings the time without frames.
    reading: Option<Http1Watch>,
    /// Bytes that arrived behind a request that waits for changes.
    ahead: Vec<u8>,
    write_timeout: Duration,
    write_by: Option<Instant>,
    /// True if this socket counts in [`WIDE_SOCKETS`]; decided at its first response.
    is_wide: Option<bool>,
    /// Time until which the client may go on sending; set after the last write.
    linger_by: Option<Instant>,
    read_timer: Pin<Box<Sleep>>,
    write_timer: Pin<Box<Sleep>>,
}

impl<S: ClientSocket> TimedSocket<S> {
    pub(crate) fn new(
        socket: S,
        timeouts: &Timeouts,
        presence: Arc<Presence>,
        reading: Option<Http1Watch>,
    ) -> Self {
        // Both are reset before they are awaited.
        let (read_timer, write_timer) = (Instant::now(), Instant::now());
        Self {
            socket,
            presence,
            reading,
            ahead: Vec::new(),
            write_timeout: timeouts.write,
            write_by: None,
            is_wide: None,
            linger_by: None,
            read_timer: Box::pin(sleep_until(read_timer)),
            write_timer: Box::pin(sleep_until(write_timer)),
        }
    }

    /// Notices the end of what the client sends while its request waits. Bytes before it are kept for the next read, up to a limit; behind more, the end
    /// goes unnoticed.
    fn poll_end(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some(reading) = self.reading.as_mut().filter(|reading| reading.awaits_end()) else {
            return Ok(());
        };
        while self.ahead.len() < MAX_AHEAD {
            let mut bytes = [0; 256];
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.socket).poll_read(context, &mut buffer) {
                Poll::Pending => break,
                Poll::Ready(outcome) => outcome?,
            }
            if buffer.filled().is_empty() {
                reading.note_end();
                self.presence.note_closed();
                break;
            }
            reading.note(buffer.filled());
            self.ahead.extend_from_slice(buffer.filled());
        }
        Ok(())
    }

    /// Fails a pending read at its deadline.
    fn check_reading(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.reading.as_mut().and_then(Http1Watch::deadline) {
            Some(read_by) => wait_until(&mut self.read_timer, read_by, context),
            None => Poll::Pending,
        }
    }

    /// Fails a pending write at its deadline.
    fn check_writing(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let write_by = *self
            .write_by
            .get_or_insert_with(|| Instant::now() + self.write_timeout);
        wait_until(&mut self.write_timer, write_by, context)
    }

    /// Sets the limit of unsent bytes, once, before the first write.
    fn limit_unsent(&mut self) {
        if self.is_wide.is_some() {
            return;
        }
        let is_wide = WIDE_SOCKETS.fetch_add(1, Ordering::Relaxed) < MAX_WIDE_SOCKETS;
        if !is_wide {
            WIDE_SOCKETS.fetch_sub(1, Ordering::Relaxed);
        }
        self.is_wide = Some(is_wide);
        self.socket.limit_unsent(match is_wide {
            true => UNSENT_BYTES,
            false => UNSENT_BYTES_OF_MANY,
        });
    }

    fn note_written(&mut self, outcome: &Poll<io::Result<usize>>) {
        if outcome.is_ready()
            && let Some(reading) = &mut self.reading
        {
            reading.note_written();
        }
    }

    fn track_write<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        self.presence.note_unsent(outcome.is_pending());
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

impl<S: ClientSocket> Drop for TimedSocket<S> {
    /// Discards unread bytes if the client stopped reading: the system would keep them.
    fn drop(&mut self) {
        if self.write_by.is_some() {
            self.socket.discard_unsent();
        }
        if self.is_wide == Some(true) {
            WIDE_SOCKETS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Waits until `deadline`, then fails.
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

impl<S: ClientSocket> AsyncRead for TimedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead[..length]);
            self.ahead.drain(..length);
            return Poll::Ready(Ok(()));
        }
        let filled = buffer.filled().len();
        match Pin::new(&mut self.socket).poll_read(context, buffer) {
            Poll::Pending => self.check_reading(context),
            Poll::Ready(outcome) => {
                let arrived = &buffer.filled()[filled..];
                if !arrived.is_empty()
                    && let Some(reading) = &mut self.reading
                {
                    reading.note(arrived);
                }
                Poll::Ready(outcome)
            }
        }
    }
}

impl<S: ClientSocket> TimedSocket<S> {
    /// Reads and ignores further bytes until the client closes: closing a socket with unread bytes resets the
    /// connection, which may discard the end of a response that the client hasn't read.
    fn poll_linger(
        &mut self,
        linger_by: Instant,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut ignored = [0; 2048];
        loop {
            let mut buffer = ReadBuf::new(&mut ignored);
            match Pin::new(&mut self.socket).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    if Instant::now() >= linger_by {
                        return Poll::Ready(Ok(()));
                    }
                }
                // Closed or failed.
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    let waited = wait_until(&mut self.read_timer, linger_by, context);
                    return waited.map(|_| Ok(()));
                }
            }
        }
    }
}

impl<S: ClientSocket> AsyncWrite for TimedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.limit_unsent();
        let outcome = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.note_written(&outcome);
        self.track_write(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.limit_unsent();
        let outcome = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.note_written(&outcome);
        self.track_write(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// Flushes. hyper does so after each of its steps, so also while a request waits.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(context)?;
        let outcome = Pin::new(&mut self.socket).poll_flush(context);
        self.track_write(outcome, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger_by.is_none() {
            let outcome = Pin::new(&mut self.socket).poll_shutdown(context);
            ready!(self.track_write(outcome, context))?;
        }
        let linger_by = *self
            .linger_by
            .get_or_insert_with(|| Instant::now() + LINGER);
        self.poll_linger(linger_by, context)
    }
}
