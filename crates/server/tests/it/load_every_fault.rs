//! One file that breaks every rule that a line of JSON can break, most of them in several ways: each fault
//! is reported in one run, to programs, to people and in the complete report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::fault_case::{Case, wrong};
use crate::harness::{Store, gift_card, text};
use crate::products::{assert_holds, later, payment, served, subscription, with, without};

/// Rules in the sources that no line of JSON can break: of other inputs, of other data, and warnings.
const OTHERS: [&str; 32] = [
    "formula_without_value",
    "header",
    "hidden_rows",
    "merged_cells",
    "suspicious_characters",
    "html_in_text",
    "code",
    "array_within",
    "code_differs_in_case",
    "column_missing",
    "detail_too_large",
    "name_too_long",
    "too_many_items",
    "empty",
    "retired_and_loaded",
    "text_blank",
    "thousands_separator",
    "text_path",
    "text_file",
    "text_link",
    "product_not_loaded",
    "product_not_live",
    "texts_not_kept",
    "assortment",
    "discount",
    "quota",
    "share",
    "text_damaged",
    "text_digest",
    "text_name",
    "findings_cut",
    "retired_already",
];

/// Values of a gift card that break a rule each: where, what, which.
const OF_GIFT_CARDS: [(&str, &str, &str); 34] = [
    ("/name", "null", "required"),
    ("/name", "\"\"", "required"),
    ("/name", "\" \"", "required"),
    ("/name", r#""a\u0000b""#, "nul_character"),
    ("/name", r#""\ud800""#, "json"),
    ("/code", "\"A B\"", "code_pattern"),
    ("/code", "\"changes\"", "code_reserved"),
    ("/code", "\"undefined\"", "code_reserved"),
    ("/currency", "\"eur\"", "currency"),
    ("/state", "\"live\"", "state"),
    ("/is_orderable", "1", "type"),
    ("/categories", "\"fashion\"", "type"),
    ("/categories/0", "7", "type"),
    ("/countries_redeemable_in/0", "\"UK\"", "country"),
    ("/customer_service/phone_number", "\"0301\"", "phone_number"),
    ("/customer_service/website_url", "\"/help\"", "url"),
    ("/discount_multiplier", "2", "discount_multiplier"),
    ("/discount_multiplier", "\"5%\"", "discount_multiplier"),
    ("/availability", "\"soon\"", "availability"),
    ("/payout_type", "\"name\"", "payout_type"),
    ("/gift_card/redeemable_at", "\"x\"", "redeemable_at"),
    ("/gift_card/barcode_format", "\"qr\"", "barcode_format"),
    (
        "/gift_card/e_code_usage_type",
        "\"url\"",
        "e_code_usage_type",
    ),
    ("/gift_card/expiry/type", "\"never\"", "expiry_type"),
    ("/gift_card/expiry/in_months", "1.5", "whole_number"),
    (
        "/gift_card/denominations/type",
        "\"range\"",
        "denominations_type",
    ),
    (
        "/gift_card/denominations/minimum_value",
        "50.01",
        "amount_order",
    ),
    (
        "/gift_card/denominations/available_list/0",
        "9.99",
        "amount_outside",
    ),
    (
        "/gift_card/denominations/available_list",
        "[]",
        "list_empty",
    ),
    ("/gift_card/assets/primary_color", "\"red\"", "colour"),
    (
        "/gift_card/assets/card_image_url",
        "\"javascript:x\"",
        "url",
    ),
    ("/gift_card/content_resources/locale", "\"en\"", "locale"),
    (
        "/gift_card/content_resources/disclaimer_html",
        "\"x\"",
        "html_loaded",
    ),
    (
        "/gift_card/content_resources/description_md",
        "\"<!-- x -->\"",
        "text_renders_empty",
    ),
];

/// More amounts than the text shows of one rule.
const NO_AMOUNTS: [&str; 13] = [
    "-1",
    "1e2",
    "1.005",
    "\"+1\"",
    "\"1,50\"",
    "\"€5\"",
    "\"ten\"",
    "\".5\"",
    "\"5.\"",
    "\"1 000\"",
    "\"1_000\"",
    "\"0x10\"",
    "\"1000000000000000\"",
];

/// Number of examples of a rule in the text.
const SHOWN: usize = 10;

/// A value as reports show it.
fn shortened(value: &str) -> String {
    match value.char_indices().nth(120) {
        Some((end, _)) => format!("{}… ({} bytes)", &value[..end], value.len()),
        None => value.to_owned(),
    }
}

/// The cases whose fault is a value in its place, each in a record with a code of its own.
fn wrong_values() -> Vec<Case> {
    let mut codes = (0..).map(|number| format!("V{number:02}"));
    let mut code = || codes.next().expect("one more");
    let minimum = "/gift_card/denominations/minimum_value";
    let mut cases = Vec::new();
    for raw in NO_AMOUNTS {
        cases.push(wrong(gift_card(&code()), minimum, raw, "amount"));
    }
    for (pointer, raw, rule) in OF_GIFT_CARDS {
        cases.push(wrong(gift_card(&code()), pointer, raw, rule));
    }
    let plan = "/subscription/subscription_plans/0";
    for (pointer, raw, rule) in [
        (format!("{plan}/length_unit"), "\"YEARS\"", "length_unit"),
        (format!("{plan}/length"), "0", "whole_number"),
        (
            "/subscription/subscription_plans".to_owned(),
            "[]",
            "list_empty",
        ),
    ] {
        cases.push(wrong(subscription(&code()), &pointer, raw, rule));
    }
    let other = wrong(payment(&code()), "/subscription", "{}", "detail_mismatch");
    let long = format!("\"{}\"", "x".repeat((1 << 20) + 1));
    let markdown = "/gift_card/content_resources/terms_buyer_md";
    let mut long = wrong(gift_card(&code()), markdown, &long, "text_too_long");
    long.value = long.value.map(|value| shortened(&value));
    cases.extend([other, long]);
    cases
}

/// The cases whose fault is what isn't there, stands twice or can't be read. `GOOD` is taken already.
fn wrong_shapes() -> Vec<Case> {
    let case = |line: String, rule, pointer: &str, code: Option<&str>, value: Option<&str>| Case {
        line,
        rule,
        pointer: pointer.to_owned(),
        code: code.map(str::to_owned),
        value: value.map(str::to_owned),
    };
    let card = |code| gift_card(code).to_string();
    let twice = card("TWICE").replacen('{', "{\"name\":1,", 1);
    // Becomes Latin-1, which isn't UTF-8.
    let latin = with(gift_card("LATIN"), "/name", "\"Caf\u{e9}\"");
    let replaced = shortened(&latin.replace('\u{e9}', "\u{fffd}"));
    let huge = format!("{{\"name\":\"{}", "x".repeat(17 << 20));
    let start = format!("{}…", &huge[..120]);
    let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    let deep = later("DEEP", "prepaid_card", &format!("{{\"a\":{deep}}}"));
    let at_65 = format!("/prepaid_card/a{}", "/0".repeat(63));
    let absent = |code, pointer| without(gift_card(code), pointer).to_string();
    vec![
        case(
            absent("NAMELESS", "/name"),
            "required",
            "/name",
            Some("NAMELESS"),
            None,
        ),
        case(absent("X", "/code"), "required", "/code", None, None),
        case(
            absent("BARE", "/gift_card"),
            "detail_missing",
            "/gift_card",
            Some("BARE"),
            None,
        ),
        case(
            twice,
            "duplicate_key",
            "/name",
            Some("TWICE"),
            Some("\"Product TWICE\""),
        ),
        case(
            card("GOOD"),
            "code_duplicate",
            "/code",
            Some("GOOD"),
            Some("\"GOOD\""),
        ),
        case(
            "{\"code\":".to_owned(),
            "json",
            "",
            None,
            Some("{\"code\":"),
        ),
        case("7".to_owned(), "type", "", None, Some("7")),
        case(latin, "utf8", "", None, Some(&replaced)),
        case(huge, "record_too_large", "", None, Some(&start)),
        case(
            deep,
            "nesting",
            &at_65,
            Some("DEEP"),
            Some("[[[[[[[]]]]]]]"),
        ),
    ]
}

/// Adds the rules that the sources in a folder name: the first word in lower case between quotes after a constructor.
fn add_rules(folder: &Path, rules: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            add_rules(&path, rules);
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a source");
        for start in ["Invalid::new(", "Finding::fault(", "contract_enum!("] {
            let quoted = |rest: &str| rest.split('"').nth(1).map(str::to_owned);
            let is_rule = |rule: &String| {
                let is_part = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_');
                !rule.is_empty() && rule.bytes().all(is_part)
            };
            let named = source.split(start).skip(1).filter_map(quoted);
            rules.extend(named.filter(is_rule));
        }
    }
}

/// The rules that a line of JSON can break, by the sources.
fn rules_of_records() -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    for folder in ["model/src", "ingest/src/load"] {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        add_rules(&crates.join(folder), &mut rules);
    }
    let unknown: Vec<_> = OTHERS
        .iter()
        .filter(|rule| !rules.contains(**rule))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    rules.retain(|rule| !OTHERS.contains(&rule.as_str()));
    rules
}

/// A good line, one with two faults, then each case on a line of its own.
fn file_of(cases: &[Case]) -> Vec<u8> {
    let two = with(gift_card("TWO"), "/currency", "\"ZZZ\"").replace("\"LIVE\"", "\"DEAD\"");
    let mut content = format!("{}\n{two}\n\n", gift_card("GOOD")).into_bytes();
    for case in cases {
        for character in case.line.chars() {
            match character {
                '\u{e9}' => content.push(0xe9),
                other => content.extend(other.to_string().bytes()),
            }
        }
        content.push(b'\n');
    }
    content
}

/// Returns the expected faults, by line: line, code, pointer, value, rule.
fn expected(cases: &[Case]) -> Vec<Value> {
    let of = |line: usize, code: Value, pointer: &str, value: Value, rule: &str| json!({"line": line, "code": code, "pointer": pointer, "value": value, "rule": rule});
    let mut faults = vec![
        of(2, json!("TWO"), "/currency", json!("\"ZZZ\""), "currency"),
        of(2, json!("TWO"), "/state", json!("\"DEAD\""), "state"),
    ];
    // The third line is empty.
    faults.extend((4..).zip(cases).map(|(line, case)| {
        let (code, value) = (json!(case.code), json!(case.value));
        of(line, code, &case.pointer, value, case.rule)
    }));
    faults
}

/// Returns the faults of a report, without file and message, which all must have.
fn fault_rows(faults: &Value, file: &str) -> Vec<Value> {
    let told = |fault: &Value| {
        assert_eq!(fault["file"], file, "{fault}");
        let message = fault["message"].as_str().expect("a message");
        assert!(message.starts_with("expected "), "{fault}");
        let names = ["line", "code", "pointer", "value", "rule"];
        names
            .map(|name| (name, fault[name].clone()))
            .into_iter()
            .collect()
    };
    faults
        .as_array()
        .expect("faults")
        .iter()
        .map(told)
        .collect()
}

#[test]
fn every_fault_of_a_file_is_reported_in_one_run() {
    let cases: Vec<Case> = wrong_values().into_iter().chain(wrong_shapes()).collect();
    let expected = expected(&cases);
    let rules: BTreeSet<String> = cases.iter().map(|case| case.rule.to_owned()).collect();
    let untested: Vec<_> = rules_of_records().difference(&rules).cloned().collect();
    assert!(untested.is_empty(), "rules without a case: {untested:?}");
    let distinct: BTreeSet<String> = expected
        .iter()
        .map(|fault| format!("{} {} {}", fault["rule"], fault["pointer"], fault["value"]))
        .collect();
    assert!(distinct.len() >= 40 && distinct.len() == expected.len());

    let store = Store::new();
    let kept = store.write("kept.json", gift_card("KEPT").to_string());
    store.load(&kept);
    let before = served(&store, "/v2/product");
    let file = store.write("faults.ndjson", file_of(&cases));
    let file = file.display().to_string();
    let output = store.run(&["load", "--json", &file]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(fault_rows(&report["faults"], &file), expected);
    assert_eq!(report["fault_count"], json!(expected.len()));
    assert_eq!(
        (&report["applied"], &report["revision"]),
        (&json!(false), &Value::Null)
    );

    let output = store.run(&["load", &file]);
    assert_eq!(output.status.code(), Some(3));
    assert_names_all(&text(&output.stderr), &report["faults"]);
    assert_holds(&store, &kept, "after every fault");
    assert_eq!(served(&store, "/v2/product"), before);
}

/// Asserts that a text has a group for each rule, with how many there are, and the first ten word by word.
fn assert_names_all(said: &str, faults: &Value) {
    let mut by_rule: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for fault in faults.as_array().expect("faults") {
        by_rule
            .entry(fault["rule"].as_str().expect("a rule"))
            .or_default()
            .push(fault);
    }
    let groups: Vec<&str> = said.split("fault: ").skip(1).collect();
    let named = groups
        .iter()
        .map(|group| group.split(',').next().expect("a rule"));
    assert!(named.eq(by_rule.keys().copied()), "{said}");
    for (group, (rule, faults)) in groups.into_iter().zip(&by_rule) {
        let times = if faults.len() == 1 { "time" } else { "times" };
        let heading = format!("{rule}, {} {times}: ", faults.len());
        assert!(group.starts_with(&heading), "{heading} in {group}");
        // Each message once, above the faults that have it.
        let mut by_message: Vec<(&str, String)> = Vec::new();
        for fault in faults.iter().take(SHOWN) {
            let part = |name: &str| fault[name].as_str().filter(|part| !part.is_empty());
            let place = format!("{}:{}", part("file").expect("a file"), fault["line"]);
            let parts = ["code", "pointer", "value"].into_iter().filter_map(part);
            let parts: Vec<&str> = std::iter::once(&*place).chain(parts).collect();
            let line = format!("      {}\n", parts.join("  "));
            let message = fault["message"].as_str().expect("a message");
            match by_message.iter_mut().find(|(other, _)| *other == message) {
                Some((_, lines)) => lines.push_str(&line),
                None => by_message.push((message, line)),
            }
        }
        let words = by_message
            .iter()
            .map(|(message, lines)| format!("  {message}\n{lines}"));
        let words: String = words.collect();
        let (_, rest) = group
            .split_once(&*format!("\n{words}"))
            .unwrap_or_else(|| panic!("{words} in {group}"));
        let more = faults.len().saturating_sub(SHOWN);
        assert_eq!(group.contains("… and "), more > 0, "{group}");
        assert!(
            more == 0 || rest.starts_with(&format!("  … and {more} more\n")),
            "{group}"
        );
    }
    let amounts = &by_rule["amount"];
    let lines = [amounts.first(), amounts.last()].map(|fault| fault.expect("one")["line"].clone());
    assert!(
        said.contains(&format!(" line {}–{}\n", lines[0], lines[1])),
        "{said}"
    );
}
