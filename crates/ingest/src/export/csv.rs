//! Records as rows of a table, with the columns of loads (`load::read::columns`), so that each row loads as the same
//! record.
//!
//! Quoting follows RFC 4180; lines end with a line feed, as in the template. For spreadsheets only, a cell that they
//! would run gets an apostrophe, which loads remove (`load::read::formula`).

use std::borrow::Cow;

use anyhow::{Context as _, bail};

use crate::load::json::Node;
use crate::load::read::columns::{COLUMNS, Kind, Of};
use crate::load::read::formula;

type Members<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

/// Reader of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Programs: cells are written as they are.
    Program,
    /// A spreadsheet: no cell may be run as a formula.
    Spreadsheet,
}

/// Returns the first line, without its line feed.
#[must_use]
pub fn header() -> String {
    COLUMNS.each_ref().map(|column| column.name).join(",")
}

/// Returns the row of a record, without its line feed.
///
/// # Errors
///
/// If the record has a value without a column, which no stored product has.
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
    let mut row = String::new();
    for column in &COLUMNS {
        let value = match column.of {
            Of::Product => take(&mut product, column.path),
            of if !of.has(&payout_type) => None,
            Of::Types(_) => take(&mut detail, column.path),
            Of::OtherTypes => Some(Node::Object(std::mem::take(&mut detail))),
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
    // Objects are empty once their columns are taken.
    let is_left = |value: &Node<'_>| !matches!(value, Node::Object(members) if members.is_empty());
    let left = product.iter().chain(&detail);
    let left: Vec<&str> = left
        .filter(|(_, value)| is_left(value))
        .map(|(key, _)| &**key)
        .collect();
    if !left.is_empty() {
        bail!("no column holds {}", left.join(", "));
    }
    Ok(row)
}

/// Removes the value at `path` from an object, and returns it.
fn take<'a>(members: &mut Members<'a>, path: &[&str]) -> Option<Node<'a>> {
    let (first, below) = path.split_first()?;
    let position = members.iter().position(|(key, _)| key == first)?;
    match &mut members[position].1 {
        _ if below.is_empty() => Some(members.remove(position).1),
        Node::Object(members) => take(members, below),
        _ => None,
    }
}

/// Returns the cell that loads as this value.
fn cell(kind: Kind, value: Node<'_>) -> anyhow::Result<Cow<'_, str>> {
    Ok(match (kind, value) {
        (Kind::Texts, Node::Null) => bail!("a missing list"),
        (_, Node::Null) => "".into(),
        (Kind::Text, Node::Text(text)) => text,
        (Kind::Flag, Node::Bool(flag)) => flag.to_string().into(),
        (Kind::Number, Node::Number(number)) => number.into(),
        (Kind::Json, value @ (Node::Object(_) | Node::List(_))) => value.to_json().into(),
        (Kind::Texts, Node::List(items)) if items.is_empty() => "".into(),
        (Kind::Texts | Kind::Amounts, Node::List(items)) => match joined(&items) {
            Some(joined) => joined.into(),
            None => Node::List(items).to_json().into(),
        },
        (_, value) => bail!("{}", value.to_json()),
    })
}

/// Returns a list with `|` between its items; `None` if that would load as another list.
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
        // A load would warn that it may be several items.
        return None;
    }
    let joined = texts.join("|");
    let is_plain = !joined.trim().is_empty() && !joined.trim().starts_with('[');
    is_plain.then_some(joined)
}

/// Appends a cell, quoted if necessary.
fn write_quoted(cell: &str, row: &mut String) {
    if cell.contains([',', '"', '\r', '\n']) {
        row.push('"');
        row.push_str(&cell.replace('"', "\"\""));
        row.push('"');
    } else {
        row.push_str(cell);
    }
}
