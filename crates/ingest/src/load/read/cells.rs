//! Source column of a value in a record, which a spreadsheet's user can find.

use std::sync::Arc;

use super::columns::{COLUMNS, KNOWN_TYPES, Of};
use super::row_record::is_array;
use super::table::{Filled, cell_place};
use crate::load::report::Place;

/// Source cells of a record that was a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cells {
    /// Cell separator of the table.
    pub(super) separator: u8,
    /// Name of the detail object; empty if there is none.
    pub(super) payout_type: String,
    /// True if the record lacks the cells of the detail object, whose name isn't known.
    pub(super) is_cut: bool,
    /// Columns whose cells are JSON arrays, whose items aren't split.
    pub(super) arrays: Vec<&'static str>,
    /// Columns whose cells are numbers of a workbook.
    pub(super) numbers: Vec<&'static str>,
    /// Columns of the table, with their indexes.
    pub(super) indexes: Arc<[(&'static str, usize)]>,
}

impl Cells {
    /// Returns the cells of a row, before its payout type is known.
    pub(super) fn new(
        separator: u8,
        indexes: &Arc<[(&'static str, usize)]>,
        row: &[Filled<'_>],
    ) -> Self {
        let names = |is: fn(&Filled<'_>) -> bool| {
            let cells = row.iter().filter(|cell| is(cell));
            cells.map(|cell| cell.column.name).collect()
        };
        Self {
            separator,
            payout_type: String::new(),
            is_cut: false,
            arrays: names(|cell| is_array(cell.column, cell.text)),
            numbers: names(|cell| cell.is_number),
            indexes: Arc::clone(indexes),
        }
    }

    /// Returns the place of the value at a JSON pointer of a row.
    pub(super) fn place(&self, row: &Place, pointer: &str) -> Place {
        let Some(column) = self.column(pointer) else {
            return row.clone();
        };
        let mut indexes = self.indexes.iter();
        match indexes.find(|(name, _)| *name == column) {
            Some((_, index)) => cell_place(row, &column, *index),
            None => Place {
                column: Some(column),
                ..row.clone()
            },
        }
    }

    /// Returns the column of the value at a JSON pointer, even if the table doesn't have it.
    pub(super) fn column(&self, pointer: &str) -> Option<String> {
        let in_detail = below(&[self.payout_type.as_str()], pointer);
        if in_detail.is_some() && !KNOWN_TYPES.contains(&self.payout_type.as_str()) {
            return Some("detail".to_owned());
        }
        let way = in_detail.unwrap_or(pointer);
        let found = COLUMNS.iter().find(|column| {
            (column.of == Of::Product) == in_detail.is_none()
                && !column.path.is_empty()
                && below(column.path, way).is_some()
        });
        found.map(|column| column.name.to_owned())
    }
}

/// Returns the rest of a JSON pointer below `path`; `None` if it is elsewhere.
fn below<'p>(path: &[&str], pointer: &'p str) -> Option<&'p str> {
    let mut rest = pointer;
    for step in path {
        rest = rest.strip_prefix('/')?.strip_prefix(step)?;
        if !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointer_has_its_source_column() {
        let cells = |payout_type: &str| Cells {
            separator: b',',
            payout_type: payout_type.to_owned(),
            is_cut: false,
            arrays: Vec::new(),
            numbers: Vec::new(),
            indexes: Arc::new([]),
        };
        let later = cells("later_type");
        for pointer in ["/later_type", "/later_type/website_url"] {
            assert_eq!(later.column(pointer).as_deref(), Some("detail"));
        }
        let cells = cells("gift_card");
        for (pointer, expected) in [
            ("/code", Some("code")),
            ("/categories/3", Some("categories")),
            (
                "/customer_service/website_url",
                Some("customer_service_website_url"),
            ),
            ("/gift_card/expiry/type", Some("expiry_type")),
            (
                "/gift_card/denominations/available_list/0",
                Some("denominations_available_list"),
            ),
            ("/gift_card/content_resources/locale", Some("locale")),
            ("/gift_card/website_url", Some("website_url")),
            ("/gift_card/more/0", None),
            ("/gift_card", None),
            ("/gift_cards", None),
            ("", None),
        ] {
            assert_eq!(cells.column(pointer).as_deref(), expected, "{pointer}");
        }
    }
}
