//! CSV: what spreadsheets write is the catalog that it means, or is refused with the cell named.

use serde_json::{Value, json};

use crate::csv::{Table, only_fault, three};
use crate::harness::{SAMPLE, Store};
use crate::products::{assert_holds, served};

#[test]
fn sample_catalog_as_csv_is_the_same_catalog() {
    let lines = std::fs::read_to_string(SAMPLE).expect("the sample");
    let products = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let products: Vec<Value> = products
        .filter(|product: &Value| product["payout_type"] != "prepaid_card")
        .collect();
    let by_lines = Store::of(&products);
    // A column that any product has is there for all: an empty cell of a text is no text.
    let by_rows = Store::new();
    let table = Table::of(&products);
    let file = by_rows.write("catalog.csv", table.to_csv(';', "\r\n"));
    let report = by_rows.load(&file);
    assert_eq!(report["records"], json!(products.len()), "{report}");
    for target in [
        "/v2/product?limit=500",
        "/v2/product/categories",
        "/v2/product/countries",
    ] {
        assert_eq!(
            served(&by_rows, target),
            served(&by_lines, target),
            "{target}"
        );
    }
    for product in products.iter().step_by(9) {
        let code = product["code"].as_str().expect("a code");
        let target = format!("/v2/product/{code}?content=md");
        assert_eq!(
            served(&by_rows, &target),
            served(&by_lines, &target),
            "{target}"
        );
    }
    assert_holds(&by_lines, &file, "the same records in another format");
}

#[test]
fn template_loads_without_faults_or_warnings() {
    let store = Store::new();
    let template = store.ok(&["load", "--template", "csv"]);
    let (exit, report) = store.try_load(&template);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(
        (&report["records"], &report["warnings"]),
        (&json!(4), &json!({}))
    );
    let both = store.run(&["load", "--template", "csv", "more.csv"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn every_dialect_of_a_spreadsheet_is_the_same_catalog() {
    let store = Store::of(&three());
    let table = Table::of(&three());
    for separator in [',', ';', '\t'] {
        for line_end in ["\n", "\r\n"] {
            let plain = table.to_csv(separator, line_end);
            let blank: String = separator.to_string().repeat(table.columns.len() + 3);
            let mut wide = Table::of(&three());
            for row in std::iter::once(&mut wide.columns).chain(&mut wide.rows) {
                row.extend([String::new(), String::new()]);
            }
            let wide = wide.to_csv(separator, line_end);
            let capital = plain.replace("true", "TRUE").replacen("code", "Code", 1);
            let spellings = [
                plain.trim_end().to_owned(),
                format!("\u{feff}{plain}"),
                format!("\u{feff}{line_end}{line_end}{plain}"),
                format!("{line_end}{line_end}{plain}{line_end}"),
                format!("{plain}{blank}{line_end}  {line_end}{blank}"),
                wide,
                capital,
            ];
            for (index, content) in spellings.iter().enumerate() {
                let file = store.write("dialect", content);
                assert_holds(
                    &store,
                    &file,
                    &format!("{separator:?} {line_end:?} {index}"),
                );
            }
        }
    }
}

#[test]
fn cell_that_breaks_a_rule_is_named() {
    for (column, cell, rule, pointer) in [
        ("currency", "EURO", "currency", "/currency"),
        ("is_orderable", "WAHR", "type", "/is_orderable"),
        (
            "countries_redeemable_in",
            "DE|XX",
            "country",
            "/countries_redeemable_in/1",
        ),
        (
            "expiry_in_months",
            "12 months",
            "type",
            "/gift_card/expiry/in_months",
        ),
        ("expiry_type", "", "required", "/gift_card/expiry/type"),
        (
            "denominations_available_list",
            "10,00|20.00",
            "amount",
            "/gift_card/denominations/available_list/0",
        ),
        (
            "customer_service_website_url",
            "javascript:x",
            "url",
            "/customer_service/website_url",
        ),
        (
            "description_markdown_url",
            "x",
            "url",
            "/gift_card/content_resources/description_markdown_url",
        ),
        (
            "detail",
            "{\"website_url\":\"x\"}",
            "detail_only",
            "/gift_card",
        ),
        ("categories", "[\"a|b\",", "json", "/categories"),
    ] {
        let store = Store::new();
        let mut table = Table::of(&three());
        table.rows.swap(0, 1);
        table.set(1, "name", "two\nlines");
        table.set(0, "name", "three\r\nlines\r\nof it");
        table.set(1, column, cell);
        let (exit, report) = store.try_load(table.to_csv(',', "\r\n"));
        assert_eq!(exit, 3, "{column} {cell}: {report}");
        let fault = only_fault(&report);
        let found = [
            &fault["rule"],
            &fault["column"],
            &fault["pointer"],
            &fault["code"],
        ];
        assert_eq!(found, [rule, column, pointer, "A"], "{cell}: {report}");
        assert_eq!(
            (&fault["line"], &fault["row"]),
            (&json!(5), &json!(3)),
            "{report}"
        );
        let refused = store.run(&["load", &store.path("tried.json").display().to_string()]);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        let place = format!("tried.json:5 (row 3), column {column}");
        assert!(told.contains(&place), "{told}");
    }
}

/// A table whose second row is spoilt, as text.
fn spoilt(row: &str) -> String {
    format!("{}{row}\n", Table::of(&three()[..1]).to_csv(';', "\n"))
}

#[test]
fn malformed_row_is_refused_with_its_cell() {
    let width = Table::of(&three()[..1]).columns.len();
    let cells = |count: usize| vec!["x"; count].join(";");
    let letters = |index: usize| match index {
        ..26 => String::from(char::from(b'A' + u8::try_from(index).expect("small"))),
        _ => format!(
            "A{}",
            char::from(b'A' + u8::try_from(index - 26).expect("small"))
        ),
    };
    for (row, rule, column) in [
        (cells(width + 1), "cells", letters(width)),
        (cells(2), "cells", "currency".to_owned()),
        (format!("\"x{}", cells(width)), "quotes", "name".to_owned()),
        (
            format!("\"x\"y;{}", cells(width - 1)),
            "quotes",
            "name".to_owned(),
        ),
    ] {
        let (exit, report) = Store::new().try_load(spoilt(&row));
        assert_eq!(exit, 3, "{row}");
        let fault = &report["faults"][0];
        assert_eq!(
            [&fault["rule"], &fault["column"]],
            [rule, &column],
            "{row}: {report}"
        );
        assert_eq!(
            (&fault["line"], &fault["row"]),
            (&json!(7), &json!(3)),
            "{report}"
        );
    }
}

#[test]
fn line_that_names_the_separator_is_refused_with_advice() {
    let table = Table::of(&three()).to_csv(';', "\n");
    for start in ["sep=;\n", "\u{feff}Sep=;\r\n", "sep=|\n"] {
        let (exit, report) = Store::new().try_load(format!("{start}{table}"));
        let fault = only_fault(&report);
        assert_eq!((exit, &fault["rule"]), (3, &json!("json")), "{start:?}");
        let message = fault["message"].as_str().expect("a message");
        assert!(message.contains("without a line `sep=`"), "{message}");
    }
    // A byte-order mark is no line.
    let (_, report) = Store::new().try_load(format!("\u{feff}{}", spoilt("x;y")));
    let fault = only_fault(&report);
    let place = (&fault["rule"], &fault["line"], &fault["row"]);
    assert_eq!(place, (&json!("cells"), &json!(7), &json!(3)), "{report}");
}

#[test]
fn other_encodings_are_refused_with_a_remedy() {
    let mut table = Table::of(&three()[..1]);
    table.set(0, "name", "Gr@e");
    let mut latin: Vec<u8> = table.to_csv(';', "\n").into_bytes();
    let position = latin.iter().position(|byte| *byte == b'@').expect("there");
    latin[position] = 0xf6;
    let utf16: Vec<u8> = format!("\u{feff}{}", table.to_csv('\t', "\n"))
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (content, column) in [(latin, json!("name")), (utf16, Value::Null)] {
        let (exit, report) = Store::new().try_load(content);
        let fault = only_fault(&report);
        assert_eq!((exit, &fault["rule"]), (3, &json!("utf8")), "{report}");
        assert_eq!(fault["column"], column, "{report}");
        assert!(
            fault["message"]
                .as_str()
                .expect("a text")
                .contains("CSV UTF-8")
        );
    }
}

#[test]
fn columns_that_are_not_known_are_warned_of_once() {
    let store = Store::new();
    let mut table = Table::of(&three());
    for row in 0..3 {
        table.set(row, "Remarks", "x");
        table.set(row, "curency", "EUR");
    }
    let (exit, report) = store.try_load(table.to_csv(';', "\n"));
    assert_eq!(exit, 0, "{report}");
    let warned = &report["warnings"]["unknown_column"];
    assert_eq!(warned["count"], 2, "{report}");
    assert_eq!(warned["examples"][0]["column"], "Remarks");
    let file = store.write("feed.csv", table.to_csv(';', "\n"));
    let file = file.display().to_string();
    let said = store.ok(&["load", "--dry-run", &file]);
    let warning =
        format!("warning: unknown column Remarks (ignored: unknown column, first at {file})");
    assert!(said.contains(&warning), "{said}");
    let message = warned["examples"][1]["message"].as_str().expect("a text");
    assert!(message.ends_with("did you mean `currency`?"), "{message}");

    table.columns[0] = "code".to_owned();
    let (exit, report) = store.try_load(table.to_csv(';', "\n"));
    let fault = only_fault(&report);
    assert_eq!(
        (exit, &fault["rule"]),
        (3, &json!("column_twice")),
        "{report}"
    );
    assert_eq!(fault["line"], 1);
}

#[test]
fn table_without_rows_never_empties_the_catalog() {
    let store = Store::of(&three());
    for content in ["code\n", "code;remarks\n;\n\n", "\u{feff}name,code"] {
        let (exit, report) = store.try_load(content);
        assert_eq!((exit, &only_fault(&report)["rule"]), (3, &json!("empty")));
    }
    for (content, rule) in [
        ("name;currency\nx;EUR\n", "json"),
        ("PK\u{3}\u{4}", "workbook"),
        ("<html>", "json"),
    ] {
        let (exit, report) = store.try_load(content);
        assert_eq!((exit, &only_fault(&report)["rule"]), (3, &json!(rule)));
    }
}

#[test]
fn quote_that_never_closes_names_where_it_opens() {
    let mut content = Table::of(&three()).to_csv(';', "\n");
    content.push_str("\"open;x;y\n");
    content.push_str(&"more;of;it\n".repeat(1000));
    let (exit, report) = Store::new().try_load(content);
    let fault = &report["faults"][0];
    assert_eq!(
        (exit, &fault["rule"], &fault["column"]),
        (3, &json!("quotes"), &json!("name"))
    );
    // The first product's text has four lines.
    assert_eq!(
        (&fault["line"], &fault["row"]),
        (&json!(9), &json!(5)),
        "{report}"
    );
}
