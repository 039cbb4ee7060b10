//! The accept loop, and how a server ends.
//!
//! Ending: the listener is emptied and closed, answers then say `Connection: close`, connections that
//! stay quiet are closed after a moment, and whatever is left is cut at the end of the drain.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::App;
use super::access_log::AccessLog;
use super::connection::{Progress, TimedSocket};
use super::service::{KeepAlive, RequestIds, Service};

pub use super::connection::Timeouts;

/// How long a connection may live before it is asked to end.
const MAX_CONNECTION_AGE: Duration = Duration::from_secs(3600);
/// How long a quiet connection stays open while the server ends: its next request may be on the way.
const QUIET_GRACE: Duration = Duration::from_secs(5);
/// How often a connection is looked at whose next request has begun to arrive.
const HEAD_CHECK: Duration = Duration::from_millis(50);
/// How long the server takes to end at most.
const DRAIN: Duration = Duration::from_secs(30);
/// How long to wait before accepting again where that failed, out of descriptors for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The most headers that hyper parses: more than ours, so that ours answers.
const PARSED_HEADERS: usize = 512;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    service: Arc<Service>,
    timeouts: Timeouts,
    draining: Arc<AtomicBool>,
}

impl Server {
    /// A server on a socket that listens.
    ///
    /// # Errors
    ///
    /// Where the system has no random numbers.
    pub fn new(
        listener: TcpListener,
        app: Arc<App>,
        access_log: AccessLog,
        timeouts: Timeouts,
    ) -> io::Result<Self> {
        let draining = Arc::clone(&app.draining);
        let service = Service {
            app,
            access_log,
            ids: RequestIds::new().map_err(io::Error::other)?,
            body_timeout: timeouts.body,
        };
        Ok(Self {
            listener,
            service: Arc::new(service),
            timeouts,
            draining,
        })
    }

    /// Serves until `stop` ends, then finishes what is in flight.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        let (close, closed) = watch::channel(());
        let mut stop = std::pin::pin!(stop);
        let mut accepting = true;
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, remote)) => {
                        accepting = true;
                        connections.spawn(self.connection(socket, remote, closed.clone()));
                    }
                    Err(error) => {
                        self.service.app.metrics.connections.not_accepted.increment();
                        if std::mem::replace(&mut accepting, false) {
                            let error: &dyn std::error::Error = &error;
                            tracing::warn!(error, "connections can't be accepted");
                        }
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
            }
        }
        self.draining.store(true, Ordering::Relaxed);
        // Connections that the system has accepted already get their answers too.
        while let Ok(Ok((socket, remote))) =
            tokio::time::timeout(Duration::ZERO, self.listener.accept()).await
        {
            connections.spawn(self.connection(socket, remote, closed.clone()));
        }
        drop(self.listener);
        tracing::info!(connections = connections.len(), "draining");
        let drained = async {
            let quiet = async { while connections.join_next().await.is_some() {} };
            if tokio::time::timeout(QUIET_GRACE, quiet).await.is_err() {
                drop(close);
                while connections.join_next().await.is_some() {}
            }
        };
        if tokio::time::timeout(DRAIN, drained).await.is_err() {
            tracing::warn!("connections were cut at the end of the drain");
        }
    }

    /// Serves one connection until it ends.
    fn connection(
        &self,
        socket: TcpStream,
        remote: SocketAddr,
        mut close: watch::Receiver<()>,
    ) -> impl Future<Output = ()> + Send + 'static {
        // Answers are written whole; waiting to fill a segment would only delay them.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "a connection ended before it began");
        }
        let open = self.service.app.metrics.connections.open();
        let progress = Progress::default();
        let head = progress.clone();
        let socket = TimedSocket::new(socket, self.timeouts, progress.clone());
        // One counter a connection: counters that all cores count on cost each of them time.
        let shared = Arc::new((
            Arc::clone(&self.service),
            Arc::clone(&self.draining),
            progress,
        ));
        let answer = service_fn(move |request| {
            let shared = Arc::clone(&shared);
            async move {
                let (service, draining, progress) = &*shared;
                progress.begin();
                let keep_alive = || match draining.load(Ordering::Relaxed) {
                    true => KeepAlive::No,
                    false => KeepAlive::Yes,
                };
                let answer = service.serve(request, remote.ip().into(), keep_alive).await;
                progress.end();
                Ok::<_, Infallible>(answer)
            }
        });
        async move {
            let _open = open;
            let connection = http1::Builder::new()
                .header_read_timeout(None)
                .half_close(true)
                .max_headers(PARSED_HEADERS)
                .serve_connection(TokioIo::new(socket), answer);
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => Some(ended),
                _ = close.changed() => None,
                () = tokio::time::sleep(MAX_CONNECTION_AGE) => None,
            };
            let ended = match ended {
                Some(ended) => ended,
                None => {
                    // What has begun to arrive is still answered; the socket cuts what takes too long.
                    let whole_head = async {
                        while head.is_reading_head() {
                            tokio::time::sleep(HEAD_CHECK).await;
                        }
                    };
                    tokio::select! {
                        ended = connection.as_mut() => ended,
                        () = whole_head => {
                            connection.as_mut().graceful_shutdown();
                            connection.await
                        }
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
        }
    }
}
