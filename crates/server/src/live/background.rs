//! What runs beside the answering of requests, and must not slow it down.

use std::io;
use std::time::{Duration, Instant};

use crate::error_chain::ErrorChain;

/// About a tenth of what a serving thread gets of a core that both want. At the lowest priority, 19, a busy
/// machine would leave a change of the catalog unseen for many seconds.
const NICENESS: i32 = 10;

/// For so long a thread gives way whatever the machine is like.
const GRACE: Duration = Duration::from_millis(100);

/// Lets this thread, and those that it starts, stand back where a serving thread wants to run.
pub(super) fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        let error = io::Error::from(error);
        let error = ErrorChain(&error);
        tracing::debug!(%error, "a thread keeps its priority");
    }
}

/// What gives way to requests between the steps of a work, as long as that goes on in spite of it.
#[derive(Debug)]
pub(super) struct Courtesy {
    begun: Instant,
    given: Duration,
}

impl Courtesy {
    /// From the work's begin.
    pub(super) fn begin() -> Self {
        Self {
            begun: Instant::now(),
            given: Duration::ZERO,
        }
    }

    /// Between two steps: a request that waits for this core is answered first. Where others want all cores all the
    /// time, whoever gives way waits some ten milliseconds each time; so no more than half of the time goes into it,
    /// and for the rest there is the lower priority.
    pub(super) fn give_way(&mut self) {
        let now = Instant::now();
        if self.may_give_way(now - self.begun) {
            std::thread::yield_now();
            self.given += now.elapsed();
        }
    }

    fn may_give_way(&self, elapsed: Duration) -> bool {
        self.given <= GRACE + elapsed / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_that_always_gives_way_has_half_of_the_time_all_the_same() {
        let step = Duration::from_millis(1);
        let turn_of_others = Duration::from_millis(13);
        let mut courtesy = Courtesy::begin();
        let mut elapsed = Duration::ZERO;
        for _ in 0..10_000 {
            if courtesy.may_give_way(elapsed) {
                courtesy.given += turn_of_others;
                elapsed += turn_of_others;
            }
            elapsed += step;
        }
        assert!(elapsed <= 10_000 * step * 2 + 2 * GRACE + 2 * turn_of_others);
        assert!(courtesy.given >= elapsed / 2 - turn_of_others);
    }
}
