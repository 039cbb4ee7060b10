//! Rejected rows of tables: they come back as lines of JSON, which load once they are corrected.

use std::path::Path;

use serde_json::{Value, json};

use crate::csv::Table;
use crate::harness::{Store, gift_card};
use crate::load_skip::skip;
use crate::products::payment;

/// Products A to E as a table; B's currency is none, and D has a cell too many.
fn table(separator: char, line_end: &str) -> String {
    let mut products: Vec<_> = ["A", "B", "C", "D"].map(gift_card).to_vec();
    products.push(payment("E"));
    products[1]["name"] = json!("Größe \"1\"; a, b\t\nc");
    let mut table = Table::of(&products);
    table.set(1, "currency", "EURO");
    table.rows[3].push("beyond".to_owned());
    table.to_csv(separator, line_end)
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

#[test]
fn rejected_rows_come_back_as_json_with_their_reasons() {
    for (start, separator, end) in [("", ',', "\n"), ("\u{feff}", ';', "\r\n"), ("", '\t', "\r")] {
        let store = Store::new();
        let file = store.write("feed.csv", format!("{start}{}", table(separator, end)));
        let (exit, report) = skip(&store, &file, &[]);
        assert_eq!(
            (exit, &report["rejected"]["records"]),
            (4, &json!(2)),
            "{report}"
        );
        let rejected = store.path("feed.rejected.ndjson");
        assert_eq!(report["rejected"]["file"], json!(rejected));
        let entries = lines(&rejected);
        let [wrong, unreadable] = &entries[..] else {
            panic!("{entries:?}");
        };
        let reason = &wrong["_rejected"][0];
        assert_eq!(
            (&reason["rule"], &reason["column"], &reason["row"]),
            (&json!("currency"), &json!("currency"), &json!(3))
        );
        // The row with a cell too many can't be read, so only its reason is there.
        let reason = &unreadable["_rejected"][0];
        assert_eq!(
            (&reason["rule"], &reason["code"]),
            (&json!("cells"), &json!("D"))
        );
        assert_eq!(unreadable.as_object().map(serde_json::Map::len), Some(1));
        // Still faulty, it comes back once more, with one member of reasons.
        let again = store.write("again.ndjson", wrong.to_string());
        let (exit, _) = skip(&store, &again, &["--mode", "merge"]);
        assert_eq!(exit, 3);
        let mended = store.write("mended.ndjson", wrong.to_string().replace("EURO", "EUR"));
        let (exit, report) = skip(&store, &mended, &["--mode", "merge"]);
        // A name with a tab and a line end.
        let warnings = report["warnings"].as_object().expect("warnings");
        let warned: Vec<&str> = warnings.keys().map(String::as_str).collect();
        assert_eq!(
            (exit, warned),
            (0, vec!["suspicious_characters"]),
            "{report}"
        );
        let meant = Store::new();
        let whole = table(separator, end).replace("EURO", "EUR");
        meant.load(meant.write(
            "whole.csv",
            whole.replace(&format!("{separator}beyond"), ""),
        ));
        meant.ok(&[
            "load",
            "--mode",
            "merge",
            "--retire",
            "D",
            "--allow",
            "retire=100%",
        ]);
        assert_eq!(store.ok(&["export"]), meant.ok(&["export"]));
    }
}

#[test]
fn both_rows_of_a_repeated_code_come_back() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let mut twice = gift_card("A");
    twice["name"] = json!("second");
    let table = Table::of(&[gift_card("A"), gift_card("B"), twice]).to_csv(';', "\r\n");
    let (exit, report) = skip(&store, &store.write("feed.csv", &table), &[]);
    assert_eq!(
        (exit, &report["rejected"]["records"]),
        (4, &json!(2)),
        "{report}"
    );
    let entries = lines(&store.path("feed.rejected.ndjson"));
    let mut names: Vec<&Value> = entries.iter().map(|entry| &entry["name"]).collect();
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, [&json!("Product A"), &json!("second")]);
}

#[test]
fn rows_and_lines_are_rejected_into_one_file() {
    let feed = |store: &Store| {
        let feed = store.path("feed");
        std::fs::create_dir(&feed).expect("a directory");
        let write =
            |name: &str, content: &str| std::fs::write(feed.join(name), content).expect("a file");
        let mut bad = gift_card("X");
        bad["currency"] = json!("EURO");
        write("0.ndjson", &gift_card("Y").to_string());
        write("1.ndjson", &bad.to_string());
        write("2.csv", &table(',', "\n"));
        feed
    };
    for named in [None, Some("named")] {
        let store = Store::of(&[gift_card("Y")]);
        let feed = feed(&store);
        let path = store.path(named.unwrap_or("feed.rejected.ndjson"));
        let shown = path.display().to_string();
        let options: &[&str] = match named {
            Some(_) => &["--rejected", &shown],
            None => &[],
        };
        let (exit, report) = skip(&store, &feed, options);
        assert_eq!(
            (exit, &report["rejected"]["file"]),
            (4, &json!(shown)),
            "{report}"
        );
        let entries = lines(&path);
        let reason = |entry: &Value| entry["_rejected"][0]["code"].clone();
        let codes: Vec<Value> = entries.iter().map(reason).collect();
        assert_eq!(codes, ["X", "B", "D"]);
    }
}

#[test]
fn rejected_row_with_thousands_comes_back_without_values() {
    let store = Store::new();
    let mut table = Table::of(&[gift_card("A"), gift_card("B")]);
    table.set(1, "denominations_minimum_value", "1.000");
    let (exit, report) = skip(&store, &store.write("p.csv", table.to_csv(';', "\n")), &[]);
    assert_eq!((exit, &report["rejected"]["records"]), (4, &json!(1)));
    // As JSON, `1.000` would be one.
    let rejected = store.path("p.rejected.ndjson");
    let entries = lines(&rejected);
    let reason = &entries[0]["_rejected"][0];
    assert_eq!(
        (&reason["rule"], &reason["code"], &reason["value"]),
        (
            &json!("thousands_separator"),
            &json!("B"),
            &json!("\"1.000\"")
        )
    );
    assert_eq!(entries[0].as_object().map(serde_json::Map::len), Some(1));
    let (exit, _) = skip(&store, &rejected, &["--mode", "merge"]);
    assert_eq!(exit, 3);
}
