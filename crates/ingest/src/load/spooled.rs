//! Spool that is being read: its runs, merged by code.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use anyhow::Context as _;

use super::spool::{Entry, NO_JSON};

/// Maximum capacity that is reserved for a record before it is read, in bytes.
const MAX_CAPACITY: u64 = 64 << 10;

/// Bytes of all runs.
pub(super) enum Source {
    Memory(Vec<u8>),
    File(File),
}

/// Bytes of a run.
pub(super) struct Section {
    pub(super) source: Arc<Source>,
    pub(super) at: u64,
    pub(super) end: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let buffer = &mut buffer[..length];
        let read = match &*self.source {
            Source::Memory(bytes) => {
                let at = usize::try_from(self.at).unwrap_or(usize::MAX);
                bytes.get(at..).unwrap_or_default().read(buffer)?
            }
            Source::File(file) => file.read_at(buffer, self.at)?,
        };
        self.at += read as u64;
        Ok(read)
    }
}

/// A run that is being read.
pub(super) struct Run(zstd::Decoder<'static, BufReader<Section>>);

impl Run {
    pub(super) fn new(section: Section) -> io::Result<Self> {
        zstd::Decoder::new(section).map(Self)
    }

    /// Returns the next record; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut first = [0; 1];
        if self.0.read(&mut first)? == 0 {
            return Ok(None);
        }
        let mut length = [first[0], 0, 0, 0, 0, 0, 0, 0];
        self.0.read_exact(&mut length[1..])?;
        Ok(Some(Entry {
            code: text(self.bytes(u64::from_le_bytes(length))?)?,
            record: self.number().and_then(|length| self.bytes(length))?,
            json: match self.number()? {
                NO_JSON => None,
                length => Some(text(self.bytes(length)?)?),
            },
        }))
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut number = [0; 8];
        self.0.read_exact(&mut number)?;
        Ok(u64::from_le_bytes(number))
    }

    fn bytes(&mut self, length: u64) -> io::Result<Vec<u8>> {
        // A damaged length allocates little.
        let capacity = length.min(MAX_CAPACITY);
        let mut bytes = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
        (&mut self.0).take(length).read_to_end(&mut bytes)?;
        match bytes.len() as u64 == length {
            true => Ok(bytes),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Runs that are merged.
pub(super) struct Merge {
    runs: Vec<Run>,
    /// First record of each run that isn't at its end; the greatest of the heap has the least code.
    first: BinaryHeap<Reverse<(String, usize)>>,
    entries: Vec<Option<Entry>>,
}

impl Merge {
    pub(super) fn new(mut runs: Vec<Run>) -> io::Result<Self> {
        let mut first = BinaryHeap::with_capacity(runs.len());
        let mut entries = Vec::with_capacity(runs.len());
        for (index, run) in runs.iter_mut().enumerate() {
            let mut entry = run.next()?;
            let code = entry.as_mut().map(|entry| std::mem::take(&mut entry.code));
            first.extend(code.map(|code| Reverse((code, index))));
            entries.push(entry);
        }
        Ok(Self {
            runs,
            first,
            entries,
        })
    }

    fn next(&mut self) -> io::Result<Option<Entry>> {
        let Some(Reverse((code, index))) = self.first.pop() else {
            return Ok(None);
        };
        let mut next = self.runs[index].next()?;
        let next_code = next.as_mut().map(|entry| std::mem::take(&mut entry.code));
        (self.first).extend(next_code.map(|code| Reverse((code, index))));
        let entry = std::mem::replace(&mut self.entries[index], next);
        Ok(entry.map(|entry| Entry { code, ..entry }))
    }
}

/// Spool that is being read.
pub(super) enum Spooled {
    /// From runs.
    Merged(Merge),
    /// From memory.
    Sorted(std::vec::IntoIter<Entry>),
}

impl Iterator for Spooled {
    type Item = anyhow::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Merged(merge) => merge
                .next()
                .context("can't read the records back")
                .transpose(),
            Self::Sorted(entries) => entries.next().map(Ok),
        }
    }
}
