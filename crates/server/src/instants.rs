//! The thread that lets overrides begin and end when their time comes.
//!
//! Any number of processes may have one: the store's transaction lets one of them apply an instant, and the others find
//! nothing to do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use vitrine_ingest::overrides::instants::{AppliedInstant, apply_next, held_up};
use vitrine_store::Store;

use crate::error_chain::ErrorChain;
use crate::live::lower_priority;
use crate::metrics::table::InstantMetrics;
use crate::panics::caught;

/// Minimum of the longest time between two looks, since an override may be made at any time: an instant is applied within a
/// second. A store that many servers poll is asked less often.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Time between two looks of a process that may not publish.
const WATCH_EVERY: Duration = Duration::from_secs(5);

/// Pause after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

/// Maximum time that a process waits for this thread when it ends. It may wait for another writer, and a publish that doesn't
/// come to its end is rolled back.
const MAX_END: Duration = Duration::from_secs(1);

/// Action at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtInstant {
    /// Apply it.
    Apply,
    /// Only measure by how much it is overdue: this process may not publish.
    Watch,
}

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub struct InstantThread {
    stop: Option<SyncSender<()>>,
    /// Disconnected once the thread has ended.
    ended: Receiver<()>,
}

impl InstantThread {
    /// Starts that of a server, which applies instants if it may publish.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn of_server(store: &Arc<Store>, metrics: &Arc<InstantMetrics>) -> std::io::Result<Self> {
        let at_instant = match store.publishes_when_serving() {
            true => AtInstant::Apply,
            false => AtInstant::Watch,
        };
        Self::start(Arc::clone(store), at_instant, Arc::clone(metrics), |_| {})
    }

    /// Starts it. `looked` is called after each look.
    ///
    /// # Errors
    ///
    /// If there can't be another thread.
    pub fn start(
        store: Arc<Store>,
        at_instant: AtInstant,
        metrics: Arc<InstantMetrics>,
        mut looked: impl FnMut(&InstantMetrics) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let (running, ended) = sync_channel(0);
        let thread = std::thread::Builder::new().name("instants".to_owned());
        thread.spawn(move || {
            lower_priority();
            run(&store, at_instant, (&metrics, &mut looked), &stopped);
            drop(running);
        })?;
        Ok(Self {
            stop: Some(stop),
            ended,
        })
    }
}

impl Drop for InstantThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.ended.recv_timeout(MAX_END);
    }
}

fn run(
    store: &Store,
    at_instant: AtInstant,
    (metrics, looked): (&InstantMetrics, &mut dyn FnMut(&InstantMetrics)),
    stopped: &Receiver<()>,
) {
    let mut is_failing = false;
    let mut held = BTreeSet::new();
    loop {
        let outcome = caught(|| look(store, (at_instant, &mut held), metrics, stopped));
        looked(metrics);
        let pause = match outcome {
            Ok(Ok(pause)) => {
                is_failing = false;
                pause
            }
            Ok(Err(error)) => {
                // Once: a store that is away is logged by those who follow it.
                if !std::mem::replace(&mut is_failing, true) {
                    let error: &(dyn std::error::Error + 'static) = error.as_ref();
                    let error = ErrorChain(error);
                    tracing::warn!(%error, "overrides can't begin or end now; this is retried");
                }
                PAUSE_AFTER_FAILURE
            }
            Err(_) => PAUSE_AFTER_FAILURE,
        };
        match stopped.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

/// Logs overrides that can't begin, each once. They stay overdue in the metrics.
fn log_held_up(store: &Store, logged: &mut BTreeSet<u64>) -> anyhow::Result<()> {
    for one in held_up(store)? {
        if logged.insert(one.stored.number) {
            let error = one.error();
            tracing::error!(%error, "an override can't begin; others don't wait for it");
        }
    }
    Ok(())
}

/// Applies what is due, until this is stopped. Returns the time until the next look.
fn look(
    store: &Store,
    (at_instant, held_up): (AtInstant, &mut BTreeSet<u64>),
    metrics: &InstantMetrics,
    stopped: &Receiver<()>,
) -> anyhow::Result<Duration> {
    let next = store.next_instant()?;
    let overdue = next.map(|next| next.now.duration_since(next.at).as_secs_f64());
    metrics.overdue_seconds.set(overdue.unwrap_or(0.0).max(0.0));
    let is_due = next.is_some_and(|next| next.at <= next.now);
    if at_instant == AtInstant::Apply && is_due {
        while stopped.try_recv() == Err(TryRecvError::Empty)
            && let Some(applied) = apply_next(store)?
        {
            log_applied(&applied);
            metrics.applied.increment();
            if !applied.exceeded.is_empty() {
                metrics.exceeding.increment();
            }
            metrics.overdue_seconds.set(0.0);
        }
    }
    if is_due {
        log_held_up(store, held_up)?;
    }
    let until = next.map(|next| next.at.duration_since(next.now));
    let until = until.and_then(|until| Duration::try_from(until).ok());
    let until = until.filter(|until| !until.is_zero());
    let longest = match at_instant {
        AtInstant::Apply => store.poll_interval().max(LOOK_EVERY),
        AtInstant::Watch => WATCH_EVERY,
    };
    Ok(until.unwrap_or(longest).min(longest))
}

/// Logs what an instant did, and what it exceeded.
pub fn log_applied(applied: &AppliedInstant) {
    let AppliedInstant {
        at,
        applied_at,
        begun,
        ended,
        exceeded,
        revision,
    } = applied;
    let late = applied_at.duration_since(*at).as_secs_f64();
    let revision = revision.as_ref().map(|revision| revision.number);
    tracing::info!(%at, late_seconds = late, ?begun, ?ended, ?revision, "overrides began or ended");
    for exceeded in exceeded {
        tracing::warn!(
            ?begun,
            ?ended,
            "overrides exceeded a limit that loads have: {exceeded}"
        );
    }
}
