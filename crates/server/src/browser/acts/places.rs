//! Places for acts: an act may wait for another writer of the store, and threads are left for the pages that only show.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::browser::answer::Problem;

/// Maximum number of acts at once, those that wait for another writer included. The admin port has so many threads more.
pub const MAX_ACTS: usize = 8;

/// Places for acts of one server.
pub(in crate::browser) struct Places(Arc<Semaphore>);

/// The place of an act, free again when this is dropped.
pub(in crate::browser) type Place = OwnedSemaphorePermit;

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_ACTS)))
    }
}

impl Places {
    /// Takes a place, without waiting for one.
    pub(in crate::browser) fn take(&self) -> Result<Place, Problem> {
        Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many acts wait",
                &format!(
                    "{MAX_ACTS} acts are being done by this server or wait until a load has written to the store. Nothing was changed by yours. Try again in a moment: loading this page again sends the form again."
                ),
            )
        })
    }
}
