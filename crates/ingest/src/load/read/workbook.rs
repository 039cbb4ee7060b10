//! Rows of a workbook's sheet (XLSX), read cell by cell. Its archive is checked before.

use std::fs::File;
use std::io::{self, Read, Seek as _};

use calamine::{
    DataRef, ExcelDateTime, Reader as _, SheetType, SheetVisible, Xlsx, XlsxCellReader,
};

use super::archive::{self, Entry, Part};
use super::markup::Markup;
use super::table::{self, Cell, ERROR_VALUE, Row, Rows};
use super::{Item, MAX_RECORD_BYTES, MAX_ROWS, Shape, Sink, broken};
use crate::load::report::{Finding, Place, Severity, shown};

/// Maximum number of columns of spreadsheets.
const MAX_COLUMNS: u32 = 16_384;

/// Returns true if an input that begins with `head` is a workbook, of this format or of another.
pub(super) fn is_workbook(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || is_compound(head)
}

/// Returns true for the container of older workbooks, and of encrypted ones.
fn is_compound(head: &[u8]) -> bool {
    head.starts_with(b"\xd0\xcf\x11\xe0")
}

/// Reads the records of a sheet, by default of the first.
///
/// # Errors
///
/// If the input can't be read, or isn't a workbook that can be read.
pub(super) fn read(
    (file, sheet): (&str, Option<&str>),
    mut input: impl Read,
    shape: Shape,
    sink: Sink<'_>,
) -> io::Result<()> {
    let mut head = Vec::new();
    (&mut input).take(8).read_to_end(&mut head)?;
    if is_compound(&head) {
        return Err(other_format("an XLS file, or an encrypted one"));
    }
    if !is_workbook(&head) {
        let message = "expected a workbook (XLSX), as --sheet names a sheet";
        return Err(broken("sheet", message.to_owned()));
    }
    let packed = archive::spool(io::Cursor::new(head).chain(input))?;
    let entries = archive::entries(&packed)?;
    check_format(&entries)?;
    let parts = archive::checked(&packed, entries)?;
    let mut workbook = Xlsx::new(packed.try_clone()?).map_err(|error| unreadable(&error))?;
    let name = sheet_name(&workbook, sheet)?;
    let place = Place {
        sheet: Some(name.as_str().into()),
        ..Place::file(file)
    };
    let cells = workbook.worksheet_cells_reader(&name);
    let cells = cells.map_err(|error| unreadable(&error))?;
    // Both handles of the file have one position, which is in the sheet now.
    let position = (&packed).stream_position()?;
    let part = parts.iter().find(|part| part.bytes.contains(&position));
    let Some(Part { markup, .. }) = part else {
        return Err(archive::damaged());
    };
    if check_sheet(&place, markup, sink) {
        return Ok(());
    }
    let mut rows = SheetRows {
        cells: Some(cells),
        place: place.clone(),
        next: None,
        last: 0,
        count: 0,
    };
    table::read((&place, b','), &mut rows, shape, sink)
}

/// Refuses workbooks of other formats.
fn check_format(entries: &[Entry]) -> io::Result<()> {
    let has = |name: &str| entries.iter().any(|entry| entry.part.name == name);
    if has("content.xml") {
        return Err(other_format("an ODS file"));
    }
    if has("xl/workbook.bin") {
        return Err(other_format("an XLSB file"));
    }
    Ok(())
}

fn other_format(found: &str) -> io::Error {
    let message = format!(
        "expected JSON, CSV or a workbook (XLSX); this is {found}: save it as XLSX, without a password"
    );
    broken("workbook", message)
}

fn unreadable(error: &calamine::XlsxError) -> io::Error {
    let message = format!(
        "expected a workbook (XLSX); this one can't be read: {}; open it in a spreadsheet and save it as XLSX again",
        shown(&error.to_string())
    );
    broken("workbook", message)
}

/// Returns the name of the sheet to read.
fn sheet_name(workbook: &Xlsx<File>, wanted: Option<&str>) -> io::Result<String> {
    let sheets = workbook.sheets_metadata().iter();
    let sheets = || {
        sheets
            .clone()
            .filter(|sheet| sheet.typ == SheetType::WorkSheet)
    };
    let found = match wanted {
        Some(wanted) => sheets().find(|sheet| sheet.name == wanted),
        None => (sheets().find(|sheet| sheet.visible == SheetVisible::Visible))
            .or_else(|| sheets().next()),
    };
    found.map(|sheet| sheet.name.clone()).ok_or_else(|| {
        let names: Vec<String> = sheets().map(|sheet| format!("`{}`", sheet.name)).collect();
        let wanted = wanted.map_or_else(String::new, |wanted| format!(" `{wanted}`"));
        let message = format!(
            "expected a sheet{}; the workbook has {}",
            shown(&wanted),
            shown(&names.join(", "))
        );
        broken("sheet", message)
    })
}

/// Reports what cells don't tell; returns true if that prevents reading.
fn check_sheet(place: &Place, markup: &Markup, sink: Sink<'_>) -> bool {
    let at = |cell: &str| Place {
        cell: Some(shown(cell)),
        ..place.clone()
    };
    if let Some(cells) = &markup.merged {
        let message = "expected no merged cells, as only the first of them has the value: unmerge all of the sheet, and fill \
                       each cell";
        let fault = Finding::fault(&at(cells), "merged_cells", message);
        sink(Item::unreadable(fault));
    }
    if let Some(cell) = &markup.without_value {
        let message = "expected the value of the formula, which the program that wrote the file didn't compute: open \
                       it in a spreadsheet and save it again";
        let fault = Finding::fault(&at(cell), "formula_without_value", message);
        sink(Item::unreadable(fault));
    }
    let (hidden, first) = &markup.hidden;
    if *hidden > 0 {
        let message = format!("loaded like others: {hidden}, the first is row {first}");
        sink(Item::Warning(Finding {
            severity: Severity::Warning,
            ..Finding::fault(place, "hidden_rows", &message)
        }));
    }
    markup.merged.is_some() || markup.without_value.is_some()
}

/// Rows of a sheet.
struct SheetRows<'w> {
    /// None once all are read.
    cells: Option<XlsxCellReader<'w, File>>,
    place: Place,
    /// First cell of the next row.
    next: Option<(u32, u32, Cell)>,
    /// Number of the last row.
    last: u64,
    count: u64,
}

impl SheetRows<'_> {
    /// Returns the next cell with a value, with its row and column.
    fn cell(&mut self) -> io::Result<Option<(u32, u32, Cell)>> {
        if self.next.is_some() {
            return Ok(self.next.take());
        }
        while let Some(cells) = &mut self.cells {
            let cell = cells.next_cell().map_err(|error| {
                let message = format!(
                    "expected a value in each cell; one below row {} of `{}` can't be read: {}",
                    self.last,
                    self.place.sheet.as_deref().unwrap_or_default(),
                    shown(&error.to_string())
                );
                broken("workbook", message)
            })?;
            let Some(cell) = cell else {
                self.cells = None;
                break;
            };
            let (row, column) = cell.get_position();
            if let Some(cell) = value(cell.get_value()) {
                return Ok(Some((row, column, cell)));
            }
        }
        Ok(None)
    }
}

impl Rows for SheetRows<'_> {
    fn next(&mut self) -> io::Result<Option<Row>> {
        let Some((row, column, cell)) = self.cell()? else {
            return Ok(None);
        };
        let number = u64::from(row) + 1;
        self.count += 1;
        // The first has the names of columns.
        if self.count > MAX_ROWS + 1 {
            let message = "expected at most a million rows; load larger tables as CSV";
            return Err(broken("input_too_large", message.to_owned()));
        }
        if number <= self.last {
            return Err(archive::damaged());
        }
        self.last = number;
        let (mut cells, mut bytes) = (Vec::new(), 0);
        let mut next = Some((row, column, cell));
        while let Some((in_row, column, cell)) = next {
            if in_row != row {
                self.next = Some((in_row, column, cell));
                break;
            }
            bytes += cell.text().len() as u64;
            if column >= MAX_COLUMNS || bytes > MAX_RECORD_BYTES || cells.len() > column as usize {
                return Err(archive::damaged());
            }
            cells.resize(column as usize, Cell::EMPTY);
            cells.push(cell);
            next = self.cell()?;
        }
        Ok(Some(Row {
            place: Place {
                line: Some(number),
                row: Some(number),
                ..self.place.clone()
            },
            cells,
            is_too_large: false,
        }))
    }
}

/// Returns the value of a cell; `None` if it is empty.
fn value(value: &DataRef<'_>) -> Option<Cell> {
    Some(match value {
        DataRef::Empty => return None,
        DataRef::String(text) => Cell::Text(text.clone()),
        DataRef::SharedString(text) => Cell::Text((*text).to_owned()),
        DataRef::Bool(flag) => Cell::Text(flag.to_string()),
        #[expect(
            clippy::cast_precision_loss,
            reason = "numbers of workbooks are floats"
        )]
        DataRef::Int(number) => decimal(*number as f64),
        DataRef::Float(number) => decimal(*number),
        DataRef::DateTime(date) => Cell::Date(iso(date)),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Cell::Date(text.clone()),
        DataRef::Error(error) => Cell::Unreadable {
            text: error.to_string(),
            rule: "spreadsheet_error",
            message: ERROR_VALUE,
        },
    })
}

/// Returns a number with at most 15 significant digits, so without what binary fractions add.
fn decimal(number: f64) -> Cell {
    if !number.is_finite() || number.abs() >= 1e15 {
        return Cell::Unreadable {
            text: number.to_string(),
            rule: "spreadsheet_number",
            message: "expected at most 15 digits, as a spreadsheet shortens longer numbers: format the column as text \
                      and enter it again",
        };
    }
    let rounded = format!("{number:.14e}").parse().unwrap_or(number);
    // Without the sign of zero.
    Cell::Number((rounded + 0.0).to_string())
}

/// Returns a date in ISO 8601, with its time unless that is midnight.
fn iso(date: &ExcelDateTime) -> String {
    let days = date.as_f64();
    if date.is_duration() || !(1.0..2_958_466.0).contains(&days) {
        return days.to_string();
    }
    let (year, month, day, hour, minute, second, _) = date.to_ymd_hms_milli();
    let day = format!("{year:04}-{month:02}-{day:02}");
    match (hour, minute, second) {
        (0, 0, 0) => day,
        (hour, minute, second) => format!("{day}T{hour:02}:{minute:02}:{second:02}"),
    }
}
