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

/// Time without a swap after which the file is written.
const DEBOUNCE: Duration = Duration::from_secs(1);

/// Maximum delay of a write if swaps never pause.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Pause after a write, as a multiple of its duration: a large catalog that changes all the time isn't written all the
/// time.
const PAUSE_PER_WRITE: u32 = 50;

/// Writer of the snapshot file, on a separate thread.
#[derive(Debug)]
pub(in crate::live) struct SnapshotFileWriter {
    wake: Sender<()>,
    waiting: Arc<Waiting>,
}

/// The next snapshot to write. Only the newest is kept: while a large catalog is written, several older ones would take
/// much memory.
#[derive(Debug, Default)]
struct Waiting(Mutex<Option<(Identity, Arc<Snapshot>)>>);

impl Waiting {
    fn get(&self) -> MutexGuard<'_, Option<(Identity, Arc<Snapshot>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SnapshotFileWriter {
    /// Starts the thread, which ends after this is dropped; the end of the server doesn't wait for it. The next start
    /// removes an incomplete file.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(in crate::live) fn start(directory: StateDirectory) -> io::Result<Self> {
        let (wake, wakes) = channel();
        let waiting = Arc::<Waiting>::default();
        let to_write = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("snapshot-file".to_owned())
            .spawn(move || {
                lower_priority();
                run(&directory, &wakes, &to_write);
            })?;
        Ok(Self { wake, waiting })
    }

    /// Queues a snapshot, to be written after a moment without a newer one.
    pub(in crate::live) fn write(&self, identity: Identity, snapshot: Arc<Snapshot>) {
        *self.waiting.get() = Some((identity, snapshot));
        // Without the thread there is no file; the server goes on.
        let _ = self.wake.send(());
    }
}

fn run(directory: &StateDirectory, wakes: &Receiver<()>, waiting: &Waiting) {
    let mut not_before = Instant::now();
    let mut waits_since = None;
    loop {
        let is_waiting = waiting.get().is_some();
        let woken = match is_waiting {
            false => wakes.recv().map_err(|_| RecvTimeoutError::Disconnected),
            true => {
                let now = Instant::now();
                let at_last = *waits_since.get_or_insert(now) + MAX_DELAY;
                let settled = DEBOUNCE.min(at_last.saturating_duration_since(now));
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
                not_before = Instant::now() + started.elapsed() * PAUSE_PER_WRITE;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_snapshot_is_queued() {
        // No thread reads the queue.
        let (wake, _wakes) = channel();
        let writer = SnapshotFileWriter {
            wake,
            waiting: Arc::default(),
        };
        let snapshots: [Arc<Snapshot>; 3] = std::array::from_fn(|_| Arc::default());
        for snapshot in &snapshots {
            let identity = Identity::new("store".to_owned(), 0, String::new());
            writer.write(identity, Arc::clone(snapshot));
        }
        assert_eq!(snapshots.each_ref().map(Arc::strong_count), [1, 1, 2]);
    }
}
