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

mod line;
mod queue;

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::Duration;

pub use line::Line;
use queue::Queue;

use crate::metrics::{Counter, Metrics};

/// How many bytes of lines may wait: some 40,000 lines.
const QUEUE_BYTES: usize = 16 * 1024 * 1024;

/// For how long lines are gathered before they are written.
const GATHERING: Duration = Duration::from_millis(25);

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
        let (done, written) = sync_channel(0);
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || {
                let _until_done = done;
                if let Err(error) = write_lines(&lines, &metrics.access_log_dropped, io::stdout()) {
                    lines.close();
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(error, "the access log can't be written any more");
                }
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

/// Writes lines as they come, until the queue is closed and empty.
fn write_lines(queue: &Queue, all_dropped: &Counter, mut out: impl Write) -> io::Result<()> {
    let mut taken = Vec::new();
    loop {
        let is_last = queue.wait(GATHERING);
        queue.take(&mut taken, |lines| out.write_all(lines))?;
        out.flush()?;
        let dropped = queue.take_dropped();
        all_dropped.add(dropped);
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "lines of the access log were dropped: its reader is slow"
            );
        }
        if is_last {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

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
