//! One connection of HTTP/1.1. While its request waits for changes, it needs neither parser nor buffers: hyper's state is
//! dropped, and made anew from the request's head.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::admission::Admitted;
use super::connection::{
    CLOSE_TIMEOUT, Connection, EVICTION_TIMEOUT, Phase, Shared, end_within, log_end,
};
use super::presence::Presence;
use super::reading::{Http1Watch, Progress};
use super::socket::{ClientSocket, TimedSocket};
use crate::http::body::budget::Account;
use crate::http::parking::{self, CanPark, KeepAlive, Parked, Resumed};
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
    /// True once the connection is being closed for another.
    is_evicted: AtomicBool,
    parking: Mutex<Parking>,
}

/// Place of the connection's request while it isn't hyper's.
#[derive(Debug, Default)]
enum Parking {
    #[default]
    Empty,
    Parked(Box<Parked>),
    Resumed(Box<Resumed>),
}

/// Event that ends the work of hyper's connection.
enum End {
    Ended(hyper::Result<()>),
    Quiet,
    Evicted,
}

/// Error by which a request leaves hyper.
#[derive(Debug, thiserror::Error)]
#[error("the request is parked")]
struct IsParked;

impl Http1State {
    fn swap(&self, parking: Parking) -> Parking {
        let mut place = self.parking.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut place, parking)
    }

    /// Waits while hyper has no request. Returns the head to read again, and what the request goes on with; none if the
    /// connection has failed.
    async fn wait<S: ClientSocket>(
        &self,
        parked: Box<Parked>,
        socket: &TimedSocket<S, Http1Watch>,
        admitted: &Admitted,
    ) -> Option<(Vec<u8>, Box<Resumed>)> {
        // Pinned here: a future that is passed on would have its room several times.
        let closed = std::pin::pin!(async {
            socket.closed().await;
            admitted.presence.note_closed();
        });
        let evicted = std::pin::pin!(async {
            self.presence.evicted().await;
            self.shared.note_evicted(&self.presence);
            self.is_old.store(true, Ordering::Relaxed);
        });
        tokio::select! {
            biased;
            resumed = self.shared.service.wait(parked, closed, evicted) => Some(resumed),
            // Nobody reads the answer. The place of the wait is free again.
            () = socket.failed() => None,
        }
    }
}

impl parking::Connection for Http1State {
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

    /// Not while bytes of the response before wait to be sent, since hyper has them; nor while the connection is being closed.
    fn parking(&self) -> CanPark {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if is_set(&self.shared.closing) || is_set(&self.is_evicted) {
            return CanPark::Never;
        }
        match is_set(&self.presence.unsent()) {
            true => CanPark::Later,
            false => CanPark::Now,
        }
    }
}

impl Connection {
    /// Serves HTTP/1.1 until the connection ends.
    pub(super) async fn serve_http1<S>(mut self, socket: S, admitted: &Admitted)
    where
        S: ClientSocket + Send + 'static,
    {
        let timeouts = &self.shared.timeouts;
        let presence = Arc::clone(&admitted.presence);
        let progress = Progress::with_unsent(presence.unsent());
        let watch = Http1Watch::new(*timeouts, progress.clone());
        let mut socket = TimedSocket::new(socket, timeouts, watch);
        let state = Arc::new(Http1State {
            shared: Arc::clone(&self.shared),
            progress,
            presence,
            account: Account::default(),
            is_old: AtomicBool::new(false),
            is_evicted: AtomicBool::new(false),
            parking: Mutex::default(),
        });
        let mut age = std::pin::pin!(wait_for_age(timeouts.age, &state.is_old));
        loop {
            let (own, remote) = (Arc::clone(&state), self.remote);
            let answer = service_fn(move |request| answer(Arc::clone(&own), remote, request));
            let mut connection = http1_builder()
                .half_close(true)
                .serve_connection(TokioIo::new(socket), answer);
            let end = tokio::select! {
                // First, so that a request that goes on is read before the connection may be ended for being quiet.
                biased;
                ended = &mut connection => End::Ended(ended),
                _ = self.phase.wait_for(|phase| *phase == Phase::Quiet) => End::Quiet,
                () = state.presence.evicted() => End::Evicted,
                never = age.as_mut() => match never {},
            };
            if let End::Ended(ended) = end {
                let http1::Parts { io, read_buf, .. } = connection.into_parts();
                let Parking::Parked(parked) = state.swap(Parking::Empty) else {
                    refuse_http2(io.into_inner(), &read_buf).await;
                    return log_end(ended);
                };
                socket = io.into_inner();
                // A copy, if there is anything: the buffer would be kept.
                let following = read_buf.to_vec();
                drop((read_buf, ended));
                let waited = tokio::select! {
                    biased;
                    never = age.as_mut() => match never {},
                    // Boxed, so that connections that don't wait need no room for it.
                    waited = Box::pin(state.wait(parked, &socket, admitted)) => waited,
                };
                let Some((head, resumed)) = waited else {
                    return;
                };
                socket.read_again([head, following].concat().into());
                state.swap(Parking::Resumed(resumed));
                continue;
            }
            let mut connection = std::pin::pin!(connection);
            if let End::Evicted = end {
                self.shared.note_evicted(&state.presence);
                state.is_old.store(true, Ordering::Relaxed);
                state.is_evicted.store(true, Ordering::Relaxed);
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
            return end_within(CLOSE_TIMEOUT, connection).await;
        }
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

/// Answers a request, or parks it.
fn answer(
    state: Arc<Http1State>,
    remote: Option<IpAddr>,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response, IsParked>> {
    let resumed = match state.swap(Parking::Empty) {
        Parking::Resumed(resumed) => Some(resumed),
        _ => {
            state.progress.begin();
            state.presence.begin_request();
            if state.progress.take_fragment() {
                request.extensions_mut().insert(HasFragment);
            }
            None
        }
    };
    async move {
        let service = &state.shared.service;
        let served = service
            .serve(request, remote.into(), &*state, resumed)
            .await;
        if served.is_ok() {
            state.presence.end_request();
            state.progress.end();
        }
        served.map_err(|parked| {
            state.swap(Parking::Parked(parked));
            IsParked
        })
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
