//! Records as rows of a table, by the same columns that loads read (`load::read::columns`), so that each row
//! loads again as the record that it was.
//!
//! Quoted as RFC 4180 has it; lines end with a line feed, as in the template. Cells are data: only for spreadsheets
//! one that they would run gets an apostrophe, which loads remove (`load::read::formula`).

use std::borrow::Cow;

use anyhow::{Context as _, bail};

use crate::load::json::Node;
use crate::load::read::columns::{COLUMNS, KNOWN_TYPES, Kind, Of};
use crate::load::read::formula;

type Members<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

/// The reader that a table is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Programs: cells are written as they are.
    Program,
    /// A spreadsheet: no cell may be run as a formula.
    Spreadsheet,
}

/// The first line, without its end.
#[must_use]
pub fn header() -> String {
    COLUMNS.each_ref().map(|column| column.name).join(",")
}

/// The row of a record, without its line's end.
///
/// # Errors
///
/// If the record has a value that no column holds: it isn't one of ours.
pub fn row(record: Node<'_>, reader: Reader) -> anyhow::Result<String> {
    let Node::Object(mut product) = record else {
        bail!("a record that isn't an object");
    };
    let payout_type = product.iter().find(|(key, _)| key == "payout_type");
    let payout_type = match payout_type {
        Some((_, Node::Text(payout_type))) => payout_type.clone(),
        _ => bail!("a record without a payout type"),
    };
    let Some(Node::Object(mut detail)) = take(&mut product, &[&payout_type]) else {
        bail!("a record without its detail object");
    };
    let is_known = KNOWN_TYPES.contains(&&*payout_type);
    let mut row = String::new();
    for column in &COLUMNS {
        let value = match column.of {
            // The last column: what the others don't hold.
            _ if column.kind == Kind::Detail => rest(std::mem::take(&mut detail), is_known),
            Of::Product => take(&mut product, column.path),
            Of::Types(types) if !types.contains(&&*payout_type) => None,
            Of::Types(_) | Of::AnyType => take(&mut detail, column.path),
        };
        if !row.is_empty() {
            row.push(',');
        }
        let cell = cell(column.kind, value.unwrap_or(Node::Null));
        let cell = cell.with_context(|| format!("the column `{}` can't hold it", column.name))?;
        if formula::has_apostrophe(&cell)
            || (reader == Reader::Spreadsheet && formula::is_formula(&cell))
        {
            write_quoted(&format!("'{cell}"), &mut row);
        } else {
            write_quoted(&cell, &mut row);
        }
    }
    if let Some(Node::Object(left)) = rest(product, true) {
        let names: Vec<&str> = left.iter().map(|(key, _)| &**key).collect();
        bail!("no column holds {}", names.join(", "));
    }
    Ok(row)
}

/// Takes the value at `path` out of an object, if it is there.
fn take<'a>(members: &mut Members<'a>, path: &[&str]) -> Option<Node<'a>> {
    let (first, below) = path.split_first()?;
    let position = members.iter().position(|(key, _)| key == first)?;
    match &mut members[position].1 {
        _ if below.is_empty() => Some(members.remove(position).1),
        Node::Object(members) => take(members, below),
        _ => None,
    }
}

/// Returns the rest of an object after its columns were taken out. For an unknown payout type this includes
/// emptied objects: it is served as it was loaded, and columns fill those again.
fn rest<'a>(mut members: Members<'a>, is_known: bool) -> Option<Node<'a>> {
    if is_known {
        members.retain(|(_, value)| !matches!(value, Node::Object(members) if members.is_empty()));
    }
    (!is_known || !members.is_empty()).then_some(Node::Object(members))
}

/// A value as the cell that reads as this value again.
fn cell(kind: Kind, value: Node<'_>) -> anyhow::Result<Cow<'_, str>> {
    Ok(match (kind, value) {
        (Kind::Texts, Node::Null) => bail!("a missing list"),
        (_, Node::Null) => "".into(),
        (Kind::Text, Node::Text(text)) => text,
        (Kind::Flag, Node::Bool(flag)) => flag.to_string().into(),
        (Kind::Number, Node::Number(number)) => number.into(),
        (Kind::Detail, detail @ Node::Object(_)) => detail.to_json().into(),
        (Kind::Texts, Node::List(items)) if items.is_empty() => "".into(),
        (Kind::Texts | Kind::Amounts, Node::List(items)) => match joined(&items) {
            Some(joined) => joined.into(),
            None => Node::List(items).to_json().into(),
        },
        (_, value) => bail!("{}", value.to_json()),
    })
}

/// A list with `|` between its items; none where that would be read as another list.
fn joined(items: &[Node<'_>]) -> Option<String> {
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Node::Text(text) if !text.contains('|') => texts.push(&**text),
            _ => return None,
        }
    }
    if let [text] = &texts[..]
        && text.contains([',', ';', '\n'])
    {
        // A load would ask if it is several.
        return None;
    }
    let joined = texts.join("|");
    let is_plain = !joined.trim().is_empty() && !joined.trim().starts_with('[');
    is_plain.then_some(joined)
}

/// Appends a cell, with quotes where it needs them.
fn write_quoted(cell: &str, row: &mut String) {
    if cell.contains([',', '"', '\r', '\n']) {
        row.push('"');
        row.push_str(&cell.replace('"', "\"\""));
        row.push('"');
    } else {
        row.push_str(cell);
    }
}
