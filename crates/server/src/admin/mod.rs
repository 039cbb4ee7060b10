//! The admin port: liveness, readiness and metrics, for operators and monitoring. It is opened only if an address for
//! it is set. Pages for people are in `browser`.
//!
//! It has a thread of its own, so that it answers while a large catalog is read at the start, while the main port
//! drains, and while all other threads are busy.
//!
//! - `pages`: responses
//! - `scrape`: `/metrics`
//! - `state_files`: files of the state directory

mod pages;
mod scrape;
mod state_files;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use self::pages::Port;
use crate::browser::Browser;
use crate::browser::acts::MAX_ACTS;
use crate::edge::admission::{Admission, Admitted, Limits};
use crate::edge::http1::http1_builder;
use crate::edge::reading::{Http1Watch, Progress};
use crate::edge::socket::{TimedSocket, Timeouts};
use crate::http::App;
use crate::http::access::client::Peer;

/// Maximum number of open connections, of which three quarters are used: none presents a key.
const MAX_CONNECTIONS: usize = 128;
/// Minimum idle time of a connection before it may be closed for another, so that probes get through whatever stays open.
const MIN_IDLE: Duration = Duration::from_millis(100);
/// Maximum number of threads that render pages, do acts and resolve hosts of pictures; more requests wait. Acts, which may wait for
/// another writer of the store, leave eight of them to pages.
const MAX_BLOCKING_THREADS: usize = 8 + MAX_ACTS;
/// Pause after a failed accept, or while all connections are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running admin port, stopped when this is dropped.
#[derive(Debug)]
pub struct Admin {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Starts the admin port.
    ///
    /// # Errors
    ///
    /// If the thread can't be started, or the socket can't be registered with the runtime.
    pub fn start(listener: TcpListener, app: Arc<App>, browser: Arc<Browser>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_BLOCKING_THREADS)
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    never = accept(listener, Arc::new(Port::new(app, browser))) => match never {},
                    _ = stopped => {}
                }
            });
            // A request may wait for an unreachable store; the shutdown doesn't wait for it.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(run)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the admin port's thread panicked");
        }
    }
}

async fn accept(listener: tokio::net::TcpListener, port: Arc<Port>) -> Infallible {
    let admission = Arc::new(Admission::with_min_idle(
        Limits {
            connections: MAX_CONNECTIONS,
            exempt: Arc::new(|_| true),
            ..Limits::default()
        },
        MIN_IDLE,
    ));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    let admitted = admitted(&admission, peer.ip()).await;
                    connections.spawn(connection(socket, peer.ip(), Arc::clone(&port), admitted));
                    // It may send its request before others take its place.
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "can't accept a connection on the admin port");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// Admits a connection, in the place of the one that has been quiet longest if there are too many.
async fn admitted(admission: &Arc<Admission>, peer: IpAddr) -> Admitted {
    loop {
        match admission.admit(Some(peer)) {
            Ok(admitted) => return admitted,
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection until it ends, or is closed for another.
async fn connection(
    socket: tokio::net::TcpStream,
    peer: IpAddr,
    port: Arc<Port>,
    admitted: Admitted,
) {
    let progress = Progress::default();
    let timeouts = Timeouts::default();
    let reading = Http1Watch::new(timeouts, progress.clone());
    let socket = TimedSocket::new(socket, &timeouts, Arc::default(), Some(reading));
    let presence = Arc::clone(&admitted.presence);
    let answer = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let (port, presence) = (Arc::clone(&port), Arc::clone(&presence));
        let progress = progress.clone();
        async move {
            progress.begin();
            let answer = port.answer(&presence, Peer::Address(peer), request).await;
            progress.end();
            Ok::<_, Infallible>(answer)
        }
    });
    let served = http1_builder().serve_connection(TokioIo::new(socket), answer);
    tokio::select! {
        // First, so that a request that has arrived is answered.
        biased;
        served = served => if let Err(error) = served {
            tracing::debug!(%error, "a connection to the admin port ended early");
        },
        () = admitted.presence.evicted() => {
            tracing::debug!("closed a quiet connection to the admin port for a new one");
        }
    }
}
