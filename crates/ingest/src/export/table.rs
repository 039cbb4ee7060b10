//! Records as cells of a table, with the columns of loads (`load::read::columns`), so that each row loads as the same
//! record; and rows of CSV.

use std::borrow::Cow;

use anyhow::{Context as _, bail};

use crate::load::json::Node;
use crate::load::read::columns::{COLUMNS, Kind, Of};

type Members<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

/// Returns the first line of CSV, without its line feed.
#[must_use]
pub fn csv_header() -> String {
    COLUMNS.each_ref().map(|column| column.name).join(",")
}

/// Returns the row of a record in CSV, without its line feed. Quoting follows RFC 4180.
///
/// # Errors
///
/// If the record has a value without a column, which no stored product has.
pub fn csv_row(record: Node<'_>) -> anyhow::Result<String> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::Any(b'\n'))
        .buffer_capacity(1 << 10)
        .from_writer(Vec::new());
    writer.write_record(cells(record)?.iter().map(|cell| cell.as_bytes()))?;
    let mut row = String::from_utf8(
        writer
            .into_inner()
            .map_err(csv::IntoInnerError::into_error)?,
    )?;
    row.pop();
    Ok(row)
}

/// Returns the cells of a record, one for each column.
///
/// # Errors
///
/// If the record has a value without a column, which no stored product has.
pub(super) fn cells(record: Node<'_>) -> anyhow::Result<Vec<Cow<'_, str>>> {
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
    let mut cells = Vec::with_capacity(COLUMNS.len());
    for column in &COLUMNS {
        let value = match column.of {
            Of::Product => take(&mut product, column.path),
            of if !of.has(&payout_type) => None,
            Of::Types(_) => take(&mut detail, column.path),
            Of::OtherTypes => Some(Node::Object(std::mem::take(&mut detail))),
        };
        let cell = cell(column.kind, value.unwrap_or(Node::Null));
        let cell = cell.with_context(|| format!("the column `{}` can't hold it", column.name))?;
        cells.push(cell);
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
    Ok(cells)
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
