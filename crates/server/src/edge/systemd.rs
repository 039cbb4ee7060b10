//! Messages to the service manager: that the server answers, reloads, ends, lives, and what it serves. None
//! is sent if `NOTIFY_SOCKET` is not set.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::live::Live;

/// Interval at which the state line is looked at without a watchdog.
const STATUS_EVERY: Duration = Duration::from_secs(5);

/// The server answers.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Settings or certificates are being read anew; [`ready`] follows.
pub fn reloading() {
    // A manager that waits for the end of a reload tells this one from others by its moment.
    match NotifyState::monotonic_usec_now() {
        Ok(moment) => notify(&[NotifyState::Reloading, moment]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// The server is ending.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Tells again and again that the server lives, if `WATCHDOG_USEC` is set, and what it serves. Runs
/// where requests are answered, so that silence means that none are.
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
