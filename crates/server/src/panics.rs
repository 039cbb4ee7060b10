//! Handling of panics: each is a bug, and none may end a thread that lives as long as the server.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Error of work that panicked. The panic hook has logged it.
#[derive(Debug, thiserror::Error)]
#[error("a bug: the program panicked; its log says where")]
pub(crate) struct Panicked;

/// Runs one piece of a thread's work. A panic ends the piece, not the thread; the next piece repeats what wasn't done.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}
