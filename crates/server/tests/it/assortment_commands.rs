//! `vitrine assortments`: edits, their guard, faults and history.

use serde_json::{Value, json};

use crate::assortments::set;
use crate::harness::{Store, gift_card, text};
use crate::keys::labelled;

fn catalog() -> Store {
    let products: Vec<Value> = (0..10)
        .map(|number| {
            let mut product = gift_card(&format!("P{number}"));
            let country = if number < 5 { "SE" } else { "DE" };
            product["countries_redeemable_in"] = json!([country]);
            product
        })
        .collect();
    Store::of(&products)
}

/// Runs a command on rules in a file; returns its exit code, and what it printed to both outputs.
fn run(store: &Store, command: &[&str], rules: &str) -> (i32, String, String) {
    let file = store.write("rules.json", rules).display().to_string();
    let arguments = [&["assortments"], command, &[&file]].concat();
    let output = store.run(&arguments);
    let code = output.status.code().expect("an exit code");
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
fn all_faults_of_rules_are_told_with_their_places() {
    let store = catalog();
    let rules = r#"{"allow": [{"countrys": ["SE"]}, {"countries": ["ZZ", 7]}], "discounts": [
        {"codes": ["P1"]}, {"set": "0.1", "share": "0.5"}, {"set": "1.01"}, {"codes": ["a b"], "share": "x"}]}"#;
    let (code, _, told) = run(&store, &["set", "nordic"], rules);
    assert_eq!(code, 3, "{told}");
    for part in [
        "allow[0].countrys: unknown member; did you mean `countries`?",
        "allow[1].countries[0]",
        "allow[1].countries[1]",
        "discounts[0]",
        "discounts[1]",
        "discounts[2].set",
        "discounts[3].codes[0]",
        "discounts[3].share",
        "nothing was changed",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let listed = store.json(&["assortments", "list", "--json"]);
    assert_eq!(listed, json!([]));
    let (code, _, told) = run(&store, &["set", "no name"], "{}");
    assert_eq!(code, 2, "{told}");
}

#[test]
fn edit_that_takes_a_fifth_away_is_refused_until_allowed() {
    let store = catalog();
    set(
        &store,
        "nordic",
        &json!({"allow": [{"countries": ["SE", "DE"]}]}),
    );
    let four_fifths = r#"{"deny": [{"codes": ["P0", "P1"]}]}"#;
    let (code, said, _) = run(&store, &["set", "nordic"], four_fifths);
    assert_eq!(code, 0, "a fifth is the limit: {said}");
    let swedish = r#"{"allow": [{"countries": ["SE"]}]}"#;
    let (code, diff, _) = run(&store, &["set", "nordic", "--dry-run"], swedish);
    assert_eq!(code, 0);
    assert!(
        diff.contains("+ P0\n+ P1\n- P5\n") && diff.ends_with("5 products shown, 8 before\n"),
        "{diff}"
    );
    let (code, _, told) = run(&store, &["set", "nordic"], swedish);
    assert_eq!(code, 3);
    assert!(
        told.contains("take away 5 of the 8 products") && told.contains("--allow retire=62.50%"),
        "{told}"
    );
    let newest =
        |store: &Store| store.json(&["assortments", "list", "--json"])[0]["version"].clone();
    assert_eq!(newest(&store), 2);
    let (code, _, _) = run(
        &store,
        &["set", "nordic", "--allow", "retire=62.50%"],
        swedish,
    );
    assert_eq!((code, newest(&store)), (0, json!(3)));
}

#[test]
fn version_zero_is_missed_without_reading_others() {
    let store = catalog();
    set(&store, "nordic", &json!({"allow": []}));
    set(&store, "nordic", &json!({}));
    // No other version can be read.
    store.sql("update assortment_version set created_at = 9223372036854775807 where number = 1");
    for command in [
        &["show", "nordic", "--at", "0"][..],
        &["rollback", "nordic", "0"],
    ] {
        let output = store.run(&[&["assortments"], command].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("`nordic` has no version 0"), "{said}");
    }
}

#[test]
fn versions_are_kept_and_rolled_back() {
    let store = catalog();
    let [first, second] = [
        json!({"allow": [{"countries": ["SE"]}]}),
        json!({"allow": []}),
    ];
    set(&store, "nordic", &first);
    set(&store, "nordic", &second);
    let shown = |at: &[&str]| store.json(&[&["assortments", "show", "nordic"], at].concat());
    assert_eq!(shown(&[]), second);
    assert_eq!(shown(&["--at", "1"]), first);
    let note = ["--note", "as before", "--json"];
    let back = store.json(&[&["assortments", "rollback", "nordic", "1"], &note[..]].concat());
    assert_eq!(back["live"]["version"], 3);
    assert_eq!(back["change"]["gained"].as_array().map(Vec::len), Some(5));
    assert_eq!(shown(&[]), first);
    let history = store.json(&["assortments", "history", "nordic", "--json"]);
    let numbers: Vec<&Value> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["version"])
        .collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(history[0]["note"], "as before");
    let again = store.ok(&["assortments", "rollback", "nordic", "1"]);
    assert!(again.contains("live already"), "{again}");
    store.ok(&[
        "assortments",
        "export",
        &store.path("exported").display().to_string(),
    ]);
    let exported = std::fs::read_to_string(store.path("exported").join("nordic.json"));
    assert_eq!(
        serde_json::from_str::<Value>(&exported.expect("a file")).expect("JSON"),
        first
    );
}

#[test]
fn assortment_in_use_isnt_removed() {
    let store = catalog();
    set(&store, "nordic", &json!({"allow": [{"countries": ["SE"]}]}));
    store.key("partner", &["--assortment", "nordic"]);
    let refused = store.run(&["assortments", "remove", "nordic"]);
    assert_eq!(refused.status.code(), Some(1));
    let key = &labelled(&store, "partner")[0];
    let prefix = key["prefix"].as_str().expect("a prefix");
    assert!(text(&refused.stderr).contains(prefix));
    assert_eq!(key["assortment"], "nordic");
    let unknown = store.run(&["keys", "set", "partner", "--assortment", "southern"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", text(&unknown.stderr));
    store.ok(&["keys", "set", "partner", "--everything", "--yes"]);
    store.ok(&["assortments", "remove", "nordic"]);
    let shown = store.run(&["assortments", "show", "nordic"]);
    assert!(text(&shown.stderr).contains("was removed"));
    let created = store.run(&[
        "keys",
        "create",
        "--label",
        "late",
        "--assortment",
        "nordic",
    ]);
    assert_eq!(created.status.code(), Some(1));
    assert_eq!(labelled(&store, "late"), [] as [Value; 0]);
}

#[test]
fn rules_from_standard_input_are_the_same_rules() {
    let store = catalog();
    let rules =
        r#"{"allow": [{"countries": ["SE"]}], "discounts": [{"codes": ["P1"], "set": "0.0125"}]}"#;
    let file = store.write("nordic.json", rules).display().to_string();
    store.ok(&["assortments", "set", "nordic", &file]);
    let shown = store.json(&["assortments", "show", "nordic"]);
    assert_eq!(shown["allow"], json!([{"countries": ["SE"]}]));
    assert_eq!(
        shown["discounts"],
        json!([{"codes": ["P1"], "set": "0.0125"}])
    );
    // Some editors begin files with a byte-order mark.
    for (input, is_same) in [
        (rules.to_owned(), true),
        (format!("\u{feff}{rules}"), true),
        ("{\"allow\": []}".to_owned(), false),
    ] {
        let input = std::fs::File::open(store.write("piped", input)).expect("a file");
        let set = ["assortments", "set", "piped", "-", "--allow", "retire=100%"];
        let set = store.command(&set).stdin(input).status();
        assert!(set.expect("vitrine runs").success());
        let piped = store.json(&["assortments", "show", "piped"]);
        assert_eq!(piped == shown, is_same, "{piped}");
    }
}

#[test]
fn every_edit_is_in_the_audit_log() {
    let store = catalog();
    set(&store, "nordic", &json!({"allow": []}));
    set(&store, "nordic", &json!({}));
    store.ok(&["assortments", "remove", "nordic", "--note", "ended"]);
    store.ok(&["assortments", "accept", "--yes"]);
    let entries = store.json(&["audit", "--assortment", "nordic", "--json"]);
    let entries = entries.as_array().expect("entries").iter();
    let told: Vec<Value> = entries
        .map(|entry| {
            let change = &entry["changes"][0];
            json!([
                entry["action"],
                change["before"],
                change["after"],
                entry["note"]
            ])
        })
        .collect();
    let expected = [
        json!(["remove", "2", null, "ended"]),
        json!(["set", "1", "2", null]),
        json!(["set", null, "1", null]),
    ];
    assert_eq!(told, expected);
    let newest = &store.json(&["audit", "--json", "--limit", "1"])[0];
    assert_eq!(
        (&newest["action"], &newest["subject"]),
        (&json!("accept"), &json!("assortments"))
    );
}
