//! Products as rows of a CSV file, written as spreadsheets do it.

use serde_json::{Map, Value, json};

use crate::harness::gift_card;
use crate::products::{payment, subscription};

/// A table to write: names of columns, and rows of cells.
#[derive(Clone)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// The fields that belong to the product itself, or to an object in it.
const PLAIN: [&str; 10] = [
    "name",
    "code",
    "currency",
    "state",
    "is_orderable",
    "payout_type",
    "categories",
    "countries_redeemable_in",
    "discount_multiplier",
    "availability",
];

impl Table {
    /// The rows of these products. Columns are those that any product has a value for.
    pub fn of(products: &[Value]) -> Self {
        let flat: Vec<Map<String, Value>> = products.iter().map(flat).collect();
        let mut columns: Vec<String> = Vec::new();
        for name in flat.iter().flat_map(Map::keys) {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        let cell = |row: &Map<String, Value>, name: &String| match row.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(items)) => {
                let texts = items.iter().map(|item| item.as_str().expect("a text"));
                texts.collect::<Vec<_>>().join("|")
            }
            Some(other) => other.to_string(),
        };
        let row = |row: &Map<String, Value>| columns.iter().map(|name| cell(row, name)).collect();
        let rows = flat.iter().map(row).collect();
        Self { columns, rows }
    }

    /// The file, with this separator and these line ends.
    pub fn to_csv(&self, separator: char, line_end: &str) -> String {
        let line = |cells: &Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| quoted(cell, separator)).collect();
            cells.join(&separator.to_string()) + line_end
        };
        std::iter::once(&self.columns)
            .chain(&self.rows)
            .map(line)
            .collect()
    }

    /// Writes a cell.
    pub fn set(&mut self, row: usize, column: &str, cell: &str) {
        let found = self.columns.iter().position(|name| name == column);
        let index = found.unwrap_or_else(|| {
            self.columns.push(column.to_owned());
            for row in &mut self.rows {
                row.push(String::new());
            }
            self.columns.len() - 1
        });
        cell.clone_into(&mut self.rows[row][index]);
    }
}

fn quoted(cell: &str, separator: char) -> String {
    if cell.contains(['"', '\r', '\n', separator]) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

fn flat(product: &Value) -> Map<String, Value> {
    let mut row = Map::new();
    for name in PLAIN {
        row.insert(name.to_owned(), product[name].clone());
    }
    for name in ["phone_number", "website_url"] {
        let value = product["customer_service"][name].clone();
        row.insert(format!("customer_service_{name}"), value);
    }
    let payout_type = product["payout_type"].as_str().expect("a payout type");
    let detail = product[payout_type].as_object().expect("a detail object");
    if !["gift_card", "subscription", "payment"].contains(&payout_type) {
        row.insert(
            "detail".to_owned(),
            Value::String(product[payout_type].to_string()),
        );
        return row;
    }
    for (name, value) in detail {
        match (name.as_str(), value) {
            ("subscription_plans", plans) => {
                row.insert(name.clone(), Value::String(plans.to_string()));
            }
            ("content_resources", Value::Object(members)) => row.extend(members.clone()),
            (_, Value::Object(members)) => {
                let named =
                    |(key, value): (&String, &Value)| (format!("{name}_{key}"), value.clone());
                row.extend(members.iter().map(named));
            }
            _ => {
                row.insert(name.clone(), value.clone());
            }
        }
    }
    row
}

/// Three products with what separators and quotes could trip over.
pub fn three() -> Vec<Value> {
    let mut first = gift_card("A");
    first["name"] = json!("Größe \"1\"; 雪, \\ 'x'");
    first["gift_card"]["content_resources"]["description_md"] = json!("# T\n\n- a\n- b;c,d\n");
    vec![first, payment("B"), subscription("C")]
}

/// The one fault of a report.
pub fn only_fault(report: &Value) -> &Value {
    let faults = report["faults"].as_array().expect("faults");
    assert_eq!(faults.len(), 1, "{report}");
    &faults[0]
}
