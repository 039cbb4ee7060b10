//! One connection: HTTP/1.1, or HTTP/2 if TLS negotiated it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::http1::http1_builder;
use super::http2::Streams;
use super::presence::Presence;
use super::reading::{Http1Watch, Progress};
use super::sent_body::SentBody;
use super::socket::{ClientSocket, TimedSocket, Timeouts};
use super::tls::{Certificates, HTTP2};
use crate::http::body::budget::Account;
use crate::http::connection;
use crate::http::service::Service;
use crate::metrics::table::Caller;

/// Interval of checks of an HTTP/2 connection.
const HTTP2_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit for a connection to end once it was asked to, while requests are in flight.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The same without requests in flight: time for the client to react.
const QUIET_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for an evicted connection to notify its client. It has no requests in flight.
pub(super) const EVICTION_TIMEOUT: Duration = Duration::from_millis(250);
/// Time limit for the request and the response of a refused connection.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size of HTTP/2's header list: more than our own limit, so that our response is sent.
const MAX_HEADER_LIST_BYTES: u32 = 64 << 10;
/// Maximum number of concurrent requests of one connection.
const MAX_STREAMS: u32 = 100;
/// Maximum number of pending streams that a client may have reset before the connection is closed as an attack.
const MAX_RESETS: usize = 20;
/// Maximum bytes buffered for a stream beyond its flow-control window.
const STREAM_BUFFER_BYTES: usize = 64 << 10;
/// Interval of pings on a quiet HTTP/2 connection, and the time limit for the reply.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// Phase of a server's shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Accepts connections and answers requests.
    Serving,
    /// Accepts no connections; open ones end with their next response.
    Closing,
    /// Closes connections without a request in flight.
    Quiet,
}

/// State shared by all connections of a server.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) service: Service,
    pub(super) timeouts: Timeouts,
    pub(super) certificates: Option<Arc<Certificates>>,
    /// True once the listeners are closed: the next response is a connection's last.
    pub(super) closing: AtomicBool,
}

impl Shared {
    /// Counts an evicted connection.
    pub(super) fn note_evicted(&self, presence: &Presence) {
        let connections = &self.service.app.metrics.connections;
        connections.evicted.of(presence.caller()).increment();
    }
}

/// An admitted connection.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    /// Address of the client; none for a Unix socket.
    pub(super) remote: Option<IpAddr>,
    pub(super) phase: watch::Receiver<Phase>,
}

/// State of an HTTP/2 connection that its requests use. It ends with frames of its own.
#[derive(Debug)]
struct Http2State {
    presence: Arc<Presence>,
    account: Account,
}

impl connection::Connection for Http2State {
    fn account(&self) -> &Account {
        &self.account
    }

    fn note(&self, caller: Caller) {
        self.presence.note(caller);
    }
}

impl Connection {
    /// Serves a TCP connection until it ends.
    pub(super) async fn serve_tcp(self, socket: TcpStream, presence: Arc<Presence>) {
        // Responses are written whole; waiting to fill a segment would only delay them.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "a connection ended before it began");
        }
        match &self.shared.certificates {
            None => self.serve_http1(socket, presence).await,
            Some(certificates) => {
                let certificates = Arc::clone(certificates);
                // Boxed, so that plain connections need no room for it.
                Box::pin(self.serve_tls(socket, presence, certificates)).await;
            }
        }
    }

    /// Serves a TCP connection with TLS until it ends.
    async fn serve_tls(
        self,
        socket: TcpStream,
        presence: Arc<Presence>,
        certificates: Arc<Certificates>,
    ) {
        let acceptor = TlsAcceptor::from(certificates.config());
        let handshake =
            tokio::time::timeout(self.shared.timeouts.handshake, acceptor.accept(socket));
        let handshake = tokio::select! {
            outcome = handshake => outcome,
            () = presence.evicted() => return self.shared.note_evicted(&presence),
        };
        let failed = match handshake {
            Ok(Ok(socket)) => {
                return match socket.get_ref().1.alpn_protocol() {
                    Some(protocol) if protocol == HTTP2 => {
                        self.serve_http2(socket, presence).await;
                    }
                    _ => self.serve_http1(socket, presence).await,
                };
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "timeout".to_owned(),
        };
        certificates.metrics().handshake_failures.increment();
        tracing::debug!(error = failed, "a TLS handshake failed");
    }

    /// Serves HTTP/2 until the connection ends.
    async fn serve_http2<S>(mut self, socket: S, presence: Arc<Presence>)
    where
        S: ClientSocket + Send + 'static,
    {
        let timeouts = self.shared.timeouts;
        let socket = TimedSocket::new(socket, &timeouts, Arc::clone(&presence), None);
        let (shared, remote) = (Arc::clone(&self.shared), self.remote);
        let state = Arc::new(Http2State {
            presence: Arc::clone(&presence),
            account: Account::default(),
        });
        let answer = service_fn(move |request| {
            let (shared, state) = (Arc::clone(&shared), Arc::clone(&state));
            async move {
                let service = &shared.service;
                let answer = service.serve(request, remote.into(), &*state).await;
                Ok::<_, Infallible>(answer.map(SentBody::new))
            }
        });
        let streams = Streams {
            presence: Arc::clone(&presence),
            limit: timeouts.response,
        };
        let connection = http2::Builder::new(streams)
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEADER_LIST_BYTES)
            .max_pending_accept_reset_streams(MAX_RESETS)
            .max_send_buf_size(STREAM_BUFFER_BYTES)
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1)
            .serve_connection(TokioIo::new(socket), answer);
        let mut connection = std::pin::pin!(connection);
        let mut look = tokio::time::interval(HTTP2_CHECK_INTERVAL);
        // Time at which the connection was asked to end.
        let mut asked: Option<Instant> = None;
        let start = Instant::now();
        loop {
            tokio::select! {
                ended = connection.as_mut() => return log_end(ended),
                _ = self.phase.wait_for(|phase| *phase >= Phase::Closing), if asked.is_none() => {}
                () = presence.evicted() => break,
                _ = look.tick() => {
                    let idle = presence.idle_since().map(|since| since.elapsed());
                    if let Some(asked) = asked {
                        let limit = idle.map_or(CLOSE_TIMEOUT, |_| QUIET_CLOSE_TIMEOUT);
                        if asked.elapsed() >= limit {
                            return;
                        }
                        continue;
                    }
                    if !presence.has_asked() && start.elapsed() >= timeouts.head {
                        return tracing::debug!("closed a connection: no request came");
                    }
                    if idle.is_none_or(|idle| idle < timeouts.idle) && start.elapsed() < timeouts.age {
                        continue;
                    }
                }
            }
            asked = Some(Instant::now());
            connection.as_mut().graceful_shutdown();
        }
        self.shared.note_evicted(&presence);
        connection.as_mut().graceful_shutdown();
        end_within(EVICTION_TIMEOUT, connection).await;
    }

    /// Answers any request with the error for too many connections, and ends.
    pub(super) async fn refuse<S>(self, socket: S)
    where
        S: ClientSocket + Send + 'static,
    {
        let timeouts = &self.shared.timeouts;
        let reading = Http1Watch::new(*timeouts, Progress::default());
        let socket = TimedSocket::new(socket, timeouts, Arc::default(), Some(reading));
        let answer = service_fn(move |request| {
            let answer = self.shared.service.turn_away(request, self.remote.into());
            std::future::ready(Ok::<_, Infallible>(answer))
        });
        let connection = http1_builder().serve_connection(TokioIo::new(socket), answer);
        end_within(REFUSAL_TIMEOUT, connection).await;
    }
}

/// Waits for the end of a connection, and cuts it at the time limit.
pub(super) async fn end_within(
    limit: Duration,
    connection: impl Future<Output = hyper::Result<()>>,
) {
    if let Ok(ended) = tokio::time::timeout(limit, connection).await {
        log_end(ended);
    }
}

pub(super) fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
