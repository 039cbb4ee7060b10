//! CSV: each row becomes the record of the same product in JSON, so that one check has all rules. This module only
//! decides whether a row is a record.

use std::io::{self, BufRead};

use super::columns::{self, Column};
use super::formula;
use super::row_record::record;
use super::rows::{Row, Rows};
use super::{Item, Record, Shape, Sink, TOO_LARGE};
use crate::load::report::{Finding, Place, Severity, shown};

/// Message for bytes that aren't UTF-8.
const NOT_UTF8: &str = "expected UTF-8; in a spreadsheet, save as \"CSV UTF-8\"";

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
        let row = filled(&mut Rows::new(head, *separator, 1)).ok().flatten();
        let is_code = |cell: &Vec<u8>| cell.trim_ascii().eq_ignore_ascii_case(b"code");
        row.is_some_and(|row| row.cells.iter().any(is_code))
    })
}

/// Reads the records of a table that begins at line `first_line`.
///
/// # Errors
///
/// If the input can't be read.
pub(super) fn read(
    file: &str,
    first_line: u64,
    separator: u8,
    (input, shape): (impl BufRead, Shape),
    sink: Sink<'_>,
) -> io::Result<()> {
    let mut rows = Rows::new(input, separator, first_line);
    let Some(first) = filled(&mut rows)? else {
        return Ok(());
    };
    let Some(heads) = heads(&place(file, &first), &first, sink) else {
        return Ok(());
    };
    let mut is_empty = true;
    while let Some(row) = filled(&mut rows)? {
        is_empty = false;
        let place = place(file, &row);
        if row.is_too_large {
            sink(Item::unreadable(Finding::fault(
                &place,
                "record_too_large",
                TOO_LARGE,
            )));
            return Ok(());
        }
        let cells = cells(&place, &heads, &row, sink);
        match cells.and_then(|cells| record(&place, &cells, separator, shape)) {
            Ok((json, cells)) => sink(Item::Record(Record {
                cells: Some(cells),
                ..Record::new(place, json)
            })),
            Err(findings) => sink(Item::Unreadable {
                findings,
                is_record: true,
            }),
        }
    }
    if is_empty {
        // Reported here: a warning about a column isn't a record.
        let message = "expected at least one product below the column names; an empty input never empties the catalog";
        let finding = Finding::fault(&Place::file(file), "empty", message);
        sink(Item::unreadable(finding));
    }
    Ok(())
}

fn place(file: &str, row: &Row) -> Place {
    Place {
        line: Some(row.line),
        row: Some(row.number),
        ..Place::file(file)
    }
}

/// Returns the next row that isn't blank.
fn filled<R: BufRead>(rows: &mut Rows<R>) -> io::Result<Option<Row>> {
    while let Some(row) = rows.next()? {
        let is_whole = row.badly_quoted.is_none() && !row.is_too_large;
        if !is_whole || !row.cells.iter().all(|cell| is_blank(cell)) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Returns true if a cell is empty or only Unicode white space, no-break spaces included.
fn is_blank(cell: &[u8]) -> bool {
    std::str::from_utf8(cell).is_ok_and(|cell| cell.trim().is_empty())
}

/// Returns the fault of a cell.
pub(super) fn cell_fault(
    place: &Place,
    column: &str,
    value: &str,
    rule: &'static str,
    message: &str,
) -> Finding {
    let place = Place {
        column: Some(column.to_owned()),
        ..place.clone()
    };
    Finding {
        value: (!value.is_empty()).then(|| shown(value)),
        ..Finding::fault(&place, rule, message)
    }
}

/// Reads the first line; `None` if its columns can't be identified.
fn heads(place: &Place, row: &Row, sink: Sink<'_>) -> Option<Vec<Head>> {
    let mut heads: Vec<Head> = Vec::with_capacity(row.cells.len());
    let mut is_readable = !row.is_too_large;
    if row.is_too_large {
        sink(Item::unreadable(Finding::fault(
            place,
            "record_too_large",
            TOO_LARGE,
        )));
    }
    for (index, cell) in row.cells.iter().enumerate() {
        let mut fault = |value: &str, rule, message: &str| {
            sink(Item::unreadable(cell_fault(
                place,
                &letters(index),
                value,
                rule,
                message,
            )));
            is_readable = false;
        };
        let Ok(name) = std::str::from_utf8(cell) else {
            fault(&String::from_utf8_lossy(cell), "utf8", NOT_UTF8);
            continue;
        };
        if row.badly_quoted == Some(index) {
            fault(name, "quotes", BADLY_QUOTED);
        }
        let name = name.trim();
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
            Head::Unknown => sink(Item::Warning(unknown(&place.file, name))),
            Head::Known(_) | Head::Blank => {}
        }
        heads.push(head);
    }
    is_readable.then_some(heads)
}

/// Returns the warning about an unknown column.
fn unknown(file: &str, name: &str) -> Finding {
    let message = match columns::nearest(name) {
        Some(nearest) => format!("ignored: unknown column; did you mean `{nearest}`?"),
        None => "ignored: unknown column".to_owned(),
    };
    Finding {
        severity: Severity::Warning,
        // It isn't about a row, not even the first.
        ..cell_fault(
            &Place::file(file),
            &shown(name),
            "",
            "unknown_column",
            &message,
        )
    }
}

/// Returns the warning about an apostrophe that isn't part of the value.
fn apostrophe(place: &Place, column: &Column, cell: &str) -> Finding {
    let message = "the apostrophe before it was removed: exports for spreadsheets put one there";
    Finding {
        severity: Severity::Warning,
        ..cell_fault(place, column.name, cell, "apostrophe_removed", message)
    }
}

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

const BADLY_QUOTED: &str = "expected quotes around the whole cell, or none, and doubled quotes within; the following \
     text may have been read into this cell";

/// Returns the cells of a row with their columns.
fn cells<'r>(
    place: &Place,
    heads: &[Head],
    row: &'r Row,
    sink: Sink<'_>,
) -> Result<Vec<(&'static Column, &'r str)>, Vec<Finding>> {
    let mut cells = Vec::with_capacity(heads.len());
    let mut faults = Vec::new();
    for (index, cell) in row.cells.iter().enumerate() {
        let head = heads.get(index).copied().unwrap_or(Head::Blank);
        let name = match head {
            Head::Known(column) => column.name.to_owned(),
            Head::Unknown | Head::Blank => letters(index),
        };
        let text = String::from_utf8_lossy(cell);
        if row.badly_quoted == Some(index) {
            faults.push(cell_fault(place, &name, &text, "quotes", BADLY_QUOTED));
        }
        match (head, std::str::from_utf8(cell)) {
            (Head::Known(_), Err(_)) => {
                faults.push(cell_fault(place, &name, &text, "utf8", NOT_UTF8));
            }
            (Head::Known(_) | Head::Unknown, Ok(text)) if is_error(text) => {
                let message = "expected a value; a spreadsheet wrote an error of a formula here";
                faults.push(cell_fault(place, &name, text, "spreadsheet_error", message));
            }
            (Head::Known(column), Ok(text)) => match formula::without_apostrophe(text) {
                Some(rest) => {
                    sink(Item::Warning(apostrophe(place, column, text)));
                    cells.push((column, rest));
                }
                None => cells.push((column, text)),
            },
            (Head::Blank, _) if !is_blank(cell) => {
                let message = "expected no value here, as the first line names no column for it; \
                               a separator within a cell needs quotes around the cell";
                faults.push(cell_fault(place, &name, &text, "cells", message));
            }
            (Head::Unknown | Head::Blank, _) => {}
        }
    }
    let named = heads.iter().rposition(|head| *head != Head::Blank);
    let expected = named.map_or(0, |last| last + 1);
    let found = row.cells.len();
    if found < expected {
        let name = match heads[found] {
            Head::Known(column) => column.name.to_owned(),
            Head::Unknown | Head::Blank => letters(found),
        };
        let message = format!("expected {expected} cells, as in the first line; found {found}");
        faults.push(cell_fault(place, &name, "", "cells", &message));
    }
    if faults.is_empty() {
        return Ok(cells);
    }
    let code = cells.iter().find(|(column, _)| column.name == "code");
    let code = code.map(|(_, code)| shown(code.trim()));
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
fn letters(index: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = index + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % 26]));
        rest /= 26;
    }
    letters.iter().rev().collect()
}
