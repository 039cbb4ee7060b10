//! One connection of HTTP/1.1.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::connection::{
    CLOSE_TIMEOUT, Connection, EVICTION_TIMEOUT, Phase, Shared, end_within, log_end,
};
use super::presence::Presence;
use super::reading::{Http1Watch, Progress};
use super::socket::{ClientSocket, TimedSocket};
use crate::http::body::budget::Account;
use crate::http::connection::{self, Event, KeepAlive};
use crate::http::request::HasFragment;
use crate::http::response::Response;
use crate::metrics::table::Caller;

/// Interval of checks of a connection while a request head is arriving.
const HEAD_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of headers that hyper parses: more than our own limit, so that our response is sent.
const MAX_PARSED_HEADERS: usize = 512;
/// Maximum length of a buffered head: more than our own limit, so that our response is sent.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// State of a connection that its requests use. One `Arc` for each: a reference count of all connections would be contended.
#[derive(Debug)]
struct Http1State {
    shared: Arc<Shared>,
    progress: Progress,
    presence: Arc<Presence>,
    account: Account,
    /// True once the connection is to end with its next response.
    is_old: AtomicBool,
}

/// Event that ends the use of a connection.
enum End {
    Ended(hyper::Result<()>),
    Quiet,
    Evicted,
}

impl connection::Connection for Http1State {
    fn account(&self) -> &Account {
        &self.account
    }

    fn note(&self, caller: Caller) {
        self.presence.note(caller);
    }

    fn keep_alive(&self) -> KeepAlive {
        let is_last =
            self.shared.closing.load(Ordering::Relaxed) || self.is_old.load(Ordering::Relaxed);
        match is_last {
            true => KeepAlive::No,
            false => KeepAlive::Yes,
        }
    }

    fn closed(&self) -> Event<'_> {
        self.progress.await_end();
        Box::pin(self.presence.closed())
    }
}

impl Connection {
    /// Serves HTTP/1.1 until the connection ends.
    pub(super) async fn serve_http1<S>(mut self, socket: S, presence: Arc<Presence>)
    where
        S: ClientSocket + Send + 'static,
    {
        let timeouts = &self.shared.timeouts;
        let progress = Progress::default();
        let reading = Http1Watch::new(*timeouts, progress.clone());
        let socket = TimedSocket::new(socket, timeouts, Arc::clone(&presence), Some(reading));
        let state = Arc::new(Http1State {
            shared: Arc::clone(&self.shared),
            progress,
            presence,
            account: Account::default(),
            is_old: AtomicBool::new(false),
        });
        let (own, remote) = (Arc::clone(&state), self.remote);
        let answer = service_fn(move |request| answer(Arc::clone(&own), remote, request));
        let mut connection = http1_builder()
            .half_close(true)
            .serve_connection(TokioIo::new(socket), answer);
        let end = tokio::select! {
            ended = &mut connection => End::Ended(ended),
            _ = self.phase.wait_for(|phase| *phase == Phase::Quiet) => End::Quiet,
            () = state.presence.evicted() => End::Evicted,
            never = wait_for_age(timeouts.age, &state.is_old) => match never {},
        };
        if let End::Ended(ended) = end {
            let http1::Parts { io, read_buf, .. } = connection.into_parts();
            refuse_http2(io.into_inner(), &read_buf).await;
            return log_end(ended);
        }
        let mut connection = std::pin::pin!(connection);
        if let End::Evicted = end {
            self.shared.note_evicted(&state.presence);
            state.is_old.store(true, Ordering::Relaxed);
            connection.as_mut().graceful_shutdown();
            return end_within(EVICTION_TIMEOUT, connection).await;
        }
        // A request that has begun to arrive is still answered; the socket cuts one that takes too long.
        let whole_head = async {
            while state.progress.is_reading_head() {
                tokio::time::sleep(HEAD_CHECK_INTERVAL).await;
            }
        };
        tokio::select! {
            ended = connection.as_mut() => return log_end(ended),
            () = whole_head => connection.as_mut().graceful_shutdown(),
        }
        end_within(CLOSE_TIMEOUT, connection).await;
    }
}

/// Sends what other unparsable heads get to a client that begins with HTTP/2: hyper recognises its preface, and leaves the
/// response to the caller.
async fn refuse_http2(mut socket: impl AsyncWrite + Unpin, unread: &[u8]) {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const REFUSAL: &[u8] =
        b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    if unread.starts_with(PREFACE) {
        // The socket limits the time, and a client that is gone needs no response.
        let _ = socket.write_all(REFUSAL).await;
        let _ = socket.shutdown().await;
    }
}

fn answer(
    state: Arc<Http1State>,
    remote: Option<IpAddr>,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response, Infallible>> {
    state.progress.begin();
    state.presence.begin_request();
    if state.progress.take_fragment() {
        request.extensions_mut().insert(HasFragment);
    }
    async move {
        let service = &state.shared.service;
        let answer = service.serve(request, remote.into(), &*state).await;
        state.presence.end_request();
        state.progress.end();
        Ok(answer)
    }
}

/// Marks the connection as old after `age`: its next response is its last, and says so. Closing a quiet connection at
/// once could lose a request on its way; if none comes, the idle timeout closes it.
async fn wait_for_age(age: Duration, is_old: &AtomicBool) -> Infallible {
    tokio::time::sleep(age).await;
    is_old.store(true, Ordering::Relaxed);
    std::future::pending().await
}

/// Returns the HTTP/1.1 settings of all connections. The socket enforces time limits.
pub(crate) fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .header_read_timeout(None)
        .max_headers(MAX_PARSED_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES);
    builder
}
