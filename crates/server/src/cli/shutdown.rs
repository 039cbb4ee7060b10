//! Signals that end a server.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::logging::STARTED;
use crate::edge::server::Server;

/// Logs that a program without clients has `started`, and waits for a signal that ends it.
///
/// # Errors
///
/// If signals can't be received.
pub(super) fn wait_for_signal(started: &str) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut ending = ShutdownSignals::new()?;
        tracing::info!(target: STARTED, "{started}");
        ending.received().await;
        Ok(())
    })
}

/// Signals that shut a server down.
pub(super) struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl ShutdownSignals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Runs a server until it has drained after a signal, or until the second signal.
    pub(super) async fn end(mut self, server: Server) {
        let (told, stop) = tokio::sync::oneshot::channel::<()>();
        let server = server.run(async {
            let _ = stop.await;
        });
        let ending = async {
            self.received().await;
            let _ = told.send(());
            self.received().await;
            tracing::warn!("second signal: closing all connections now");
        };
        tokio::select! {
            () = server => {}
            () = ending => {}
        }
    }

    pub(super) async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
