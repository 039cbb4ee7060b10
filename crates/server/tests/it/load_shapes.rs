//! The whole form of each payout type as it is served: every key there, null or not; and payout types
//! added later, kept as they were loaded.

use serde_json::{Value, json};

use crate::harness::{Store, gift_card};
use crate::products::{later, payment, served, subscription, with, without};

/// Loads one product and reads it back.
fn round_trip(line: &str) -> Value {
    let store = Store::new();
    let (exit, report) = store.try_load(line);
    assert_eq!(exit, 0, "{report}");
    serde_json::from_str(&served(&store, "/v2/product/A")).expect("JSON")
}

fn no_texts() -> Value {
    json!({
        "description_markdown_url": null,
        "disclaimer_markdown_url": null,
        "refund_policy_markdown_url": null,
        "reissuance_policy_markdown_url": null,
        "terms_buyer_markdown_url": null,
        "terms_consumer_markdown_url": null,
        "redemption_instructions_markdown_url": null,
        "locale": "en_GB",
    })
}

/// Fields that gift cards and subscriptions show alike.
fn voucher() -> Value {
    json!({
        "assets": {"card_image_url": null, "icon_image_url": null, "primary_color": null},
        "balance_check_url": null,
        "content_resources": no_texts(),
        "expiry": {"date_policy": null, "in_months": 12, "type": "from-issue-date"},
        "redeemable_at": "all",
        "website_url": null,
        "barcode_format": null,
        "e_code_usage_type": "url-recommended",
    })
}

fn common(payout_type: &str, detail: Value) -> Value {
    let mut product = json!({
        "name": "Product A",
        "code": "A",
        "currency": "EUR",
        "state": "LIVE",
        "is_orderable": true,
        "payout_type": payout_type,
        "categories": ["fashion"],
        "countries_redeemable_in": ["DE"],
        "customer_service": {"phone_number": null, "website_url": null},
        "discount_multiplier": "0.05",
        "availability": "realtime",
    });
    product[payout_type] = detail;
    product
}

#[test]
fn gift_card_has_every_key_whether_loaded_or_not() {
    let mut detail = voucher();
    detail["denominations"] = json!({
        "type": "fixed",
        "minimum_value": "10.00",
        "maximum_value": "50.00",
        "available_list": ["10.00", "25.00", "50.00"],
    });
    let expected = common("gift_card", detail);
    assert_eq!(round_trip(&gift_card("A").to_string()), expected);
    let mut sparse = gift_card("A");
    for pointer in [
        "/customer_service/phone_number",
        "/customer_service/website_url",
        "/gift_card/assets/card_image_url",
        "/gift_card/assets/icon_image_url",
        "/gift_card/assets/primary_color",
        "/gift_card/balance_check_url",
        "/gift_card/website_url",
        "/gift_card/barcode_format",
        "/gift_card/expiry/date_policy",
        "/gift_card/content_resources/description_md",
        "/gift_card/content_resources/terms_consumer_md",
    ] {
        sparse = without(sparse, pointer);
    }
    assert_eq!(round_trip(&sparse.to_string()), expected);
}

#[test]
fn open_denomination_shows_null_or_its_suggestions() {
    let list = "/gift_card/denominations/available_list";
    let open = || {
        let mut product = gift_card("A");
        product["gift_card"]["denominations"]["type"] = json!("open");
        product
    };
    for line in [
        without(open(), list).to_string(),
        with(open(), list, "null"),
    ] {
        assert_eq!(round_trip(&line).pointer(list), Some(&Value::Null));
    }
    let suggested = with(open(), list, r#"[15,"20"]"#);
    assert_eq!(
        round_trip(&suggested).pointer(list),
        Some(&json!(["15.00", "20.00"]))
    );
}

#[test]
fn subscription_has_plans_and_no_denominations() {
    let mut detail = voucher();
    detail["subscription_plans"] = json!([{
        "length_unit": "MONTHS",
        "length": 3,
        "name": "Quarter",
        "price": "29.70",
        "subscription_plan_code": "A-3M",
    }]);
    let expected = common("subscription", detail);
    assert_eq!(round_trip(&subscription("A").to_string()), expected);
}

#[test]
fn payment_has_icon_and_colour_and_a_range() {
    let detail = |icon: Option<&str>, colour: Option<&str>| {
        json!({
            "assets": {"icon_image_url": icon, "primary_color": colour},
            "denominations": {"minimum_value": "1.00", "maximum_value": "500.00"},
            "content_resources": no_texts(),
        })
    };
    let full = detail(Some("https://a.example/i.png"), Some("#1A2B3C"));
    let served = round_trip(&payment("A").to_string());
    assert_eq!(served, common("payment", full));
    let bare = without(payment("A"), "/payment/assets/icon_image_url");
    let bare = without(bare, "/payment/assets/primary_color");
    let served = round_trip(&bare.to_string());
    assert_eq!(served, common("payment", detail(None, None)));
}

#[test]
fn every_enum_value_is_accepted_and_served() {
    for (pointer, values) in [
        (
            "/state",
            &["LIVE", "TEMPORARILY_DISABLED", "TEMPORARILY_DEGRADED"][..],
        ),
        ("/gift_card/redeemable_at", &["all", "online", "in-store"]),
        (
            "/gift_card/barcode_format",
            &[
                "code-128",
                "code-39",
                "QR",
                "ean-13",
                "pdf417",
                "ITF",
                "DATA_MATRIX",
                "other",
            ],
        ),
        (
            "/gift_card/e_code_usage_type",
            &["undefined", "url-recommended", "url-only"],
        ),
        (
            "/gift_card/expiry/type",
            &[
                "from-last-use",
                "from-last-balance-check",
                "from-issue-date",
                "indefinite",
                "do-not-show",
            ],
        ),
        ("/gift_card/denominations/type", &["open", "fixed"]),
        (
            "/subscription/subscription_plans/0/length_unit",
            &["DAYS", "MONTHS"],
        ),
    ] {
        for value in values {
            let product = if pointer.starts_with("/subscription") {
                subscription("A")
            } else {
                gift_card("A")
            };
            let line = with(product, pointer, &format!("\"{value}\""));
            assert_eq!(round_trip(&line).pointer(pointer), Some(&json!(value)));
        }
    }
}

#[test]
fn later_payout_type_is_served_as_it_was_loaded() {
    let store = Store::new();
    let detail = r#"{"z":1.50,"a":[1e3,-0,1E-7,12345678901234567890.10],"b":" not trimmed ","":"","n":null,"o":{"y":true,"x":"é\n\"\\雪"}}"#;
    let (exit, report) = store.try_load(later("A", "prepaid_card", detail));
    assert_eq!(exit, 0, "{report}");
    assert_eq!(report["warnings"], json!({}), "{report}");
    for target in ["/v2/product/A", "/v2/product", "/v2/product/A?content=html"] {
        let body = served(&store, target);
        let expected = format!("\"prepaid_card\":{detail}");
        assert!(body.contains(&expected), "{target}: {body}");
    }
    // Empty texts are none (docs/contract/resources.md#null-and-empty).
    for nothing in ["null", "\"\""] {
        let detail = format!("{{\"a\":1,\"content_resources\":{nothing}}}");
        let product = round_trip(&later("A", "prepaid_card", &detail));
        let expected = json!({"a": 1, "content_resources": null});
        assert_eq!(product["prepaid_card"], expected, "{nothing}");
    }
    let product: Value = serde_json::from_str(&served(&store, "/v2/product/A")).expect("JSON");
    assert_eq!(product["payout_type"], "prepaid_card");
    for other in ["gift_card", "subscription", "payment"] {
        assert_eq!(product.get(other), None);
    }
    // Escapes may be written otherwise; what they mean stays.
    let escaped = r#"{"a":"\u00e9\u2028\ud83d\ude00\/\b","\u0062":1}"#;
    let product = round_trip(&later("A", "prepaid_card", escaped));
    let expected: Value = serde_json::from_str(escaped).expect("JSON");
    assert_eq!(product["prepaid_card"], expected);
}

#[test]
fn only_texts_of_later_payout_types_are_checked() {
    let store = Store::new();
    let texts = r##"{"description_md":"# *Hi*","terms_buyer_markdown_url":"https://a.example/t.md","unknown":1,"locale":"de_DE"}"##;
    let detail = format!("{{\"b\":1.50,\"content_resources\":{texts},\"a\":\"x\"}}");
    let (exit, report) = store.try_load(later("A", "prepaid_card", &detail));
    assert_eq!(exit, 0, "{report}");
    let read = |form: &str| served(&store, &format!("/v2/product/A?content={form}"));
    for form in ["url", "md", "html"] {
        let body = read(form);
        assert!(
            body.contains(r#""prepaid_card":{"b":1.50,"content_resources":{"#),
            "{body}"
        );
        assert!(body.ends_with(r#"},"a":"x"}}"#), "{body}");
    }
    let content = |form: &str| {
        let product: Value = serde_json::from_str(&read(form)).expect("JSON");
        product["prepaid_card"]["content_resources"].clone()
    };
    let urls = content("url");
    let own = urls["description_markdown_url"]
        .as_str()
        .expect("an address");
    assert!(
        own.starts_with("http://SERVER/v2/texts/") && own.ends_with(".md"),
        "{own}"
    );
    assert_eq!(urls["terms_buyer_markdown_url"], "https://a.example/t.md");
    let md = content("md");
    assert_eq!(md["description_md"], "# *Hi*");
    assert_eq!(md["terms_buyer_md"], Value::Null);
    let html = content("html");
    let rendered = html["description_html"].as_str().expect("HTML");
    assert!(rendered.contains("<em>Hi</em>"), "{rendered}");
    for (form, suffix) in [(urls, "_markdown_url"), (md, "_md"), (html, "_html")] {
        let mut keys: Vec<&String> = form.as_object().expect("an object").keys().collect();
        assert_eq!(form["locale"], "de_DE");
        keys.retain(|key| key.ends_with(suffix));
        assert_eq!(keys.len(), 7, "{form}");
        assert_eq!(form.as_object().expect("an object").len(), 8, "{form}");
    }
}
