//! Makes a record of a row.

use std::borrow::Cow;

use vitrine_model::product::PayoutTypeName;

use super::cells::Cells;
use super::columns::{Column, KNOWN_TYPES, Kind, Of};
use super::table::cell_fault;
use crate::load::json::{Node, Problem};
use crate::load::report::{Finding, Place, shown};

/// Cells of a row with their columns.
type Row<'r> = [(&'static Column, &'r str)];

type Object<'r> = Vec<(Cow<'r, str>, Node<'r>)>;

/// Returns the record of a row: its JSON, and the source columns of its values.
///
/// # Errors
///
/// If a cell is malformed JSON, or a value is given twice.
pub(super) fn record(
    place: &Place,
    row: &Row<'_>,
    separator: u8,
) -> Result<(String, Cells), Vec<Finding>> {
    let mut faults = Vec::new();
    // Always present, so that the fault of a missing value names the column.
    let mut product: Object<'_> = vec![("customer_service".into(), Node::Object(Vec::new()))];
    for (column, cell) in row {
        if column.of == Of::Product {
            match value(column, cell) {
                Ok(value) => insert(&mut product, column.path, value),
                Err(problems) => problems.iter().for_each(|problem| {
                    let pointer = format!("/{}", column.path.join("/"));
                    faults.push(fault(place, column.name, &pointer, problem));
                }),
            }
        }
    }
    let mut stated_in_detail = Vec::new();
    let payout_type = cell(row, "payout_type").trim();
    // Without a payout type, there is no detail object.
    let payout_type = match payout_type.parse::<PayoutTypeName>() {
        Ok(_) => payout_type,
        Err(_) => "",
    };
    if !payout_type.is_empty() {
        let detail = detail(place, payout_type, row, &mut faults, &mut stated_in_detail);
        product.extend(detail.map(|detail| (payout_type.into(), detail)));
    }
    if faults.is_empty() {
        let arrays = row
            .iter()
            .filter(|(column, cell)| is_array(column, cell))
            .map(|(column, _)| column.name);
        let cells = Cells {
            separator,
            payout_type: payout_type.to_owned(),
            stated_in_detail,
            arrays: arrays.collect(),
        };
        return Ok((Node::Object(product).to_json(), cells));
    }
    let code = cell(row, "code").trim();
    for fault in &mut faults {
        fault.code = (!code.is_empty()).then(|| shown(code));
    }
    Err(faults)
}

/// Returns the cell of a column; empty if the table doesn't have it.
fn cell<'r>(row: &Row<'r>, name: &str) -> &'r str {
    let found = row.iter().find(|(column, _)| column.name == name);
    found.map_or("", |(_, cell)| cell)
}

fn fault(place: &Place, column: &str, pointer: &str, problem: &Problem) -> Finding {
    Finding {
        pointer: format!("{pointer}{}", problem.pointer),
        ..cell_fault(
            place,
            column,
            &problem.value,
            problem.rule,
            &problem.message,
        )
    }
}

/// Returns the detail object: the cell `detail`, with the values of columns.
fn detail<'r>(
    place: &Place,
    payout_type: &'r str,
    row: &Row<'r>,
    faults: &mut Vec<Finding>,
    stated_in_detail: &mut Vec<&'static str>,
) -> Option<Node<'r>> {
    let is_known = KNOWN_TYPES.contains(&payout_type);
    let text = cell(row, "detail");
    let mut detail = match parsed(text) {
        Ok(detail) => detail,
        Err(problems) => {
            let pointer = format!("/{payout_type}");
            let found = problems.iter();
            faults.extend(found.map(|problem| fault(place, "detail", &pointer, problem)));
            return None;
        }
    };
    if !is_known && detail.is_none() {
        // The check reports that the object is missing.
        return None;
    }
    let stated: Object<'r> = detail.clone().unwrap_or_default();
    let object = detail.get_or_insert_default();
    // Always present, as above, for the types that have them.
    for (key, types) in [
        ("expiry", &["gift_card", "subscription"][..]),
        ("denominations", &["gift_card", "payment"]),
    ] {
        if types.contains(&payout_type) && !states(object, &[key]) {
            object.push((key.into(), Node::Object(Vec::new())));
        }
    }
    let has_texts = is_known
        || states(&stated, &["content_resources"])
        || row
            .iter()
            .any(|(column, cell)| is_text(column) && !cell.is_empty());
    for (column, cell) in row {
        let is_wanted = match column.of {
            Of::Product => false,
            Of::AnyType => is_text(column) && has_texts,
            Of::Types(_) => column.of.has(payout_type) || !cell.is_empty(),
        };
        if !is_wanted {
            continue;
        }
        let pointer = format!("/{payout_type}/{}", column.path.join("/"));
        let mut refuse = |rule, message: &str| {
            faults.push(Finding {
                pointer: pointer.clone(),
                ..cell_fault(place, column.name, cell, rule, message)
            });
        };
        if !is_known && !is_text(column) {
            let message =
                "expected this in `detail`: for this payout type, columns hold only texts";
            refuse("detail_only", message);
        } else if states(&stated, column.path) {
            stated_in_detail.push(column.name);
            if !cell.is_empty() {
                let message = "expected the value in this column or in `detail`, not in both";
                refuse("duplicate_key", message);
            }
        } else {
            match value(column, cell) {
                Ok(value) => insert(object, column.path, value),
                Err(problems) => {
                    let found = problems.iter();
                    faults
                        .extend(found.map(|problem| fault(place, column.name, &pointer, problem)));
                }
            }
        }
    }
    detail.map(Node::Object)
}

fn is_text(column: &Column) -> bool {
    column.path.first() == Some(&"content_resources")
}

/// Parses the cell `detail`; `None` if it is empty.
fn parsed(text: &str) -> Result<Option<Object<'_>>, Vec<Problem>> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    match Node::parse(text) {
        (Node::Object(members), problems) if problems.is_empty() => Ok(Some(members)),
        (_, problems) if !problems.is_empty() => Err(problems),
        _ => Err(vec![Problem {
            rule: "type",
            pointer: String::new(),
            value: shown(text),
            message: "expected a JSON object".to_owned(),
        }]),
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
        _ if is_array(column, cell) => match Node::parse(trimmed) {
            (list, problems) if problems.is_empty() => list,
            (_, problems) => return Err(problems),
        },
        Kind::Texts | Kind::Amounts => {
            let items = cell.split('|').map(|item| Node::Text(item.into()));
            Node::List(items.collect())
        }
        Kind::Text | Kind::Flag | Kind::Number | Kind::Detail => Node::Text(cell.into()),
    })
}

/// Returns true if a list is written as a JSON array.
fn is_array(column: &Column, cell: &str) -> bool {
    matches!(column.kind, Kind::Texts | Kind::Amounts) && cell.trim().starts_with('[')
}

/// Returns true if the text is a number in JSON.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// Returns true if an object has a value at `path`, or a value other than an object on the way.
fn states(object: &Object<'_>, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return true;
    };
    match object.iter().find(|(key, _)| key == first) {
        None => false,
        Some((_, Node::Object(members))) => states(members, rest),
        Some(_) => true,
    }
}

/// Inserts a value, unless `path` has one.
fn insert<'r>(object: &mut Object<'r>, path: &[&'static str], value: Node<'r>) {
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
