//! Feeds that aren't as they should be: defaults, sizes, characters, arrays within objects, spreadsheets' errors.

use serde_json::{Value, json};

use crate::harness::{Store, gift_card, text};

/// Loads lines; returns the exit code and the report.
fn tried(store: &Store, products: &[Value]) -> (i32, Value) {
    let lines: Vec<String> = products.iter().map(ToString::to_string).collect();
    store.try_load(lines.join("\n"))
}

/// The rules of the faults of a report.
fn rules(report: &Value) -> Vec<&str> {
    let faults = report["faults"].as_array().expect("faults");
    faults
        .iter()
        .filter_map(|fault| fault["rule"].as_str())
        .collect()
}

#[test]
fn months_of_cards_that_never_expire_are_zero_by_default() {
    for kind in ["indefinite", "do-not-show"] {
        let mut null = gift_card("A");
        null["gift_card"]["expiry"] = json!({"type": kind, "in_months": null});
        let mut absent = gift_card("B");
        absent["gift_card"]["expiry"] = json!({"type": kind});
        let store = Store::new();
        let (exit, report) = tried(&store, &[null, absent]);
        assert_eq!(
            (exit, &report["warnings"]["default_used"]["count"]),
            (0, &json!(2)),
            "{report}"
        );
        let shown = store.json(&["show", "B"]);
        assert_eq!(shown["gift_card"]["expiry"]["in_months"], 0);
    }
    let mut other = gift_card("A");
    other["gift_card"]["expiry"]["in_months"] = Value::Null;
    assert_eq!(rules(&tried(&Store::new(), &[other]).1), ["required"]);
}

#[test]
fn values_beyond_their_size_are_faults() {
    let with = |pointer: &str, value: Value| {
        let mut product = gift_card("A");
        *product.pointer_mut(pointer).expect("a field") = value;
        product
    };
    let categories = |count: usize| {
        json!(
            (0..count)
                .map(|number| format!("c{number}"))
                .collect::<Vec<_>>()
        )
    };
    let policy = |length: usize| with("/gift_card/expiry/date_policy", json!("x".repeat(length)));
    for (product, rule) in [
        (with("/name", json!("é".repeat(300))), None),
        (with("/name", json!("é".repeat(301))), Some("name_too_long")),
        (with("/categories", categories(200)), None),
        (with("/categories", categories(201)), Some("too_many_items")),
        (policy(250 << 10), None),
        (policy(256 << 10), Some("detail_too_large")),
        (
            with(
                "/gift_card/content_resources/description_md",
                json!("x".repeat(300 << 10)),
            ),
            None,
        ),
    ] {
        let (exit, report) = tried(&Store::new(), &[product]);
        let expected = if rule.is_some() { 3 } else { 0 };
        assert_eq!(
            (exit, rules(&report)),
            (expected, rule.into_iter().collect())
        );
    }
}

#[test]
fn suspicious_characters_are_warned_of_with_their_code_point() {
    let mut product = gift_card("A");
    product["name"] = json!("Pay\u{202e}lap");
    product["categories"] = json!(["caf\u{fffd}"]);
    product["gift_card"]["content_resources"]["description_md"] = json!("fine\n\tlines");
    let (exit, report) = tried(&Store::new(), &[product]);
    let warned = &report["warnings"]["suspicious_characters"];
    assert_eq!(
        (exit, &warned["by_field"]),
        (0, &json!({"name": 1, "categories": 1}))
    );
    let message = warned["examples"][0]["message"]
        .as_str()
        .expect("a message");
    assert!(message.starts_with("U+202E"), "{message}");
}

#[test]
fn codes_that_differ_in_case_are_warned_of() {
    let store = Store::of(&[gift_card("LIVE-GB"), gift_card("other-gb")]);
    let codes = ["Live-GB", "OTHER-GB", "New-GB", "NEW-GB", "ALONE"];
    for options in [&[][..], &["--mode", "merge"]] {
        let products: Vec<String> = codes
            .iter()
            .map(|code| gift_card(code).to_string())
            .collect();
        let file = store
            .write("next.ndjson", products.join("\n"))
            .display()
            .to_string();
        let load = [
            &[
                "load",
                "--dry-run",
                "--json",
                "--allow",
                "retire=100%",
                &file,
            ],
            options,
        ]
        .concat();
        let report = store.json(&load);
        let warned = &report["warnings"]["code_differs_in_case"];
        assert_eq!(warned["count"], 3, "{report}");
    }
    let again = store.load_products(&[gift_card("LIVE-GB"), gift_card("other-gb")]);
    assert_eq!(again["warnings"]["code_differs_in_case"], Value::Null);
}

#[test]
fn codes_that_differ_from_live_ones_have_their_places() {
    let names: Vec<String> = (0..30).map(|number| format!("Abc-{number}")).collect();
    let live: Vec<Value> = names.iter().map(|name| gift_card(name)).collect();
    let store = Store::of(&live);
    store.ok(&["hide", "Abc-7"]);
    let capitals: Vec<Value> = names
        .iter()
        .map(|name| gift_card(&name.to_uppercase()))
        .collect();
    let (_, report) = tried(&store, &[&[gift_card("Abc-0")], &capitals[..]].concat());
    let warned = &report["warnings"]["code_differs_in_case"];
    // The first one differs from one in the input, and isn't compared with the same one that is live.
    assert_eq!(
        (&warned["count"], &warned["by_field"]),
        (&json!(30), &json!({"code": 30})),
        "{report}"
    );
    let ranges = warned["ranges"].as_array().expect("ranges");
    assert_eq!(
        (ranges.len(), &ranges[0]["first"], &ranges[0]["last"]),
        (1, &json!(2), &json!(31)),
        "{report}"
    );
}

#[test]
fn array_of_products_within_an_object_is_one_fault() {
    let products = json!([gift_card("A"), gift_card("B")]);
    for (input, pointer) in [
        (json!({"products": products}).to_string(), "/products"),
        (json!({"errors": [], "more": products}).to_string(), "/more"),
        (
            json!({"code": 0, "data": {"tags": ["[x]", "\"["]}, "products": products}).to_string(),
            "/products",
        ),
        (
            json!({"product-list": products}).to_string(),
            "/product-list",
        ),
        (
            format!("{:#}", json!({"data": {"items": products}, "page": 1})),
            "/data/items",
        ),
    ] {
        let (exit, report) = Store::new().try_load(input);
        let fault = &report["faults"][0];
        assert_eq!(
            (exit, rules(&report)),
            (3, vec!["array_within"]),
            "{report}"
        );
        assert_eq!(fault["pointer"], pointer);
        if pointer == "/product-list" {
            let message = fault["message"].as_str().expect("a message");
            assert!(message.contains("jq -c '.\"product-list\"[]'"), "{message}");
        }
    }
    let more = json!({"pagination": {"more": products}, "catalog": products}).to_string();
    let mut product = gift_card("A");
    product["payout_type"] = json!("later_type");
    let mut later = json!({"later_type": {"parts": products}});
    let (members, gift_card) = (later.as_object_mut(), product.as_object_mut());
    let (members, gift_card) = (members.expect("an object"), gift_card.expect("an object"));
    gift_card.remove("gift_card");
    members.append(gift_card);
    let list = json!({"pagination": {}, "catalog": products}).to_string();
    for input in [list, more, later.to_string()] {
        let (exit, report) = Store::new().try_load(input);
        assert_eq!(exit, 0, "{report}");
    }
}

#[test]
fn address_in_place_of_a_file_is_answered_with_a_pipe() {
    let refused = Store::new().run(&["load", "https://feed.example/products"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("curl -fsS 'https://feed.example/products' | vitrine load -"),
        "{said}"
    );
}

#[test]
fn error_values_of_spreadsheets_are_faults_in_every_column() {
    let store = Store::new();
    let (exit, report) = store.try_load("code,Remarks\nA,#N/A\n");
    let fault = &report["faults"][0];
    assert_eq!(
        (exit, &fault["rule"], &fault["column"]),
        (3, &json!("spreadsheet_error"), &json!("B")),
        "{report}"
    );
    let template = store.ok(&["load", "--template", "csv"]);
    let head = template.lines().next().expect("a head");
    for (index, column) in head.split(',').enumerate() {
        let error = ["#REF!", "#N/A", "#NAME?", "#DIV/0!", "DE|#VALUE!"][index % 5];
        let cells = head
            .split(',')
            .map(|cell| if cell == column { error } else { "" });
        let row = cells.collect::<Vec<_>>().join(",");
        let (exit, report) = store.try_load(format!("{head}\n{row}\n"));
        let fault = &report["faults"][0];
        assert_eq!(
            (exit, rules(&report)),
            (3, vec!["spreadsheet_error"]),
            "{report}"
        );
        assert_eq!(
            (&fault["column"], &fault["line"]),
            (&json!(column), &json!(2))
        );
    }
}

#[test]
fn faults_suggest_what_is_probably_meant() {
    let mut product = gift_card("A");
    product["state"] = json!("live");
    product["countries_redeemable_in"] = json!(["UK"]);
    product["currency"] = json!("eur");
    product["gift_card"]["redeemable_at"] = json!("instore");
    let (_, report) = tried(&Store::new(), &[product]);
    let messages: Vec<&str> = report["faults"]
        .as_array()
        .expect("faults")
        .iter()
        .filter_map(|fault| fault["message"].as_str()?.split_once("did you mean "))
        .map(|(_, meant)| meant)
        .collect();
    assert_eq!(messages, ["`EUR`?", "`LIVE`?", "`GB`?", "`in-store`?"]);
}

#[test]
fn faults_come_first_and_warnings_are_a_line_each() {
    let store = Store::new();
    let mut faulty = gift_card("F");
    faulty["state"] = json!("dead");
    let mut products = vec![faulty];
    for number in 0..30 {
        let mut product = gift_card(&format!("P{number}"));
        product["approval_state"] = json!("APPROVED");
        products.push(product);
    }
    let lines: Vec<String> = products.iter().map(ToString::to_string).collect();
    let file = store
        .write("feed.ndjson", lines.join("\n"))
        .display()
        .to_string();
    let said = text(&store.run(&["load", &file]).stderr);
    assert!(said.starts_with("fault: state, 1 time"), "{said}");
    let warning = format!(
        "warning: 30 products: unknown field approval_state (ignored: the API has no such field here, first at {file}:2)\n"
    );
    assert!(said.contains(&warning), "{said}");
    assert_eq!(said.matches("warning: ").count(), 1, "{said}");
}
