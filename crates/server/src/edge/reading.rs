//! Read deadlines of HTTP/1.1: the time for which a client may send nothing depends on what has begun to arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memchr::{memchr, memchr2};
use tokio::time::Instant;

use super::socket::Timeouts;

/// Progress of an HTTP/1.1 connection, shared by its service and its socket.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    answering: AtomicBool,
    answered: AtomicU64,
    reading_head: AtomicBool,
    /// True while the request waits for changes, and its client hasn't closed its side.
    awaits_end: AtomicBool,
    /// True if the target of the arriving request has a fragment.
    has_fragment: AtomicBool,
}

impl Progress {
    /// Notices from now on, until the response is ready, if the client closes its side.
    pub(super) fn await_end(&self) {
        self.0.awaits_end.store(true, Ordering::Relaxed);
    }

    /// Returns true if the target of the arrived request had a fragment, which the parser drops.
    pub(crate) fn take_fragment(&self) -> bool {
        let has_fragment = &self.0.has_fragment;
        has_fragment.load(Ordering::Relaxed) && has_fragment.swap(false, Ordering::Relaxed)
    }

    /// Records that a head has arrived. There is no read deadline until the request is answered.
    pub(crate) fn begin(&self) {
        self.0.answering.store(true, Ordering::Relaxed);
        self.0.reading_head.store(false, Ordering::Relaxed);
    }

    /// Returns true if only part of a head has arrived.
    pub(crate) fn is_reading_head(&self) -> bool {
        self.0.reading_head.load(Ordering::Relaxed)
    }

    /// Records that the response is ready.
    pub(crate) fn end(&self) {
        self.0.answered.fetch_add(1, Ordering::Relaxed);
        self.0.answering.store(false, Ordering::Relaxed);
        self.0.awaits_end.store(false, Ordering::Relaxed);
    }
}

/// Part of a request that the socket waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadPhase {
    /// The first byte of a head.
    ForRequest,
    /// The rest of a head.
    ForHead,
}

/// Watch of HTTP/1.1: a deadline for each head, and one for the pause before it.
pub(crate) struct Http1Watch {
    timeouts: Timeouts,
    progress: Progress,
    answered: u64,
    phase: ReadPhase,
    /// Read deadline; none if a head has begun and the socket hasn't waited for it yet: most heads arrive whole.
    read_by: Option<Instant>,
    /// Last four bytes that arrived, the newest lowest.
    last: u32,
    /// True while the request line is arriving.
    in_request_line: bool,
}

impl Http1Watch {
    /// Returns the watch of a new connection.
    pub(crate) fn new(timeouts: Timeouts, progress: Progress) -> Self {
        Self {
            timeouts,
            progress,
            answered: 0,
            phase: ReadPhase::ForRequest,
            read_by: Some(Instant::now() + timeouts.head),
            last: 0,
            in_request_line: false,
        }
    }

    /// Returns true if a request was answered since the last call.
    fn has_answered(&mut self) -> bool {
        let answered = self.progress.0.answered.load(Ordering::Relaxed);
        std::mem::replace(&mut self.answered, answered) != answered
    }

    /// Returns true if the received bytes end like a head. The first part of a head may arrive together with a whole
    /// request, and only its bytes tell. A request's body may end in any way; after a body, the deadline is that of a
    /// head.
    fn ends_with_head(&self) -> bool {
        let [_, a, b, c] = self.last.to_be_bytes();
        // The parser accepts a bare line feed as the end of a line, too.
        matches!((a, b, c), (_, b'\n', b'\n') | (b'\n', b'\r', b'\n'))
    }

    /// Looks for a fragment in the request line, which the parser drops silently. Empty lines may come first. Pipelined
    /// requests aren't checked.
    fn note_request_line(&mut self, bytes: &[u8]) {
        let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
        let line = &bytes[start.unwrap_or(bytes.len())..];
        let mut end = memchr2(b'#', b'\n', line);
        if let Some(found) = end
            && line[found] == b'#'
        {
            self.progress.0.has_fragment.store(true, Ordering::Relaxed);
            end = memchr(b'\n', &line[found..]);
        }
        self.in_request_line = end.is_none();
    }

    fn wait_for_head(&mut self) {
        self.phase = ReadPhase::ForHead;
        self.in_request_line = true;
        self.read_by = None;
        self.progress.0.reading_head.store(true, Ordering::Relaxed);
    }

    /// Records bytes that arrived.
    pub(super) fn note(&mut self, bytes: &[u8]) {
        for byte in &bytes[bytes.len().saturating_sub(4)..] {
            self.last = self.last << 8 | u32::from(*byte);
        }
        if self.progress.0.answering.load(Ordering::Relaxed) {
            return;
        }
        if self.has_answered() || self.phase == ReadPhase::ForRequest {
            self.wait_for_head();
        }
        if self.in_request_line {
            self.note_request_line(bytes);
        }
    }

    /// Returns true if the end of what the client sends has to be noticed although nothing is read.
    pub(super) fn awaits_end(&self) -> bool {
        self.progress.0.awaits_end.load(Ordering::Relaxed)
    }

    /// Records that the client has closed its side.
    pub(super) fn note_end(&self) {
        self.progress.0.awaits_end.store(false, Ordering::Relaxed);
    }

    /// Records that bytes were written, which extends the deadline: a slow reader that makes progress isn't idle.
    pub(super) fn note_written(&mut self) {
        if self.phase == ReadPhase::ForRequest {
            self.read_by = Some(Instant::now() + self.timeouts.idle);
        }
    }

    /// Returns the time until which nothing more may arrive, or none if there is no limit.
    pub(super) fn deadline(&mut self) -> Option<Instant> {
        if self.progress.0.answering.load(Ordering::Relaxed) {
            return None;
        }
        if self.has_answered() {
            if self.ends_with_head() {
                self.phase = ReadPhase::ForRequest;
                self.read_by = Some(Instant::now() + self.timeouts.idle);
            } else {
                self.wait_for_head();
            }
        }
        let head = self.timeouts.head;
        Some(*self.read_by.get_or_insert_with(|| Instant::now() + head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_heads_end_like_heads() {
        let ends = |bytes: &[u8]| {
            let mut heads = Http1Watch::new(Timeouts::default(), Progress::default());
            bytes.chunks(3).for_each(|bytes| heads.note(bytes));
            heads.ends_with_head()
        };
        assert!(ends(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(ends(b"GET / HTTP/1.1\nHost: x\n\n"));
        assert!(ends(b"GET / HTTP/1.1\r\nHost: x\r\n\n"));
        assert!(!ends(b"GET / HTTP/1.1\r\nHost: x\r\n"));
        assert!(!ends(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET"));
        assert!(!ends(b""));
    }
}
