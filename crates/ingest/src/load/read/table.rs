//! Tables, of CSV or a sheet: each row becomes the record of the same product in JSON, so that one check has all rules.
//! This module only decides whether a row is a record.

use std::io;
use std::sync::Arc;

use super::cells::Cells;
use super::columns::{self, Column};
use super::row_record::record;
use super::rows::CsvRows;
use super::{Item, Record, Shape, Sink, TOO_LARGE};
use crate::load::report::{Finding, Place, Severity, shown};

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) place: Place,
    pub(super) cells: Vec<Cell>,
    /// True if it exceeds the maximum bytes or cells, so that it wasn't read to its end.
    pub(super) is_too_large: bool,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Text(String),
    /// Number of a workbook, as a decimal.
    Number(String),
    /// Date of a workbook, in ISO 8601.
    Date(String),
    /// Cell without a value, with the rule that it breaks.
    Unreadable {
        text: String,
        rule: &'static str,
        message: &'static str,
    },
}

impl Cell {
    /// Empty cell.
    pub(super) const EMPTY: Self = Self::Text(String::new());

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) | Self::Date(text) => text,
            Self::Unreadable { text, .. } => text,
        }
    }

    /// Returns true if it is empty or only Unicode white space, no-break spaces included.
    fn is_blank(&self) -> bool {
        !matches!(self, Self::Unreadable { .. }) && self.text().trim().is_empty()
    }
}

/// Cell of a row with its column.
pub(super) struct Filled<'r> {
    pub(super) column: &'static Column,
    /// Index in the row.
    pub(super) index: usize,
    pub(super) text: &'r str,
    pub(super) is_number: bool,
}

/// A row with the names of its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    row: Row,
    table: Arc<Table>,
}

/// Columns that the rows of a table share.
#[derive(Debug, PartialEq, Eq)]
struct Table {
    heads: Vec<Head>,
    /// Columns, with their indexes.
    indexes: Arc<[(&'static str, usize)]>,
    separator: u8,
}

impl TableRow {
    /// Returns the code in the row; empty if there is none.
    pub(crate) fn code(&self) -> &str {
        let heads = self.table.heads.iter();
        let mut cells = heads.zip(&self.row.cells);
        let found =
            cells.find(|(head, _)| matches!(head, Head::Known(column) if column.name == "code"));
        found.map_or("", |(_, cell)| cell.text().trim())
    }

    /// Returns the length of its cells, in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.row.cells.iter().map(|cell| cell.text().len()).sum()
    }

    /// Returns the record of the row. A patch has the payout type of the live product, whether it names one or not.
    pub(crate) fn record(self, shape: Shape, live_type: Option<&str>) -> Item {
        let Table {
            heads,
            indexes,
            separator,
        } = &*self.table;
        let record = cells(heads, &self.row).and_then(|cells| {
            let source = Cells::new(*separator, indexes, &cells);
            record(&self.row.place, &cells, source, (shape, live_type))
        });
        match record {
            Ok((json, cells)) => Item::Record(Record {
                cells: Some(cells),
                ..Record::new(self.row.place, json)
            }),
            Err(findings) => Item::Unreadable {
                findings,
                is_record: true,
            },
        }
    }
}

/// Source of rows: a CSV file or a sheet.
pub(super) trait Rows {
    /// Returns the next row; `None` after the last. None may be read after a row that is too large.
    fn next(&mut self) -> io::Result<Option<Row>>;
}

/// Column of a table, by its name in the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    Known(&'static Column),
    /// Unknown column, which is left out.
    Unknown,
    /// Column without a name; its cells must be blank.
    Blank,
}

/// Cell separators, in the order in which they are tried.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// Detects the separator of a table by its head; `None` if it isn't a table of products.
pub(super) fn separator(head: &[u8]) -> Option<u8> {
    SEPARATORS.into_iter().find(|separator| {
        // Reading from memory can't fail.
        let row = filled(&mut CsvRows::new("", head, *separator, 1)).ok();
        row.flatten().is_some_and(|row| names_code(&row))
    })
}

/// Returns true if a row names the column `code`.
fn names_code(row: &Row) -> bool {
    let mut names = row.cells.iter().map(|cell| cell.text().trim());
    names.any(|name| name.eq_ignore_ascii_case("code"))
}

/// Reads the records of a table: below the first row that names the column `code`.
///
/// # Errors
///
/// If the input can't be read.
pub(super) fn read(
    (table, separator): (&Place, u8),
    rows: &mut dyn Rows,
    shape: Shape,
    sink: Sink<'_>,
) -> io::Result<()> {
    let first = loop {
        match filled(rows)? {
            Some(row) if row.is_too_large || names_code(&row) => break row,
            Some(_) => {}
            None => {
                let message = "expected a row with the names of columns, `code` among them; --sheet NAME reads another \
                               sheet";
                sink(Item::unreadable(Finding::fault(table, "header", message)));
                return Ok(());
            }
        }
    };
    let Some(heads) = heads(table, &first, sink) else {
        return Ok(());
    };
    let indexes = heads.iter().enumerate();
    let indexes = indexes.filter_map(|(index, head)| match head {
        Head::Known(column) => Some((column.name, index)),
        Head::Unknown | Head::Blank => None,
    });
    let indexes = indexes.collect();
    let of_rows = Arc::new(Table {
        heads,
        indexes,
        separator,
    });
    let mut is_empty = true;
    while let Some(row) = filled(rows)? {
        is_empty = false;
        if row.is_too_large {
            let fault = Finding::fault(&row.place, "record_too_large", TOO_LARGE);
            sink(Item::unreadable(fault));
            return Ok(());
        }
        let row = TableRow {
            row,
            table: Arc::clone(&of_rows),
        };
        sink(match shape {
            Shape::Whole => row.record(shape, None),
            Shape::Patch => Item::Row(row),
        });
    }
    if is_empty {
        // Reported here: a warning about a column isn't a record.
        let message = "expected at least one product below the column names; an empty input never empties the catalog";
        sink(Item::unreadable(Finding::fault(table, "empty", message)));
    }
    Ok(())
}

/// Returns the next row that isn't blank.
fn filled(rows: &mut dyn Rows) -> io::Result<Option<Row>> {
    while let Some(row) = rows.next()? {
        if row.is_too_large || !row.cells.iter().all(Cell::is_blank) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Returns the place of a cell.
pub(super) fn cell_place(row: &Place, column: &str, index: usize) -> Place {
    let number = row.row.filter(|_| row.sheet.is_some());
    Place {
        column: Some(column.to_owned()),
        cell: number.map(|number| format!("{}{number}", letters(index))),
        ..row.clone()
    }
}

/// Returns the fault of a cell.
pub(super) fn cell_fault(place: &Place, value: &str, rule: &'static str, message: &str) -> Finding {
    Finding {
        value: (!value.is_empty()).then(|| shown(value)),
        ..Finding::fault(place, rule, message)
    }
}

/// Reads the names of columns; `None` if they can't be identified.
fn heads(table: &Place, row: &Row, sink: Sink<'_>) -> Option<Vec<Head>> {
    let mut heads: Vec<Head> = Vec::with_capacity(row.cells.len());
    let mut is_readable = !row.is_too_large;
    if row.is_too_large {
        let fault = Finding::fault(&row.place, "record_too_large", TOO_LARGE);
        sink(Item::unreadable(fault));
    }
    for (index, cell) in row.cells.iter().enumerate() {
        let mut fault = |value: &str, rule, message: &str| {
            let place = cell_place(&row.place, &letters(index), index);
            sink(Item::unreadable(cell_fault(&place, value, rule, message)));
            is_readable = false;
        };
        let name = cell.text().trim();
        if let Cell::Unreadable { rule, message, .. } = cell {
            fault(name, rule, message);
            continue;
        }
        let head = match columns::find(name) {
            _ if name.is_empty() => Head::Blank,
            Some(column) => Head::Known(column),
            None => Head::Unknown,
        };
        match head {
            Head::Known(column) if heads.contains(&head) => {
                let message = format!(
                    "expected each column once; `{}` is a duplicate",
                    column.name
                );
                fault(name, "column_twice", &message);
            }
            Head::Unknown => sink(Item::Warning(unknown(table, name))),
            Head::Known(_) | Head::Blank => {}
        }
        heads.push(head);
    }
    is_readable.then_some(heads)
}

/// Returns the warning about an unknown column.
fn unknown(table: &Place, name: &str) -> Finding {
    let message = match columns::nearest(name) {
        Some(nearest) => format!("ignored: unknown column; did you mean `{nearest}`?"),
        None => "ignored: unknown column".to_owned(),
    };
    Finding {
        severity: Severity::Warning,
        // It isn't about a row, not even the first.
        ..cell_fault(
            &Place {
                column: Some(shown(name)),
                ..table.clone()
            },
            "",
            "unknown_column",
            &message,
        )
    }
}

/// Message for a date.
const DATE: &str = "expected no date; a spreadsheet took this for one: format its column as text and enter it again";

/// Message for an error value.
pub(super) const ERROR_VALUE: &str =
    "expected a value; a spreadsheet wrote an error of a formula here";

/// Values that spreadsheets write for formulas without a result.
const ERRORS: [&str; 14] = [
    "#NULL!",
    "#DIV/0!",
    "#VALUE!",
    "#REF!",
    "#NAME?",
    "#NUM!",
    "#N/A",
    "#GETTING_DATA",
    "#SPILL!",
    "#CALC!",
    "#FIELD!",
    "#BLOCKED!",
    "#CONNECT!",
    "#UNKNOWN!",
];

/// Returns the cells of a row with their columns.
fn cells<'r>(heads: &[Head], row: &'r Row) -> Result<Vec<Filled<'r>>, Vec<Finding>> {
    let mut cells = Vec::with_capacity(heads.len());
    let mut faults = Vec::new();
    let name = |index: usize| match heads.get(index) {
        Some(Head::Known(column)) => column.name.to_owned(),
        _ => letters(index),
    };
    let fault = |index: usize, value: &str, rule, message: &str| {
        let place = cell_place(&row.place, &name(index), index);
        cell_fault(&place, value, rule, message)
    };
    for (index, cell) in row.cells.iter().enumerate() {
        let text = cell.text();
        match (heads.get(index).copied().unwrap_or(Head::Blank), cell) {
            (Head::Known(column), Cell::Date(_)) if column.name != "expiry_date_policy" => {
                faults.push(fault(index, text, "spreadsheet_date", DATE));
            }
            (Head::Known(_), Cell::Unreadable { rule, message, .. }) => {
                faults.push(fault(index, text, rule, message));
            }
            (Head::Known(_) | Head::Unknown, _) if is_error(text) => {
                faults.push(fault(index, text, "spreadsheet_error", ERROR_VALUE));
            }
            (Head::Known(column), _) => cells.push(Filled {
                column,
                index,
                text,
                is_number: matches!(cell, Cell::Number(_)),
            }),
            (Head::Blank, _) if !cell.is_blank() => {
                let message = match row.place.sheet {
                    Some(_) => "expected no value here, as the row with the names has none for it",
                    None => {
                        "expected no value here, as the first line names no column for it; a separator within a cell \
                         needs quotes around the cell"
                    }
                };
                faults.push(fault(index, text, "cells", message));
            }
            (Head::Unknown | Head::Blank, _) => {}
        }
    }
    let named = heads.iter().rposition(|head| *head != Head::Blank);
    let expected = named.map_or(0, |last| last + 1);
    let found = row.cells.len();
    if found < expected && row.place.sheet.is_none() {
        let message = format!("expected {expected} cells, as in the first line; found {found}");
        faults.push(fault(found, "", "cells", &message));
    }
    if row.place.sheet.is_some() {
        // A sheet leaves empty cells out.
        let left_out = heads.iter().enumerate().skip(found);
        cells.extend(left_out.filter_map(|(index, head)| match head {
            Head::Known(column) => Some(Filled {
                column,
                index,
                text: "",
                is_number: false,
            }),
            Head::Unknown | Head::Blank => None,
        }));
    }
    if faults.is_empty() {
        return Ok(cells);
    }
    let code = cells.iter().find(|cell| cell.column.name == "code");
    let code = code.map(|cell| shown(cell.text.trim()));
    for fault in &mut faults {
        fault.code.clone_from(&code);
    }
    Err(faults)
}

/// Returns true if a cell, or an item of its list, is an error value of a spreadsheet.
fn is_error(cell: &str) -> bool {
    cell.contains('#') && cell.split('|').any(|item| ERRORS.contains(&item.trim()))
}

/// Returns the letters of a column in spreadsheets: A to Z, AA and so on.
pub(super) fn letters(index: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = index + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % 26]));
        rest /= 26;
    }
    letters.iter().rev().collect()
}
