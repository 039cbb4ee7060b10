//! Makes a record of a row.

use std::borrow::Cow;

use vitrine_model::product::PayoutTypeName;

use super::Shape;
use super::cells::Cells;
use super::columns::{Column, KNOWN_TYPES, Kind, Of};
use super::table::{Filled, cell_fault, cell_place};
use crate::load::json::{Node, Problem};
use crate::load::report::{Finding, Place, shown};

/// Cells of a row with their columns.
type Row<'r> = [Filled<'r>];

type Object<'r> = Vec<(Cow<'r, str>, Node<'r>)>;

/// Returns the record of a row: its JSON, and the source columns of its values.
///
/// # Errors
///
/// If a cell is malformed JSON, or its value belongs into another cell.
pub(super) fn record<'r>(
    place: &Place,
    row: &'r Row<'r>,
    cells: Cells,
    (shape, live_type): (Shape, Option<&'r str>),
) -> Result<(String, Cells), Vec<Finding>> {
    let payout_type = live_type.unwrap_or_else(|| cell(row, "payout_type").trim());
    // Without a payout type, there is no detail object.
    let payout_type = match payout_type.parse::<PayoutTypeName>() {
        Ok(_) => payout_type,
        Err(_) => "",
    };
    let is_known = KNOWN_TYPES.contains(&payout_type);
    let mut product = match shape {
        Shape::Whole => required_objects(payout_type),
        Shape::Patch => Object::new(),
    };
    let mut faults = Vec::new();
    for Filled {
        column,
        index,
        text: cell,
        ..
    } in row
    {
        let is_product = column.of == Of::Product;
        if !is_product && (payout_type.is_empty() || cell.is_empty() && !column.of.has(payout_type))
        {
            continue;
        }
        let path = match is_product {
            true => column.path.to_vec(),
            false => [&[payout_type], column.path].concat(),
        };
        let pointer = format!("/{}", path.join("/"));
        let at = || cell_place(place, column.name, *index);
        if !is_product && is_known == (column.of == Of::OtherTypes) {
            faults.push(Finding {
                pointer,
                ..cell_fault(&at(), cell, "detail_only", misplaced(is_known))
            });
            continue;
        }
        match value(column, cell) {
            // The check reports that the object is missing.
            Ok(Node::Null) if column.of == Of::OtherTypes && shape == Shape::Whole => {}
            Ok(value) => insert(&mut product, &path, value),
            Err(problems) => {
                let found = problems.iter();
                faults.extend(found.map(|problem| fault(&at(), &pointer, problem)));
            }
        }
    }
    if faults.is_empty() {
        return Ok((
            Node::Object(product).to_json(),
            Cells {
                is_cut: payout_type.is_empty()
                    && row.iter().any(|cell| cell.column.of != Of::Product),
                payout_type: payout_type.to_owned(),
                ..cells
            },
        ));
    }
    let code = cell(row, "code").trim();
    for fault in &mut faults {
        fault.code = (!code.is_empty()).then(|| shown(code));
    }
    Err(faults)
}

/// Returns the objects that products of a payout type have: always present, so that the fault of a missing value names its column.
fn required_objects(payout_type: &str) -> Object<'_> {
    let mut product: Object<'_> = vec![("customer_service".into(), Node::Object(Vec::new()))];
    if KNOWN_TYPES.contains(&payout_type) {
        let objects = [
            ("expiry", &["gift_card", "subscription"][..]),
            ("denominations", &["gift_card", "payment"]),
        ];
        let objects = objects
            .into_iter()
            .filter(|(_, types)| types.contains(&payout_type));
        let objects = objects.map(|(key, _)| (key.into(), Node::Object(Vec::new())));
        product.push((payout_type.into(), Node::Object(objects.collect())));
    }
    product
}

/// Returns the message about a value of a detail object in the wrong cell.
fn misplaced(is_known: bool) -> &'static str {
    match is_known {
        true => "expected an empty cell: products of this payout type have their fields in columns",
        false => {
            "expected this in `detail`: products of this payout type have all their fields there"
        }
    }
}

/// Returns the cell of a column; empty if the table doesn't have it.
fn cell<'r>(row: &Row<'r>, name: &str) -> &'r str {
    let found = row.iter().find(|cell| cell.column.name == name);
    found.map_or("", |cell| cell.text)
}

fn fault(place: &Place, pointer: &str, problem: &Problem) -> Finding {
    Finding {
        pointer: format!("{pointer}{}", problem.pointer),
        ..cell_fault(place, &problem.value, problem.rule, &problem.message)
    }
}

/// Returns the JSON value of a cell. If the cell doesn't fit its column, that is a text, which the check refuses.
fn value<'r>(column: &Column, cell: &'r str) -> Result<Node<'r>, Vec<Problem>> {
    let trimmed = cell.trim();
    Ok(match column.kind {
        Kind::Texts if trimmed.is_empty() => Node::List(Vec::new()),
        _ if cell.is_empty() => Node::Null,
        Kind::Amounts if trimmed.is_empty() => Node::Null,
        // Spreadsheets write TRUE and FALSE.
        Kind::Flag if trimmed.eq_ignore_ascii_case("true") => Node::Bool(true),
        Kind::Flag if trimmed.eq_ignore_ascii_case("false") => Node::Bool(false),
        Kind::Number if is_number(trimmed) => Node::Number(trimmed),
        Kind::Json if trimmed.is_empty() => Node::Null,
        _ if column.kind == Kind::Json || is_array(column, cell) => match Node::parse(trimmed) {
            (value, problems) if problems.is_empty() => value,
            (_, problems) => return Err(problems),
        },
        Kind::Texts | Kind::Amounts => {
            let items = cell.split('|').map(|item| Node::Text(item.into()));
            Node::List(items.collect())
        }
        Kind::Text | Kind::Flag | Kind::Number | Kind::Json => Node::Text(cell.into()),
    })
}

/// Returns true if a list is written as a JSON array.
pub(super) fn is_array(column: &Column, cell: &str) -> bool {
    matches!(column.kind, Kind::Texts | Kind::Amounts) && cell.trim().starts_with('[')
}

/// Returns true if the text is a number in JSON.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// Inserts a value, unless `path` has one.
fn insert<'r>(object: &mut Object<'r>, path: &[&'r str], value: Node<'r>) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        object.push((Cow::Borrowed(first), value));
        return;
    }
    let position = object.iter().position(|(key, _)| key == first);
    let position = position.unwrap_or_else(|| {
        object.push((Cow::Borrowed(first), Node::Object(Vec::new())));
        object.len() - 1
    });
    if let Node::Object(members) = &mut object[position].1 {
        insert(members, rest, value);
    }
}
