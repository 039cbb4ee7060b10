//! What runs beside the answering of requests, and must not slow it down.

use std::io;

/// The lowest priority there is.
const NICEST: i32 = 19;

/// Lets this thread, and those that it starts, run only where nothing else wants to.
pub(super) fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICEST) {
        let error = io::Error::from(error);
        let error: &dyn std::error::Error = &error;
        tracing::debug!(error, "a thread keeps its priority");
    }
}
