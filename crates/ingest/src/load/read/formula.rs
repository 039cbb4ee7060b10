//! Cells that a spreadsheet would run as a formula, and the apostrophe that prevents it.
//!
//! Exports for spreadsheets write the apostrophe, and loads remove it. So that values with an apostrophe of their own
//! survive, all exports add one to a cell with apostrophes before the start of a formula.

/// Returns true if a spreadsheet would run a cell.
pub(crate) fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

/// Returns true if a cell has apostrophes before the start of a formula.
pub(crate) fn has_apostrophe(cell: &str) -> bool {
    without_apostrophe(cell).is_some()
}

/// Returns a cell without the first of the apostrophes before the start of a formula; `None` if there is none.
pub(crate) fn without_apostrophe(cell: &str) -> Option<&str> {
    let rest = cell.strip_prefix('\'')?;
    is_formula(rest.trim_start_matches('\'')).then_some(rest)
}
