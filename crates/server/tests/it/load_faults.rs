//! Refused fields: wrong types, missing fields, codes.

use serde_json::Value;

use crate::fault_case::{Case, assert_refused, wrong};
use crate::harness::gift_card;
use crate::products::{later, payment, subscription, with, without};

#[test]
fn wrong_type_is_one_fault() {
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
        ("/customer_service", "\"x\""),
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
    for (pointer, raw) in [
        ("/payment/assets", "\"x\""),
        ("/payment/denominations", "5"),
    ] {
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

/// The required fields of a gift card.
const REQUIRED: [&str; 18] = [
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
    "/gift_card/denominations",
    "/gift_card/denominations/type",
    "/gift_card/denominations/minimum_value",
    "/gift_card/denominations/maximum_value",
];

#[test]
fn missing_empty_or_null_required_field_is_one_fault() {
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
                    code: (!is_code).then(|| "A".to_owned()),
                    value: raw.map(str::to_owned),
                });
            }
        }
    };
    required(gift_card, &REQUIRED);
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
fn code_that_cannot_stand_in_a_path_is_one_fault() {
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

#[test]
fn missing_detail_object_or_list_is_one_fault() {
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
