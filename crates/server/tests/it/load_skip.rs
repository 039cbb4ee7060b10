//! Bad records: rejected ones go to a file, ready to be mended; and the report that has everything.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{ALLOW_ALL, Store, gift_card, text};
use crate::products::with;

fn codes(store: &Store) -> Vec<String> {
    let key = store.key("reader", &[]);
    store.serve().get(&key, "/v2/product").codes()
}

/// Loads a file with `--on-error skip`; returns the exit code and the report.
pub fn skip(store: &Store, file: &Path, options: &[&str]) -> (i32, Value) {
    let file = file.display().to_string();
    let command = ["load", "--json", "--on-error", "skip", &file];
    let output = store.run(&[&command, &ALLOW_ALL[..], options].concat());
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", text(&output.stderr)));
    (output.status.code().expect("an end"), report)
}

fn lines(file: impl Into<PathBuf>) -> Vec<String> {
    let text = std::fs::read_to_string(file.into()).expect("a file");
    text.lines().map(ToOwned::to_owned).collect()
}

fn bad(code: &str) -> String {
    with(gift_card(code), "/currency", "\"EURO\"")
}

#[test]
fn skip_loads_good_records_and_writes_the_others() {
    let mut live = gift_card("B");
    live["name"] = json!("as it was");
    let store = Store::of(&[gift_card("A"), live, gift_card("GONE")]);
    let content = [
        gift_card("A").to_string(),
        bad("B"),
        gift_card("C").to_string(),
        bad("D"),
    ];
    let file = store.write("feed.ndjson", content.join("\n"));
    let (exit, report) = skip(&store, &file, &[]);
    assert_eq!((exit, &report["applied"]), (4, &json!(true)), "{report}");
    let counts = json!({"created": 1, "changed": 0, "retired": 1, "unchanged": 2});
    assert_eq!(report["counts"], counts);
    // B keeps its live version, D never was there.
    assert_eq!(codes(&store), ["A", "B", "C"]);
    let shown = store.json(&["show", "B"]);
    assert!(shown.to_string().contains("as it was"), "{shown}");
    let rejected = store.path("feed.rejected.ndjson");
    assert_eq!(report["rejected"]["records"], 2);
    assert_eq!(report["rejected"]["file"], json!(rejected));
    assert_eq!(report["rejected"]["keeps_all"], false);
    let lines = lines(&rejected);
    assert_eq!(lines.len(), 2);
    let first: Value = serde_json::from_str(&lines[0]).expect("JSON");
    assert_eq!(first["_rejected"][0]["rule"], "currency");
    assert_eq!(first["_rejected"][0]["line"], 2);
    assert_eq!(first["_rejected"][0]["pointer"], "/currency");
    assert_eq!(first["code"], "B");

    // Loaded as it is, it is refused again; mended, it is taken, without a word about the reasons.
    let file = rejected.display().to_string();
    assert_eq!(
        store.run(&["load", "--mode", "merge", &file]).status.code(),
        Some(3)
    );
    let mended = store.write(
        "mended.ndjson",
        lines.join("\n").replace("\"EURO\"", "\"EUR\""),
    );
    let mended = mended.display().to_string();
    let merge = ["load", "--json", "--mode", "merge", &mended];
    let report = store.json(&merge);
    assert_eq!(
        (&report["counts"]["created"], &report["counts"]["changed"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(report["warnings"], json!({}));
    assert_eq!(codes(&store), ["A", "B", "C", "D"]);
}

#[test]
fn skip_with_an_unreadable_code_retires_nothing() {
    let half = gift_card("HALF").to_string();
    let half = &half[..half.len() / 2];
    let no_code = with(gift_card("X"), "/code", "null");
    let wrong_code = with(gift_card("X"), "/code", "\"A B\"");
    for (unreadable, entries) in [
        (half.as_bytes(), 1),
        (no_code.as_bytes(), 1),
        (wrong_code.as_bytes(), 1),
        (b"[1]", 1),
        (b"{\"name\": \"\xff\"}", 1),
        (b"[", 0),
    ] {
        let store = Store::of(&[gift_card("A"), gift_card("GONE")]);
        let content = [gift_card("NEW").to_string().as_bytes(), unreadable].join(&b"\n"[..]);
        let file = store.write("feed.ndjson", content);
        let (exit, report) = skip(&store, &file, &[]);
        let told = String::from_utf8_lossy(unreadable);
        assert_eq!(exit, 4, "{told}: {report}");
        assert_eq!(report["rejected"]["keeps_all"], true, "{told}");
        assert_eq!(report["counts"]["retired"], 0, "{told}");
        assert_eq!(codes(&store), ["A", "GONE", "NEW"], "{told}");
        assert_eq!(report["rejected"]["records"], entries, "{told}: {report}");
        if entries > 0 {
            // Whatever isn't an object has only the reasons.
            let line = lines(store.path("feed.rejected.ndjson")).remove(0);
            let entry: Value = serde_json::from_str(&line).expect("JSON");
            let is_object = serde_json::from_slice::<serde_json::Map<_, Value>>(unreadable).is_ok();
            let members = entry.as_object().expect("an object");
            assert_eq!(members.len() > 1, is_object, "{line}");
            assert_eq!(entry["_rejected"][0]["line"], 2, "{line}");
        }
    }
}

#[test]
fn skip_rejects_both_records_of_one_code() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let named = |name: &str| with(gift_card("A"), "/name", &format!("\"{name}\""));
    let content = [named("one"), gift_card("B").to_string(), named("two")];
    let file = store.write("feed.ndjson", content.join("\n"));
    let (exit, report) = skip(&store, &file, &[]);
    assert_eq!(exit, 4);
    let counts = json!({"created": 0, "changed": 0, "retired": 0, "unchanged": 1});
    assert_eq!(
        (&report["counts"], &report["rejected"]["records"]),
        (&counts, &json!(2))
    );
    let lines = lines(store.path("feed.rejected.ndjson"));
    assert!(
        lines.iter().any(|line| line.contains("\"one\"")),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("\"two\"")),
        "{lines:?}"
    );
}

#[test]
fn skip_with_a_duplicate_code_retires_nothing() {
    // The second record of A was meant for B.
    let twice = [gift_card("A").to_string(), gift_card("A").to_string()];
    let bad_second = [gift_card("A").to_string(), bad("A")];
    let bad_first = [bad("A"), gift_card("A").to_string()];
    for same in [twice, bad_second, bad_first] {
        let store = Store::of(&[gift_card("A"), gift_card("B"), gift_card("C")]);
        let content = [&same[..], &[gift_card("C").to_string()]].concat();
        let file = store.write("feed.ndjson", content.join("\n"));
        let (exit, report) = skip(&store, &file, &[]);
        assert_eq!(exit, 4, "{report}");
        assert_eq!(report["rejected"]["keeps_all"], true, "{report}");
        assert_eq!(report["counts"]["retired"], 0, "{report}");
        assert_eq!(codes(&store), ["A", "B", "C"]);
        let said = store.run(&["load", "--on-error", "skip", &file.display().to_string()]);
        let shown = text(&[said.stdout, said.stderr].concat());
        assert!(
            shown.contains("nothing was retired: some records"),
            "{shown}"
        );
    }
}

#[test]
fn rejected_records_replace_only_rejected_records() {
    let store = Store::new();
    let content = [gift_card("A").to_string(), bad("B")];
    let file = store.write("feed.ndjson", content.join("\n"));
    let default = store.write("feed.rejected.ndjson", "something else");
    let command = ["load", "--on-error", "skip", &file.display().to_string()];
    let output = store.run(&command);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("this file has no rejected records"), "{told}");
    assert_eq!(lines(&default), ["something else"]);
    assert!(!text(&store.run(&["history"]).stdout).contains('1'));
    // Neither is an input, nor a link, whatever it leads to.
    let link = store.path("link");
    std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
    for place in [&file, &link] {
        let place = place.display().to_string();
        let output = store.run(&[&command[..], &["--rejected", &place]].concat());
        assert_eq!(output.status.code(), Some(1), "{place}");
    }
    assert_eq!(lines(&file), content);
    assert!(link.is_symlink());
    // Those of an earlier load and an empty file are replaced.
    store.write("feed.rejected.ndjson", "");
    for _ in 0..2 {
        let (_, report) = skip(&store, &file, &[]);
        assert_eq!(report["rejected"]["file"], json!(default));
        assert_eq!(lines(&default).len(), 1);
    }
    // A dry run writes none.
    let named = store.path("elsewhere.ndjson").display().to_string();
    let (exit, report) = skip(&store, &file, &["--dry-run", "--rejected", &named]);
    assert_eq!((exit, &report["rejected"]["file"]), (4, &Value::Null));
    assert!(!store.path("elsewhere.ndjson").exists());
    skip(&store, &file, &["--rejected", &named]);
    assert_eq!(lines(&named).len(), 1);
}

#[test]
fn skip_without_a_good_record_does_nothing() {
    let store = Store::of(&[gift_card("A")]);
    let file = store.write("feed.ndjson", [bad("A"), bad("B")].join("\n"));
    let (exit, report) = skip(&store, &file, &[]);
    assert_eq!((exit, &report["applied"]), (3, &json!(false)));
    assert!(!store.path("feed.rejected.ndjson").exists());
    assert_eq!(codes(&store), ["A"]);
}

#[test]
fn skip_that_rejects_everything_loads_nothing() {
    let store = Store::new();
    let file = store.write("feed.ndjson", format!("{}\n{}", gift_card("A"), bad("A")));
    let (exit, report) = skip(&store, &file, &[]);
    assert_eq!((exit, &report["applied"]), (3, &json!(false)), "{report}");
    let key = store.key("reader", &[]);
    let answer = store.serve().get(&key, "/v2/product");
    assert_eq!(answer.status, 503, "nothing was published");
}

#[test]
fn report_groups_by_rule_and_its_json_lists_all_faults() {
    let store = Store::new();
    let mut content = vec![gift_card("GOOD").to_string()];
    content.extend((0..30).map(|number| bad(&format!("BAD{number}"))));
    content.push(gift_card("FINE").to_string());
    content.push(bad("LAST"));
    let file = store.write("feed.ndjson", content.join("\n"));
    let file = file.display().to_string();
    let output = store.run(&["load", &file]);
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    let heading = format!("fault: currency, 31 times: {file} line 2–31, 33");
    assert!(said.contains(&heading), "{heading} in {said}");
    assert!(said.contains("… and 21 more"), "{said}");
    let output = store.run(&["load", "--json", &file]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let faults = report["faults"].as_array().expect("faults");
    assert_eq!((faults.len(), &report["fault_count"]), (31, &json!(31)));
    assert_eq!(faults[30]["code"], "LAST");
    assert_eq!(
        report["faults_by_rule"]["currency"]["ranges"][0]["last"],
        31
    );
}
