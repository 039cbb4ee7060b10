//! Faults of whole records and of whole loads: what can't be parsed, codes that stand twice, many
//! faults at once; and how a report reads.

use serde_json::{Value, json};

use crate::harness::{Store, gift_card, text};
use crate::products::{assert_holds, later, with};

#[test]
fn unstorable_record_is_one_fault() {
    let name = |raw: &str| with(gift_card("A"), "/name", raw);
    let twice = |line: &str, key: &str| line.replacen('{', &format!("{{\"{key}\":1,"), 1);
    for (line, rule, pointer) in [
        (name(r#""a\u0000b""#), "nul_character", "/name"),
        (name(r#""\ud800""#), "json", "/name"),
        (name(r#""\udc00\ud800""#), "json", "/name"),
        (name("\"a\tb\""), "json", ""),
        (twice(&name("\"A\""), "name"), "duplicate_key", "/name"),
        (
            twice(&twice(&name("\"A\""), "unknown"), "unknown"),
            "duplicate_key",
            "/unknown",
        ),
        (
            with(
                gift_card("A"),
                "/gift_card/expiry",
                r#"{"type":"indefinite","in_months":1,"type":"indefinite"}"#,
            ),
            "duplicate_key",
            "/gift_card/expiry/type",
        ),
        (
            later("A", "prepaid_card", r#"{"deep":[{"a/b":"\u0000"}]}"#),
            "nul_character",
            "/prepaid_card/deep/0/a~1b",
        ),
        (
            with(
                gift_card("A"),
                "/gift_card/content_resources/description_md",
                r#""a\u0000""#,
            ),
            "nul_character",
            "/gift_card/content_resources/description_md",
        ),
        (with(gift_card("A"), "/name", "tru"), "json", ""),
        (with(gift_card("A"), "/name", "'A'"), "json", ""),
        (with(gift_card("A"), "/name", "NaN"), "json", ""),
        (
            with(
                gift_card("A"),
                "/gift_card/denominations/minimum_value",
                "010",
            ),
            "json",
            "",
        ),
    ] {
        let store = Store::new();
        let good = gift_card("G").to_string();
        let (exit, report) = store.try_load(format!("{good}\n{line}\n"));
        assert_eq!(exit, 3, "{line}");
        let faults = report["faults"].as_array().expect("faults");
        assert_eq!(faults.len(), 1, "{line}: {faults:?}");
        assert_eq!(
            (&faults[0]["rule"], &faults[0]["line"]),
            (&json!(rule), &json!(2)),
            "{line}"
        );
        assert_eq!(faults[0]["pointer"], pointer, "{line}");
        assert!(faults[0]["value"].is_string(), "{line}");
    }
}

#[test]
fn repeated_code_is_a_fault_at_its_second_place() {
    let store = Store::new();
    let [a, b] = [gift_card("A"), gift_card("B")].map(|product| product.to_string());
    let (exit, report) = store.try_load(format!("{a}\n{b}\n\n{a}\n"));
    assert_eq!(exit, 3);
    let faults = report["faults"].as_array().expect("faults");
    assert_eq!(faults.len(), 1, "{faults:?}");
    for (key, expected) in [
        ("rule", json!("code_duplicate")),
        ("pointer", json!("/code")),
        ("code", json!("A")),
        ("line", json!(4)),
        ("value", json!("\"A\"")),
    ] {
        assert_eq!(faults[0][key], expected, "{}", faults[0]);
    }
    assert!(
        faults[0]["message"]
            .as_str()
            .expect("text")
            .contains("tried.json:1")
    );
    // Codes are compared byte for byte.
    let lower = gift_card("a").to_string();
    assert_eq!(store.try_load(format!("{a}\n{lower}")).0, 0);
}

#[test]
fn code_in_two_files_is_a_fault_naming_both() {
    let store = Store::new();
    let kept = store.write("kept.json", gift_card("KEPT").to_string());
    store.load(&kept);
    let one = store.write(
        "one.json",
        format!("[{},{}]", gift_card("X"), gift_card("A")),
    );
    let two = store.write(
        "two.ndjson",
        format!("{}\n{}", gift_card("B"), gift_card("A")),
    );
    let (one, two) = (one.display().to_string(), two.display().to_string());
    let output = store.run(&["load", "--json", &one, &two]);
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let faults = report["faults"].as_array().expect("faults");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0]["rule"], "code_duplicate");
    assert_eq!(
        (&faults[0]["file"], &faults[0]["line"]),
        (&json!(two), &json!(2))
    );
    let message = faults[0]["message"].as_str().expect("a message");
    assert!(message.contains(&format!("{one}[1]")), "{message}");
    // The same file twice is every code twice.
    let twice = store.run(&["load", "--json", &one, &one]);
    assert_eq!(twice.status.code(), Some(3));
    assert_holds(&store, &kept, "after duplicates");
}

#[test]
fn text_report_shows_place_fault_and_remedy() {
    let store = Store::new();
    let bad = with(
        gift_card("NOPHONE"),
        "/customer_service/phone_number",
        "\"030 12345\"",
    );
    let file = store.write("feed.ndjson", format!("{}\n{bad}\n", gift_card("A")));
    let file = file.display().to_string();
    let output = store.run(&["load", &file]);
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    let place = format!("{file}:2");
    for part in [
        place.as_str(),
        "NOPHONE",
        "/customer_service/phone_number",
        "\"030 12345\"",
        "fault: phone_number, 1 time",
        "expected a telephone number",
        "leading plus sign",
        "1 fault",
        "nothing was changed",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    // What is refused is said where errors are said.
    assert_eq!(text(&output.stdout), "");
    let good = store.write("good.ndjson", gift_card("A").to_string());
    let good = good.display().to_string();
    let output = store.run(&["load", &good]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stdout).contains("1 created"),
        "{}",
        text(&output.stdout)
    );
    let output = store.run(&["load", &good]);
    assert!(
        text(&output.stdout).contains("nothing to do"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn report_shortens_values_and_names_codes() {
    let store = Store::new();
    let long = format!("\"{}\"", "ü".repeat(5_000));
    let (_, report) = store.try_load(with(gift_card("LONG"), "/state", &long));
    let fault = &report["faults"][0];
    assert_eq!(fault["code"], "LONG");
    let shown = fault["value"].as_str().expect("a value");
    assert!(
        shown.starts_with("\"üüü") && shown.chars().count() < 200,
        "{shown}"
    );
    assert!(shown.contains("10002 bytes"), "{shown}");
}
