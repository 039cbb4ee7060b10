//! The thread that writes the snapshot file some time after a swap.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_model::snapshot::Snapshot;

use super::Identity;
use super::write::write;
use crate::error_chain::ErrorChain;
use crate::live::background::lower_priority;
use crate::live::state_directory::StateDirectory;
use crate::panic_point::PanicPoint;
use crate::panics::caught;

/// The file is written when so much time has passed since the last swap.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// The longest that a catalog which never settles waits to be written.
const WRITTEN_AFTER: Duration = Duration::from_secs(60);

/// Writing takes one part in so many of the time at most: a large catalog that changes all the time isn't
/// written all the time.
const REST_PER_WRITE: u32 = 50;

/// Keeps the snapshot file of a running server.
#[derive(Debug)]
pub(in crate::live) struct Keeper {
    wake: Sender<()>,
    waiting: Arc<Waiting>,
}

/// The snapshot to write next. Only the newest waits: while a large catalog is written, older ones would take the
/// memory of many.
#[derive(Debug, Default)]
struct Waiting(Mutex<Option<(Identity, Arc<Snapshot>)>>);

impl Waiting {
    fn get(&self) -> MutexGuard<'_, Option<(Identity, Arc<Snapshot>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper {
    /// Starts the thread. It ends after this was dropped; a server that ends doesn't wait for it. Half a file
    /// that it leaves then goes at the next start.
    ///
    /// # Errors
    ///
    /// Where the system gives no thread.
    pub(in crate::live) fn start(directory: StateDirectory) -> io::Result<Self> {
        let (wake, wakes) = channel();
        let waiting = Arc::<Waiting>::default();
        let to_write = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("snapshot-file".to_owned())
            .spawn(move || {
                lower_priority();
                keep(&directory, &wakes, &to_write);
            })?;
        Ok(Self { wake, waiting })
    }

    /// Has a snapshot written, once nothing newer comes for a moment.
    pub(in crate::live) fn write(&self, identity: Identity, snapshot: Arc<Snapshot>) {
        *self.waiting.get() = Some((identity, snapshot));
        // Without the thread there is no file, and the server goes on.
        let _ = self.wake.send(());
    }
}

fn keep(directory: &StateDirectory, wakes: &Receiver<()>, waiting: &Waiting) {
    let mut not_before = Instant::now();
    let mut waits_since = None;
    loop {
        let is_waiting = waiting.get().is_some();
        let woken = match is_waiting {
            false => wakes.recv().map_err(|_| RecvTimeoutError::Disconnected),
            true => {
                let now = Instant::now();
                let at_last = *waits_since.get_or_insert(now) + WRITTEN_AFTER;
                let settled = SETTLED_AFTER.min(at_last.saturating_duration_since(now));
                let rest = not_before.saturating_duration_since(now);
                wakes.recv_timeout(rest.max(settled))
            }
        };
        match woken {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => {
                waits_since = None;
                let Some((identity, snapshot)) = waiting.get().take() else {
                    continue;
                };
                let started = Instant::now();
                let written = caught(|| {
                    PanicPoint::SnapshotFile.pass();
                    write(directory, &identity, &snapshot, Timestamp::now())
                });
                match written.unwrap_or_else(|panicked| Err(io::Error::other(panicked))) {
                    Ok(()) => {
                        let revision = snapshot.revision().number;
                        tracing::info!(revision, "the snapshot file is written");
                    }
                    Err(error) => {
                        let error = ErrorChain(&error);
                        tracing::warn!(%error, "the snapshot file can't be written");
                    }
                }
                not_before = Instant::now() + started.elapsed() * REST_PER_WRITE;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_the_thread_is_busy_only_the_newest_snapshot_waits() {
        // Nobody takes from the queue.
        let (wake, _wakes) = channel();
        let keeper = Keeper {
            wake,
            waiting: Arc::default(),
        };
        let snapshots: [Arc<Snapshot>; 3] = std::array::from_fn(|_| Arc::default());
        for snapshot in &snapshots {
            let identity = Identity::new("store".to_owned(), 0, String::new());
            keeper.write(identity, Arc::clone(snapshot));
        }
        assert_eq!(snapshots.each_ref().map(Arc::strong_count), [1, 1, 2]);
    }
}
