//! Recording the use of keys, on a separate thread: a store that hangs during a write mustn't delay a revocation. Last uses
//! are written here, requests by day in a transaction of their own (`key_days`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_store::{Store, StoreError};

use super::Live;
use super::key_days::{Busy, KeyDays, until_next_day};
use crate::error_chain::ErrorChain;
use crate::panic_point::PanicPoint;
use crate::panics::caught;

/// Interval between records.
const RECORD_INTERVAL: Duration = Duration::from_secs(60);

/// Pause before a retry if another process is writing.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Uses that were recorded, and their store.
pub(super) struct KeyUse {
    store: Arc<Store>,
    live: Arc<Live>,
    /// By prefix. The live keys may not have these yet.
    recorded: HashMap<String, Timestamp>,
    failing: bool,
    days: KeyDays,
}

impl KeyUse {
    pub(super) fn new(store: &Arc<Store>, live: &Arc<Live>) -> Self {
        Self {
            store: Arc::clone(store),
            live: Arc::clone(live),
            recorded: HashMap::new(),
            failing: false,
            days: KeyDays::new(store, live),
        }
    }

    /// Records uses at intervals, and once more when the server ends.
    pub(super) fn run(&mut self, wakes: &Receiver<()>, stop: &AtomicBool) {
        let mut next = Instant::now() + RECORD_INTERVAL;
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            let woken = wakes.recv_timeout(wait);
            let ends = stop.load(Ordering::Acquire)
                || matches!(woken, Err(RecvTimeoutError::Disconnected));
            if woken.is_ok() && !ends {
                continue;
            }
            if ends {
                // The thread ends either way.
                let _ = caught(|| self.days.finish());
                let _ = caught(|| self.record());
                return;
            }
            let again = caught(|| self.record()).unwrap_or(RECORD_INTERVAL);
            let again = match caught(|| self.days.flush()) {
                Ok(Err(Busy)) => RETRY_PAUSE,
                _ => again.min(until_next_day(Timestamp::now())),
            };
            next = Instant::now() + again;
        }
    }

    /// Records new uses. Returns the pause before the next time.
    fn record(&mut self) -> Duration {
        PanicPoint::KeyUse.pass();
        let keys = self.live.keys();
        let is_new = |(prefix, used_at): &(&str, Timestamp)| {
            let recorded = self.recorded.get(*prefix);
            recorded.is_none_or(|recorded| recorded < used_at)
        };
        let uses: Vec<(String, Timestamp)> = keys
            .used_since_recorded()
            .filter(is_new)
            .map(|(prefix, used_at)| (prefix.to_owned(), used_at))
            .collect();
        if uses.is_empty() {
            return RECORD_INTERVAL;
        }
        match self.store.record_key_use(&uses) {
            Ok(()) => {
                self.recorded.extend(uses);
                self.failing = false;
            }
            // A load, for example.
            Err(StoreError::Busy { .. }) => return RETRY_PAUSE,
            Err(error) => {
                if !self.failing {
                    let error = ErrorChain(&error);
                    tracing::warn!(%error, "can't store the last use of keys");
                }
                self.failing = true;
            }
        }
        RECORD_INTERVAL
    }
}
