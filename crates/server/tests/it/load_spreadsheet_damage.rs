//! Values that spreadsheets change silently: refused, or warned of with the cell and the likely cause.

use serde_json::{Value, json};

use crate::csv::{Table, only_fault};
use crate::harness::{Store, gift_card};

/// Loads a gift card as a table with one cell changed; returns the exit code and the report.
fn load(separator: char, column: &str, cell: &str) -> (i32, Value) {
    let mut table = Table::of(&[gift_card("A")]);
    table.set(0, column, cell);
    Store::new().try_load(table.to_csv(separator, "\r\n"))
}

#[test]
fn shortened_phone_number_is_refused() {
    for cell in ["+4.41E+11", "4,93E+11", "4.93E+11", "+441e9"] {
        let (exit, report) = load(';', "customer_service_phone_number", cell);
        let fault = only_fault(&report);
        assert_eq!(
            (exit, &fault["rule"]),
            (3, &json!("phone_number")),
            "{report}"
        );
        assert_eq!(fault["column"], "customer_service_phone_number");
        let message = fault["message"].as_str().expect("a message");
        assert!(message.contains("format its column as text"), "{message}");
    }
    let mut product = gift_card("A");
    product["customer_service"]["phone_number"] = json!("+4.41E+11");
    assert_eq!(Store::new().try_load(product.to_string()).0, 3);
}

#[test]
fn thousands_separators_are_refused() {
    for column in [
        "denominations_minimum_value",
        "denominations_maximum_value",
        "denominations_available_list",
    ] {
        let (exit, report) = load(';', column, "1.000");
        let faults = report["faults"].as_array().expect("faults").iter();
        let mut rules = faults.map(|fault| (&fault["rule"], &fault["column"]));
        assert!(
            rules.any(|found| found == (&json!("thousands_separator"), &json!(column))),
            "{report}"
        );
        assert_eq!(exit, 3, "{report}");
    }
    let column = "denominations_maximum_value";
    for (separator, cell, is_warned) in [
        (',', "50.500", true),
        ('\t', "50.500", true),
        (',', "50.50", false),
        (';', "50.50", false),
        (';', "050.500", false),
    ] {
        let (exit, report) = load(separator, column, cell);
        assert_eq!(exit, 0, "{report}");
        let warned = &report["warnings"]["thousands_separator"]["examples"][0]["column"];
        let expected = if is_warned {
            json!(column)
        } else {
            Value::Null
        };
        assert_eq!(*warned, expected, "{cell}: {report}");
    }
    // In JSON a point is a decimal point.
    let mut product = gift_card("A");
    product["gift_card"]["denominations"]["minimum_value"] = json!("1.000");
    let (exit, report) = Store::new().try_load(product.to_string());
    assert_eq!((exit, &report["warnings"]), (0, &json!({})), "{report}");
}

#[test]
fn wrongly_separated_items_are_a_warning() {
    for (cell, items) in [
        ("fashion, home", "`fashion|home`"),
        ("fashion;home", "`fashion|home`"),
        ("fashion\nhome", "`fashion|home`"),
    ] {
        let (exit, report) = load(',', "categories", cell);
        let warning = &report["warnings"]["list_separator"]["examples"][0];
        assert_eq!(
            (exit, &warning["column"]),
            (0, &json!("categories")),
            "{report}"
        );
        let message = warning["message"].as_str().expect("a message");
        assert!(message.contains(items), "{message}");
    }
    for cell in ["fashion|food, drink", "[\"food, drink\"]", "fashion & home"] {
        let (exit, report) = load(',', "categories", cell);
        assert_eq!(
            (exit, &report["warnings"]),
            (0, &json!({})),
            "{cell}: {report}"
        );
    }
    let mut product = gift_card("A");
    product["categories"] = json!(["food, drink"]);
    let csv = Store::of(&[product]).ok(&["export", "--format", "csv"]);
    let (exit, report) = Store::new().try_load(csv);
    assert_eq!((exit, &report["warnings"]), (0, &json!({})), "{report}");
    for cell in ["DE, AT", "DE AT", "DE/AT", "DE;AT"] {
        let (exit, report) = load(',', "countries_redeemable_in", cell);
        let fault = only_fault(&report);
        let message = fault["message"].as_str().expect("a message");
        assert_eq!((exit, &fault["rule"]), (3, &json!("country")));
        assert!(
            message.contains("`|` separates items: `DE|AT`"),
            "{message}"
        );
    }
    let (_, report) = load(',', "countries_redeemable_in", "United Kingdom");
    let message = only_fault(&report)["message"].as_str().expect("a message");
    assert!(!message.contains("separates"), "{message}");
    let (_, report) = load(',', "denominations_available_list", "10, 20, 50");
    let message = only_fault(&report)["message"].as_str().expect("a message");
    assert!(message.contains("`10|20|50`"), "{message}");
}

#[test]
fn blank_text_is_a_warning() {
    let (exit, report) = load(',', "description_md", " \u{a0}");
    let warning = &report["warnings"]["text_blank"]["examples"][0];
    assert_eq!(
        (exit, &warning["column"]),
        (0, &json!("description_md")),
        "{report}"
    );
}
