//! What runs beside the answering of requests, and must not slow it down.

use std::io;

/// About a tenth of what a serving thread gets of a core that both want. At the lowest priority, 19, a busy
/// machine would leave a change of the catalog unseen for many seconds.
const NICENESS: i32 = 10;

/// Lets this thread, and those that it starts, stand back where a serving thread wants to run.
pub(super) fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        let error = io::Error::from(error);
        let error: &dyn std::error::Error = &error;
        tracing::debug!(error, "a thread keeps its priority");
    }
}
