//! Workbooks that are larger than they look, and large ones: refused or loaded in little memory.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::csv::Table;
use crate::harness::{ALLOW_ALL, Store, gift_card};
use crate::load_workbooks::workbook;

/// Memory that a workbook may take beside what a small load takes, in KiB.
const MAX_MORE: u64 = 64 << 10;

/// Loads a file; returns the rule of the first fault, and the greatest memory of the program in KiB.
fn peak(store: &Store, file: &Path) -> (Value, u64) {
    let script = "import resource, subprocess, sys\n\
        subprocess.run(sys.argv[1:])\n\
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let file = file.display().to_string();
    let load = store.command(&[&["load", "--json", "--dry-run", &file], &ALLOW_ALL[..]].concat());
    let mut measured = Command::new("python3");
    measured.args(["-c", script]).arg(load.get_program());
    measured.args(load.get_args());
    for (name, value) in load.get_envs() {
        measured.env(name, value.unwrap_or_default());
    }
    let output = measured.output().expect("Python");
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    let (report, peak) = printed.trim_end().rsplit_once('\n').expect("two parts");
    let report: Value = serde_json::from_str(report).expect("a report");
    (
        report["faults"][0]["rule"].clone(),
        peak.parse().expect("a number"),
    )
}

/// Text, and how often it is repeated.
type Piece<'p> = (&'p str, usize);

const START: Piece<'_> = (
    "<worksheet><sheetData><row><c t=\"str\"><v>code</v></c></row>",
    1,
);
const END: Piece<'_> = ("</sheetData></worksheet>", 1);

/// Parts of a workbook with one sheet, one of which is replaced.
fn parts(replaced: &str, content: &[Piece<'_>]) -> Value {
    let types = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relation = |kind: &str, target: &str| {
        let relation = format!("Id=\"a\" Type=\"{types}/{kind}\" Target=\"{target}\"");
        json!([format!(
            "<Relationships><Relationship {relation}/></Relationships>"
        )])
    };
    let sheets = "<sheets><sheet name=\"S\" r:id=\"a\"/></sheets>";
    let mut parts = json!({
        "_rels/.rels": relation("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": relation("worksheet", "worksheets/s.xml"),
        "xl/workbook.xml": [format!("<workbook xmlns:r=\"{types}\">{sheets}</workbook>")],
        "xl/worksheets/s.xml": [START, END],
    });
    parts[format!("xl/{replaced}.xml")] = json!(content);
    parts
}

/// Asserts that each of these workbooks is refused by a rule, in little memory.
fn assert_refused(cases: &[(&str, &str, &[Piece<'_>], &str)]) {
    let store = Store::of(&[gift_card("A")]);
    let (_, usual) = peak(
        &store,
        &store.write("small.ndjson", gift_card("A").to_string()),
    );
    for (what, part, content, rule) in cases {
        let Some(file) = workbook(&store, "parts", &parts(part, content)) else {
            return;
        };
        let (found, peak) = peak(&store, &file);
        assert_eq!(found, *rule, "{what}");
        let more = peak.saturating_sub(usual);
        assert!(more < MAX_MORE, "{what}: {more} KiB more than usual");
    }
}

#[test]
fn hostile_sheets_are_refused_in_little_memory() {
    let row = format!("<row><c t=\"str\"><v>{}</v></c></row>", "x".repeat(1_000));
    let run = "<r><t>0123456789</t></r>";
    let text = ("<row><c t=\"str\"><v>", 1);
    let inline = ("<row><c t=\"inlineStr\"><is>", 1);
    let blank = "<row><c t=\"str\"><v/></c><c t=\"str\"><v>x</v></c></row>";
    let last = "<row r=\"1048576\"><c r=\"XFD1048576\"><v>1</v></c></row>";
    let position = "<row><c r=\"ZZZZZZZZ99999999999\"><v>1</v></c></row>";
    let sheet = "worksheets/s";
    let large = "input_too_large";
    assert_refused(&[
        ("2 GB", sheet, &[START, (&row, 2_000_000), END], large),
        (
            "a cell of 400 MiB",
            sheet,
            &[START, text, ("x", 400 << 20)],
            "workbook",
        ),
        (
            "a cell in pieces",
            sheet,
            &[START, inline, (run, 4 << 20)],
            "workbook",
        ),
        ("the last cell", sheet, &[START, (last, 1), END], "cells"),
        (
            "no position",
            sheet,
            &[START, (position, 1), END],
            "workbook",
        ),
        (
            "too many rows",
            sheet,
            &[START, (blank, 1_000_001), END],
            "cells",
        ),
    ]);
}

#[test]
fn hostile_texts_and_formats_take_little_memory() {
    let long = "0123456789<!-- -->";
    let texts = "sharedStrings";
    let announced = ("<sst uniqueCount=\"999999999999\"></sst>", 1);
    let (start, end) = (("<sst>", 1), ("</sst>", 1));
    let large = "input_too_large";
    assert_refused(&[
        (
            "a long text",
            texts,
            &[start, ("<si><t>", 1), (long, 20 << 20)],
            large,
        ),
        ("texts", texts, &[start, ("<si/>", 4 << 20), end], large),
        ("announced texts", texts, &[announced], large),
        (
            "distinct texts",
            texts,
            &[start, ("<si><t>{}</t></si>", 1_000_000), end],
            "empty",
        ),
        (
            "formats",
            "styles",
            &[("<styleSheet>", 1), ("<xf/>", 1 << 20)],
            large,
        ),
    ]);
}

#[test]
fn workbook_above_64_mib_is_refused_unread() {
    let store = Store::of(&[gift_card("A")]);
    let large = b"PK\x03\x04".repeat(17 << 20);
    let (found, _) = peak(&store, &store.write("large.xlsx", large));
    assert_eq!(found, "input_too_large");
}

#[test]
fn hundred_thousand_rows_of_openpyxl_load() {
    let store = Store::new();
    let table = Table::of(&[gift_card("P{}")]);
    let filled = table.columns.iter().zip(&table.rows[0]);
    let filled = filled.filter(|(_, cell)| !cell.is_empty());
    let (columns, row): (Vec<_>, Vec<_>) = filled.unzip();
    let content = json!({"columns": columns, "row": row, "rows": 100_000});
    let Some(file) = workbook(&store, "rows", &content) else {
        return;
    };
    let report = store.load(&file);
    assert_eq!(report["counts"]["created"], 100_000, "{report}");
    let lines = store.write("one.ndjson", gift_card("P1").to_string());
    let load = [
        "load",
        "--json",
        "--mode",
        "merge",
        &lines.display().to_string(),
    ];
    assert_eq!(store.json(&load)["counts"]["unchanged"], 1);
}
