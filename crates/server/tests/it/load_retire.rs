//! Products retired by name, and loads of nothing.

use serde_json::json;

use crate::harness::{ALLOW_ALL, SAMPLE, Store, gift_card, text};

/// Runs a load that is refused for what it retires and loads at once, at `place`.
fn assert_refused(store: &Store, options: &[&str], place: &str) {
    let command = ["load", "--json", "--mode", "merge", "--retire", "A"];
    let output = store.run(&[&command, &ALLOW_ALL[..], options].concat());
    let told = text(&output.stdout);
    let report: serde_json::Value = serde_json::from_str(&told).expect("a report");
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert_eq!(report["faults"][0]["rule"], "retired_and_loaded", "{told}");
    assert!(told.contains(place), "{place} in {told}");
    let check = store.json(&["check", "--json"]);
    assert_eq!(check, json!({"clean": true, "problems": []}));
    assert!(store.ok(&["export"]).contains("\"A\""), "it is still live");
}

#[test]
fn product_is_not_retired_and_loaded_at_once() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let file = store.write("feed.ndjson", gift_card("A").to_string());
    let file = file.display().to_string();
    assert_refused(&store, &[&file], "feed.ndjson");
    assert_refused(&store, &["--on-error", "skip", &file], "feed.ndjson");
}

/// Found by reading: such a load made a version that ended when it began, which a check calls damage, and for which a
/// restore refuses each later backup.
#[test]
fn product_is_not_retired_and_given_texts_at_once() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    std::fs::create_dir_all(store.path("texts/A")).expect("a directory");
    store.write("texts/A/description.md", "# New");
    let texts = store.path("texts").display().to_string();
    assert_refused(&store, &["--texts", &texts], "description.md");
}

#[test]
fn retiring_an_unknown_product_publishes_nothing() {
    let store = Store::new();
    store.ok(&["load", "--mode", "merge", "--retire", "A"]);
    let key = store.key("reader", &[]);
    let server = store.serve();
    assert_eq!(server.get(&key, "/v2/product").status, 503, "no catalog");
    assert_eq!(store.json(&["history", "--json"]), json!([]));
}

#[test]
fn file_of_retirements_is_no_catalog() {
    let store = Store::of(&[gift_card("A")]);
    let before = store.ok(&["export"]);
    let nothing = store.write("gone.txt", "\n").display().to_string();
    let command = ["load", "--retire-file", &nothing];
    let output = store.run(&[&command, &ALLOW_ALL[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--mode merge"));
    assert_eq!(store.ok(&["export"]), before);
    // Where it is said, a file of nothing is nothing to do.
    store.ok(&[&["load", "--mode", "merge"], &command[1..]].concat());
    assert_eq!(store.ok(&["export"]), before);
}

#[test]
fn dry_run_makes_no_store() {
    let store = Store::new();
    let report = store.json(&["load", "--json", "--dry-run", SAMPLE]);
    let created = report["plan"]["created"].as_array().expect("a plan");
    assert!(created.len() > 50, "{report}");
    let history = store.run(&["history"]);
    let told = text(&history.stderr);
    assert_eq!(history.status.code(), Some(1), "{told}");
    assert!(told.contains("there is no store"), "{told}");
}
