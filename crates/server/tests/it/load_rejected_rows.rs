//! Rejected rows of tables: they come back as a table of the same dialect, which loads once it is mended.

use std::path::Path;

use serde_json::json;

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

fn read(path: &Path) -> String {
    String::from_utf8(std::fs::read(path).expect("a file")).expect("UTF-8")
}

#[test]
fn rejected_rows_come_back_in_the_dialect_of_their_table() {
    for (start, separator, end) in [
        ("", ',', "\n"),
        ("\u{feff}", ';', "\r\n"),
        ("\u{feff}sep=;\r\n", ';', "\r\n"),
        ("", '\t', "\r"),
    ] {
        let store = Store::new();
        let whole = table(separator, end).replace("EURO", "EUR");
        let file = store.write("feed.csv", format!("{start}{}", table(separator, end)));
        let (exit, report) = skip(&store, &file, &[]);
        assert_eq!(
            (exit, &report["rejected"]["records"]),
            (4, &json!(2)),
            "{report}"
        );
        let rejected = store.path("feed.rejected.csv");
        assert_eq!(report["rejected"]["files"], json!([rejected]));
        let text = read(&rejected);
        let head = whole.split(end).next().expect("columns");
        let beginning = format!("{start}_rejected{separator}{head}{end}");
        assert!(text.starts_with(&beginning), "{text:?}");
        let reason = "currency: expected the ISO 4217 code";
        assert!(text.contains(reason) && text.ends_with(end), "{text:?}");
        // Still faulty, they come back once more, with one column of reasons.
        let again = store.write("again.csv", text.replace(&format!("{separator}beyond"), ""));
        let (exit, _) = skip(&store, &again, &["--mode", "merge"]);
        assert_eq!(exit, 4);
        let text = read(&store.path("again.rejected.csv"));
        assert!(text.starts_with(&beginning), "{text:?}");
        let mended = store.write("mended.csv", text.replace("EURO", "EUR"));
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
        meant.load(meant.write(
            "whole.csv",
            whole.replace(&format!("{separator}beyond"), ""),
        ));
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
    let rejected = read(&store.path("feed.rejected.csv"));
    let rows: Vec<&str> = table.split("\r\n").collect();
    assert_eq!(rejected.split("\r\n").count(), 4, "{rejected}");
    for row in [rows[1], rows[3]] {
        assert!(
            rejected.contains(&format!(";{row}\r\n")),
            "{row} in {rejected}"
        );
    }
}

#[test]
fn rows_and_lines_are_rejected_into_files_of_their_own() {
    let store = Store::new();
    let feed = store.path("feed");
    std::fs::create_dir(&feed).expect("a directory");
    let write =
        |name: &str, content: &str| std::fs::write(feed.join(name), content).expect("a file");
    let mut bad = gift_card("X");
    bad["currency"] = json!("EURO");
    write("1.ndjson", &bad.to_string());
    write("2.csv", &table(',', "\n"));
    write("3.csv", &table(';', "\n").replace("Product ", "Other "));
    for (options, names) in [
        (
            &[][..],
            [
                "feed.rejected.ndjson",
                "feed.rejected.csv",
                "feed.rejected.2.csv",
            ],
        ),
        (
            &["--rejected", "named"],
            ["named", "named.2.csv", "named.3.csv"],
        ),
    ] {
        let mut options: Vec<String> = options.iter().map(ToString::to_string).collect();
        if let Some(name) = options.get_mut(1) {
            *name = store.path(name).display().to_string();
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let store = Store::of(&[gift_card("Y")]);
        write("0.ndjson", &gift_card("Y").to_string());
        let (exit, report) = skip(&store, &feed, &options);
        assert_eq!(exit, 4, "{report}");
        let files = report["rejected"]["files"].as_array().expect("files");
        let found = files
            .iter()
            .map(|file| Path::new(file.as_str().expect("a file")).file_name());
        let found: Vec<_> = found.map(|name| name.expect("a name").to_owned()).collect();
        assert_eq!(found, names, "{report}");
    }
}
