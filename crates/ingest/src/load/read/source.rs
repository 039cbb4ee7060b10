//! Original form of a record, so that a rejected one can be written back unchanged.

use std::sync::Arc;

use super::rows::Row;

/// Original form of an unreadable record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Text: JSON, or what was in its place.
    Text(String),
    /// A row of a table.
    Row(SourceRow),
}

/// Row of a table, its cells byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRow {
    pub(crate) table: Arc<Table>,
    cells: Vec<Vec<u8>>,
}

/// A table: its dialect and its first line.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    dialect: Dialect,
    heads: Vec<Vec<u8>>,
    /// Column with the reasons of an earlier rejection, which isn't part of the records.
    reasons: Option<usize>,
}

/// Dialect of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) separator: u8,
    /// True if a line before the first row names the separator; spreadsheets don't count it as a row.
    pub(super) names_separator: bool,
    /// True if it begins with a byte-order mark, which some spreadsheets need to detect UTF-8.
    pub(super) has_mark: bool,
    pub(super) line_end: &'static str,
}

impl Dialect {
    /// Returns the line ending of the first line.
    pub(super) fn line_end(head: &[u8]) -> &'static str {
        let end = head.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        match end.map(|end| &head[end..]) {
            Some([b'\r', b'\n', ..]) => "\r\n",
            Some([b'\r', ..]) => "\r",
            _ => "\n",
        }
    }
}

impl Table {
    pub(super) fn new(dialect: Dialect, first: &Row, reasons: Option<usize>) -> Self {
        let mut table = Self {
            dialect,
            heads: Vec::new(),
            reasons,
        };
        table.heads = table.without_reasons(first.cells.clone());
        table
    }

    /// Returns the cell separator.
    pub(super) fn separator(&self) -> u8 {
        self.dialect.separator
    }

    fn without_reasons(&self, mut cells: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        if let Some(reasons) = self.reasons
            && reasons < cells.len()
        {
            cells.remove(reasons);
        }
        cells
    }

    /// Returns the beginning of a file with the same dialect and columns, after a first column of this name.
    pub(crate) fn beginning(&self, column: &str) -> Vec<u8> {
        let mut beginning = Vec::new();
        if self.dialect.has_mark {
            beginning.extend_from_slice("\u{feff}".as_bytes());
        }
        if self.dialect.names_separator {
            let separator = char::from(self.dialect.separator);
            let line = format!("sep={separator}{}", self.dialect.line_end);
            beginning.extend_from_slice(line.as_bytes());
        }
        beginning.extend(self.line(column, &self.joined(&self.heads)));
        beginning
    }

    /// Returns the line of a row, after a first cell.
    pub(crate) fn line(&self, cell: &str, row: &[u8]) -> Vec<u8> {
        let mut line = Vec::with_capacity(cell.len() + row.len() + 4);
        self.push_cell(cell.as_bytes(), &mut line);
        line.push(self.dialect.separator);
        line.extend_from_slice(row);
        line.extend_from_slice(self.dialect.line_end.as_bytes());
        line
    }

    fn joined(&self, cells: &[Vec<u8>]) -> Vec<u8> {
        let mut line = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                line.push(self.dialect.separator);
            }
            self.push_cell(cell, &mut line);
        }
        line
    }

    /// Appends a cell, quoted if necessary.
    fn push_cell(&self, cell: &[u8], line: &mut Vec<u8>) {
        let needs_quotes =
            |byte: &u8| matches!(byte, b'"' | b'\r' | b'\n') || *byte == self.dialect.separator;
        if !cell.iter().any(needs_quotes) {
            line.extend_from_slice(cell);
            return;
        }
        line.push(b'"');
        for byte in cell {
            if *byte == b'"' {
                line.push(b'"');
            }
            line.push(*byte);
        }
        line.push(b'"');
    }
}

impl SourceRow {
    pub(super) fn new(table: &Arc<Table>, row: Row) -> Self {
        Self {
            cells: table.without_reasons(row.cells),
            table: Arc::clone(table),
        }
    }

    /// Returns the row in its table's dialect, without the line ending.
    pub(crate) fn joined(&self) -> Vec<u8> {
        self.table.joined(&self.cells)
    }
}
