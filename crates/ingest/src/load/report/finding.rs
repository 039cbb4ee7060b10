//! Findings: faults and warnings of records, with their places.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::escape::single_line;

/// Maximum length of a shown value, in characters.
pub const MAX_SHOWN_CHARACTERS: usize = 120;

/// Maximum length of a shown pointer, in characters: keys can be as long as records.
const MAX_POINTER_CHARACTERS: usize = 1_000;

/// Place of a finding: the input, with its line, item or cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Name of the input.
    pub file: Arc<str>,
    /// Number of the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Index in an array, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Number of the row in a spreadsheet, from 1, if it differs from the line because of line breaks in cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// Column of a table: its name, else its letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Sheet of a workbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sheet: Option<Arc<str>>,
    /// Cell of the sheet, such as `F12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
}

impl Place {
    /// Returns the place of an input as a whole.
    #[must_use]
    pub fn file(name: &str) -> Self {
        Self {
            file: name.into(),
            line: None,
            index: None,
            row: None,
            column: None,
            sheet: None,
            cell: None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&single_line(&self.file))?;
        if let Some(sheet) = &self.sheet {
            write!(out, ", {}", single_line(sheet))?;
        }
        match (&self.sheet, &self.cell, self.line) {
            (Some(_), Some(cell), _) => write!(out, "!{}", single_line(cell))?,
            (Some(_), None, Some(line)) => write!(out, ", row {line}")?,
            (None, _, Some(line)) => write!(out, ":{line}")?,
            _ => {}
        }
        if let Some(index) = self.index {
            write!(out, "[{index}]")?;
        }
        if let Some(row) = self.row.filter(|row| Some(*row) != self.line) {
            write!(out, " (row {row})")?;
        }
        if let Some(column) = &self.column {
            write!(out, ", column {}", single_line(column))?;
        }
        Ok(())
    }
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The record can't be loaded.
    Fault,
    /// The record can still be loaded.
    Warning,
}

/// A fault or warning of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Fault or warning.
    #[serde(skip)]
    pub severity: Severity,
    /// Place of the finding.
    #[serde(flatten)]
    pub place: Place,
    /// Code of the product, if it could be read.
    pub code: Option<String>,
    /// Position in the record: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// Value at that position, as JSON or as in the input, shortened.
    pub value: Option<String>,
    /// Rule that it breaks.
    pub rule: &'static str,
    /// Correct form, such as `expected each key once`.
    pub message: String,
}

impl Finding {
    /// Returns a fault of `place` as a whole.
    #[must_use]
    pub fn fault(place: &Place, rule: &'static str, message: &str) -> Self {
        Self {
            severity: Severity::Fault,
            place: place.clone(),
            code: None,
            pointer: String::new(),
            value: None,
            rule,
            message: message.to_owned(),
        }
    }
}

impl Finding {
    /// Returns the name of its column, or of its field without the objects and lists around it.
    #[must_use]
    pub fn field(&self) -> &str {
        let is_name = |part: &&str| !part.is_empty() && part.parse::<u64>().is_err();
        let name = self.pointer.rsplit('/').find(is_name);
        self.place.column.as_deref().or(name).unwrap_or_default()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.place)?;
        if let Some(code) = &self.code {
            write!(out, "  {}", single_line(code))?;
        }
        if !self.pointer.is_empty() {
            write!(out, "  {}", single_line(&self.pointer))?;
        }
        if let Some(value) = &self.value {
            write!(out, "  {}", single_line(value))?;
        }
        Ok(())
    }
}

/// Shortens a value for a report.
#[must_use]
pub fn shown(value: &str) -> String {
    cut(value, MAX_SHOWN_CHARACTERS)
}

/// Shortens a pointer for a report.
#[must_use]
pub fn shown_pointer(pointer: &str) -> String {
    cut(pointer, MAX_POINTER_CHARACTERS)
}

fn cut(text: &str, most_characters: usize) -> String {
    match text.char_indices().nth(most_characters) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
