//! Writes down when keys were last used, on a thread of its own: a store that hangs while it is written to mustn't
//! delay a revocation.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_store::{Store, StoreError};

use super::Live;
use crate::error_chain::ErrorChain;
use crate::panic_point::PanicPoint;
use crate::panics::caught;

/// How often it is done.
const RECORDED_EVERY: Duration = Duration::from_secs(60);

/// When it is tried again where somebody else was writing.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What was written down, and where.
pub(super) struct KeyUse {
    store: Arc<dyn Store>,
    live: Arc<Live>,
    /// By the prefix of the key. The live table may not know of it yet.
    recorded: HashMap<String, Timestamp>,
    failing: bool,
}

impl KeyUse {
    pub(super) fn new(store: &Arc<dyn Store>, live: &Arc<Live>) -> Self {
        Self {
            store: Arc::clone(store),
            live: Arc::clone(live),
            recorded: HashMap::new(),
            failing: false,
        }
    }

    /// Does it once in a while, and once more when the server ends.
    pub(super) fn run(&mut self, wakes: &Receiver<()>, stop: &AtomicBool) {
        let mut next = Instant::now() + RECORDED_EVERY;
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            let woken = wakes.recv_timeout(wait);
            let ends = stop.load(Ordering::Acquire)
                || matches!(woken, Err(RecvTimeoutError::Disconnected));
            if woken.is_ok() && !ends {
                continue;
            }
            let again = caught(|| self.record()).unwrap_or(RECORDED_EVERY);
            next = Instant::now() + again;
            if ends {
                return;
            }
        }
    }

    /// Writes down what is new. Returns when to do it again.
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
            return RECORDED_EVERY;
        }
        match self.store.record_key_use(&uses) {
            Ok(()) => {
                self.recorded.extend(uses);
                self.failing = false;
            }
            // A load is being written.
            Err(StoreError::Busy { .. }) => return AGAIN_AFTER,
            Err(error) => {
                if !self.failing {
                    let error = ErrorChain(&error);
                    tracing::warn!(%error, "when keys were last used can't be written down");
                }
                self.failing = true;
            }
        }
        RECORDED_EVERY
    }
}
