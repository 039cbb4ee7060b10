//! Low priority for threads that work beside requests.

use std::io;
use std::time::{Duration, Instant};

use crate::error_chain::ErrorChain;

/// Niceness that gets about a tenth of a serving thread's share of a core. With 19, the lowest priority, a busy machine
/// would delay a change of the catalog by many seconds.
const NICENESS: i32 = 10;

/// Time that may be spent yielding in any case.
const GRACE: Duration = Duration::from_millis(100);

/// Lowers the priority of this thread, and of those that it starts, below that of serving threads.
pub(crate) fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        let error = io::Error::from(error);
        let error = ErrorChain(&error);
        tracing::debug!(%error, "a thread keeps its priority");
    }
}

/// Minimum time between two yields: threads that work on one change together share the cores, and would take turns after each
/// product otherwise.
const MIN_STEP: Duration = Duration::from_micros(100);

/// Budget of time for yielding to requests between steps of long work.
#[derive(Debug, Clone)]
pub(super) struct YieldBudget {
    started: Instant,
    spent: Duration,
    /// End of the last yield.
    yielded: Instant,
}

impl Default for YieldBudget {
    /// Returns the budget at the start of the work.
    fn default() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            spent: Duration::ZERO,
            yielded: now,
        }
    }
}

impl YieldBudget {
    /// Yields between two steps, so that a request that waits for this core runs first. On a saturated machine each yield
    /// takes some ten milliseconds; so at most half of the time goes into yielding, and the lower priority does the rest.
    pub(super) fn maybe_yield(&mut self) {
        let now = Instant::now();
        if now - self.yielded >= MIN_STEP && self.has_budget(now - self.started) {
            std::thread::yield_now();
            self.yielded = Instant::now();
            self.spent += self.yielded - now;
        }
    }

    fn has_budget(&self, elapsed: Duration) -> bool {
        self.spent <= GRACE + elapsed / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn threads_inherit_the_low_priority() {
        use std::thread::spawn;
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let low = spawn(move || {
            lower_priority();
            (priority(), spawn(priority).join().unwrap())
        });
        assert_eq!(low.join().unwrap(), (NICENESS, NICENESS));
        assert!(priority() < NICENESS, "other threads keep theirs");
    }

    #[test]
    fn yielding_takes_at_most_half_of_the_time() {
        let step = Duration::from_millis(1);
        let turn_of_others = Duration::from_millis(13);
        let mut budget = YieldBudget::default();
        let mut elapsed = Duration::ZERO;
        for _ in 0..10_000 {
            if budget.has_budget(elapsed) {
                budget.spent += turn_of_others;
                elapsed += turn_of_others;
            }
            elapsed += step;
        }
        assert!(elapsed <= 10_000 * step * 2 + 2 * GRACE + 2 * turn_of_others);
        assert!(budget.spent >= elapsed / 2 - turn_of_others);
    }
}
