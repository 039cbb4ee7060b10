//! Cells that a spreadsheet would run as a formula, and the apostrophe that keeps it from that.
//!
//! Exports for spreadsheets write the apostrophe, loads remove it. So that no value loses one of its own, every
//! export adds one more to a cell that has apostrophes before the start of a formula.

/// Returns whether a spreadsheet would run a cell.
pub(crate) fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

/// Returns whether a cell has an apostrophe, or several, before the start of a formula.
pub(crate) fn has_apostrophe(cell: &str) -> bool {
    without_apostrophe(cell).is_some()
}

/// Returns a cell without the first of the apostrophes before the start of a formula; `None` if there is none.
pub(crate) fn without_apostrophe(cell: &str) -> Option<&str> {
    let rest = cell.strip_prefix('\'')?;
    is_formula(rest.trim_start_matches('\'')).then_some(rest)
}
