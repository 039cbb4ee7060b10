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

/// Parts of a workbook with one sheet, and these shared texts.
fn parts(sheet: Value, texts: Value, styles: Value) -> Value {
    let types = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relation = |kind: &str, target: &str| {
        format!(
            "<Relationships><Relationship Id=\"a\" Type=\"{types}/{kind}\" Target=\"{target}\"/></Relationships>"
        )
    };
    json!({
        "_rels/.rels": [relation("officeDocument", "xl/workbook.xml")],
        "xl/_rels/workbook.xml.rels": [relation("worksheet", "worksheets/s.xml")],
        "xl/workbook.xml": [format!("<workbook xmlns:r=\"{types}\"><sheets><sheet name=\"S\" r:id=\"a\"/></sheets></workbook>")],
        "xl/worksheets/s.xml": sheet,
        "xl/sharedStrings.xml": texts,
        "xl/styles.xml": styles,
    })
}

#[test]
fn hostile_workbooks_take_little_memory() {
    let store = Store::of(&[gift_card("A")]);
    let lines = store.write("small.ndjson", gift_card("A").to_string());
    let (_, usual) = peak(&store, &lines);
    let start = "<worksheet><sheetData><row><c t=\"str\"><v>code</v></c></row>";
    let end = "</sheetData></worksheet>";
    let cell = |text: &str| format!("<row r=\"2\"><c t=\"str\"><v>{text}");
    let none = || json!(["<sst></sst>"]);
    let plain = || json!(["<styleSheet></styleSheet>"]);
    let small = || json!([start, end]);
    for (what, parts, rule) in [
        (
            "2 GiB of rows",
            parts(
                json!([start, ["<row><c><v>1</v></c></row>", 80_000_000], end]),
                none(),
                plain(),
            ),
            "input_too_large",
        ),
        (
            "400 MiB in a cell",
            parts(
                json!([start, cell(""), ["x", 400 << 20], "</v></c></row>", end]),
                none(),
                plain(),
            ),
            "workbook",
        ),
        (
            "300 MiB in pieces of a cell",
            parts(
                json!([
                    start,
                    "<row><c t=\"inlineStr\"><is>",
                    ["<r><t>0123456789</t></r>", 12 << 20],
                    "</is></c></row>",
                    end
                ]),
                none(),
                plain(),
            ),
            "workbook",
        ),
        (
            "400 MiB of a shared text",
            parts(
                small(),
                json!(["<sst><si><t>", ["x<!-- -->", 40 << 20], "</t></si></sst>"]),
                plain(),
            ),
            "input_too_large",
        ),
        (
            "twenty million shared texts",
            parts(
                small(),
                json!(["<sst>", ["<si/>", 20_000_000], "</sst>"]),
                plain(),
            ),
            "input_too_large",
        ),
        (
            "more shared texts announced than there are",
            parts(
                small(),
                json!(["<sst uniqueCount=\"999999999999\"></sst>"]),
                plain(),
            ),
            "input_too_large",
        ),
        (
            "a million formats",
            parts(
                small(),
                none(),
                json!([
                    "<styleSheet><cellXfs>",
                    ["<xf/>", 1_000_000],
                    "</cellXfs></styleSheet>"
                ]),
            ),
            "input_too_large",
        ),
        (
            "a million distinct shared texts",
            parts(
                small(),
                json!(["<sst>", ["<si><t>{}</t></si>", 1_000_000], "</sst>"]),
                plain(),
            ),
            "empty",
        ),
        (
            "the last cell of a sheet",
            parts(
                json!([
                    start,
                    "<row r=\"1048576\"><c r=\"XFD1048576\"><v>1</v></c></row>",
                    end
                ]),
                none(),
                plain(),
            ),
            "cells",
        ),
        (
            "a position that no number holds",
            parts(
                json!([
                    start,
                    "<row><c r=\"ZZZZZZZZ99999999999\"><v>1</v></c></row>",
                    end
                ]),
                none(),
                plain(),
            ),
            "workbook",
        ),
        (
            "a million and one rows",
            parts(
                json!([
                    start,
                    [
                        "<row><c t=\"str\"><v></v></c><c t=\"str\"><v>x</v></c></row>",
                        1_000_001
                    ],
                    end
                ]),
                none(),
                plain(),
            ),
            "cells",
        ),
    ] {
        let Some(file) = workbook(&store, "parts", &parts) else {
            return;
        };
        let (found, peak) = peak(&store, &file);
        assert_eq!(found, rule, "{what}");
        assert!(
            peak < usual + MAX_MORE,
            "{what}: {peak} KiB, usually {usual} KiB"
        );
    }
    let large = std::iter::repeat_n(b"PK\x03\x04", 17 << 20)
        .flatten()
        .copied();
    let (found, peak) = peak(
        &store,
        &store.write("large.xlsx", large.collect::<Vec<u8>>()),
    );
    assert_eq!(found, "input_too_large");
    assert!(peak < usual + MAX_MORE, "{peak} KiB, usually {usual} KiB");
}

#[test]
fn hundred_thousand_rows_of_openpyxl_load() {
    let store = Store::new();
    let table = Table::of(&[gift_card("P{}")]);
    let content = json!({"columns": table.columns, "row": table.rows[0], "rows": 100_000});
    let Some(file) = workbook(&store, "rows", &content) else {
        return;
    };
    let report = store.load(&file);
    assert_eq!(report["counts"]["created"], 100_000, "{report}");
    let exported = store.run(&["export", "--format", "xlsx"]).stdout;
    let report = store.load(store.write("again", exported));
    assert_eq!(report["counts"]["unchanged"], 100_000, "{report}");
}
