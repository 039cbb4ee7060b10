//! Spool: records that wait for the end of the inputs, in memory or, if they are many, compressed in an unnamed temporary file.
//!
//! Inputs are read to their end before a publish begins. So a slow input never holds the store, all faults are found
//! before it, and memory doesn't grow with the inputs.
//!
//! Records come back in the order of their codes: so stores write each page of an index once, and neighbours lie together in what
//! is read later. They are sorted in runs, each a zstd frame, which are merged.

use std::io::{self, Seek as _, Write};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tempfile::{SpooledData, SpooledTempFile};

use super::spooled::{Merge, Run, Section, Source, Spooled};

/// Maximum length kept in memory, in bytes after compression; a longer spool goes to a temporary file.
const MAX_IN_MEMORY_BYTES: usize = 16 << 20;

/// Length of the records of a run, in bytes: it is sorted in memory, while the next one is read.
const RUN_BYTES: usize = 32 << 20;

/// Fastest level: products resemble each other enough for it.
const COMPRESSION_LEVEL: i32 = 1;

/// Binary logarithm of the memory that each run takes while all are merged, in bytes.
const WINDOW_LOG: u32 = 17;

/// Length in place of that of a record's JSON, if it isn't kept.
pub(super) const NO_JSON: u64 = u64::MAX;

/// A record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) code: String,
    /// The record as it was written, without its code.
    pub(super) record: Vec<u8>,
    /// Its JSON, if it may have to be written back.
    pub(super) json: Option<String>,
}

/// Spool that is being written.
pub(super) struct Spool {
    run: Vec<Entry>,
    run_bytes: usize,
    max_run_bytes: usize,
    records: u64,
    /// Started with the first run that is full.
    writer: Option<Writer>,
}

/// Thread that sorts, compresses and writes runs while more is read.
struct Writer {
    runs: mpsc::SyncSender<Vec<Entry>>,
    thread: JoinHandle<io::Result<Runs>>,
}

/// Runs that were written.
struct Runs {
    file: SpooledTempFile,
    /// Ends of the runs in the file.
    ends: Vec<u64>,
}

impl Spool {
    /// An empty spool.
    pub(super) fn new() -> Self {
        Self::with_runs_of(RUN_BYTES)
    }

    fn with_runs_of(max_run_bytes: usize) -> Self {
        Self {
            run: Vec::new(),
            run_bytes: 0,
            max_run_bytes,
            records: 0,
            writer: None,
        }
    }

    /// Adds a record as it was written, with its JSON if that may have to be written back.
    pub(super) fn push(
        &mut self,
        code: String,
        record: Vec<u8>,
        json: Option<String>,
    ) -> io::Result<()> {
        self.records += 1;
        self.run_bytes += code.len() + record.len() + json.as_ref().map_or(0, String::len);
        self.run.push(Entry { code, record, json });
        if self.run_bytes < self.max_run_bytes {
            return Ok(());
        }
        self.run_bytes = 0;
        let run = std::mem::take(&mut self.run);
        let writer = self.writer.get_or_insert_with(Writer::start);
        match writer.runs.send(run) {
            Ok(()) => Ok(()),
            // It ended because a run couldn't be written.
            Err(mpsc::SendError(_)) => match self.writer.take() {
                Some(writer) => writer.finish().map(drop),
                None => Ok(()),
            },
        }
    }

    /// Returns the number of records.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Returns all records, sorted by code; those of one code are in the order in which they were added.
    pub(super) fn read(mut self) -> io::Result<Spooled> {
        let Some(writer) = self.writer else {
            // Those of a small load are in memory still.
            sort(&mut self.run);
            return Ok(Spooled::Sorted(self.run.into_iter()));
        };
        let mut written = writer.finish()?;
        if !self.run.is_empty() {
            written.add(self.run)?;
        }
        let Runs { file, ends } = written;
        let source = Arc::new(match file.into_inner() {
            SpooledData::InMemory(bytes) => Source::Memory(bytes.into_inner()),
            SpooledData::OnDisk(file) => Source::File(file),
        });
        let mut runs = Vec::with_capacity(ends.len());
        let mut at = 0;
        for end in ends {
            let source = Arc::clone(&source);
            let section = Section { source, at, end };
            runs.push(Run::new(section)?);
            at = end;
        }
        Merge::new(runs).map(Spooled::Merged)
    }
}

impl Writer {
    fn start() -> Self {
        // A run is handed over when the one before was written, so that two are in memory.
        let (runs, full) = mpsc::sync_channel::<Vec<Entry>>(0);
        let thread = thread::spawn(move || {
            let mut written = Runs::new();
            full.into_iter().try_for_each(|run| written.add(run))?;
            Ok(written)
        });
        Self { runs, thread }
    }

    /// Waits for the last run.
    fn finish(self) -> io::Result<Runs> {
        let Self { runs, thread } = self;
        drop(runs);
        match thread.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Runs {
    fn new() -> Self {
        Self {
            file: SpooledTempFile::new(MAX_IN_MEMORY_BYTES),
            ends: Vec::new(),
        }
    }

    /// Sorts a run and writes it.
    fn add(&mut self, mut run: Vec<Entry>) -> io::Result<()> {
        sort(&mut run);
        let mut frame = zstd::Encoder::new(&mut self.file, COMPRESSION_LEVEL)?;
        frame.window_log(WINDOW_LOG)?;
        for entry in &run {
            write(&mut frame, entry)?;
        }
        frame.finish()?;
        self.ends.push(self.file.stream_position()?);
        Ok(())
    }
}

/// Sorts records by code; those of one code stay in the order in which they were added.
fn sort(run: &mut [Entry]) {
    run.sort_by(|one, other| one.code.cmp(&other.code));
}

fn write(out: &mut impl Write, entry: &Entry) -> io::Result<()> {
    let Entry { code, record, json } = entry;
    write_bytes(out, code.as_bytes())?;
    write_bytes(out, record)?;
    match json {
        None => out.write_all(&NO_JSON.to_le_bytes()),
        Some(json) => write_bytes(out, json.as_bytes()),
    }
}

fn write_bytes(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_by_code_in_the_order_added() {
        // Several runs, beyond what is kept in memory: such text hardly compresses.
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 16
        };
        let mut added = Vec::new();
        for number in 0..30_000_usize {
            let mut text = String::new();
            for _ in 0..160 {
                let bits = random();
                text.extend((0..8).map(|at| char::from(b'0' + (bits >> (at * 5)) as u8 % 64)));
            }
            let json = (number % 4 == 0).then(|| text[7..20].to_owned());
            // Every tenth code is there often.
            let code = match number % 10 {
                0 => "P".to_owned(),
                _ => format!("P{}", &text[..12]),
            };
            added.push((code, text.into_bytes(), json));
        }
        for records in [added.len(), 1_000] {
            let added = &added[..records];
            let mut spool = Spool::with_runs_of(4 << 20);
            for (code, record, json) in added {
                spool
                    .push(code.clone(), record.clone(), json.clone())
                    .unwrap();
            }
            assert_eq!(spool.records(), added.len() as u64);
            assert_eq!(spool.writer.is_some(), records > 1_000);
            let mut expected: Vec<_> = added.iter().collect();
            expected.sort_by_key(|(code, ..)| code);
            let mut read = spool.read().unwrap();
            for (code, record, json) in expected {
                let entry = read.next().unwrap().unwrap();
                assert_eq!(
                    (&entry.code, &entry.record, &entry.json),
                    (code, record, json)
                );
            }
            assert!(read.next().is_none());
        }
    }
}
