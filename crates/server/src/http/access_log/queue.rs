//! Where lines wait to be written: a buffer for every serving thread, so that none waits for another.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::line::{Line, TimeText};
use crate::metrics::requests::thread_number;

/// Lines of many threads, taken by one.
#[derive(Debug)]
pub(super) struct Queue {
    buffers: Box<[Mutex<Buffer>]>,
    /// The most bytes that one buffer holds.
    buffer_bytes: usize,
    /// Whether the taking thread knows of lines that wait.
    is_awake: AtomicBool,
    is_closed: AtomicBool,
    dropped: AtomicU64,
}

/// What one thread has to say. Aligned, so that two threads' buffers share no line of the cache.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Buffer {
    lines: Vec<u8>,
    time: TimeText,
}

impl Queue {
    /// A queue of at most so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            buffers: (0..threads).map(|_| Mutex::default()).collect(),
            buffer_bytes: bytes / threads,
            is_awake: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        }
    }

    /// Puts a line in, or counts it as dropped where too many wait. Returns whether the thread that
    /// takes is to be woken.
    pub(super) fn push(&self, line: &Line<'_>) -> bool {
        if self.is_closed.load(Ordering::Relaxed) {
            return false;
        }
        {
            let mut buffer = lock(&self.buffers[thread_number() % self.buffers.len()]);
            if buffer.lines.len() >= self.buffer_bytes {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            let Buffer { lines, time } = &mut *buffer;
            line.write(time, lines);
        }
        // Whoever takes says so before it locks a buffer: a line that it missed finds it asleep here.
        !self.is_awake.load(Ordering::Relaxed) && !self.is_awake.swap(true, Ordering::Relaxed)
    }

    /// Nothing is put in any more, and what is in is taken for the last time.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Parks the calling thread until there are lines, and then for as long as more may gather.
    /// Returns whether these are the last.
    pub(super) fn wait(&self, gathering: Duration) -> bool {
        let is_closed = || self.is_closed.load(Ordering::Acquire);
        while !self.is_awake.load(Ordering::Relaxed) && !is_closed() {
            std::thread::park();
        }
        let until = Instant::now() + gathering;
        while !is_closed() {
            match until.saturating_duration_since(Instant::now()) {
                Duration::ZERO => break,
                left => std::thread::park_timeout(left),
            }
        }
        is_closed()
    }

    /// Hands over all lines that wait, thread by thread. `taken` is empty memory, and is again. What can't be written
    /// counts as dropped.
    pub(super) fn take(
        &self,
        taken: &mut Vec<u8>,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.is_awake.store(false, Ordering::Relaxed);
        for buffer in &self.buffers {
            // The emptied memory of one buffer becomes the next one's.
            std::mem::swap(&mut lock(buffer).lines, taken);
            let written = write(taken);
            if written.is_err() {
                let lost = taken.iter().filter(|byte| **byte == b'\n').count();
                self.dropped.fetch_add(lost as u64, Ordering::Relaxed);
                // The other buffers still wait.
                self.is_awake.store(true, Ordering::Relaxed);
            }
            taken.clear();
            written?;
        }
        Ok(())
    }

    /// How many lines were dropped since this was last asked.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

/// A buffer holds whole lines at any moment, whatever became of a thread that held it.
fn lock(buffer: &Mutex<Buffer>) -> MutexGuard<'_, Buffer> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_whole_lines_and_counts_them() {
        let queue = Queue::new(0);
        assert!(!queue.push(&Line::example("/", 1)));
        assert_eq!((queue.take_dropped(), queue.take_dropped()), (1, 0));
        let queue = Queue::new(10_000 * queue.buffers.len());
        for number in 0..1_000 {
            queue.push(&Line::example("/", number));
        }
        let mut lines = Vec::new();
        let take = |bytes: &[u8]| {
            lines.extend_from_slice(bytes);
            Ok(())
        };
        queue.take(&mut Vec::new(), take).expect("taken");
        let lines = String::from_utf8(lines).expect("text");
        assert!((10_000..11_000).contains(&lines.len()), "{}", lines.len());
        let dropped = usize::try_from(queue.take_dropped()).expect("a number");
        assert_eq!(lines.lines().count() + dropped, 1_000);
        assert!(lines.ends_with('\n'));
    }

    #[test]
    fn only_the_first_line_wakes() {
        let queue = Queue::new(1_000_000);
        let push = || queue.push(&Line::example("/", 1));
        assert_eq!([push(), push(), push()], [true, false, false]);
        queue.take(&mut Vec::new(), |_| Ok(())).expect("taken");
        assert_eq!([push(), push()], [true, false]);
        queue.close();
        assert!(!push());
        assert!(queue.wait(Duration::from_secs(3600)), "the last");
    }
}
