//! The access log: one JSON object a line, written by a thread of its own.
//!
//! A request puts its line into memory and goes on. The first line wakes the writing thread, which
//! gathers what follows for a moment and writes it all at once: waking a thread for every line costs
//! as much as answering. When the reader of the log can't keep up, lines are dropped and counted
//! rather than answers delayed. Queries aren't logged: what a client puts there by mistake, a key for
//! one, stays out.
//!
//! - `line`: what a line says, and its bytes
//! - `queue`: where lines wait
//! - `shown`: what of a request is shown

mod line;
mod queue;
mod shown;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::Duration;

pub use line::Line;
use queue::Queue;
pub(crate) use shown::{shown_method, shown_path};

use crate::metrics::{Counter, Metrics};
use crate::panic_point::PanicPoint;
use crate::panics::caught;

/// How many bytes of lines may wait: some 40,000 lines.
const QUEUE_BYTES: usize = 16 * 1024 * 1024;

/// For how long lines are gathered before they are written.
const GATHERING: Duration = Duration::from_millis(25);

/// How long to wait before writing again where that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a server waits at its end for the last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Where the access log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
}

/// The access log of one server.
#[derive(Debug)]
pub struct AccessLog {
    /// None where there is no log.
    writer: Option<Writer>,
}

/// The thread that writes, as the others know it.
#[derive(Debug)]
struct Writer {
    queue: Arc<Queue>,
    thread: Thread,
    /// Hangs up when everything is written.
    written: Mutex<Receiver<()>>,
}

impl AccessLog {
    /// Starts writing.
    ///
    /// # Errors
    ///
    /// Where the thread can't be started.
    pub fn start(destination: Destination, metrics: Arc<Metrics>) -> io::Result<Self> {
        if destination == Destination::Off {
            return Ok(Self { writer: None });
        }
        let queue = Arc::new(Queue::new(QUEUE_BYTES));
        let lines = Arc::clone(&queue);
        // Without the library's buffer: it is known what was written.
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let (done, written) = sync_channel(0);
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || {
                let _until_done = done;
                write_lines(&lines, &metrics.access_log_dropped, out);
            })?;
        let writer = Writer {
            queue,
            thread: thread.thread().clone(),
            written: Mutex::new(written),
        };
        Ok(Self {
            writer: Some(writer),
        })
    }

    /// Logs one request; waits for nobody.
    pub fn log(&self, line: &Line<'_>) {
        if let Some(writer) = &self.writer
            && writer.queue.push(line)
        {
            writer.thread.unpark();
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        writer.queue.close();
        writer.thread.unpark();
        // The thread ends with the last line, and with it its end of the channel. Where nobody reads
        // what it writes, it never ends: the server does, all the same.
        if let Ok(written) = writer.written.into_inner() {
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

/// Writes lines as they come, until the queue is closed and empty. A disk may be full for a while: what can't be
/// written meanwhile is dropped.
fn write_lines(queue: &Queue, all_dropped: &Counter, out: impl Write) {
    let mut lines = Lines::new(out);
    let mut taken = Vec::new();
    let mut failing = false;
    loop {
        let gathering = if failing { PAUSE } else { GATHERING };
        let is_last = queue.wait(gathering);
        let written = caught(|| lines.write_waiting(queue, &mut taken));
        let written = written.unwrap_or_else(|panicked| Err(io::Error::other(panicked)));
        let dropped = queue.take_dropped();
        all_dropped.add(dropped);
        match &written {
            Err(error) if !failing => {
                let error: &dyn std::error::Error = error;
                tracing::error!(
                    error,
                    "the access log can't be written; its lines are dropped"
                );
            }
            Err(_) => {}
            Ok(()) if failing => tracing::info!("the access log can be written again"),
            Ok(()) if dropped > 0 => tracing::warn!(
                dropped,
                "lines of the access log were dropped: its reader is slow"
            ),
            Ok(()) => {}
        }
        failing = written.is_err();
        if is_last {
            return;
        }
    }
}

/// Where lines go.
struct Lines<W> {
    out: W,
    /// Whether the last write broke off within a line.
    is_within_line: bool,
}

impl<W: Write> Lines<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            is_within_line: false,
        }
    }

    /// Writes what waits; where half a line was left behind, on a line of its own.
    fn write_waiting(&mut self, queue: &Queue, taken: &mut Vec<u8>) -> io::Result<()> {
        PanicPoint::AccessLog.pass();
        queue.take(taken, |lines| {
            if self.is_within_line && !lines.is_empty() {
                self.write(b"\n")?;
            }
            self.write(lines)
        })
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
    use std::time::Instant;

    use super::*;

    /// A disk that has so many bytes left, once.
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
    fn after_half_a_line_the_log_goes_on_with_a_line_of_its_own() {
        let queue = Queue::new(QUEUE_BYTES);
        let full = Full {
            left: Some(10),
            log: Vec::new(),
        };
        let mut lines = Lines::new(full);
        let mut taken = Vec::new();
        for number in 0..3 {
            queue.push(&Line::example("/", number));
            let written = lines.write_waiting(&queue, &mut taken);
            assert_eq!(written.is_err(), number == 0);
        }
        assert_eq!(queue.take_dropped(), 1);
        let log = String::from_utf8(lines.out.log).expect("text");
        let parsed = log.lines().map(serde_json::from_str::<serde_json::Value>);
        let is_whole: Vec<bool> = parsed.map(|line| line.is_ok()).collect();
        assert_eq!(is_whole, [false, true, true], "{log}");
    }

    #[test]
    fn whole_lines_of_all_threads_are_written_once_and_in_the_order_of_each() {
        let queue = Queue::new(QUEUE_BYTES);
        let mut log = Vec::new();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| write_lines(&queue, &Counter::default(), &mut log));
            let threads = ["a", "b", "c"].map(|name| {
                let (queue, writer) = (&queue, writer.thread().clone());
                scope.spawn(move || {
                    for number in 0..2_000 {
                        let path = format!("/{name}");
                        if queue.push(&Line::example(&path, number)) {
                            writer.unpark();
                        }
                        if number % 500 == 0 {
                            // The writer gets its turns in between.
                            let until = Instant::now() + GATHERING;
                            while Instant::now() < until {
                                std::thread::yield_now();
                            }
                        }
                    }
                })
            });
            for thread in threads {
                thread.join().expect("a thread");
            }
            queue.close();
            writer.thread().unpark();
        });
        let log = String::from_utf8(log).expect("text");
        for name in ["/a", "/b", "/c"] {
            let numbers: Vec<u64> = log
                .lines()
                .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
                .filter(|line| line["path"] == name)
                .map(|line| line["bytes"].as_u64().expect("a number"))
                .collect();
            assert_eq!(numbers, (0..2_000).collect::<Vec<_>>(), "{name}");
        }
    }
}
