//! What a load refuses: one thing wrong, one fault, with its rule, place, code, value and message.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Store, gift_card, text};
use crate::products::{assert_holds, later, payment, subscription, with, without};

/// A record with one thing wrong, and what the one fault about it must say.
struct Case {
    line: String,
    rule: &'static str,
    pointer: String,
    code: Option<String>,
    /// `None` where the value isn't there; what can't be parsed is shown from its start.
    value: Option<String>,
}

/// The product with `raw` at `pointer`, which is to be the fault's place and value.
fn wrong(product: Value, pointer: &str, raw: &str, rule: &'static str) -> Case {
    let code = match pointer {
        "/code" => serde_json::from_str(raw).expect("JSON"),
        _ => product["code"].as_str().map(str::to_owned),
    };
    Case {
        line: with(product, pointer, raw),
        rule,
        pointer: pointer.to_owned(),
        code,
        value: Some(raw.to_owned()),
    }
}

/// Loads all cases in one file: each line must have its one fault.
fn assert_refused(cases: &[Case]) {
    let store = Store::new();
    let kept = store.write("kept.json", gift_card("KEPT").to_string());
    store.load(&kept);
    let lines: Vec<&str> = cases.iter().map(|case| case.line.as_str()).collect();
    let (exit, report) = store.try_load(lines.join("\n"));
    assert_eq!((exit, &report["applied"]), (3, &json!(false)));
    let mut by_line: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    for fault in report["faults"].as_array().expect("faults") {
        let line = fault["line"].as_u64().expect("a line");
        by_line.entry(line).or_default().push(fault);
    }
    for (number, case) in (1..).zip(cases) {
        let faults = by_line.remove(&number).unwrap_or_default();
        let [fault] = faults.as_slice() else {
            panic!("{}: {faults:#?}", case.line);
        };
        assert_eq!(fault["rule"], case.rule, "{fault}");
        assert_eq!(fault["pointer"], json!(case.pointer), "{fault}");
        assert_eq!(fault["code"], json!(case.code), "{fault}");
        match &case.value {
            Some(value) if value.starts_with('^') => {
                let shown = fault["value"].as_str().expect("a value");
                assert!(shown.starts_with(&value[1..]), "{fault}");
            }
            value => assert_eq!(fault["value"], json!(value), "{fault}"),
        }
        let message = fault["message"].as_str().expect("a message");
        assert!(message.starts_with("expected "), "{fault}");
    }
    assert_eq!(by_line.len(), 0, "{by_line:?}");
    assert_holds(&store, &kept, "after faults");
}

#[test]
fn a_wrong_type_is_one_fault() {
    let gift_card_fields = [
        ("/name", "7"),
        ("/code", "null"),
        ("/currency", "[\"EUR\"]"),
        ("/state", "true"),
        ("/is_orderable", "\"true\""),
        ("/is_orderable", "1"),
        ("/categories", "\"fashion\""),
        ("/categories/0", "7"),
        ("/countries_redeemable_in", "{}"),
        ("/countries_redeemable_in/0", "[]"),
        ("/customer_service", "\"\""),
        ("/customer_service/phone_number", "18002425353"),
        ("/customer_service/website_url", "{}"),
        ("/discount_multiplier", "true"),
        ("/availability", "1"),
        ("/gift_card", "[]"),
        ("/gift_card", "\"x\""),
        ("/gift_card/assets", "[]"),
        ("/gift_card/assets/primary_color", "5592414"),
        ("/gift_card/balance_check_url", "false"),
        ("/gift_card/content_resources", "\"x\""),
        ("/gift_card/content_resources/locale", "1"),
        ("/gift_card/content_resources/description_md", "1"),
        (
            "/gift_card/content_resources/description_markdown_url",
            "[]",
        ),
        ("/gift_card/expiry", "12"),
        ("/gift_card/expiry/date_policy", "12"),
        ("/gift_card/expiry/in_months", "\"12\""),
        ("/gift_card/expiry/in_months", "true"),
        ("/gift_card/denominations", "[]"),
        ("/gift_card/denominations/minimum_value", "{}"),
        ("/gift_card/denominations/available_list", "\"10.00\""),
        ("/gift_card/denominations/available_list/1", "true"),
    ];
    let mut cases: Vec<Case> = gift_card_fields
        .into_iter()
        .filter(|(pointer, _)| *pointer != "/code")
        .map(|(pointer, raw)| wrong(gift_card("A"), pointer, raw, "type"))
        .collect();
    for (pointer, raw) in [
        ("/subscription/subscription_plans", "{}"),
        ("/subscription/subscription_plans/0", "\"3M\""),
        ("/subscription/subscription_plans/0/length", "\"3\""),
        ("/subscription/subscription_plans/0/name", "3"),
        ("/subscription/subscription_plans/0/price", "[]"),
    ] {
        cases.push(wrong(subscription("S"), pointer, raw, "type"));
    }
    for (pointer, raw) in [("/payment/assets", "\"\""), ("/payment/denominations", "5")] {
        cases.push(wrong(payment("P"), pointer, raw, "type"));
    }
    cases.push(Case {
        line: with(gift_card("A"), "/code", "7"),
        rule: "type",
        pointer: "/code".to_owned(),
        code: None,
        value: Some("7".to_owned()),
    });
    assert_refused(&cases);
}

#[test]
fn a_missing_empty_or_null_required_field_is_one_fault() {
    let mut cases = Vec::new();
    let mut required = |product: fn(&str) -> Value, pointers: &[&str]| {
        for pointer in pointers {
            let is_text = product("A").pointer(pointer).is_some_and(Value::is_string);
            let is_code = *pointer == "/code";
            for raw in [None, Some("null"), is_text.then_some("\"\"")] {
                cases.push(Case {
                    line: match raw {
                        Some(raw) => with(product("A"), pointer, raw),
                        None => without(product("A"), pointer).to_string(),
                    },
                    rule: "required",
                    pointer: (*pointer).to_owned(),
                    code: match (is_code, raw) {
                        (false, _) => Some("A".to_owned()),
                        (true, Some("\"\"")) => Some(String::new()),
                        (true, _) => None,
                    },
                    value: raw.map(str::to_owned),
                });
            }
        }
    };
    required(
        gift_card,
        &[
            "/name",
            "/code",
            "/currency",
            "/state",
            "/is_orderable",
            "/payout_type",
            "/categories",
            "/countries_redeemable_in",
            "/customer_service",
            "/discount_multiplier",
            "/gift_card/expiry",
            "/gift_card/expiry/in_months",
            "/gift_card/expiry/type",
            "/gift_card/redeemable_at",
            "/gift_card/e_code_usage_type",
            "/gift_card/denominations",
            "/gift_card/denominations/type",
            "/gift_card/denominations/minimum_value",
            "/gift_card/denominations/maximum_value",
        ],
    );
    required(
        subscription,
        &[
            "/subscription/subscription_plans",
            "/subscription/subscription_plans/0/length_unit",
            "/subscription/subscription_plans/0/length",
            "/subscription/subscription_plans/0/name",
            "/subscription/subscription_plans/0/price",
            "/subscription/subscription_plans/0/subscription_plan_code",
        ],
    );
    required(
        payment,
        &[
            "/payment/denominations",
            "/payment/denominations/minimum_value",
            "/payment/denominations/maximum_value",
        ],
    );
    // A text may be absent where the field isn't; so each text gave three cases, the rest two.
    cases.dedup_by(|a, b| a.line == b.line);
    assert_refused(&cases);
    for empty in [
        "/categories/0",
        "/countries_redeemable_in/0",
        "/gift_card/denominations/available_list/0",
    ] {
        assert_refused(&[wrong(gift_card("A"), empty, "\"\"", "required")]);
    }
}

#[test]
fn a_code_that_cannot_stand_in_a_path_is_one_fault() {
    let mut cases = Vec::new();
    for code in ["categories", "countries", "changes", ".", ".."] {
        let raw = format!("\"{code}\"");
        cases.push(wrong(gift_card("A"), "/code", &raw, "code_reserved"));
    }
    let long = "x".repeat(65);
    for code in [
        "A/B", "A B", "A%42", "Ä", "A,B", "A+B", "A*", "A:B", "A?", "A#", &long,
    ] {
        let raw = format!("\"{code}\"");
        cases.push(wrong(gift_card("A"), "/code", &raw, "code_pattern"));
    }
    assert_refused(&cases);
}

/// Wrong values of a gift card: where, what, and the rule.
const WRONG_VALUES: [(&str, &str, &str); 66] = [
    ("/currency", r#""eur""#, "currency"),
    ("/currency", r#""ZZZ""#, "currency"),
    ("/currency", r#""EURO""#, "currency"),
    ("/currency", r#""EU""#, "currency"),
    ("/countries_redeemable_in/0", r#""UK""#, "country"),
    ("/countries_redeemable_in/0", r#""ZZ""#, "country"),
    ("/countries_redeemable_in/0", r#""us""#, "country"),
    ("/countries_redeemable_in/0", r#""DEU""#, "country"),
    ("/state", r#""live""#, "state"),
    ("/state", r#""DISABLED""#, "state"),
    ("/availability", r#""Stocked""#, "availability"),
    ("/availability", r#""none""#, "availability"),
    ("/payout_type", r#""name""#, "payout_type"),
    ("/payout_type", r#""availability""#, "payout_type"),
    ("/payout_type", r#""Gift_card""#, "payout_type"),
    ("/payout_type", r#""gift-card""#, "payout_type"),
    ("/payout_type", r#""_card""#, "payout_type"),
    ("/payout_type", r#""9card""#, "payout_type"),
    (
        "/gift_card/redeemable_at",
        r#""everywhere""#,
        "redeemable_at",
    ),
    ("/gift_card/redeemable_at", r#""in_store""#, "redeemable_at"),
    ("/gift_card/barcode_format", r#""qr""#, "barcode_format"),
    ("/gift_card/barcode_format", r#""none""#, "barcode_format"),
    (
        "/gift_card/e_code_usage_type",
        r#""url""#,
        "e_code_usage_type",
    ),
    ("/gift_card/expiry/type", r#""never""#, "expiry_type"),
    ("/gift_card/expiry/in_months", "-1", "whole_number"),
    ("/gift_card/expiry/in_months", "1.5", "whole_number"),
    (
        "/gift_card/denominations/type",
        r#""range""#,
        "denominations_type",
    ),
    (
        "/gift_card/denominations/minimum_value",
        r#""-1""#,
        "amount",
    ),
    ("/gift_card/denominations/minimum_value", "-1", "amount"),
    (
        "/gift_card/denominations/minimum_value",
        r#""+1""#,
        "amount",
    ),
    (
        "/gift_card/denominations/minimum_value",
        r#""1e1""#,
        "amount",
    ),
    (
        "/gift_card/denominations/maximum_value",
        r#""1e2""#,
        "amount",
    ),
    ("/gift_card/denominations/maximum_value", "1e2", "amount"),
    ("/gift_card/denominations/maximum_value", "1E2", "amount"),
    (
        "/gift_card/denominations/minimum_value",
        r#""1.005""#,
        "amount",
    ),
    ("/gift_card/denominations/minimum_value", "1.005", "amount"),
    (
        "/gift_card/denominations/minimum_value",
        r#""abc""#,
        "amount",
    ),
    (
        "/gift_card/denominations/minimum_value",
        r#""1,50""#,
        "amount",
    ),
    (
        "/gift_card/denominations/minimum_value",
        r#""€5""#,
        "amount",
    ),
    ("/gift_card/denominations/minimum_value", r#""٣""#, "amount"),
    (
        "/gift_card/denominations/available_list/2",
        r#""1.005""#,
        "amount",
    ),
    ("/gift_card/denominations/available_list/2", "-0", "amount"),
    (
        "/gift_card/denominations/minimum_value",
        r#""50.01""#,
        "amount_order",
    ),
    (
        "/gift_card/denominations/available_list/0",
        r#""9.99""#,
        "amount_outside",
    ),
    (
        "/gift_card/denominations/available_list/2",
        "50.01",
        "amount_outside",
    ),
    (
        "/gift_card/denominations/available_list",
        "[]",
        "list_empty",
    ),
    ("/discount_multiplier", r#""1.01""#, "discount_multiplier"),
    ("/discount_multiplier", "1.01", "discount_multiplier"),
    ("/discount_multiplier", r#""-0.1""#, "discount_multiplier"),
    ("/discount_multiplier", "-0.1", "discount_multiplier"),
    ("/discount_multiplier", r#""1e-2""#, "discount_multiplier"),
    ("/discount_multiplier", r#""5%""#, "discount_multiplier"),
    (
        "/customer_service/phone_number",
        r#""18002425353""#,
        "phone_number",
    ),
    (
        "/customer_service/phone_number",
        r#""+abc""#,
        "phone_number",
    ),
    (
        "/customer_service/website_url",
        r#""javascript:alert(1)""#,
        "url",
    ),
    ("/customer_service/website_url", r#""/help""#, "url"),
    ("/gift_card/website_url", r#""www.shop.example""#, "url"),
    (
        "/gift_card/balance_check_url",
        r#""ftp://shop.example/""#,
        "url",
    ),
    (
        "/gift_card/assets/icon_image_url",
        r#""data:image/png,x""#,
        "url",
    ),
    (
        "/gift_card/assets/card_image_url",
        r#""//a.example/c.png""#,
        "url",
    ),
    ("/gift_card/assets/primary_color", r#""51559E""#, "colour"),
    ("/gift_card/assets/primary_color", r##""#5155""##, "colour"),
    (
        "/gift_card/content_resources/locale",
        r#""en-GB""#,
        "locale",
    ),
    ("/gift_card/content_resources/locale", r#""en""#, "locale"),
    (
        "/gift_card/content_resources/terms_buyer_markdown_url",
        r#""javascript:x""#,
        "url",
    ),
    (
        "/gift_card/content_resources/terms_buyer_html",
        r#""<p>T</p>""#,
        "html_loaded",
    ),
];

#[test]
fn a_wrong_value_is_one_fault() {
    let cases: Vec<Case> = WRONG_VALUES
        .iter()
        .map(|(pointer, raw, rule)| wrong(gift_card("A"), pointer, raw, rule))
        .collect();
    assert_refused(&cases);
}

#[test]
fn a_wrong_value_of_another_payout_type_is_one_fault() {
    let mut cases = Vec::new();
    for (pointer, raw, rule) in [
        ("/subscription/subscription_plans", "[]", "list_empty"),
        (
            "/subscription/subscription_plans/0/length",
            "0",
            "whole_number",
        ),
        (
            "/subscription/subscription_plans/0/length",
            "-3",
            "whole_number",
        ),
        (
            "/subscription/subscription_plans/0/length_unit",
            r#""YEARS""#,
            "length_unit",
        ),
        (
            "/subscription/subscription_plans/0/price",
            r#""29.705""#,
            "amount",
        ),
        (
            "/subscription/redeemable_at",
            r#""nowhere""#,
            "redeemable_at",
        ),
        (
            "/subscription/content_resources/disclaimer_html",
            r#""x""#,
            "html_loaded",
        ),
    ] {
        cases.push(wrong(subscription("S"), pointer, raw, rule));
    }
    for (pointer, raw, rule) in [
        (
            "/payment/denominations/minimum_value",
            r#""500.01""#,
            "amount_order",
        ),
        ("/payment/assets/icon_image_url", r#""icon.png""#, "url"),
        ("/payment/assets/primary_color", r#""red""#, "colour"),
        (
            "/payment/content_resources/description_html",
            r#""x""#,
            "html_loaded",
        ),
        ("/gift_card", "{}", "detail_mismatch"),
        ("/subscription", "{}", "detail_mismatch"),
    ] {
        cases.push(wrong(payment("P"), pointer, raw, rule));
    }
    for (key, raw, rule) in [
        ("description_html", r#""x""#, "html_loaded"),
        ("description_markdown_url", r#""x""#, "url"),
        ("locale", r#""en-GB""#, "locale"),
    ] {
        let detail = format!("{{\"content_resources\":{{\"{key}\":{raw}}}}}");
        cases.push(Case {
            line: later("L", "prepaid_card", &detail),
            rule,
            pointer: format!("/prepaid_card/content_resources/{key}"),
            code: Some("L".to_owned()),
            value: Some(raw.to_owned()),
        });
    }
    assert_refused(&cases);
}

#[test]
fn a_missing_detail_object_or_list_is_one_fault() {
    let detail = |product: String, key: &str, value: Option<&str>| Case {
        line: product,
        rule: "detail_missing",
        pointer: format!("/{key}"),
        code: Some("A".to_owned()),
        value: value.map(str::to_owned),
    };
    let list = "/gift_card/denominations/available_list";
    let list_empty = |line: String| Case {
        line,
        rule: "list_empty",
        pointer: list.to_owned(),
        code: Some("A".to_owned()),
        value: None,
    };
    assert_refused(&[
        detail(
            without(gift_card("A"), "/gift_card").to_string(),
            "gift_card",
            None,
        ),
        detail(
            with(gift_card("A"), "/gift_card", "null"),
            "gift_card",
            Some("null"),
        ),
        detail(
            without(subscription("A"), "/subscription").to_string(),
            "subscription",
            None,
        ),
        detail(
            without(payment("A"), "/payment").to_string(),
            "payment",
            None,
        ),
        detail(
            later("A", "prepaid_card", "null"),
            "prepaid_card",
            Some("null"),
        ),
        list_empty(without(gift_card("A"), list).to_string()),
    ]);
}
