//! Threads that write a file of the state directory some time after a swap.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Live;
use super::background::lower_priority;
use crate::error_chain::ErrorChain;
use crate::metrics::state_files::StateFile;
use crate::panics::{Panicked, caught};

/// Time without a swap after which the file is written.
const DEBOUNCE: Duration = Duration::from_secs(1);

/// Maximum delay of a write if swaps never pause.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Pause after a write, as a multiple of its duration: a large catalog that changes all the time isn't written all the
/// time.
const PAUSE_PER_WRITE: u32 = 50;

/// Pause after a failed write, doubled with each further one up to the maximum: a full disk may have room again.
const MIN_RETRY_PAUSE: Duration = Duration::from_secs(1);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Writer of a file, on a separate thread.
#[derive(Debug)]
pub(super) struct StateFileWriter<T> {
    wake: Sender<()>,
    waiting: Arc<Waiting<T>>,
}

/// The next content to write. Only the newest is kept: while a large catalog is written, several older ones would take
/// much memory.
#[derive(Debug)]
struct Waiting<T>(Mutex<Option<T>>);

impl<T> Waiting<T> {
    fn get(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> StateFileWriter<T> {
    /// Starts the thread, which ends after this is dropped; the end of the server doesn't wait for it. The next start
    /// removes an incomplete file.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn start(
        file: StateFile,
        live: &Arc<Live>,
        mut write: impl FnMut(&T) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (wake, wakes) = channel();
        let waiting = Arc::new(Waiting(Mutex::new(None)));
        let (to_write, live) = (Arc::clone(&waiting), Arc::clone(live));
        std::thread::Builder::new()
            .name(file.title().replace(' ', "-"))
            .spawn(move || {
                lower_priority();
                run(&wakes, &to_write, |content| {
                    record_write(&live, file, caught(|| write(content)))
                });
            })?;
        Ok(Self { wake, waiting })
    }

    /// Queues a content, to be written after a moment without a newer one.
    pub(super) fn write(&self, content: T) {
        *self.waiting.get() = Some(content);
        // Without the thread there is no file; the server goes on.
        let _ = self.wake.send(());
    }
}

/// Counts the outcome of a write, and logs the first failure of several. Returns true if the file was written.
pub(super) fn record_write(
    live: &Live,
    file: StateFile,
    written: Result<io::Result<()>, Panicked>,
) -> bool {
    let outcome = written.unwrap_or_else(|panicked| Err(io::Error::other(panicked)));
    let is_first_failure = live.metrics.state_files.of(file).record(&outcome);
    if let (true, Err(error)) = (is_first_failure, &outcome) {
        let error = ErrorChain(error);
        tracing::warn!(%error, "the {} can't be written; trying again", file.title());
    }
    outcome.is_ok()
}

/// Calls `write` with what waits, until it returns true.
fn run<T>(wakes: &Receiver<()>, waiting: &Waiting<T>, mut write: impl FnMut(&T) -> bool) {
    let mut not_before = Instant::now();
    let mut retry_pause = MIN_RETRY_PAUSE;
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
                let Some(content) = waiting.get().take() else {
                    continue;
                };
                let started = Instant::now();
                let is_written = write(&content);
                let mut pause = started.elapsed() * PAUSE_PER_WRITE;
                if is_written {
                    retry_pause = MIN_RETRY_PAUSE;
                } else {
                    // Unless there is a newer one.
                    waiting.get().get_or_insert(content);
                    pause = pause.clamp(retry_pause, MAX_RETRY_PAUSE);
                    retry_pause = (retry_pause * 2).min(MAX_RETRY_PAUSE);
                }
                not_before = Instant::now() + pause;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_content_is_queued() {
        // No thread reads the queue.
        let (wake, _wakes) = channel();
        let writer = StateFileWriter {
            wake,
            waiting: Arc::new(Waiting(Mutex::new(None))),
        };
        let contents: [Arc<u8>; 3] = std::array::from_fn(|_| Arc::default());
        for content in &contents {
            writer.write(Arc::clone(content));
        }
        assert_eq!(contents.each_ref().map(Arc::strong_count), [1, 1, 2]);
    }
}
