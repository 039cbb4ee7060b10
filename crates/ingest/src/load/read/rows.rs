//! The rows of a CSV file, with the lines where they stand.
//!
//! Splitting is `csv-core`'s. That crate, not `csv` on top of it, because it says how much of the input
//! each cell took: so lines are counted right whatever ends them, a record is bounded before it is in
//! memory, and quotes that don't close are noticed instead of swallowing what follows.

use std::io::{self, BufRead};

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use super::MAX_RECORD_BYTES;

/// The most cells of a row: what spreadsheets can have.
const MAX_CELLS: usize = 16_384;

/// A row.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// The line where it begins, from 1.
    pub(super) line: u64,
    /// Row number in the spreadsheet, from 1: line breaks in cells don't count.
    pub(super) number: u64,
    /// Its cells, without their quotes.
    pub(super) cells: Vec<Vec<u8>>,
    /// The first cell whose quotes don't open and close it.
    pub(super) badly_quoted: Option<usize>,
    /// True if it has too many bytes or cells to be read to its end.
    pub(super) is_too_large: bool,
}

/// Reads rows; wholly empty lines are none.
pub(super) struct Rows<R> {
    input: R,
    core: Reader,
    separator: u8,
    place: Reached,
}

/// Position that reading has reached.
struct Reached {
    /// The line that the next byte stands on.
    line: u64,
    /// Number of lines that begin no row: those after line breaks in cells, and one that names the separator.
    lines_without_row: u64,
    after_return: bool,
}

impl Reached {
    /// Goes past a byte of a row, which begins at its first byte that ends no line.
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

/// Quotes of a cell as it stands in the file, as far as it was read.
#[derive(Default)]
struct Raw {
    first: Option<u8>,
    /// The last byte that is no blank, no separator and no line end.
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

    /// A cell that begins with a quote must end with one, and have them in pairs.
    fn is_badly_quoted(&self) -> bool {
        self.first == Some(b'"') && (self.last != b'"' || self.quotes % 2 == 1)
    }
}

impl<R: BufRead> Rows<R> {
    /// The rows of `input`, whose first byte stands on the line `line`, which is the row `row`.
    pub(super) fn new(input: R, separator: u8, line: u64, row: u64) -> Self {
        Self {
            input,
            core: ReaderBuilder::new().delimiter(separator).build(),
            separator,
            place: Reached {
                line,
                lines_without_row: line.saturating_sub(row),
                after_return: false,
            },
        }
    }

    /// The next row; none after the last. After a row that is too large there is no next one.
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
            // Empty lines before a row aren't a part of it.
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
        let mut rows = Rows::new(text.as_bytes(), b';', 1, 1);
        let mut found = Vec::new();
        while let Some(row) = rows.next().expect("memory") {
            let text = |cell: Vec<u8>| String::from_utf8(cell).expect("UTF-8");
            let cells = row.cells.into_iter().map(text).collect();
            found.push((row.line, row.number, cells, row.badly_quoted));
        }
        found
    }

    #[test]
    fn lines_and_rows_are_counted_whatever_ends_them() {
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
    fn quotes_open_and_close_a_cell_or_are_told() {
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
