//! The thread that keeps the snapshot file: it checks the file's data after a start, and writes the file
//! anew some time after a swap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
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
    thread: Option<JoinHandle<()>>,
    is_damaged: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Job {
    /// What is live came from the file.
    Check(Arc<Snapshot>),
    /// What is live from now on.
    Write(Identity, Arc<Snapshot>),
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
        let damaged = Arc::clone(&is_damaged);
        let thread = std::thread::Builder::new()
            .name("snapshot-file".to_owned())
            .spawn(move || {
                lower_priority();
                keep(&directory, &queue, &damaged);
            })?;
        Ok(Self {
            jobs: Some(jobs),
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
        self.send(Job::Write(identity, snapshot));
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

fn keep(directory: &StateDirectory, queue: &Receiver<Job>, damaged: &AtomicBool) {
    let mut waiting: Option<(Identity, Arc<Snapshot>)> = None;
    let mut not_before = Instant::now();
    loop {
        let job = match &waiting {
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => {
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
            Ok(Job::Write(identity, snapshot)) => waiting = Some((identity, snapshot)),
            Err(RecvTimeoutError::Timeout) => {
                let Some((identity, snapshot)) = waiting.take() else {
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
