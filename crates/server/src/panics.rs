//! Handling of panics: each is a bug, and none may end what lives as long as the server.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A bug: what a thread did panicked. The panic hook has written it down.
#[derive(Debug, thiserror::Error)]
#[error("a bug: the program panicked; its log says where")]
pub(crate) struct Panicked;

/// Does one piece of a thread's work. A panic ends the piece and not the thread: what is left undone is done in
/// the next piece.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}
