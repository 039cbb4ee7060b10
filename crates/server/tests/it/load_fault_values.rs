//! Refused values of the right type: each breaks one rule of the contract.

use crate::fault_case::{Case, assert_refused, wrong};
use crate::harness::gift_card;
use crate::products::{later, payment, subscription};

/// Wrong values of a gift card: where, what, and the rule.
const WRONG_VALUES: [(&str, &str, &str); 67] = [
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
        "/discount_multiplier",
        r#""0.00000000000000000000000000001""#,
        "discount_multiplier",
    ),
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
fn wrong_value_is_one_fault() {
    let cases: Vec<Case> = WRONG_VALUES
        .iter()
        .map(|(pointer, raw, rule)| wrong(gift_card("A"), pointer, raw, rule))
        .collect();
    assert_refused(&cases);
}

#[test]
fn wrong_value_of_another_payout_type_is_one_fault() {
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
