//! Threads that write a file of the state directory some time after a swap.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::background::lower_priority;
use crate::error_chain::ErrorChain;
use crate::panics::caught;

/// Time without a swap after which the file is written.
const DEBOUNCE: Duration = Duration::from_secs(1);

/// Maximum delay of a write if swaps never pause.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Pause after a write, as a multiple of its duration: a large catalog that changes all the time isn't written all the
/// time.
const PAUSE_PER_WRITE: u32 = 50;

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
    /// removes an incomplete file. `name` is for messages, such as `snapshot file`.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(super) fn start(
        name: &'static str,
        mut write: impl FnMut(&T) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (wake, wakes) = channel();
        let waiting = Arc::new(Waiting(Mutex::new(None)));
        let to_write = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name(name.replace(' ', "-"))
            .spawn(move || {
                lower_priority();
                run(name, &wakes, &to_write, &mut write);
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

fn run<T>(
    name: &str,
    wakes: &Receiver<()>,
    waiting: &Waiting<T>,
    write: &mut impl FnMut(&T) -> io::Result<()>,
) {
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
                let Some(content) = waiting.get().take() else {
                    continue;
                };
                let started = Instant::now();
                let written = caught(|| write(&content));
                if let Err(error) =
                    written.unwrap_or_else(|panicked| Err(io::Error::other(panicked)))
                {
                    let error = ErrorChain(&error);
                    tracing::warn!(%error, "the {name} can't be written");
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
