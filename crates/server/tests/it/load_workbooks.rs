//! Workbooks (XLSX), as openpyxl and others write them: loaded as they are meant, or refused with sheet and cell.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::csv::{Table, only_fault, three};
use crate::harness::browsed::open;
use crate::harness::{Store, gift_card, skipped, text};
use crate::load_compressed::gzip;
use crate::products::assert_holds;

/// Makes a workbook by `workbooks.py`; `None` if openpyxl isn't there.
pub fn workbook(store: &Store, kind: &str, content: &Value) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("../../target/python/bin/python3");
    if !python.exists() {
        skipped("workbooks of openpyxl: ci/install installs it");
        return None;
    }
    let path = store.path("made.xlsx");
    let mut made = Command::new(python)
        .arg(root.join("tests/workbooks.py"))
        .args([kind.as_ref(), path.as_os_str()])
        .stdin(Stdio::piped())
        .spawn()
        .expect("Python");
    let mut input = made.stdin.take().expect("piped");
    input
        .write_all(content.to_string().as_bytes())
        .expect("content");
    drop(input);
    assert!(made.wait().expect("an end").success());
    Some(path)
}

/// Returns a sheet with products; numbers, booleans and empty cells are such.
fn sheet(products: &[Value]) -> Value {
    let table = Table::of(products);
    let cell = |(name, cell): (&String, &String)| match (name.as_str(), cell.as_str()) {
        (_, "") => Value::Null,
        ("is_orderable", flag) => json!(flag == "true"),
        (name, number) if name.ends_with("_value") || name == "expiry_in_months" => {
            number.parse::<f64>().expect("a number").into()
        }
        (_, text) => text.into(),
    };
    let row = |row: &Vec<String>| Value::Array(table.columns.iter().zip(row).map(cell).collect());
    let rows = std::iter::once(json!(table.columns)).chain(table.rows.iter().map(row));
    json!({"name": "Products", "rows": rows.collect::<Vec<_>>()})
}

/// Returns the index of a column in a sheet's row at `head`.
fn index(sheet: &Value, head: usize, column: &str) -> usize {
    let names = sheet["rows"][head].as_array().expect("a row");
    names
        .iter()
        .position(|name| name == column)
        .expect("a column")
}

fn letter(index: usize) -> String {
    let letter = |index: usize| char::from(b'A' + u8::try_from(index).expect("small"));
    match index {
        ..26 => letter(index).to_string(),
        _ => format!("A{}", letter(index - 26)),
    }
}

#[test]
fn typed_cells_load_as_the_same_catalog() {
    let store = Store::of(&three());
    let mut content = sheet(&three());
    // A title, blank rows and another sheet are no products.
    let rows = content["rows"].as_array_mut().expect("rows");
    rows.insert(0, json!([]));
    rows.insert(0, json!(["Our catalog"]));
    rows.push(json!([]));
    let minimum = index(&content, 2, "denominations_minimum_value");
    // What a spreadsheet computes for ten.
    content["rows"][3][minimum] = json!(9.999_999_999_999_998);
    let second = json!({"name": "Notes", "rows": [["ask Olga"]]});
    let Some(file) = workbook(&store, "sheets", &json!([content, second])) else {
        return;
    };
    assert_holds(&store, &file, "by openpyxl");
    let bytes = std::fs::read(&file).expect("a file");
    assert_holds(&store, &store.write("packed", gzip(&bytes)), "compressed");
    let mut piped = store.command(&["load", "-"]);
    let mut piped = piped.stdin(Stdio::piped()).spawn().expect("a load");
    let mut input = piped.stdin.take().expect("piped");
    input.write_all(&bytes).expect("a pipe");
    drop(input);
    assert!(piped.wait().expect("an end").success());
    assert_eq!(store.revisions(), 1);
}

#[test]
fn cell_that_breaks_a_rule_is_named_with_its_sheet() {
    for (column, cell, rule) in [
        (
            "denominations_minimum_value",
            json!({"date": "2026-05-01"}),
            "spreadsheet_date",
        ),
        (
            "denominations_minimum_value",
            json!({"error": "#REF!"}),
            "spreadsheet_error",
        ),
        ("name", json!({"error": "#N/A"}), "spreadsheet_error"),
        ("name", json!("#VALUE!"), "spreadsheet_error"),
        (
            "customer_service_phone_number",
            json!(4_930_555_010_u64),
            "phone_number",
        ),
        (
            "code",
            json!(1_234_567_890_123_456_u64),
            "spreadsheet_number",
        ),
        ("expiry_in_months", json!(1.5), "whole_number"),
        ("currency", json!("EURO"), "currency"),
        ("subscription_plans", json!("[{"), "json"),
    ] {
        let store = Store::new();
        let mut content = sheet(&three());
        let at = index(&content, 0, column);
        content["rows"][1][at] = cell;
        let Some(file) = workbook(&store, "sheets", &json!([content])) else {
            return;
        };
        let refused = store.run(&["load", "--json", &file.display().to_string()]);
        let report: Value = serde_json::from_slice(&refused.stdout).expect("a report");
        let fault = &report["faults"][0];
        let cell = format!("{}2", letter(at));
        assert_eq!(
            [
                &fault["rule"],
                &fault["column"],
                &fault["sheet"],
                &fault["cell"]
            ],
            [rule, column, "Products", &cell],
            "{report}"
        );
        let refused = store.run(&["load", &file.display().to_string()]);
        let said = text(&refused.stderr);
        assert!(said.contains(&format!("Products!{cell}")), "{said}");
    }
}

#[test]
fn date_in_a_column_of_words_loads_as_iso() {
    let store = Store::new();
    let mut content = sheet(&three());
    let at = index(&content, 0, "expiry_date_policy");
    content["rows"][1][at] = json!({"date": "2027-12-31"});
    let Some(file) = workbook(&store, "sheets", &json!([content])) else {
        return;
    };
    store.load(&file);
    let shown = store.json(&["show", "A"]);
    assert_eq!(shown["gift_card"]["expiry"]["date_policy"], "2027-12-31");
}

#[test]
fn merged_cells_and_formulas_without_values_are_refused() {
    let store = Store::new();
    let plain = sheet(&three());
    let mut merged = plain.clone();
    merged["merged"] = json!(["C2:C3"]);
    let mut formula = plain;
    formula["rows"][1][0] = json!({"formula": "=\"a\"&\"b\""});
    for (content, rule, cell) in [
        (merged, "merged_cells", "C2:C3"),
        (formula, "formula_without_value", "A2"),
    ] {
        let Some(file) = workbook(&store, "sheets", &json!([content])) else {
            return;
        };
        for options in [&["--on-error", "reject"], &["--on-error", "skip"]] {
            let file = file.display().to_string();
            let refused = store.run(&[&["load", "--json", &file], &options[..]].concat());
            let report: Value = serde_json::from_slice(&refused.stdout).expect("a report");
            let fault = only_fault(&report);
            assert_eq!([&fault["rule"], &fault["cell"]], [rule, cell], "{report}");
            assert_eq!(refused.status.code(), Some(3));
        }
    }
}

#[test]
fn hidden_rows_load_with_one_warning() {
    let store = Store::of(&three());
    let mut content = sheet(&three());
    content["hidden"] = json!([2, 4]);
    let Some(file) = workbook(&store, "sheets", &json!([content])) else {
        return;
    };
    let report = store.load(&file);
    let warned = &report["warnings"]["hidden_rows"];
    assert_eq!(
        (&report["revision"], &warned["count"]),
        (&Value::Null, &json!(1)),
        "{report}"
    );
    let message = warned["examples"][0]["message"]
        .as_str()
        .expect("a message");
    assert!(
        message.starts_with("loaded like others: 2, the first is row 2"),
        "{message}"
    );
}

#[test]
fn sheet_is_chosen_by_its_name() {
    let store = Store::of(&three());
    let notes = json!({"name": "Notes", "rows": [["ask Olga"]]});
    let content = json!([notes, sheet(&three())]);
    let Some(file) = workbook(&store, "sheets", &content) else {
        return;
    };
    let file = file.display().to_string();
    store.ok(&["load", "--sheet", "Products", &file]);
    assert_eq!(store.revisions(), 1);
    for (options, rule, help) in [
        (&[][..], "header", "`code` among them"),
        (
            &["--sheet", "Produkte"],
            "sheet",
            "the workbook has `Notes`, `Products`",
        ),
    ] {
        let refused = store.run(&[&["load", "--json", &file], options].concat());
        let report: Value = serde_json::from_slice(&refused.stdout).expect("a report");
        let fault = only_fault(&report);
        assert_eq!(fault["rule"], rule, "{report}");
        assert!(
            fault["message"].as_str().expect("a message").contains(help),
            "{report}"
        );
    }
    let lines = store.write("a.ndjson", gift_card("A").to_string());
    let refused = store.run(&["load", "--sheet", "X", &lines.display().to_string()]);
    assert!(text(&refused.stderr).contains("as --sheet names a sheet"));
}

#[test]
fn formulas_load_by_their_stored_values() {
    let store = Store::new();
    let head = "<?xml version=\"1.0\"?>";
    let cells = |row: &[&str]| {
        let cells = row.iter().map(|value| match *value {
            "LIVE" => "<c t=\"str\"><f>UPPER(\"live\")</f><v>LIVE</v></c>".to_owned(),
            "10" => "<c><f>5+5</f><v>9.999999999999998</v></c>".to_owned(),
            "true" => "<c t=\"b\"><f>TRUE()</f><v>1</v></c>".to_owned(),
            "" => "<c t=\"str\"><f>\"\"</f><v></v></c>".to_owned(),
            value => format!(
                "<c t=\"inlineStr\"><is><r><t>{}</t></r></is></c>",
                value.replace('&', "&amp;").replace('<', "&lt;")
            ),
        });
        format!("<row>{}</row>", cells.collect::<String>())
    };
    let table = Table::of(&[gift_card("A")]);
    let rows = std::iter::once(&table.columns).chain(&table.rows);
    let rows = rows.map(|row| cells(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    let types = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let parts = json!({
        "_rels/.rels": [format!("{head}<Relationships><Relationship Id=\"a\" Type=\"{types}/officeDocument\" \
            Target=\"xl/workbook.xml\"/></Relationships>")],
        "xl/_rels/workbook.xml.rels": [format!("{head}<Relationships><Relationship Id=\"b\" Type=\"{types}/worksheet\" \
            Target=\"worksheets/s.xml\"/></Relationships>")],
        "xl/workbook.xml": [format!("{head}<workbook xmlns:r=\"{types}\"><sheets><sheet name=\"S\" sheetId=\"1\" \
            r:id=\"b\"/></sheets></workbook>")],
        "xl/worksheets/s.xml": [format!("{head}<worksheet><sheetData>{}</sheetData></worksheet>",
            rows.collect::<String>())],
    });
    let Some(file) = workbook(&store, "parts", &parts) else {
        return;
    };
    store.load(&file);
    assert_holds(
        &store,
        &store.write("a.ndjson", gift_card("A").to_string()),
        "as JSON",
    );
}

#[test]
fn other_workbooks_are_refused_with_a_remedy() {
    let store = Store::new();
    let old = [&b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"[..], &[0; 600]].concat();
    let mut inputs = vec![(old, "an XLS file, or an encrypted one")];
    for (name, found) in [
        ("content.xml", "an ODS file"),
        ("xl/workbook.bin", "an XLSB file"),
        ("readme.txt", "can't be read"),
    ] {
        let Some(file) = workbook(&store, "parts", &json!({name: ["x"]})) else {
            return;
        };
        inputs.push((std::fs::read(file).expect("a file"), found));
    }
    inputs.push((b"PK\x03\x04 and nothing more".to_vec(), "damaged"));
    for (bytes, found) in inputs {
        let (exit, report) = store.try_load(bytes);
        let fault = only_fault(&report);
        assert_eq!((exit, &fault["rule"]), (3, &json!("workbook")), "{report}");
        let message = fault["message"].as_str().expect("a message");
        assert!(
            message.contains(found) && message.contains("XLSX"),
            "{message}"
        );
    }
}

#[test]
fn template_and_export_are_workbooks_that_load() {
    let store = Store::new();
    let template = store.run(&["load", "--template", "xlsx"]).stdout;
    let (exit, report) = store.try_load(&template);
    let found = (exit, &report["records"], &report["warnings"]);
    assert_eq!(found, (0, &json!(4), &json!({})), "{report}");
    let lines = store.ok(&["export"]);
    let browsed = open(store, &[]);
    let ask = |target| browsed.ask_as(Some("127.0.0.1"), "GET", target);
    assert!(text(&ask("/catalog").body).contains("href=\"/export\""));
    let exported = ask("/export");
    let copy = Store::new();
    copy.load(copy.write("exported", &exported.body));
    assert_eq!(copy.ok(&["export"]), lines);
}

#[test]
fn value_that_no_cell_holds_refuses_the_export() {
    for (value, found) in [
        (json!("x".repeat(32_768)), "32768 characters"),
        (json!("a\u{b}b"), "control character U+000B"),
    ] {
        let mut product = gift_card("A");
        product["gift_card"]["content_resources"]["description_md"] = value;
        let refused = Store::of(&[product]).run(&["export", "--format", "xlsx"]);
        let said = text(&refused.stderr);
        assert_eq!(
            (refused.status.code(), refused.stdout.len()),
            (Some(1), 0),
            "{said}"
        );
        for part in [
            found,
            "`description_md` of the product A",
            "--format ndjson",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
