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

/// Maximum number of separators of a row, those in texts included: `csv` remembers each.
const MAX_SEPARATORS: usize = 2_000_000;

/// Message for bytes that aren't UTF-8.
const NOT_UTF8: &str = "expected UTF-8; in a spreadsheet, save as \"CSV UTF-8\"";

/// Message for quotes within a cell that has some around it.
const BADLY_QUOTED: &str = "expected quotes around the whole cell, or none, and doubled quotes within; the following \
     text may have been read into this cell";

/// Reader of rows; skips empty lines.
pub(super) struct CsvRows<R> {
    reader: Reader<Input<R>>,
    ahead: Rc<RefCell<Ahead>>,
    file: Place,
}

/// Input of `csv`, which remembers what was read of the current row and beyond.
struct Input<R> {
    input: R,
    ahead: Rc<RefCell<Ahead>>,
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.ahead.borrow_mut().add(&buffer[..read])?;
        Ok(read)
    }
}

/// Bytes from the start of the current row, and its place.
struct Ahead {
    bytes: VecDeque<u8>,
    separator: u8,
    separators: usize,
    /// Number of bytes before these.
    passed: u64,
    /// Number of the line of the next byte.
    line: u64,
    /// Number of lines without a row of their own: those after line breaks in cells.
    lines_without_row: u64,
    after_return: bool,
}

impl Ahead {
    /// Adds bytes; drops the empty lines before a row.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        while let Some(byte) = self.bytes.pop_front_if(|byte| is_line_end(*byte)) {
            self.pass(byte);
        }
        self.separators += memchr::memchr_iter(self.separator, bytes).count();
        let length = (self.bytes.len() + bytes.len()) as u64;
        // Checked before it takes memory.
        if length > MAX_RECORD_BYTES || self.separators > MAX_SEPARATORS {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend(bytes);
        Ok(())
    }

    fn pass(&mut self, byte: u8) {
        self.passed += 1;
        if is_line_end(byte) {
            self.line += u64::from(byte == b'\r' || !self.after_return);
        }
        self.after_return = byte == b'\r';
    }

    /// Passes a row that ends at a position. Returns its line, its number in a spreadsheet, where line breaks in cells
    /// don't count, and the index of its first cell with wrong quotes.
    fn row(&mut self, end: u64) -> (u64, u64, Option<usize>) {
        let mut quotes = Quotes::default();
        let mut first = None;
        let mut is_ended = false;
        while self.passed < end
            && let Some(byte) = self.bytes.pop_front()
        {
            is_ended = is_line_end(byte);
            if !is_ended {
                first.get_or_insert(self.line);
            }
            quotes.see(byte, self.separator);
            self.pass(byte);
        }
        self.separators = 0;
        quotes.end_cell();
        let line = first.unwrap_or(self.line);
        let number = line - self.lines_without_row;
        self.lines_without_row += (self.line - line).saturating_sub(is_ended.into());
        (line, number, quotes.bad)
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Quotes of a row's cells.
#[derive(Default)]
struct Quotes {
    /// First byte of the cell, and the last that isn't a blank.
    first: Option<u8>,
    last: u8,
    count: u64,
    /// Index of the cell.
    index: usize,
    /// Index of the first cell that begins with a quote, but doesn't end with one, or has an odd number of them.
    bad: Option<usize>,
}

impl Quotes {
    fn see(&mut self, byte: u8, separator: u8) {
        let is_open = self.first == Some(b'"') && self.count % 2 == 1;
        if byte == separator && !is_open {
            self.end_cell();
        } else if !is_line_end(byte) {
            self.first.get_or_insert(byte);
            self.count += u64::from(byte == b'"');
            if !byte.is_ascii_whitespace() {
                self.last = byte;
            }
        }
    }

    fn end_cell(&mut self) {
        if self.first == Some(b'"') && (self.last != b'"' || self.count % 2 == 1) {
            self.bad.get_or_insert(self.index);
        }
        *self = Self {
            index: self.index + 1,
            bad: self.bad,
            ..Self::default()
        };
    }
}

impl<R: Read> CsvRows<R> {
    /// Returns the rows of `input`, which begins at line `line`.
    pub(super) fn new(file: &str, input: R, separator: u8, line: u64) -> Self {
        let ahead = Rc::new(RefCell::new(Ahead {
            bytes: VecDeque::new(),
            separator,
            separators: 0,
            passed: 0,
            line,
            lines_without_row: 0,
            after_return: false,
        }));
        let mut builder = ReaderBuilder::new();
        builder.delimiter(separator).flexible(true);
        Self {
            reader: builder.has_headers(false).from_reader(Input {
                input,
                ahead: Rc::clone(&ahead),
            }),
            ahead,
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
        // A row that is too large has no end.
        let end = match is_too_large {
            true => 0,
            false => self.reader.position().byte(),
        };
        let (line, number, badly_quoted) = self.ahead.borrow_mut().row(end);
        let mut cells: Vec<Cell> = match is_too_large {
            true => Vec::new(),
            false => record.iter().map(cell).collect(),
        };
        if let Some(bad) = badly_quoted.and_then(|index| cells.get_mut(index)) {
            *bad = Cell::Unreadable {
                text: bad.text().to_owned(),
                rule: "quotes",
                message: BADLY_QUOTED,
            };
        }
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
    #[test]
    fn wrong_quotes_of_a_cell_are_reported() {
        for (text, expected) in [
            ("a;\"b;c\"", None),
            ("5\" screen;\"say \"\"yes\"\"\"", None),
            ("\"\";\"\"\n", None),
            ("\"\"\"\";a", None),
            ("a;\"b\" ;c", None),
            ("\";\"\"", Some(0)),
            ("\"a\"b;c", Some(0)),
            ("a;\"b\nc;d\n", Some(1)),
        ] {
            let row = CsvRows::new("a", text.as_bytes(), b';', 1).next();
            let row = row.expect("memory").expect("a row");
            let is_bad = |cell: &Cell| matches!(cell, Cell::Unreadable { rule: "quotes", .. });
            assert_eq!(row.cells.iter().position(is_bad), expected, "{text}");
        }
    }
}
