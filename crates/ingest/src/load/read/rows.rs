//! Rows of a CSV file, with their line numbers.
//!
//! `csv-core` splits the cells. It is used instead of `csv` because it reports the input consumed by each cell: so
//! lines are counted right with any line ending, the length of a record is bounded before it is in memory, and unclosed
//! quotes are detected instead of swallowing the following rows.

use std::io::{self, BufRead};

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use super::MAX_RECORD_BYTES;

/// Maximum number of cells of a row: that of spreadsheets.
const MAX_CELLS: usize = 16_384;

/// A row.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Number of the line where it begins, from 1.
    pub(super) line: u64,
    /// Row number in the spreadsheet, from 1: line breaks in cells don't count.
    pub(super) number: u64,
    /// Cells, without their quotes.
    pub(super) cells: Vec<Vec<u8>>,
    /// Index of the first cell with wrong quotes.
    pub(super) badly_quoted: Option<usize>,
    /// True if it exceeds the maximum bytes or cells, so that it wasn't read to its end.
    pub(super) is_too_large: bool,
}

/// Reader of rows; skips empty lines.
pub(super) struct Rows<R> {
    input: R,
    core: Reader,
    separator: u8,
    place: Reached,
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
    /// Advances past a byte. A row begins at its first byte that isn't a line end.
    fn pass(&mut self, byte: u8, row: &mut Row) {
        if is_line_end(byte) {
            self.line += u64::from(byte == b'\r' || !self.after_return);
        } else if row.line == 0 {
            row.line = self.line;
            row.number = self.line - self.lines_without_row;
        }
        self.after_return = byte == b'\r';
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Quotes of a cell in the file, as far as it was read.
#[derive(Default)]
struct Raw {
    first: Option<u8>,
    /// Last byte that isn't a blank, separator or line end.
    last: u8,
    quotes: u64,
}

impl Raw {
    fn see(&mut self, byte: u8, separator: u8) {
        if is_line_end(byte) {
            return;
        }
        self.first.get_or_insert(byte);
        self.quotes += u64::from(byte == b'"');
        if byte != separator && !byte.is_ascii_whitespace() {
            self.last = byte;
        }
    }

    /// Returns true if a cell begins with a quote, but doesn't end with one, or has an odd number of them.
    fn is_badly_quoted(&self) -> bool {
        self.first == Some(b'"') && (self.last != b'"' || self.quotes % 2 == 1)
    }
}

impl<R: BufRead> Rows<R> {
    /// Returns the rows of `input`, which begins at line `line`.
    pub(super) fn new(input: R, separator: u8, line: u64) -> Self {
        Self {
            input,
            core: ReaderBuilder::new().delimiter(separator).build(),
            separator,
            place: Reached {
                line,
                lines_without_row: 0,
                after_return: false,
            },
        }
    }

    /// Returns the next row; `None` after the last, and after a row that is too large.
    ///
    /// # Errors
    ///
    /// If the input can't be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Row>> {
        let mut row = Row::default();
        let (mut cell, mut raw) = (Vec::new(), Raw::default());
        let mut output = [0; 4 << 10];
        let mut bytes = 0;
        loop {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            let (result, taken, written) = self.core.read_field(buffer, &mut output);
            cell.extend_from_slice(&output[..written]);
            let ends_line = buffer[..taken]
                .last()
                .is_some_and(|byte| is_line_end(*byte));
            for byte in &buffer[..taken] {
                self.place.pass(*byte, &mut row);
                raw.see(*byte, self.separator);
            }
            self.input.consume(taken);
            // Empty lines before a row don't belong to it.
            bytes += if row.line == 0 { 0 } else { taken as u64 };
            if bytes > MAX_RECORD_BYTES || row.cells.len() > MAX_CELLS {
                row.is_too_large = true;
                return Ok(Some(row));
            }
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::End => return Ok(None),
                ReadFieldResult::Field { record_end } => {
                    if raw.is_badly_quoted() {
                        row.badly_quoted.get_or_insert(row.cells.len());
                    }
                    row.cells.push(std::mem::take(&mut cell));
                    raw = Raw::default();
                    if record_end {
                        let passed = self.place.line - row.line;
                        self.place.lines_without_row += passed.saturating_sub(ends_line.into());
                        return Ok(Some(row));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<(u64, u64, Vec<String>, Option<usize>)> {
        let mut rows = Rows::new(text.as_bytes(), b';', 1);
        let mut found = Vec::new();
        while let Some(row) = rows.next().expect("memory") {
            let text = |cell: Vec<u8>| String::from_utf8(cell).expect("UTF-8");
            let cells = row.cells.into_iter().map(text).collect();
            found.push((row.line, row.number, cells, row.badly_quoted));
        }
        found
    }

    #[test]
    fn lines_and_rows_are_counted_with_any_line_ending() {
        for end in ["\n", "\r\n", "\r"] {
            let lines = ["a;b", "", "\"1", "", "2\";3", "x;\"y", "z\"", ";", "", "l"];
            let found = rows(&lines.join(end));
            let at: Vec<_> = found.iter().map(|(line, row, ..)| (*line, *row)).collect();
            assert_eq!(at, [(1, 1), (3, 3), (6, 4), (8, 5), (10, 7)], "{end:?}");
            assert_eq!(found[1].2, [format!("1{end}{end}2"), "3".to_owned()]);
            assert!(
                found
                    .iter()
                    .all(|(.., badly_quoted)| badly_quoted.is_none())
            );
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
            assert_eq!(rows(text)[0].3, expected, "{text}");
        }
    }
}
