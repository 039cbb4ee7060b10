//! `vitrine products`: the store's products, selected as clients would select them, and by more.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::{ALLOW_ALL, Store, gift_card, text};

/// Returns the codes of the products that the command lists.
fn listed(store: &Store, options: &[&str]) -> Vec<String> {
    let lines = store.ok(&[&["products", "--format", "ndjson"], options].concat());
    let code = |line: &str| {
        let record: Value = serde_json::from_str(line).expect("a record");
        record["code"].as_str().expect("a code").to_owned()
    };
    lines.lines().map(code).collect()
}

/// Returns the values of a field of all records, each once.
fn values(records: &[Value], field: &str) -> BTreeSet<String> {
    let of = |record: &Value| match &record[field] {
        Value::Array(values) => values.clone(),
        value => vec![value.clone()],
    };
    let values = records.iter().flat_map(of);
    values
        .map(|value| value.as_str().expect("a text").to_owned())
        .collect()
}

#[test]
fn filters_select_what_clients_get_by_them() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let get = |query: &str| server.get(&key, &format!("/v2/product{query}")).codes();
    let all = store.ok(&["export"]);
    let records: Vec<Value> = (all.lines())
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    assert_eq!(listed(&store, &[]), get(""));
    assert_eq!(listed(&store, &["--orderable"]), get("?is_orderable=true"));
    let mut selected = 0;
    for (field, option, parameter) in [
        (
            "countries_redeemable_in",
            "--country",
            "countries_redeemable_in",
        ),
        ("categories", "--category", "categories"),
        ("currency", "--currency", "currencies"),
        ("payout_type", "--payout-type", "payout_types"),
    ] {
        // Each value by itself takes a process each: a few are enough.
        for value in values(&records, field).into_iter().take(6) {
            let query: String = url_encoded(&value);
            let expected = get(&format!("?{parameter}={query}"));
            assert_eq!(
                listed(&store, &[option, &value]),
                expected,
                "{option} {value}"
            );
            selected += expected.len();
        }
    }
    assert!(selected > 20, "{selected}");
    let expected = get("?countries_redeemable_in=SE&countries_redeemable_in=GB&is_orderable=true");
    let both = ["--country", "SE", "--country", "GB", "--orderable"];
    assert_eq!(listed(&store, &both), expected);
}

fn url_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn products_are_selected_by_pattern_name_and_state() {
    let named = |code: &str, name: &str, state: &str| {
        let mut product = gift_card(code);
        (product["name"], product["state"]) = (name.into(), state.into());
        product["is_orderable"] = (state == "LIVE").into();
        product
    };
    let store = Store::of(&[
        named("ADI-SE", "Adidas Sverige", "LIVE"),
        named("ADI-DE", "Adidas", "TEMPORARILY_DISABLED"),
        named("ZARA-SE", "Élan Zara", "LIVE"),
    ]);
    for (options, expected) in [
        (&["ADI-*"][..], "ADI-DE ADI-SE"),
        (&["*-SE"], "ADI-SE ZARA-SE"),
        (&["ADI-?E", "ZARA-SE"], "ADI-DE ADI-SE ZARA-SE"),
        (&["--name", "adidas"], "ADI-DE ADI-SE"),
        (&["--name", "éLAN"], "ZARA-SE"),
        (&["--state", "TEMPORARILY_DISABLED"], "ADI-DE"),
        (&["--not-orderable"], "ADI-DE"),
        (&["ADI-*", "--orderable"], "ADI-SE"),
        (&["NONE-*"], ""),
    ] {
        assert_eq!(listed(&store, options).join(" "), expected, "{options:?}");
    }
    // A code that is named, and isn't there, is said.
    let output = store.run(&["products", "ADI-SE", "GONE", "--format", "ndjson"]);
    assert!(output.status.success());
    assert_eq!(text(&output.stdout).lines().count(), 1);
    assert!(text(&output.stderr).contains("there is no product GONE"));
    for wrong in [
        &["--country", "Sweden"][..],
        &["--currency", "euro"],
        &["--state", "GONE"],
        &["A/B"],
        &["--orderable", "--not-orderable"],
    ] {
        let output = store.run(&[&["products"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn products_are_listed_for_people_and_for_loads() {
    let store = Store::sample();
    let table = store.ok(&["products", "--format", "table", "--country", "SG"]);
    assert!(table.trim_start().starts_with("CODE"), "{table}");
    assert!(table.contains("PANDANLANE-SG") && table.contains("Pandanlane Hawker Pass"));
    // What is listed loads again, and changes nothing.
    for format in ["ndjson", "json", "csv", "xlsx"] {
        let listed = store.run(&["products", "--format", format, "--country", "SG"]);
        let records = listed.stdout;
        let file = store.write(&format!("some.{format}"), records);
        let file = file.display().to_string();
        let load = ["load", "--json", "--mode", "merge", &file];
        let report = store.json(&[&load[..], &ALLOW_ALL].concat());
        assert_eq!(report["counts"]["changed"], 0, "{format}: {report}");
        assert_eq!(report["counts"]["created"], 0, "{format}");
    }
    // As it was.
    let first = listed(&store, &[]).len();
    store.load_products(&[gift_card("ONLY")]);
    assert_eq!(listed(&store, &["--at", "1"]).len(), first);
    assert_eq!(listed(&store, &[]), ["ONLY"]);
    let nothing = Store::new();
    let output = nothing.run(&["products"]);
    assert_eq!(output.status.code(), Some(1));
}
