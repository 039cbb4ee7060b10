//! Spool: records that wait for the end of the inputs, in memory or, if they are many, in an unnamed temporary file.
//!
//! Inputs are read to their end before a publish begins. So a slow input never holds the store, all faults are found
//! before it, and memory doesn't grow with the inputs.

use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use anyhow::Context as _;
use tempfile::SpooledTempFile;

/// Maximum length kept in memory, in bytes after compression; a longer spool goes to a temporary file.
const MAX_IN_MEMORY_BYTES: usize = 16 << 20;

/// Fastest level: products resemble each other enough for it.
const COMPRESSION_LEVEL: i32 = 1;

/// Number of the table of a record that wasn't a row.
const NO_TABLE: u64 = u64::MAX;

/// Row of a record.
pub(super) struct SpooledRow {
    /// Number of its table.
    pub(super) table: usize,
    /// Row in its table's dialect, without the line ending.
    pub(super) line: Vec<u8>,
}

/// Spool that is being written.
pub(super) struct Spool {
    file: zstd::Encoder<'static, BufWriter<SpooledTempFile>>,
    records: u64,
}

impl Spool {
    /// An empty spool.
    pub(super) fn new() -> io::Result<Self> {
        let file = BufWriter::new(SpooledTempFile::new(MAX_IN_MEMORY_BYTES));
        Ok(Self {
            file: zstd::Encoder::new(file, COMPRESSION_LEVEL)?,
            records: 0,
        })
    }

    /// Adds a record, with its row if that may have to be written back.
    pub(super) fn push(&mut self, json: &str, row: Option<&SpooledRow>) -> io::Result<()> {
        self.records += 1;
        self.write(json.as_bytes())?;
        match row {
            None => self.file.write_all(&NO_TABLE.to_le_bytes()),
            Some(SpooledRow { table, line }) => {
                self.file.write_all(&(*table as u64).to_le_bytes())?;
                self.write(line)
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(&(bytes.len() as u64).to_le_bytes())?;
        self.file.write_all(bytes)
    }

    /// Returns the number of records.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Returns all records, in the order in which they were added.
    pub(super) fn read(self) -> io::Result<Spooled> {
        let buffered = self.file.finish()?;
        let mut file = buffered
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Spooled {
            file: zstd::Decoder::new(file)?,
            left: self.records,
        })
    }
}

/// Spool that is being read.
pub(super) struct Spooled {
    file: zstd::Decoder<'static, BufReader<SpooledTempFile>>,
    left: u64,
}

impl Spooled {
    fn record(&mut self) -> io::Result<(String, Option<SpooledRow>)> {
        let json = String::from_utf8(self.bytes()?).map_err(io::Error::other)?;
        let row = match self.number()? {
            NO_TABLE => None,
            table => Some(SpooledRow {
                table: usize::try_from(table).map_err(io::Error::other)?,
                line: self.bytes()?,
            }),
        };
        Ok((json, row))
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut number = [0; 8];
        self.file.read_exact(&mut number)?;
        Ok(u64::from_le_bytes(number))
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let length = self.number()?;
        let mut bytes = Vec::new();
        (&mut self.file).take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }
}

impl Iterator for Spooled {
    type Item = anyhow::Result<(String, Option<SpooledRow>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.record().context("can't read the records back"))
    }
}
