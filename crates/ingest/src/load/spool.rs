//! Spool: records that wait for the end of the inputs, in memory or, if they are many, in an unnamed temporary file.
//!
//! Inputs are read to their end before a publish begins. So a slow input never holds the store, all faults are found
//! before it, and memory doesn't grow with the inputs.
//!
//! Records come back in the order of their codes: so stores write each page of an index once, and neighbours lie together in what
//! is read later. They are sorted in runs, each a zstd frame, which are merged.

use std::io::{self, Seek as _, Write};
use std::sync::Arc;

use tempfile::{SpooledData, SpooledTempFile};

use super::spooled::{Merge, Run, Section, Source, Spooled};

/// Maximum length kept in memory, in bytes after compression; a longer spool goes to a temporary file.
const MAX_IN_MEMORY_BYTES: usize = 16 << 20;

/// Length of the records of a run, in bytes: it is sorted in memory.
const RUN_BYTES: usize = 32 << 20;

/// Fastest level: products resemble each other enough for it.
const COMPRESSION_LEVEL: i32 = 1;

/// Binary logarithm of the memory that each run takes while all are merged, in bytes.
const WINDOW_LOG: u32 = 17;

/// Number of the table of a record that wasn't a row.
pub(super) const NO_TABLE: u64 = u64::MAX;

/// Row of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpooledRow {
    /// Number of its table.
    pub(super) table: usize,
    /// Row in its table's dialect, without the line ending.
    pub(super) line: Vec<u8>,
}

/// A record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) code: String,
    /// Place in its run, as it was added.
    pub(super) number: u64,
    pub(super) json: String,
    pub(super) row: Option<SpooledRow>,
}

/// Spool that is being written.
pub(super) struct Spool {
    file: SpooledTempFile,
    /// Ends of the runs in the file.
    ends: Vec<u64>,
    run: Vec<Entry>,
    run_bytes: usize,
    max_run_bytes: usize,
    records: u64,
}

impl Spool {
    /// An empty spool.
    pub(super) fn new() -> Self {
        Self::with_runs_of(RUN_BYTES)
    }

    fn with_runs_of(max_run_bytes: usize) -> Self {
        Self {
            file: SpooledTempFile::new(MAX_IN_MEMORY_BYTES),
            ends: Vec::new(),
            run: Vec::new(),
            run_bytes: 0,
            max_run_bytes,
            records: 0,
        }
    }

    /// Adds a record, with its row if that may have to be written back.
    pub(super) fn push(
        &mut self,
        code: &str,
        json: &str,
        row: Option<SpooledRow>,
    ) -> io::Result<()> {
        self.records += 1;
        self.run_bytes += code.len() + json.len() + row.as_ref().map_or(0, |row| row.line.len());
        self.run.push(Entry {
            code: code.to_owned(),
            number: self.run.len() as u64,
            json: json.to_owned(),
            row,
        });
        match self.run_bytes >= self.max_run_bytes {
            true => self.end_run(),
            false => Ok(()),
        }
    }

    /// Sorts the run and writes it.
    fn end_run(&mut self) -> io::Result<()> {
        let mut run = std::mem::take(&mut self.run);
        self.run_bytes = 0;
        run.sort_unstable_by(|one, other| {
            (&one.code, one.number).cmp(&(&other.code, other.number))
        });
        let mut frame = zstd::Encoder::new(&mut self.file, COMPRESSION_LEVEL)?;
        frame.window_log(WINDOW_LOG)?;
        for entry in &run {
            write(&mut frame, entry)?;
        }
        frame.finish()?;
        self.ends.push(self.file.stream_position()?);
        Ok(())
    }

    /// Returns the number of records.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Returns all records in an order.
    pub(super) fn read(mut self, order: Order) -> io::Result<Spooled> {
        if !self.run.is_empty() {
            self.end_run()?;
        }
        let source = Arc::new(match self.file.into_inner() {
            SpooledData::InMemory(bytes) => Source::Memory(bytes.into_inner()),
            SpooledData::OnDisk(file) => Source::File(file),
        });
        let mut runs = Vec::with_capacity(self.ends.len());
        let mut at = 0;
        for end in self.ends {
            let source = Arc::clone(&source);
            let section = Section { source, at, end };
            runs.push(Run::new(section)?);
            at = end;
        }
        match order {
            Order::Codes => Merge::new(runs).map(Spooled::Merged),
            Order::Input => Ok(Spooled::OneByOne {
                runs: runs.into_iter(),
                run: Vec::new().into_iter(),
            }),
        }
    }
}

/// Order in which records come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Ascending codes.
    Codes,
    /// As they were added.
    Input,
}

fn write(out: &mut impl Write, entry: &Entry) -> io::Result<()> {
    let Entry {
        code,
        number,
        json,
        row,
    } = entry;
    write_bytes(out, code.as_bytes())?;
    out.write_all(&number.to_le_bytes())?;
    write_bytes(out, json.as_bytes())?;
    match row {
        None => out.write_all(&NO_TABLE.to_le_bytes()),
        Some(SpooledRow { table, line }) => {
            out.write_all(&(*table as u64).to_le_bytes())?;
            write_bytes(out, line)
        }
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
    fn records_come_back_by_code_or_as_they_were_added() {
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
            let mut json = String::new();
            for _ in 0..160 {
                let bits = random();
                json.extend((0..8).map(|at| char::from(b'0' + (bits >> (at * 5)) as u8 % 64)));
            }
            let row = SpooledRow {
                table: number % 3,
                line: json.as_bytes()[..7].to_vec(),
            };
            let code = format!("P{}", json.get(..12).unwrap_or_default());
            added.push((code, json, number.is_multiple_of(2).then_some(row)));
        }
        for order in [Order::Codes, Order::Input] {
            let mut spool = Spool::with_runs_of(4 << 20);
            for (code, json, row) in &added {
                spool.push(code, json, row.clone()).unwrap();
            }
            assert_eq!(spool.records(), added.len() as u64);
            assert!(spool.ends.len() > 2, "{:?}", spool.ends);
            let mut expected: Vec<_> = added.iter().collect();
            if order == Order::Codes {
                expected.sort_by_key(|(code, ..)| code);
            }
            let mut read = spool.read(order).unwrap();
            for (_, json, row) in expected {
                let (own_json, own_row) = read.next().unwrap().unwrap();
                assert_eq!((&own_json, &own_row), (json, row));
            }
            assert!(read.next().is_none());
        }
    }
}
