//! A client's connection with limits on time: for what has begun to arrive, for writing, for doing nothing.
//!
//! hyper has none for writing, and one that counts a quiet connection as a slow head. So the socket
//! itself keeps the time.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;

use super::reading::ReadWatch;

/// Time for which a connection stays open for reading after its last answer, so that the client can take it.
const LINGER: Duration = Duration::from_secs(2);

/// Timeouts of connections and requests.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a TLS handshake.
    pub handshake: Duration,
    /// From a head's first byte to its last, and from a connection's start to its first byte.
    pub head: Duration,
    /// For the client to take any of what is being written.
    pub write: Duration,
    /// For the client to take any of what one HTTP/2 stream of several has for it.
    pub stream: Duration,
    /// Between one answer and the next request's first byte.
    pub idle: Duration,
    /// For a body to arrive.
    pub body: Duration,
    /// Maximum age of a connection before it is asked to end.
    pub age: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(5),
            write: Duration::from_secs(10),
            stream: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            body: Duration::from_secs(10),
            age: Duration::from_secs(3600),
        }
    }
}

/// Bytes that the system keeps unsent of a connection: a page of 500 products goes out with a call or two. With an eighth of
/// this, sending it took half as long again.
const UNSENT_BYTES: u32 = 1 << 20;

/// The same, of a connection beyond the first [`MAX_WIDE_SOCKETS`]: it is memory that no limit of ours knows.
const UNSENT_BYTES_OF_MANY: u32 = 32 << 10;

/// Connections that [`UNSENT_BYTES`] are kept of.
const MAX_WIDE_SOCKETS: usize = 64;

/// Number of such connections, from their first answer until they are closed.
static WIDE_SOCKETS: AtomicUsize = AtomicUsize::new(0);

/// A client's connection, plain or TLS.
pub(crate) trait ClientSocket: AsyncRead + AsyncWrite + Unpin {
    /// Has the system take no more than so much beyond what is on its way to the client.
    fn limit_unsent(&self, bytes: u32);

    /// Has the system forget what the client hasn't taken, once this is dropped.
    fn discard_unsent(&self);
}

impl ClientSocket for TcpStream {
    fn limit_unsent(&self, bytes: u32) {
        if let Err(error) = SockRef::from(self).set_tcp_notsent_lowat(bytes) {
            tracing::debug!(%error, "can't limit unsent bytes in the socket");
        }
    }

    fn discard_unsent(&self) {
        // One that is gone already has forgotten.
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
    /// The system keeps some 200 KiB of it, and asks nobody.
    fn limit_unsent(&self, _bytes: u32) {}

    /// Discards bytes that the client hasn't read; by default they are in the socket's own queue, which ends
    /// with it.
    fn discard_unsent(&self) {}
}

/// A socket that gives up on a client that takes too long.
pub(crate) struct TimedSocket<S: ClientSocket, R> {
    socket: S,
    reading: R,
    write_timeout: Duration,
    write_by: Option<Instant>,
    /// True if this one counts in [`WIDE_SOCKETS`]; decided with its first answer.
    is_wide: Option<bool>,
    /// Set once nothing more is written: until when the client may go on sending.
    linger_by: Option<Instant>,
    read_timer: Pin<Box<Sleep>>,
    write_timer: Pin<Box<Sleep>>,
}

impl<S: ClientSocket, R: ReadWatch> TimedSocket<S, R> {
    pub(crate) fn new(socket: S, timeouts: &Timeouts, reading: R) -> Self {
        // Both are set anew before they are waited for.
        let (read_timer, write_timer) = (Instant::now(), Instant::now());
        Self {
            socket,
            reading,
            write_timeout: timeouts.write,
            write_by: None,
            is_wide: None,
            linger_by: None,
            read_timer: Box::pin(sleep_until(read_timer)),
            write_timer: Box::pin(sleep_until(write_timer)),
        }
    }

    /// A read would wait: has it waited too long?
    fn check_reading(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.reading.deadline() {
            Some(read_by) => wait_until(&mut self.read_timer, read_by, context),
            None => Poll::Pending,
        }
    }

    /// A write would wait: has it waited too long?
    fn check_writing(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let write_by = *self
            .write_by
            .get_or_insert_with(|| Instant::now() + self.write_timeout);
        wait_until(&mut self.write_timer, write_by, context)
    }

    /// Before anything is written.
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
        if outcome.is_ready() {
            self.reading.note_written();
        }
    }

    fn track_write<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        self.reading.note_unsent(outcome.is_pending());
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

impl<S: ClientSocket, R> Drop for TimedSocket<S, R> {
    /// Discards what was written if the client takes nothing: the system would go on keeping it.
    fn drop(&mut self) {
        if self.write_by.is_some() {
            self.socket.discard_unsent();
        }
        if self.is_wide == Some(true) {
            WIDE_SOCKETS.fetch_sub(1, Ordering::Relaxed);
        }
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

impl<S: ClientSocket, R: ReadWatch + Unpin> AsyncRead for TimedSocket<S, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        match Pin::new(&mut self.socket).poll_read(context, buffer) {
            Poll::Pending => self.check_reading(context),
            Poll::Ready(outcome) => {
                let arrived = &buffer.filled()[filled..];
                if !arrived.is_empty() {
                    self.reading.note(arrived);
                }
                Poll::Ready(outcome)
            }
        }
    }
}

impl<S: ClientSocket, R: ReadWatch + Unpin> TimedSocket<S, R> {
    /// Reads and ignores what still comes until the client closes too: a socket that is closed with unread bytes
    /// in it throws away what the client hasn't got yet, and with that the end of an answer.
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
                // Closed, by the client or by an accident: nothing is left to be waited for.
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    let waited = wait_until(&mut self.read_timer, linger_by, context);
                    return waited.map(|_| Ok(()));
                }
            }
        }
    }
}

impl<S: ClientSocket, R: ReadWatch + Unpin> AsyncWrite for TimedSocket<S, R> {
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

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
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
