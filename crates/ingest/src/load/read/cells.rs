//! Source column of a value in a record, which a spreadsheet's user can find.

use super::columns::{COLUMNS, Column, Of};

/// Source cells of a record that was a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cells {
    /// Cell separator of the table.
    pub(super) separator: u8,
    /// Name of the detail object; empty if there is none.
    pub(super) payout_type: String,
    /// Columns whose fields are in the cell `detail`.
    pub(super) stated_in_detail: Vec<&'static str>,
    /// Columns whose cells are JSON arrays, whose items aren't split.
    pub(super) arrays: Vec<&'static str>,
}

impl Cells {
    /// Returns the column of the value at a JSON pointer, even if the table doesn't have it.
    pub(super) fn column(&self, pointer: &str) -> Option<String> {
        let in_detail = below(&[self.payout_type.as_str()], pointer);
        let column = |way: &str, of_product: bool| {
            COLUMNS.iter().find(|column| {
                (column.of == Of::Product) == of_product
                    && !column.path.is_empty()
                    && !self.stated_in_detail.contains(&column.name)
                    && below(column.path, way).is_some()
            })
        };
        let name = |column: &Column| column.name;
        let name = match in_detail {
            Some(way) => Some(column(way, false).map_or("detail", name)),
            None => column(pointer, true).map(name),
        };
        name.map(str::to_owned)
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
        let cells = Cells {
            separator: b',',
            payout_type: "gift_card".to_owned(),
            stated_in_detail: vec!["website_url"],
            arrays: Vec::new(),
        };
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
            ("/gift_card/website_url", Some("detail")),
            ("/gift_card/more/0", Some("detail")),
            ("/gift_card", Some("detail")),
            ("/gift_cards", None),
            ("", None),
        ] {
            assert_eq!(cells.column(pointer).as_deref(), expected, "{pointer}");
        }
    }
}
