//! The thread that keeps the snapshot file: it checks the file's data after a start, and writes the file
//! anew some time after a swap.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use vitrine_model::snapshot::Snapshot;

use super::write::write;
use super::{Identity, StateDirectory};
use crate::live::background::lower_priority;

/// The file is written when so much time has passed since the last swap.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// Writing takes one part in so many of the time at most: a large catalog that changes all the time isn't
/// written all the time.
const REST_PER_WRITE: u32 = 50;

/// Keeps the snapshot file of a running server.
#[derive(Debug)]
pub(in crate::live) struct Keeper {
    jobs: Option<Sender<Job>>,
    waiting: Arc<Waiting>,
    thread: Option<JoinHandle<()>>,
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
    /// Starts the thread; it ends when this is dropped.
    ///
    /// # Errors
    ///
    /// Where the system gives no thread.
    pub(in crate::live) fn start(directory: StateDirectory) -> std::io::Result<Self> {
        let (jobs, queue) = channel();
        let is_damaged = Arc::new(AtomicBool::new(false));
        let waiting = Arc::<Waiting>::default();
        let (to_write, damaged) = (Arc::clone(&waiting), Arc::clone(&is_damaged));
        let thread = std::thread::Builder::new()
            .name("snapshot-file".to_owned())
            .spawn(move || {
                lower_priority();
                keep(&directory, &queue, &to_write, &damaged);
            })?;
        Ok(Self {
            jobs: Some(jobs),
            waiting,
            thread: Some(thread),
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
        if let Some(jobs) = &self.jobs {
            // Without the thread there is no file, and the server goes on.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the thread that keeps the snapshot file had panicked");
        }
    }
}

fn keep(
    directory: &StateDirectory,
    queue: &Receiver<Job>,
    waiting: &Waiting,
    damaged: &AtomicBool,
) {
    let mut not_before = Instant::now();
    loop {
        let is_waiting = waiting.get().is_some();
        let job = match is_waiting {
            false => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            true => {
                let rest = not_before.saturating_duration_since(Instant::now());
                queue.recv_timeout(rest.max(SETTLED_AFTER))
            }
        };
        match job {
            Ok(Job::Check(snapshot)) => {
                if !snapshot.is_undamaged() {
                    tracing::error!(
                        "the snapshot file is damaged; the catalog is read from the store"
                    );
                    damaged.store(true, Ordering::Relaxed);
                }
            }
            Ok(Job::Write) => {}
            Err(RecvTimeoutError::Timeout) => {
                let Some((identity, snapshot)) = waiting.get().take() else {
                    continue;
                };
                let started = Instant::now();
                match write(directory, &identity, &snapshot, Timestamp::now()) {
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
            jobs: Some(jobs),
            waiting: Arc::default(),
            thread: None,
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
