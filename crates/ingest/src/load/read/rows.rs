//! Rows of a CSV file, with their line numbers. `csv` splits the cells.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::MAX_RECORD_BYTES;
use super::table::{Cell, Row, Rows};
use crate::load::report::Place;

/// Maximum number of cells of a row: that of spreadsheets.
const MAX_CELLS: usize = 16_384;

/// Message for bytes that aren't UTF-8.
const NOT_UTF8: &str = "expected UTF-8; in a spreadsheet, save as \"CSV UTF-8\"";

/// Reader of rows; skips empty lines.
pub(super) struct CsvRows<R> {
    reader: Reader<Kept<R>>,
    kept: Rc<RefCell<VecDeque<u8>>>,
    /// Number of bytes before the next row.
    passed: u64,
    at: Reached,
    file: Place,
}

/// Reader that keeps the bytes of the current row, and those that `csv` reads ahead.
struct Kept<R> {
    input: R,
    kept: Rc<RefCell<VecDeque<u8>>>,
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut kept = self.kept.borrow_mut();
        if kept.len() as u64 > MAX_RECORD_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let read = self.input.read(buffer)?;
        kept.extend(&buffer[..read]);
        Ok(read)
    }
}

/// Position of the reader.
struct Reached {
    /// Number of the line of the next byte.
    line: u64,
    /// Number of lines without a row of their own: those after line breaks in cells.
    lines_without_row: u64,
    after_return: bool,
}

impl Reached {
    /// Advances past the bytes of a row, and returns the place of the row: its line, and its number in a spreadsheet,
    /// where line breaks in cells don't count.
    fn pass(&mut self, bytes: impl Iterator<Item = u8>) -> (u64, u64) {
        let (mut first, mut last) = (None, 0);
        for byte in bytes {
            if is_line_end(byte) {
                self.line += u64::from(byte == b'\r' || !self.after_return);
            } else {
                first.get_or_insert(self.line);
            }
            self.after_return = byte == b'\r';
            last = byte;
        }
        let line = first.unwrap_or(self.line);
        let number = line - self.lines_without_row;
        let passed = self.line - line;
        self.lines_without_row += passed.saturating_sub(is_line_end(last).into());
        (line, number)
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

impl<R: Read> CsvRows<R> {
    /// Returns the rows of `input`, which begins at line `line`.
    pub(super) fn new(file: &str, input: R, separator: u8, line: u64) -> Self {
        let kept = Rc::<RefCell<VecDeque<u8>>>::default();
        let input = Kept {
            input,
            kept: Rc::clone(&kept),
        };
        let mut builder = ReaderBuilder::new();
        builder
            .delimiter(separator)
            .has_headers(false)
            .flexible(true);
        Self {
            reader: builder.from_reader(input),
            kept,
            passed: 0,
            at: Reached {
                line,
                lines_without_row: 0,
                after_return: false,
            },
            file: Place::file(file),
        }
    }
}

impl<R: Read> Rows for CsvRows<R> {
    fn next(&mut self) -> io::Result<Option<Row>> {
        let mut record = ByteRecord::new();
        let read = self.reader.read_byte_record(&mut record);
        let is_too_large = match read {
            Ok(false) => return Ok(None),
            Ok(true) => record.len() > MAX_CELLS,
            Err(error) => match error.into_kind() {
                ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => true,
                ErrorKind::Io(error) => return Err(error),
                other => return Err(io::Error::other(format!("{other:?}"))),
            },
        };
        let mut kept = self.kept.borrow_mut();
        // A row that is too large has no end.
        let length = match is_too_large {
            true => kept.len(),
            false => usize::try_from(self.reader.position().byte() - self.passed)
                .map_or(kept.len(), |length| length.min(kept.len())),
        };
        self.passed += length as u64;
        let (line, number) = self.at.pass(kept.drain(..length));
        let cells = match is_too_large {
            true => Vec::new(),
            false => record.iter().map(cell).collect(),
        };
        Ok(Some(Row {
            place: Place {
                line: Some(line),
                row: Some(number),
                ..self.file.clone()
            },
            cells,
            is_too_large,
        }))
    }
}

fn cell(bytes: &[u8]) -> Cell {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cell::Text(text.to_owned()),
        Err(_) => Cell::Unreadable {
            text: String::from_utf8_lossy(bytes).into_owned(),
            rule: "utf8",
            message: NOT_UTF8,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_rows_are_counted_with_any_line_ending() {
        for end in ["\n", "\r\n", "\r"] {
            let lines = ["a;b", "", "\"1", "", "2\";3", "x;\"y", "z\"", ";", "", "l"];
            let text = lines.join(end);
            let mut rows = CsvRows::new("a", text.as_bytes(), b';', 1);
            let mut found = Vec::new();
            while let Some(row) = rows.next().expect("memory") {
                found.push(row);
            }
            let at = |row: &Row| (row.place.line.unwrap_or(0), row.place.row.unwrap_or(0));
            let places: Vec<_> = found.iter().map(at).collect();
            assert_eq!(places, [(1, 1), (3, 3), (6, 4), (8, 5), (10, 7)], "{end:?}");
            let texts: Vec<&str> = found[1].cells.iter().map(Cell::text).collect();
            assert_eq!(texts, [&format!("1{end}{end}2"), "3"]);
        }
    }
}
