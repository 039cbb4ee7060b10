//! What runs beside the answering of requests, and must not slow it down.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

/// A bug: what a thread did panicked. The panic hook has written it down.
#[derive(Debug, thiserror::Error)]
#[error("a bug: the program panicked; its log says where")]
pub(super) struct Panicked;

/// Does one piece of a thread's work. A panic ends the piece and not the thread: what is left undone is done in
/// the next piece.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}
