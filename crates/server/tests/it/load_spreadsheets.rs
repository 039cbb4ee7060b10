//! CSV byte for byte as spreadsheets save it: loaded as it was meant, or refused with the cell named.

use serde_json::{Value, json};

use crate::csv::{Table, only_fault, three};
use crate::harness::{Store, gift_card, text};
use crate::products::{assert_holds, payment, served};

/// The columns of `SAVED`.
const COLUMNS: [&str; 17] = [
    "name",
    "code",
    "currency",
    "state",
    "is_orderable",
    "payout_type",
    "categories",
    "countries_redeemable_in",
    "discount_multiplier",
    "expiry_in_months",
    "expiry_type",
    "redeemable_at",
    "e_code_usage_type",
    "denominations_type",
    "denominations_minimum_value",
    "denominations_maximum_value",
    "description_md",
];

/// A gift card and a payment, as cells.
const SAVED: [[&str; 17]; 2] = [
    [
        "Größe \"1\"; 雪, 5%",
        "001",
        "EUR",
        "LIVE",
        "TRUE",
        "gift_card",
        "fashion|home",
        "DE|AT",
        "0.05",
        "12",
        "from-issue-date",
        "all",
        "url-only",
        "open",
        "10",
        "50.5",
        "# T\n\n- a, b; c\n\"q\"",
    ],
    [
        "Pay", "P-2", "EUR", "LIVE", "FALSE", "payment", "", "DE", "0", "", "", "", "", "", "1",
        "500", "",
    ],
];

/// The same two as records.
fn meant() -> Vec<Value> {
    let mut card = gift_card("001");
    card["name"] = json!("Größe \"1\"; 雪, 5%");
    card["categories"] = json!(["fashion", "home"]);
    card["countries_redeemable_in"] = json!(["DE", "AT"]);
    card["gift_card"]["e_code_usage_type"] = json!("url-only");
    card["gift_card"]["denominations"] =
        json!({"type": "open", "minimum_value": "10.00", "maximum_value": "50.50"});
    card["gift_card"]["content_resources"] = json!({"description_md": "# T\n\n- a, b; c\n\"q\""});
    let mut pay = payment("P-2");
    pay["name"] = json!("Pay");
    pay["is_orderable"] = json!(false);
    pay["categories"] = json!([]);
    pay["discount_multiplier"] = json!("0");
    pay["payment"] = json!({
        "denominations": {"minimum_value": "1.00", "maximum_value": "500.00"},
        "content_resources": {},
    });
    // A column that isn't there.
    card["availability"] = Value::Null;
    pay["availability"] = Value::Null;
    vec![card, pay]
}

/// Format in which a spreadsheet saves.
struct Spreadsheet {
    name: &'static str,
    start: &'static str,
    separator: &'static str,
    line_end: &'static str,
    /// All texts, not only those that need it.
    quotes_all: bool,
    /// True if the last line ends.
    is_ended: bool,
}

const fn saves(
    name: &'static str,
    start: &'static str,
    [separator, line_end]: [&'static str; 2],
    quotes_all: bool,
    is_ended: bool,
) -> Spreadsheet {
    Spreadsheet {
        name,
        start,
        separator,
        line_end,
        quotes_all,
        is_ended,
    }
}

const SPREADSHEETS: [Spreadsheet; 8] = [
    saves("Excel", "\u{feff}", [",", "\r\n"], false, true),
    saves("Excel, German", "\u{feff}", [";", "\r\n"], false, true),
    saves("Excel, Macintosh", "\u{feff}", [";", "\r"], false, true),
    saves("LibreOffice", "", [",", "\n"], false, true),
    saves("LibreOffice, all texts quoted", "", [";", "\n"], true, true),
    saves("LibreOffice, tabs", "", ["\t", "\n"], true, true),
    saves("Google", "", [",", "\r\n"], false, false),
    saves("Numbers", "", [";", "\r\n"], false, false),
];

impl Spreadsheet {
    /// The file of these rows; the first holds the names of the columns.
    fn save(&self, rows: &[Vec<&str>]) -> String {
        let line = |row: &Vec<&str>| {
            let cells: Vec<String> = row.iter().map(|cell| self.cell(cell)).collect();
            cells.join(self.separator)
        };
        let lines: Vec<String> = rows.iter().map(line).collect();
        let end = if self.is_ended { self.line_end } else { "" };
        format!("{}{}{end}", self.start, lines.join(self.line_end))
    }

    fn cell(&self, cell: &str) -> String {
        let is_text = !cell.is_empty() && cell.parse::<f64>().is_err();
        let needs = cell.contains(['"', '\n']) || cell.contains(self.separator);
        match needs || (self.quotes_all && is_text) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.to_owned(),
        }
    }
}

/// The names of the columns, then the rows, each with more cells behind it.
fn rows<'c>(blank: &[&'c str]) -> Vec<Vec<&'c str>> {
    let named = |row: &[&'c str]| [row, blank].concat();
    std::iter::once(&COLUMNS)
        .chain(&SAVED)
        .map(|row| named(row))
        .collect()
}

#[test]
fn spreadsheet_formats_load_as_shown() {
    let store = Store::of(&meant());
    let width = COLUMNS.len() + 2;
    for spreadsheet in &SPREADSHEETS {
        let empty_row = || vec![""; width];
        let mut around = rows(&["", ""]);
        around.insert(0, empty_row());
        around.insert(0, empty_row());
        around.insert(4, empty_row());
        around.extend([empty_row(), empty_row()]);
        // Blanks that a web page brought along: spreadsheets don't show them.
        let mut unseen = rows(&["\u{a0}", " "]);
        unseen.push(vec!["\u{a0}"; width]);
        // Excel leaves blank cells at a row's end out, now and then.
        let mut ragged = rows(&["", ""]);
        ragged[2].truncate(COLUMNS.len());
        for (what, rows) in [
            ("plain", rows(&[])),
            ("blank columns", rows(&["", "", ""])),
            ("blank rows and columns", around),
            ("blanks that aren't shown", unseen),
            ("ragged", ragged),
        ] {
            let file = store.write("saved.csv", spreadsheet.save(&rows));
            assert_holds(&store, &file, &format!("{}: {what}", spreadsheet.name));
        }
    }
}

/// Cells mangled by spreadsheets: the column, the cell, the rule, and words that help.
const MANGLED: [(&str, &str, &str, &str); 25] = [
    (
        "denominations_minimum_value",
        "25,50",
        "amount",
        "with a point",
    ),
    (
        "denominations_minimum_value",
        "1.234,50",
        "amount",
        "without comma",
    ),
    (
        "denominations_minimum_value",
        "1,234.50",
        "amount",
        "without comma",
    ),
    (
        "denominations_minimum_value",
        "1\u{a0}234.50",
        "amount",
        "`25.50`",
    ),
    (
        "denominations_minimum_value",
        "1.5E+02",
        "amount",
        "exponent",
    ),
    (
        "denominations_minimum_value",
        "25.50 €",
        "amount",
        "`25.50`",
    ),
    (
        "denominations_maximum_value",
        "01. Mai",
        "amount",
        "`25.50`",
    ),
    (
        "denominations_maximum_value",
        "2026-05-01",
        "amount",
        "`25.50`",
    ),
    (
        "denominations_maximum_value",
        "#NAME?",
        "spreadsheet_error",
        "error of a formula",
    ),
    (
        "discount_multiplier",
        "0,05",
        "discount_multiplier",
        "with a point",
    ),
    (
        "discount_multiplier",
        "5,00%",
        "discount_multiplier",
        "percent sign",
    ),
    (
        "discount_multiplier",
        "5.0E-02",
        "discount_multiplier",
        "exponent",
    ),
    ("is_orderable", "WAHR", "type", "true or false"),
    ("is_orderable", "FALSCH", "type", "true or false"),
    ("is_orderable", "1", "type", "true or false"),
    ("expiry_in_months", "12,0", "type", "`12`"),
    ("expiry_in_months", "012", "type", "`12`"),
    ("expiry_in_months", "12.0", "whole_number", "whole number"),
    (
        "expiry_in_months",
        "1.2E+01",
        "whole_number",
        "whole number",
    ),
    ("code", "1.23457E+12", "code_pattern", "A-Z"),
    ("code", "01. Feb", "code_pattern", "A-Z"),
    ("countries_redeemable_in", "DE, AT", "country", "ISO 3166-1"),
    (
        "customer_service_phone_number",
        "4930555010",
        "phone_number",
        "plus sign",
    ),
    (
        "customer_service_phone_number",
        "4.93056E+09",
        "phone_number",
        "plus sign",
    ),
    (
        "customer_service_website_url",
        "#REF!",
        "spreadsheet_error",
        "error of a formula",
    ),
];

#[test]
fn mangled_cells_are_refused_by_name() {
    let excel = &SPREADSHEETS[1];
    let store = Store::new();
    for (column, cell, rule, help) in MANGLED {
        let mut rows = rows(&[]);
        let mut columns = COLUMNS.to_vec();
        if !columns.contains(&column) {
            columns.push(column);
            rows.iter_mut().for_each(|row| row.push(""));
            rows[0].clone_from(&columns);
        }
        // Below a row whose text has four lines.
        rows.push(rows[1].clone());
        let at = columns.iter().position(|name| *name == column);
        rows[3][1] = "LAST";
        rows[3][at.expect("a column")] = cell;
        let (exit, report) = store.try_load(excel.save(&rows));
        assert_eq!(exit, 3, "{column} {cell}: {report}");
        let fault = only_fault(&report);
        let found = [&fault["rule"], &fault["column"]];
        assert_eq!(found, [rule, column], "{cell}: {report}");
        let place = (&fault["line"], &fault["row"]);
        assert_eq!(place, (&json!(7), &json!(4)), "{report}");
        let value = fault["value"].as_str().expect("a value");
        let item = cell.split('|').next().expect("an item");
        assert!(value.trim_matches('"') == item, "{report}");
        let message = fault["message"].as_str().expect("a message");
        assert!(message.contains(help), "{cell}: {message}");
        let said = store.run(&["load", &store.path("tried.json").display().to_string()]);
        let place = format!("tried.json:7 (row 4), column {column}");
        assert!(text(&said.stderr).contains(&place), "{said:?}");
    }
}

#[test]
fn equivalent_cells_are_accepted() {
    for (column, cell, warned) in [
        ("is_orderable", "True", false),
        ("is_orderable", "true ", false),
        ("currency", "EUR ", true),
        ("state", "\u{a0}LIVE", true),
        ("name", "Größe \"1\"; 雪, 5%\u{a0} ", true),
        ("code", " 001", true),
        ("expiry_in_months", "12 ", false),
        ("denominations_minimum_value", "010.00", false),
        ("denominations_minimum_value", "10.0 ", true),
        ("denominations_maximum_value", "50.500", true),
        ("discount_multiplier", "0.050", false),
        ("countries_redeemable_in", "DE | AT", true),
        ("categories", "fashion|home|home", true),
    ] {
        let store = Store::new();
        let mut rows = rows(&[]);
        let at = COLUMNS.iter().position(|name| *name == column);
        rows[1][at.expect("a column")] = cell;
        let (exit, report) = store.try_load(SPREADSHEETS[0].save(&rows));
        assert_eq!(exit, 0, "{column} {cell:?}: {report}");
        let warnings = report["warnings"].as_object().expect("warnings");
        assert_eq!(!warnings.is_empty(), warned, "{column} {cell:?}: {report}");
        for warning in warnings.values() {
            assert_eq!(warning["examples"][0]["column"], column, "{report}");
        }
        // Discounts are kept as they were written, and shown alike.
        let meant = Store::of(&meant());
        for target in ["/v2/product", "/v2/product/001?content=md"] {
            assert_eq!(served(&store, target), served(&meant, target), "{column}");
        }
    }
}

#[test]
fn title_above_the_columns_is_refused() {
    let mut table = rows(&[]);
    table.insert(0, [&["Our catalog"][..], &[""; 16]].concat());
    let (exit, report) = Store::new().try_load(SPREADSHEETS[1].save(&table));
    let fault = only_fault(&report);
    assert_eq!((exit, &fault["rule"]), (3, &json!("json")), "{report}");
    let message = fault["message"].as_str().expect("a message");
    assert!(message.contains("first line names the column `code`"));
    assert!(
        fault["value"]
            .as_str()
            .expect("a value")
            .starts_with("Our catalog;;")
    );
}

#[test]
fn cell_in_a_column_without_a_name_is_named_by_its_letters() {
    let mut table = Table::of(&three()[..1]);
    let letter = char::from(b'A' + u8::try_from(table.columns.len() - 26).expect("AA to AZ"));
    table.columns.push("\u{a0}".to_owned());
    table.rows[0].push("checked by Olga".to_owned());
    let (exit, report) = Store::new().try_load(table.to_csv(';', "\r\n"));
    let fault = only_fault(&report);
    let found = [&fault["rule"], &fault["column"], &fault["value"]];
    assert_eq!(found, ["cells", &format!("A{letter}"), "checked by Olga"]);
    assert_eq!((exit, &fault["code"]), (3, &json!("A")), "{report}");
}
