//! The access log: one JSON object a line, written by a thread of its own.
//!
//! A request hands its line over and goes on; when the reader of the log can't keep up, lines are
//! dropped and counted rather than answers delayed. Queries aren't logged: what a client puts there
//! by mistake, a key for one, stays out.

use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::metrics::Metrics;

/// How many lines may wait.
const QUEUE_LINES: usize = 65_536;

/// How long a server waits at its end for the last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// One request, answered.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// When the answer was ready.
    pub time: Timestamp,
    /// The request's id.
    pub request_id: &'a str,
    /// The client's address.
    pub remote: std::net::IpAddr,
    /// The method.
    pub method: &'a str,
    /// The path as it was sent, cut to 256 characters.
    pub path: &'a str,
    /// The route's template, null where no route was found.
    pub route: Option<&'a str>,
    /// The status.
    pub status: u16,
    /// The body's length.
    pub bytes: u64,
    /// From the head's arrival to the answer's readiness.
    pub duration_microseconds: u64,
    /// The key's prefix.
    pub key: Option<&'a str>,
    /// The API version that answered.
    pub version: Option<&'a str>,
    /// The revision that answered.
    pub revision: Option<u64>,
}

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
    lines: Option<SyncSender<String>>,
    written: Option<Mutex<Receiver<()>>>,
    metrics: Arc<Metrics>,
}

impl AccessLog {
    /// Starts writing.
    ///
    /// # Errors
    ///
    /// Where the thread can't be started.
    pub fn start(destination: Destination, metrics: Arc<Metrics>) -> io::Result<Self> {
        if destination == Destination::Off {
            return Ok(Self {
                lines: None,
                written: None,
                metrics,
            });
        }
        let (lines, queue) = sync_channel(QUEUE_LINES);
        let counted = Arc::clone(&metrics);
        let (done, written) = sync_channel(0);
        std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || {
                let _until_done = done;
                if let Err(error) = write_lines(&queue, &counted, io::stdout()) {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(error, "the access log can't be written any more");
                }
            })?;
        Ok(Self {
            lines: Some(lines),
            written: Some(Mutex::new(written)),
            metrics,
        })
    }

    /// Logs one request; never waits.
    pub fn log(&self, line: &Line<'_>) {
        let Some(lines) = &self.lines else { return };
        let text = serde_json::to_string(line).unwrap_or_default();
        if lines.try_send(text).is_err() {
            self.metrics.access_log_dropped.increment();
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.lines = None;
        // The thread ends with the last line, and with it its end of the channel. Where nobody reads
        // what it writes, it never ends: the server does, all the same.
        if let Some(Ok(written)) = self.written.take().map(Mutex::into_inner) {
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

fn write_lines(queue: &Receiver<String>, metrics: &Metrics, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let mut told = 0;
    while let Ok(line) = queue.recv() {
        writeln!(out, "{line}")?;
        while let Ok(line) = queue.try_recv() {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        let all = metrics.access_log_dropped.get();
        let dropped = all - std::mem::replace(&mut told, all);
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "lines of the access log were dropped: its reader is slow"
            );
        }
    }
    Ok(())
}
