//! Splits inputs into records; the format is detected by content. At most one record is in memory.
//!
//! - `compressed`: gzip and zstd
//! - `lines`: newline-delimited JSON
//! - `values`: other JSON, a stream of values
//! - `table`: rows to records, by `columns`; `row_record` makes the JSON of a row, `cells` has the source column of a value
//! - `rows`: rows of CSV
//! - `workbook`: rows of XLSX, whose `archive` is checked first, with the `markup` of its parts

mod archive;
mod cells;
pub(crate) mod columns;
mod compressed;
mod lines;
mod markup;
mod row_record;
mod rows;
mod table;
mod values;
mod workbook;

use std::io::{self, BufRead, Cursor, Read};

use super::patch::Base;
use super::report::{Finding, Place, shown, shown_pointer};
use cells::Cells;
use columns::Kind;
pub use table::TableRow;

/// Maximum length of a record, in bytes.
pub const MAX_RECORD_BYTES: u64 = 16 << 20;

/// Maximum length of a workbook, in bytes.
pub const MAX_WORKBOOK_BYTES: u64 = 64 << 20;

/// Maximum number of rows of a sheet.
pub const MAX_ROWS: u64 = 1_000_000;

/// CSV template: all columns, and a row for each payout type.
pub const CSV_TEMPLATE: &str = include_str!("../../../../../fixtures/template.csv");

/// Maximum length of the head of an input that its format is detected from, in bytes.
const PEEKED_BYTES: u64 = 64 << 10;

/// Error of a compressed input or a workbook.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Broken {
    /// Rule that the input breaks.
    rule: &'static str,
    message: String,
}

fn broken(rule: &'static str, message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Broken { rule, message })
}

const TOO_LARGE: &str = "expected records of at most 16 MiB";

/// A record, unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Place in the input.
    pub place: Place,
    /// JSON of the record.
    pub json: String,
    /// Live product below it.
    base: Base,
    /// Source cells, if it was a row.
    cells: Option<Cells>,
}

/// Shape of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Whole products: an absent field is empty.
    Whole,
    /// Patches: an absent field stays as it is.
    Patch,
}

impl Record {
    /// Returns a record of JSON.
    #[must_use]
    pub fn new(place: Place, json: String) -> Self {
        Self {
            place,
            json,
            base: Base::None,
            cells: None,
        }
    }

    /// Returns what it stands on.
    pub(crate) fn base(&self) -> &Base {
        &self.base
    }

    /// Makes it a patch that stands on `base`.
    pub(crate) fn set_base(&mut self, base: Base) {
        self.base = base;
    }

    /// Returns the length of what the check reads, in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        let base = match &self.base {
            Base::Live(live) => live.json.len(),
            Base::None | Base::NotLive(_) => 0,
        };
        self.json.len() + base
    }

    /// Returns its JSON, if that is all of it: a row of a table lacks its detail object where the payout type isn't known.
    pub(crate) fn whole_json(&self) -> Option<&str> {
        let is_cut = self.cells.as_ref().is_some_and(|cells| cells.is_cut);
        (!is_cut).then_some(&self.json)
    }

    /// Returns the kind of list that a cell holds between separators, if the value at a JSON pointer came from one.
    pub(crate) fn list_at(&self, pointer: &str) -> Option<Kind> {
        let cells = self.cells.as_ref()?;
        let column = columns::find(&cells.column(pointer)?)?;
        let is_list = matches!(column.kind, Kind::Texts | Kind::Amounts);
        (is_list && !cells.arrays.contains(&column.name)).then_some(column.kind)
    }

    /// Returns the cell separator of the table from which the value at a JSON pointer came; `None` for JSON, and for
    /// numbers of a workbook.
    pub(crate) fn separator_at(&self, pointer: &str) -> Option<u8> {
        let cells = self.cells.as_ref()?;
        let column = columns::find(&cells.column(pointer)?)?;
        let is_text = column.kind != Kind::Json && !cells.numbers.contains(&column.name);
        is_text.then_some(cells.separator)
    }

    /// Returns the place of the value at a JSON pointer, with the column if the record was a row of a table.
    #[must_use]
    pub fn place_of(&self, pointer: &str) -> Place {
        match &self.cells {
            Some(cells) => cells.place(&self.place, pointer),
            None => self.place.clone(),
        }
    }
}

/// Item read from an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A record.
    Record(Record),
    /// A row of a table of patches: a record once it is known what it stands on.
    Row(TableRow),
    /// Part that can't be read as a record, or the rest of the input.
    Unreadable {
        /// Faults of the part.
        findings: Vec<Finding>,
        /// True if the part is one record, false if its records are unknown.
        is_record: bool,
    },
    /// Warning about the input as a whole, such as an unknown column.
    Warning(Finding),
}

impl Item {
    /// Returns an unreadable part with this fault.
    fn unreadable(finding: Finding) -> Self {
        Self::Unreadable {
            findings: vec![finding],
            is_record: false,
        }
    }
}

/// Callback for the items of an input, in order.
pub type Sink<'s> = &'s mut dyn FnMut(Item);

/// Reads all records of an input, decompressed if necessary. Of a workbook, the sheet is read, by default the first.
///
/// # Errors
///
/// If the input itself can't be read.
pub fn read(
    file: &str,
    sheet: Option<&str>,
    input: impl BufRead,
    shape: Shape,
    sink: Sink<'_>,
) -> io::Result<()> {
    let outcome = compressed::unpacked(input).and_then(|input| match sheet {
        None => read_plain(file, input, shape, sink),
        Some(_) => workbook::read((file, sheet), input, shape, sink),
    });
    or_fault(outcome, file, sink)
}

/// Reports the fault of an input that is broken.
fn or_fault(outcome: io::Result<()>, file: &str, sink: Sink<'_>) -> io::Result<()> {
    outcome.or_else(|error| {
        let fault = error.downcast::<Broken>()?;
        let fault = Finding::fault(&Place::file(file), fault.rule, &fault.to_string());
        sink(Item::unreadable(fault));
        Ok(())
    })
}

/// Reads all records of an uncompressed input.
///
/// # Errors
///
/// If the input itself can't be read.
pub fn read_plain(
    file: &str,
    mut input: impl BufRead,
    shape: Shape,
    sink: Sink<'_>,
) -> io::Result<()> {
    // Number of lines before the first record or row.
    let mut lines_before = 0;
    let mut head = peek(&mut input)?;
    if workbook::is_workbook(&head) {
        let input = Cursor::new(head).chain(input);
        let outcome = workbook::read((file, None), input, shape, sink);
        return or_fault(outcome, file, sink);
    }
    // Byte-order mark, which some spreadsheets need to detect UTF-8.
    if head.starts_with(b"\xef\xbb\xbf") {
        head.drain(..3);
    }
    // Skips any number of blanks.
    while !head.is_empty() && head.trim_ascii_start().is_empty() {
        lines_before += head.iter().filter(|byte| **byte == b'\n').count() as u64;
        head = peek(&mut input)?;
    }
    let is_json = match head.trim_ascii_start().first() {
        None => return Ok(()),
        Some(first) => matches!(first, b'{' | b'['),
    };
    if is_json && let Some(names) = lines::array_within(&head, shape) {
        sink(Item::unreadable(within(file, &names)));
        return Ok(());
    }
    let separator = table::separator(&head);
    let (first_line, is_lines) = (lines_before + 1, lines::is_line_delimited(&head));
    if !is_json && separator.is_none() {
        sink(Item::unreadable(neither(file, &head)));
        return Ok(());
    }
    let input = Cursor::new(head).chain(input);
    match separator {
        Some(separator) if !is_json => {
            let mut rows = rows::CsvRows::new(file, input, separator, first_line);
            table::read((&Place::file(file), separator), &mut rows, shape, sink)
        }
        _ if is_lines => lines::read_lines(file, first_line, input, sink),
        _ => values::read_values(file, input, sink),
    }
}

/// Returns the fault of an input that is an object around the array of products.
fn within(file: &str, names: &[String]) -> Finding {
    let is_plain = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let step = |name: &String| match !name.is_empty() && name.bytes().all(is_plain) {
        true => format!(".{name}"),
        // Within the quotes of a shell.
        false => format!(".\"{}\"", name.replace('\'', r"'\''")),
    };
    let way: String = names.iter().map(step).collect();
    let parts = names
        .iter()
        .map(|name| name.replace('~', "~0").replace('/', "~1"));
    let pointer = shown_pointer(&format!("/{}", parts.collect::<Vec<_>>().join("/")));
    let message = format!(
        "expected the array of products itself, which is at `{pointer}` here: jq -c '{way}[]' FILE | vitrine load -"
    );
    Finding {
        pointer,
        ..Finding::fault(&Place::file(file), "array_within", &message)
    }
}

/// Returns the fault of an input of unknown format, with a guess at what it is.
fn neither(file: &str, head: &[u8]) -> Finding {
    let (rule, message) = match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => (
            "utf8",
            "expected UTF-8, not UTF-16; in a spreadsheet, save as \"CSV UTF-8\"",
        ),
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            ("json", "expected JSON or CSV, compressed once at most")
        }
        [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', ..] => (
            "json",
            "expected the column names in the first line, without a line `sep=` above them: the separator is detected",
        ),
        _ => (
            "json",
            "expected JSON: one product a line, an array of products, one product, or a list response; \
             or CSV whose first line names the column `code`",
        ),
    };
    let start = String::from_utf8_lossy(head);
    Finding {
        value: Some(shown(start.lines().next().unwrap_or_default())),
        ..Finding::fault(&Place::file(file), rule, message)
    }
}

/// Reads the head of an input.
fn peek(input: impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(PEEKED_BYTES).read_to_end(&mut head)?;
    Ok(head)
}
