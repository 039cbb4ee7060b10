//! Messages to the service manager: ready, reloading, stopping, watchdog and status. None is sent if `NOTIFY_SOCKET`
//! isn't set.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::live::Live;

/// Interval of status messages without a watchdog.
const STATUS_EVERY: Duration = Duration::from_secs(5);

/// Reports that the server answers.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Reports that settings or certificates are being reloaded; [`ready`] follows.
pub fn reloading() {
    // The manager matches a reload by its time.
    match NotifyState::monotonic_usec_now() {
        Ok(moment) => notify(&[NotifyState::Reloading, moment]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// Reports that the server shuts down.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Reports the live catalog at intervals and, if `WATCHDOG_USEC` is set, that the server is alive. It runs on the
/// threads that answer requests, so that its silence means that these hang.
pub async fn report_state(live: &Live) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    let watchdog = sd_notify::watchdog_enabled();
    let every = watchdog.map_or(STATUS_EVERY, |limit| (limit / 2).min(STATUS_EVERY));
    let mut told = String::new();
    let mut round = tokio::time::interval(every.max(Duration::from_millis(1)));
    loop {
        round.tick().await;
        if watchdog.is_some() {
            notify(&[NotifyState::Watchdog]);
        }
        let status = status(live);
        if status != told {
            notify(&[NotifyState::Status(&status)]);
            told = status;
        }
    }
}

fn status(live: &Live) -> String {
    match live.snapshot() {
        Some(snapshot) => {
            let (number, products) = (snapshot.revision().number, snapshot.len());
            format!("serving revision {number}: {products} products")
        }
        None => "no catalog yet".to_owned(),
    }
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "can't notify the service manager");
    }
}
