//! Log output that never blocks its callers: a bounded queue of lines for each descriptor, and a thread that writes them.
//!
//! If the reader of a log is slow or gone, lines are dropped and counted; their number is logged once writing works
//! again. The access log and the server's messages have separate queues, so that neither waits for the other's reader.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error_chain::ErrorChain;
use crate::metrics::values::Counter;
use crate::panic_point::PanicPoint;
use crate::panics::caught;

/// Pause after a failed write, before the next one.
const PAUSE: Duration = Duration::from_secs(1);

/// Settings of a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    /// Name in messages, such as "access log".
    pub(crate) name: &'static str,
    /// Name of the writing thread.
    pub(crate) thread: &'static str,
    /// Maximum size of the queue, in bytes.
    pub(crate) queue_bytes: usize,
    /// Time for which lines are collected before they are written together.
    pub(crate) batching: Duration,
    /// Counter of dropped lines.
    pub(crate) dropped: &'static Counter,
    /// Panic point of the writing thread.
    pub(crate) panic_point: PanicPoint,
}

/// Running log output: a queue and its writing thread.
#[derive(Debug)]
pub(crate) struct LogOutput {
    queue: Arc<Queue>,
    /// Disconnects when the writing thread ends.
    written: Mutex<Receiver<()>>,
}

impl LogOutput {
    /// Starts a thread that writes to a duplicate of `descriptor`.
    ///
    /// # Errors
    ///
    /// If the descriptor can't be duplicated or the thread can't be started.
    pub(crate) fn start(log: Log, descriptor: impl AsFd) -> io::Result<Self> {
        let out = File::from(descriptor.as_fd().try_clone_to_owned()?);
        let queue = Arc::new(Queue::new(log));
        let lines = Arc::clone(&queue);
        let (done, written) = sync_channel(0);
        std::thread::Builder::new()
            .name(log.thread.to_owned())
            .spawn(move || {
                let _until_done = done;
                write_lines(&lines, out);
            })?;
        Ok(Self {
            queue,
            written: Mutex::new(written),
        })
    }

    /// Queues whole lines, or drops them if the queue is full.
    pub(crate) fn push(&self, lines: &[u8]) {
        self.queue.push(lines);
    }

    /// Closes the queue and waits until its last lines are written, up to `limit`: a stalled reader must not keep the
    /// program from exiting.
    pub(crate) fn finish(&self, limit: Duration) {
        self.queue.close();
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = written.recv_timeout(limit);
    }
}

/// Queue with many writers and one reader.
#[derive(Debug)]
struct Queue {
    log: Log,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    is_closed: bool,
    /// Number of dropped lines not reported yet.
    untold: u64,
}

impl Queue {
    fn new(log: Log) -> Self {
        Self {
            log,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn push(&self, lines: &[u8]) {
        let mut state = self.lock();
        if state.is_closed || state.lines.len() + lines.len() > self.log.queue_bytes {
            return self.drop_lines(&mut state, lines);
        }
        let was_empty = state.lines.is_empty();
        state.lines.extend_from_slice(lines);
        drop(state);
        // The reader takes everything, so only the first line wakes it.
        if was_empty {
            self.changed.notify_one();
        }
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for a line, then for the batching time. Returns false once the queue is closed.
    fn wait(&self, batching: Duration) -> bool {
        let mut state = self.lock();
        while state.lines.is_empty() && !state.is_closed {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        let end = Instant::now() + batching;
        while !state.is_closed {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        !state.is_closed
    }

    /// Swaps the queued lines for an empty buffer.
    fn take(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        std::mem::swap(&mut self.lock().lines, buffer);
    }

    fn drop_lines(&self, state: &mut State, lines: &[u8]) {
        let dropped = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.log.dropped.add(dropped);
        state.untold += dropped;
    }

    /// Returns the number of lines dropped since the last call.
    fn take_unreported(&self) -> u64 {
        std::mem::take(&mut self.lock().untold)
    }

    /// Locks the state, which is valid even after a panic: it has whole lines.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes lines until the queue is closed and empty. Lines that can't be written, for instance to a full disk, are
/// dropped.
fn write_lines(queue: &Queue, out: impl Write) {
    let Log {
        name,
        batching,
        panic_point,
        ..
    } = queue.log;
    let mut writer = LineWriter::new(out);
    let mut batch = Vec::new();
    let mut failing = false;
    loop {
        let is_open = queue.wait(if failing { PAUSE } else { batching });
        let written = caught(|| {
            panic_point.pass();
            queue.take(&mut batch);
            writer.write_batch(&batch)
        });
        let written = written.unwrap_or_else(|panicked| Err(io::Error::other(panicked)));
        if written.is_err() {
            queue.drop_lines(&mut queue.lock(), &batch);
        }
        batch.clear();
        let dropped = match written.is_ok() {
            true => queue.take_unreported(),
            false => 0,
        };
        match &written {
            Err(error) if !failing => {
                let error = ErrorChain(error);
                tracing::error!(%error, "the {name} can't be written; its lines are dropped");
            }
            Err(_) => {}
            Ok(()) if failing => {
                tracing::info!(dropped, "the {name} can be written again");
            }
            Ok(()) if dropped > 0 => {
                tracing::warn!(
                    dropped,
                    "lines of the {name} were dropped: its reader is slow"
                );
            }
            Ok(()) => {}
        }
        failing = written.is_err();
        if !is_open {
            return;
        }
    }
}

/// Writer of whole lines.
struct LineWriter<W> {
    out: W,
    /// True if the last write stopped within a line.
    is_within_line: bool,
}

impl<W: Write> LineWriter<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            is_within_line: false,
        }
    }

    /// Writes lines. If the last write ended within a line, it begins with the next whole line.
    fn write_batch(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_within_line && !lines.is_empty() {
            self.write(b"\n")?;
        }
        self.write(lines)
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.out.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.is_within_line = bytes[written - 1] != b'\n';
                    bytes = &bytes[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(queue_bytes: usize) -> Log {
        Log {
            name: "test log",
            thread: "test-log",
            queue_bytes,
            batching: Duration::ZERO,
            dropped: Box::leak(Box::default()),
            panic_point: PanicPoint::AccessLog,
        }
    }

    /// Writer with limited space, like a full disk, once.
    struct Full {
        left: Option<usize>,
        log: Vec<u8>,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.left.unwrap_or(usize::MAX));
            if fits == 0 {
                self.left = None;
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.left = self.left.map(|left| left - fits);
            self.log.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn partial_line_is_ended_before_the_next_batch() {
        let mut writer = LineWriter::new(Full {
            left: Some(3),
            log: Vec::new(),
        });
        assert!(writer.write_batch(b"first\n").is_err());
        writer.write_batch(b"second\n").expect("written");
        writer.write_batch(b"third\n").expect("written");
        assert_eq!(writer.out.log, b"fir\nsecond\nthird\n");
    }

    #[test]
    fn full_queue_drops_whole_lines_and_counts_them() {
        let queue = Queue::new(log(100));
        for number in 0..100 {
            queue.push(format!("line {number}\n").as_bytes());
        }
        let mut lines = Vec::new();
        queue.take(&mut lines);
        let lines = String::from_utf8(lines).expect("text");
        assert!((90..=100).contains(&lines.len()), "{}", lines.len());
        assert!(lines.ends_with('\n'));
        let dropped = queue.log.dropped.get();
        assert_eq!(lines.lines().count() as u64 + dropped, 100);
        assert_eq!(
            (queue.take_unreported(), queue.take_unreported()),
            (dropped, 0)
        );
    }

    #[test]
    fn closed_queue_writes_its_last_lines_and_takes_no_more() {
        let queue = Queue::new(log(100));
        queue.push(b"last\n");
        queue.close();
        queue.push(b"too late\n");
        let mut written = Vec::new();
        write_lines(&queue, &mut written);
        assert_eq!(written, b"last\n");
        assert_eq!(queue.log.dropped.get(), 1);
    }

    #[test]
    fn concurrent_lines_are_written_once_and_in_order_per_thread() {
        let queue = Queue::new(log(usize::MAX));
        let mut written = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| write_lines(&queue, &mut written));
            let threads = ["a", "b", "c"].map(|name| {
                let queue = &queue;
                scope.spawn(move || {
                    for number in 0..2_000 {
                        queue.push(format!("{name} {number}\n").as_bytes());
                    }
                })
            });
            for thread in threads {
                thread.join().expect("a thread");
            }
            queue.close();
        });
        let written = String::from_utf8(written).expect("text");
        for name in ["a ", "b ", "c "] {
            let numbers: Vec<u64> = written
                .lines()
                .filter_map(|line| line.strip_prefix(name)?.parse().ok())
                .collect();
            assert_eq!(numbers, (0..2_000).collect::<Vec<_>>(), "{name}");
        }
    }
}
