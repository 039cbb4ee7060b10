//! The accept loop, and the shutdown of a server.
//!
//! Shutdown: readiness fails at once, and connections are accepted for the drain delay, so that load balancers notice.
//! Then the listeners are drained and closed; responses say `Connection: close`, and HTTP/2 connections get a GOAWAY.
//! Quiet connections are closed after a moment, and the remaining ones are cut at the drain timeout.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::admission::{Admission, Limits};
use super::connection::{Connection, Phase, Shared};
use super::listen::Listener;
use super::listeners::{Accepted, Listeners};
use super::socket::Timeouts;
use super::systemd;
use super::tls::Certificates;
use crate::error_chain::ErrorChain;
use crate::http::App;
use crate::http::access_log::AccessLog;
use crate::http::service::Service;
use crate::metrics::OpenConnection;

/// Time that a quiet connection stays open during shutdown: its next request may be on the way.
const QUIET_GRACE: Duration = Duration::from_secs(5);
/// Time for which connections are still accepted whose handshake began before new ones were refused: a round trip to
/// the client.
const HANDSHAKE_GRACE: Duration = Duration::from_millis(250);
/// Pause after a failed accept, for instance for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of connections at a time that are refused with a response; more are closed at once.
const MAX_REFUSALS: usize = 32;

/// Settings of the edge: timeouts, connection limits, certificates and shutdown times.
#[derive(Debug)]
pub struct EdgeSettings {
    /// Timeouts of connections and requests.
    pub timeouts: Timeouts,
    /// Maximum numbers of connections.
    pub limits: Limits,
    /// Certificates for TCP connections; without them, plain HTTP.
    pub certificates: Option<Arc<Certificates>>,
    /// Time for which connections are still accepted after shutdown begins.
    pub drain_delay: Duration,
    /// Time that open connections have after that.
    pub drain_timeout: Duration,
}

impl Default for EdgeSettings {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            certificates: None,
            drain_delay: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listeners: Listeners,
    shared: Arc<Shared>,
    admission: Arc<Admission>,
    refusals: Arc<Semaphore>,
    drain_delay: Duration,
    drain_timeout: Duration,
}

impl Server {
    /// Returns a server on listening sockets. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// If a socket can't be registered with the runtime, or the system has no random numbers.
    pub fn new(
        listeners: Vec<Listener>,
        app: Arc<App>,
        access_log: AccessLog,
        settings: EdgeSettings,
    ) -> io::Result<Self> {
        let EdgeSettings {
            timeouts,
            limits,
            certificates,
            drain_delay,
            drain_timeout,
        } = settings;
        let listeners = Listeners::new(listeners)?;
        let shared = Shared {
            service: Service::new(app, access_log, timeouts.body)?,
            timeouts,
            certificates,
            closing: AtomicBool::new(false),
        };
        Ok(Self {
            listeners,
            shared: Arc::new(shared),
            admission: Arc::new(Admission::new(limits)),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            drain_delay,
            drain_timeout,
        })
    }

    /// Serves until `stop` is ready, then completes requests in flight.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        let (phase, serving) = watch::channel(Phase::Serving);
        self.accept_until(stop, &mut connections, &serving).await;
        let app = &self.shared.service.app;
        app.draining.store(true, Ordering::Relaxed);
        app.waits.end();
        systemd::stopping();
        let drain_delay = self.drain_delay;
        if !drain_delay.is_zero() {
            tracing::info!(
                seconds = drain_delay.as_secs_f64(),
                "shutting down; readiness now failing"
            );
            let over = tokio::time::sleep(drain_delay);
            self.accept_until(over, &mut connections, &serving).await;
        }
        self.shared.closing.store(true, Ordering::Relaxed);
        self.listeners.refuse_new();
        let begun = tokio::time::sleep(HANDSHAKE_GRACE);
        self.accept_until(begun, &mut connections, &serving).await;
        for accepted in std::mem::take(&mut self.listeners).close() {
            self.begin(accepted, &mut connections, &serving);
        }
        phase.send_replace(Phase::Closing);
        tracing::info!(connections = connections.len(), "draining");
        let drained = async {
            let quiet = async { while connections.join_next().await.is_some() {} };
            if tokio::time::timeout(QUIET_GRACE, quiet).await.is_err() {
                phase.send_replace(Phase::Quiet);
                while connections.join_next().await.is_some() {}
            }
        };
        if tokio::time::timeout(self.drain_timeout, drained)
            .await
            .is_err()
        {
            tracing::warn!("drain timeout: closed the remaining connections");
        }
    }

    async fn accept_until(
        &mut self,
        stop: impl Future<Output = ()>,
        connections: &mut JoinSet<()>,
        phase: &watch::Receiver<Phase>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut accepting = true;
        loop {
            let accepted = tokio::select! {
                () = &mut stop => return,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = self.listeners.accept() => accepted,
            };
            match accepted {
                Ok(accepted) => {
                    accepting = true;
                    self.begin(accepted, connections, phase);
                }
                Err(error) => {
                    let metrics = &self.shared.service.app.metrics.connections;
                    metrics.not_accepted.increment();
                    if std::mem::replace(&mut accepting, false) {
                        let error = ErrorChain(&error);
                        tracing::warn!(%error, "connections can't be accepted");
                    }
                    if !is_of_one_connection(&error) {
                        tokio::select! {
                            () = &mut stop => return,
                            () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                        }
                    }
                }
            }
        }
    }

    /// Admits a connection, or refuses it.
    fn begin(
        &self,
        accepted: Accepted,
        connections: &mut JoinSet<()>,
        phase: &watch::Receiver<Phase>,
    ) {
        let metrics = &self.shared.service.app.metrics.connections;
        let remote = accepted.remote();
        let connection = Connection {
            shared: Arc::clone(&self.shared),
            remote,
            phase: phase.clone(),
        };
        match self.admission.admit(remote) {
            Ok(admitted) => {
                let open = OpenConnection::new(metrics);
                connections.spawn(async move {
                    let presence = Arc::clone(&admitted.presence);
                    match accepted {
                        Accepted::Tcp(socket, _) => connection.serve_tcp(socket, presence).await,
                        Accepted::Unix(socket) => connection.serve_http1(socket, presence).await,
                    }
                    drop((admitted, open));
                });
            }
            Err(refused) => {
                metrics.refused.of(refused).increment();
                // A TLS handshake would cost more than the response.
                let is_plain = self.shared.certificates.is_none();
                if let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() {
                    connections.spawn(async move {
                        match accepted {
                            Accepted::Tcp(socket, _) if is_plain => {
                                connection.refuse(socket).await;
                            }
                            Accepted::Tcp(..) => {}
                            Accepted::Unix(socket) => connection.refuse(socket).await,
                        }
                        drop(permit);
                    });
                }
            }
        }
    }
}

/// Returns true if only one connection failed, before it was accepted, so that others may be waiting: the codes that
/// accept(2) lists under "Error handling". Any other error, such as a lack of descriptors, is likely to recur at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    const CONNECTION_ERRORS: [Errno; 10] = [
        Errno::CONNABORTED,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::INTR,
        Errno::NETDOWN,
        Errno::NETUNREACH,
        Errno::NONET,
        Errno::NOPROTOOPT,
        Errno::PROTO,
        Errno::TIMEDOUT,
    ];
    Errno::from_io_error(error).is_some_and(|errno| CONNECTION_ERRORS.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_connection_does_not_delay_others() {
        for errno in [Errno::CONNABORTED, Errno::HOSTUNREACH, Errno::PROTO] {
            assert!(is_of_one_connection(&errno.into()), "{errno}");
        }
        for errno in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::PERM,
        ] {
            assert!(!is_of_one_connection(&errno.into()), "{errno}");
        }
    }
}
