//! The access log: one JSON object per line, written by a thread of its own (`log_output`).
//!
//! Lines are dropped and counted if the reader of the log can't keep up; responses aren't delayed. Queries aren't
//! logged: a client may put a key there by mistake.
//!
//! - `context`: facts about a request beyond its head
//! - `line`: fields and format of a line
//! - `shown`: parts of a request that may be shown

mod context;
mod line;
mod shown;

use std::cell::RefCell;
use std::io;
use std::time::Duration;

pub(crate) use context::RequestLogContext;
pub use line::Line;
use line::TimeText;
pub(crate) use shown::{shown_method, shown_path};

use crate::log_output::{Log, LogOutput};
use crate::metrics::ACCESS_LOG_DROPPED;
use crate::panic_point::PanicPoint;

const LOG: Log = Log {
    name: "access log",
    thread: "access-log",
    // About 40,000 lines.
    queue_bytes: 16 * 1024 * 1024,
    // Waking a thread for every line would take as long as the request.
    batching: Duration::from_millis(25),
    dropped: &ACCESS_LOG_DROPPED,
    panic_point: PanicPoint::AccessLog,
};

/// Time limit of writing the last lines at shutdown.
const FINISH_LIMIT: Duration = Duration::from_secs(2);

/// Destination of the access log.
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
    /// `None` without a log.
    output: Option<LogOutput>,
}

thread_local! {
    /// Buffer of a line, and the text of the last second. They are outside the queue's lock, so that threads format
    /// concurrently.
    static BUFFERS: RefCell<(Vec<u8>, TimeText)> = RefCell::default();
}

impl AccessLog {
    /// Starts the thread that writes.
    ///
    /// # Errors
    ///
    /// If the thread can't be started.
    pub fn start(destination: Destination) -> io::Result<Self> {
        let output = match destination {
            Destination::Off => None,
            Destination::Stdout => Some(LogOutput::start(LOG, io::stdout())?),
        };
        Ok(Self { output })
    }

    /// Logs one request without waiting for the log's reader.
    pub fn log(&self, line: &Line<'_>) {
        let Some(output) = &self.output else {
            return;
        };
        BUFFERS.with_borrow_mut(|(text, time)| {
            text.clear();
            line.write(time, text);
            output.push(text);
        });
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        if let Some(output) = &self.output {
            output.finish(FINISH_LIMIT);
        }
    }
}
