//! Workbooks (XLSX) of records. Rows go to a temporary file, so one row is in memory. Codes, telephone numbers and
//! whatever a spreadsheet might change are text cells.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Seek as _};

use anyhow::{Context as _, bail};
use rust_xlsxwriter::{DataValidation, Format, Worksheet};
use vitrine_model::product::{
    Availability, BarcodeFormat, DenominationType, ECodeUsageType, ExpiryType, RedeemableAt, State,
};

use super::table::cells;
use crate::load::json::Node;
use crate::load::read::columns::{COLUMNS, Column, KNOWN_TYPES, Kind};
use crate::load::read::{CSV_TEMPLATE, MAX_ROWS, MAX_WORKBOOK_BYTES};

/// Maximum length of a cell's text, in UTF-16 units.
const MAX_TEXT_UNITS: usize = 32_767;

/// Maximum number of digits that a number keeps.
const MAX_DIGITS: usize = 15;

const USE_NDJSON: &str = "use `vitrine export --format ndjson`, which holds everything";

/// A workbook under construction.
pub struct Workbook {
    inner: rust_xlsxwriter::Workbook,
    rows: u32,
}

impl fmt::Debug for Workbook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Workbook").finish_non_exhaustive()
    }
}

impl Workbook {
    /// Returns a workbook with the names of columns.
    ///
    /// # Errors
    ///
    /// If its temporary file can't be written.
    pub fn new() -> anyhow::Result<Self> {
        let mut inner = rust_xlsxwriter::Workbook::new();
        let sheet = inner.add_worksheet_with_constant_memory()?;
        sheet.set_name("Products")?.set_freeze_panes(1, 0)?;
        let text = Format::new().set_num_format("@");
        let amount = Format::new().set_num_format("0.00");
        let heading = Format::new().set_bold().set_num_format("@");
        for (column, index) in COLUMNS.iter().zip(0..) {
            sheet.set_column_width(index, width(column))?;
            let choices = choices(column.name);
            match (is_amount(column), column.kind) {
                (true, _) => sheet.set_column_format(index, &amount)?,
                (false, Kind::Flag | Kind::Number) => sheet,
                (false, _) => sheet.set_column_format(index, &text)?,
            };
            if !choices.is_empty() {
                // There are other payout types than the known ones.
                let list = DataValidation::new().allow_list_strings(&choices)?;
                let list = list.show_error_message(column.name != "payout_type");
                sheet.add_data_validation(1, index, MAX_ROWS as u32, index, &list)?;
            }
        }
        for (column, index) in COLUMNS.iter().zip(0..) {
            sheet.write_string_with_format(0, index, column.name, &heading)?;
        }
        Ok(Self { inner, rows: 0 })
    }

    /// Returns the template: all columns, and a row for each payout type.
    ///
    /// # Errors
    ///
    /// If its temporary file can't be written.
    pub fn template() -> anyhow::Result<Self> {
        let mut workbook = Self::new()?;
        for row in csv::Reader::from_reader(CSV_TEMPLATE.as_bytes()).records() {
            let row = row?;
            workbook.add_cells(&row.iter().map(Cow::Borrowed).collect::<Vec<_>>())?;
        }
        Ok(workbook)
    }

    /// Adds the row of a record.
    ///
    /// # Errors
    ///
    /// If a workbook can't hold it; the message has product and column.
    pub fn add(&mut self, record: Node<'_>) -> anyhow::Result<()> {
        self.add_cells(&cells(record)?)
    }

    fn add_cells(&mut self, cells: &[Cow<'_, str>]) -> anyhow::Result<()> {
        self.rows += 1;
        if u64::from(self.rows) > MAX_ROWS {
            bail!("a workbook holds at most {MAX_ROWS} products; {USE_NDJSON}");
        }
        let sheet = self.inner.worksheet_from_index(0)?;
        for ((column, cell), index) in COLUMNS.iter().zip(cells).zip(0..) {
            if let Some(problem) = problem(cell) {
                let code = COLUMNS.iter().zip(cells);
                let mut code = code.filter(|(column, _)| column.name == "code");
                let code = code.next().map_or("", |(_, code)| code);
                bail!(
                    "a workbook can't hold `{}` of the product {code}: {problem}; {USE_NDJSON}",
                    column.name
                );
            }
            write(sheet, (self.rows, index), column, cell)?;
        }
        Ok(())
    }

    /// Returns the workbook as a temporary file, at its start.
    ///
    /// # Errors
    ///
    /// If that can't be written, or if it is longer than what a load reads.
    pub fn finish(mut self) -> anyhow::Result<File> {
        let file = tempfile::tempfile().context("can't create a temporary file (TMPDIR)")?;
        let writer = BufWriter::new(file.try_clone()?);
        self.inner.save_to_writer(writer)?;
        let mut file = file;
        let length = file.stream_position()?;
        if length > MAX_WORKBOOK_BYTES {
            bail!(
                "the workbook has {length} bytes, and a load reads at most {MAX_WORKBOOK_BYTES}; {USE_NDJSON}"
            );
        }
        file.rewind()?;
        Ok(file)
    }
}

/// Writes a cell.
fn write(
    sheet: &mut Worksheet,
    (row, index): (u32, u16),
    column: &Column,
    cell: &str,
) -> anyhow::Result<()> {
    match (column.kind, cell) {
        (_, "") => {}
        (Kind::Flag, "true" | "false") => {
            sheet.write_boolean(row, index, cell == "true")?;
        }
        _ => {
            match number(column, cell) {
                Some(number) => sheet.write_number(row, index, number)?,
                None => sheet.write_string(row, index, cell)?,
            };
        }
    }
    Ok(())
}

/// Returns the reason why no cell can hold a text.
fn problem(text: &str) -> Option<String> {
    let units = text.encode_utf16().count();
    if units > MAX_TEXT_UNITS {
        return Some(format!(
            "it has {units} characters, and a cell {MAX_TEXT_UNITS} at most"
        ));
    }
    let is_control = |character: &char| *character < ' ' && !"\t\r\n".contains(*character);
    let control = text.chars().find(is_control)?;
    let code = u32::from(control);
    Some(format!("it has the control character U+{code:04X}"))
}

/// Returns the number of a cell if it loads as the same value.
fn number(column: &Column, cell: &str) -> Option<f64> {
    let is_decimal = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let is_number =
        is_amount(column) || column.kind == Kind::Number || column.name == "discount_multiplier";
    let digits = cell.trim_start_matches(['0', '.']).bytes();
    let digits = digits.filter(u8::is_ascii_digit).count();
    if !is_number || !cell.bytes().all(is_decimal) || digits > MAX_DIGITS {
        return None;
    }
    let number: f64 = cell.parse().ok()?;
    // Amounts are shown with two digits; a discount is kept as it is written.
    (is_amount(column) || number.to_string() == cell).then_some(number)
}

fn is_amount(column: &Column) -> bool {
    matches!(
        column.name,
        "denominations_minimum_value" | "denominations_maximum_value"
    )
}

/// Returns the values to choose from; none if any is valid.
fn choices(column: &str) -> Vec<&'static str> {
    match column {
        "state" => State::ALL.iter().map(|value| value.as_str()).collect(),
        "availability" => Availability::ALL
            .iter()
            .map(|value| value.as_str())
            .collect(),
        "expiry_type" => ExpiryType::ALL.iter().map(|value| value.as_str()).collect(),
        "redeemable_at" => RedeemableAt::ALL
            .iter()
            .map(|value| value.as_str())
            .collect(),
        "barcode_format" => BarcodeFormat::ALL
            .iter()
            .map(|value| value.as_str())
            .collect(),
        "e_code_usage_type" => ECodeUsageType::ALL
            .iter()
            .map(|value| value.as_str())
            .collect(),
        "denominations_type" => DenominationType::ALL
            .iter()
            .map(|value| value.as_str())
            .collect(),
        "payout_type" => KNOWN_TYPES.to_vec(),
        "is_orderable" => vec!["TRUE", "FALSE"],
        _ => Vec::new(),
    }
}

/// Returns the width of a column, in characters.
fn width(column: &Column) -> u32 {
    match column.path {
        ["content_resources", "locale"] => 10,
        ["content_resources", _] | ["subscription_plans"] | [] => 50,
        ["name" | "code" | "categories" | "countries_redeemable_in"] => 28,
        [.., last] if last.ends_with("_url") => 36,
        _ => 18,
    }
}
