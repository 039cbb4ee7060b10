//! The thread that keeps the snapshot file: it checks the file's data after a start, and writes the file
//! anew some time after a swap.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_model::snapshot::Snapshot;

use super::Identity;
use super::write::write;
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
    jobs: Sender<Job>,
    waiting: Arc<Waiting>,
    is_damaged: Arc<AtomicBool>,
}

/// What is to be written next. Only the newest waits: while a large catalog is checked or written, older
/// ones would take the memory of many.
#[derive(Debug, Default)]
struct Waiting(Mutex<Option<(Identity, Arc<Snapshot>)>>);

impl Waiting {
    fn get(&self) -> MutexGuard<'_, Option<(Identity, Arc<Snapshot>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
enum Job {
    /// What is live came from the file.
    Check(Arc<Snapshot>),
    /// Something else waits to be written.
    Write,
}

impl Keeper {
    /// Starts the thread. It ends after this was dropped; a server that ends doesn't wait for it. Half a file
    /// that it leaves then goes at the next start.
    ///
    /// # Errors
    ///
    /// Where the system gives no thread.
    pub(in crate::live) fn start(directory: StateDirectory) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let is_damaged = Arc::new(AtomicBool::new(false));
        let waiting = Arc::<Waiting>::default();
        let (to_write, damaged) = (Arc::clone(&waiting), Arc::clone(&is_damaged));
        std::thread::Builder::new()
            .name("snapshot-file".to_owned())
            .spawn(move || {
                lower_priority();
                keep(&directory, &queue, &to_write, &damaged);
            })?;
        Ok(Self {
            jobs,
            waiting,
            is_damaged,
        })
    }

    /// Has the data of a snapshot checked that was read from the file.
    pub(in crate::live) fn check(&self, snapshot: Arc<Snapshot>) {
        self.send(Job::Check(snapshot));
    }

    /// Has a snapshot written, once nothing newer comes for a moment.
    pub(in crate::live) fn write(&self, identity: Identity, snapshot: Arc<Snapshot>) {
        *self.waiting.get() = Some((identity, snapshot));
        self.send(Job::Write);
    }

    /// Whether a check found that what came from the file isn't what was written; says so once.
    #[must_use]
    pub(in crate::live) fn take_damage(&self) -> bool {
        self.is_damaged.swap(false, Ordering::Relaxed)
    }

    fn send(&self, job: Job) {
        // Without the thread there is no file, and the server goes on.
        let _ = self.jobs.send(job);
    }
}

fn keep(
    directory: &StateDirectory,
    queue: &Receiver<Job>,
    waiting: &Waiting,
    damaged: &AtomicBool,
) {
    let mut not_before = Instant::now();
    let mut waits_since = None;
    loop {
        let is_waiting = waiting.get().is_some();
        let job = match is_waiting {
            false => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            true => {
                let now = Instant::now();
                let at_last = *waits_since.get_or_insert(now) + WRITTEN_AFTER;
                let settled = SETTLED_AFTER.min(at_last.saturating_duration_since(now));
                let rest = not_before.saturating_duration_since(now);
                queue.recv_timeout(rest.max(settled))
            }
        };
        match job {
            Ok(Job::Check(snapshot)) => {
                let is_undamaged = caught(|| {
                    PanicPoint::SnapshotCheck.pass();
                    snapshot.is_undamaged()
                });
                if !is_undamaged.unwrap_or(false) {
                    tracing::error!(
                        "the snapshot file is damaged; the catalog is read from the store"
                    );
                    damaged.store(true, Ordering::Relaxed);
                }
            }
            Ok(Job::Write) => {}
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
                        let error: &dyn std::error::Error = &error;
                        tracing::warn!(error, "the snapshot file can't be written");
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
        let (jobs, _queue) = channel();
        let keeper = Keeper {
            jobs,
            waiting: Arc::default(),
            is_damaged: Arc::default(),
        };
        let snapshots: [Arc<Snapshot>; 3] = std::array::from_fn(|_| Arc::default());
        for snapshot in &snapshots {
            let identity = Identity::new("store".to_owned(), 0, String::new());
            keeper.write(identity, Arc::clone(snapshot));
        }
        assert_eq!(snapshots.each_ref().map(Arc::strong_count), [1, 1, 2]);
    }
}
