//! Values on their way from a file to an answer, and warnings about them.

use serde_json::{Value, json};

use crate::harness::{Store, gift_card};
use crate::products::{payment, served, subscription, with, without};

/// Loads one product and reads it back; with the load's report.
fn round_trip(line: &str) -> (Value, Value) {
    let store = Store::new();
    let (exit, report) = store.try_load(line);
    assert_eq!(exit, 0, "{report}");
    let body = served(&store, "/v2/product/A");
    (serde_json::from_str(&body).expect("JSON"), report)
}

/// The warnings of a report as `rule pointer`, sorted.
fn warnings(report: &Value) -> Vec<String> {
    let groups = report["warnings"].as_object().expect("groups");
    let mut found: Vec<String> = groups
        .iter()
        .flat_map(|(rule, group)| {
            let examples = group["examples"].as_array().expect("examples");
            let line = move |finding: &Value| {
                format!("{rule} {}", finding["pointer"].as_str().expect("a pointer"))
            };
            examples.iter().map(line)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn absent_e_code_usage_type_becomes_undefined() {
    let pointer = "/gift_card/e_code_usage_type";
    for line in [
        without(gift_card("A"), pointer).to_string(),
        with(gift_card("A"), pointer, "null"),
        with(gift_card("A"), pointer, r#""""#),
    ] {
        let (product, report) = round_trip(&line);
        assert_eq!(product["gift_card"]["e_code_usage_type"], "undefined");
        assert_eq!(warnings(&report), [format!("default_used {pointer}")]);
    }
    let pointer = "/subscription/e_code_usage_type";
    let (product, _) = round_trip(&without(subscription("A"), pointer).to_string());
    assert_eq!(product["subscription"]["e_code_usage_type"], "undefined");
}

#[test]
fn amounts_are_served_with_two_digits() {
    let list = "/gift_card/denominations/available_list";
    for (raw, shown) in [
        (r#""20""#, "20.00"),
        (r#""20.5""#, "20.50"),
        (r#""20.500""#, "20.50"),
        (r#""020.5""#, "20.50"),
        ("20", "20.00"),
        ("20.5", "20.50"),
        ("20.50", "20.50"),
        ("20.500000000000000000000", "20.50"),
        ("49.99", "49.99"),
    ] {
        let (product, report) = round_trip(&with(gift_card("A"), list, &format!("[{raw}]")));
        assert_eq!(product.pointer(list), Some(&json!([shown])), "{raw}");
        assert_eq!(warnings(&report), Vec::<String>::new(), "{raw}");
    }
    // Beyond what a binary float can hold.
    let large = "999999999999999.99";
    let maximum = "/gift_card/denominations/maximum_value";
    let (product, _) = round_trip(&with(gift_card("A"), maximum, large));
    assert_eq!(product.pointer(maximum), Some(&json!(large)));
    let price = "/subscription/subscription_plans/0/price";
    let (product, _) = round_trip(&with(subscription("A"), price, "7"));
    assert_eq!(product.pointer(price), Some(&json!("7.00")));
    let minimum = "/payment/denominations/minimum_value";
    let (product, _) = round_trip(&with(payment("A"), minimum, "0.1"));
    assert_eq!(product.pointer(minimum), Some(&json!("0.10")));
}

#[test]
fn discount_is_cut_with_a_warning() {
    let cut = vec!["discount_cut /discount_multiplier".to_owned()];
    for (raw, shown, warned) in [
        (r#""0.0199""#, "0.01", &cut),
        ("0.0199", "0.01", &cut),
        (r#""0.999999""#, "0.99", &cut),
        (r#""0.009""#, "0.00", &cut),
        (r#""0.0100""#, "0.01", &vec![]),
        (r#""0""#, "0.00", &vec![]),
        ("0", "0.00", &vec![]),
        (r#""0.1""#, "0.10", &vec![]),
        (r#""1""#, "1.00", &vec![]),
        (r#""1.000""#, "1.00", &vec![]),
        // Three hundredths as a binary float would be a little less.
        ("0.29", "0.29", &vec![]),
    ] {
        let line = with(gift_card("A"), "/discount_multiplier", raw);
        let (product, report) = round_trip(&line);
        assert_eq!(product["discount_multiplier"], shown, "{raw}");
        assert_eq!(&warnings(&report), warned, "{raw}");
    }
}

#[test]
fn blanks_are_trimmed_except_around_markdown() {
    let blank = "\u{a0}\u{2003} \n";
    for (pointer, value) in [
        ("/name", "A  name"),
        ("/code", "A"),
        ("/currency", "EUR"),
        ("/categories/0", "fashion"),
        ("/countries_redeemable_in/0", "XK"),
        ("/customer_service/phone_number", "+18002425353"),
        ("/discount_multiplier", "0.07"),
        ("/gift_card/website_url", "https://shop.example/"),
        ("/gift_card/expiry/date_policy", "a year"),
        ("/gift_card/denominations/available_list/0", "20.00"),
        ("/gift_card/content_resources/locale", "de_DE"),
    ] {
        let raw = json!(format!("{blank}{value}{blank}")).to_string();
        let (product, report) = round_trip(&with(gift_card("A"), pointer, &raw));
        assert_eq!(product.pointer(pointer), Some(&json!(value)));
        assert_eq!(warnings(&report), [format!("blanks_trimmed {pointer}")]);
    }
    let store = Store::new();
    let markdown = " \u{a0}# Title\r\n\r\n  code  \n\n";
    let pointer = "/gift_card/content_resources/description_md";
    let line = with(gift_card("A"), pointer, &json!(markdown).to_string());
    let (_, report) = store.try_load(line);
    assert_eq!(warnings(&report), Vec::<String>::new());
    let product: Value =
        serde_json::from_str(&served(&store, "/v2/product/A?content=md")).expect("JSON");
    assert_eq!(product.pointer(pointer), Some(&json!(markdown)));
}

#[test]
fn empty_string_counts_as_null() {
    for pointer in [
        "/customer_service/phone_number",
        "/customer_service/website_url",
        "/gift_card/balance_check_url",
        "/gift_card/website_url",
        "/gift_card/barcode_format",
        "/gift_card/assets/card_image_url",
        "/gift_card/assets/icon_image_url",
        "/gift_card/assets/primary_color",
        "/gift_card/expiry/date_policy",
        "/gift_card/content_resources/locale",
        "/gift_card/content_resources/description_markdown_url",
    ] {
        let (product, report) = round_trip(&with(gift_card("A"), pointer, "\"\""));
        assert_eq!(product.pointer(pointer), Some(&Value::Null), "{pointer}");
        assert_eq!(warnings(&report), Vec::<String>::new(), "{pointer}");
    }
}

#[test]
fn unloaded_availability_is_absent() {
    let pointer = "/availability";
    let absent = without(gift_card("A"), pointer).to_string();
    let null = with(gift_card("A"), pointer, "null");
    let empty = with(gift_card("A"), pointer, "\"\"");
    for line in [absent, null, empty] {
        let (product, _) = round_trip(&line);
        assert_eq!(product.get("availability"), None);
    }
    for value in ["stocked", "realtime"] {
        let (product, _) = round_trip(&with(gift_card("A"), pointer, &format!("\"{value}\"")));
        assert_eq!(product["availability"], value);
    }
}

#[test]
fn unknown_fields_are_left_out_at_every_level_with_a_warning() {
    let check = |product: Value, parents: &[&str]| {
        let (plain, _) = round_trip(&product.to_string());
        for parent in parents {
            let pointer = format!("{parent}/from_a_later_release");
            let (served, report) = round_trip(&with(product.clone(), &pointer, r#"{"x":[1]}"#));
            assert_eq!(served, plain, "{pointer}");
            assert_eq!(warnings(&report), [format!("unknown_field {pointer}")]);
            let example = &report["warnings"]["unknown_field"]["examples"][0];
            assert_eq!(example["value"], r#"{"x":[1]}"#);
            assert_eq!(
                (&example["code"], &example["line"]),
                (&json!("A"), &json!(1))
            );
        }
    };
    let card = [
        "",
        "/customer_service",
        "/gift_card",
        "/gift_card/assets",
        "/gift_card/expiry",
    ];
    check(gift_card("A"), &card);
    check(
        gift_card("A"),
        &["/gift_card/denominations", "/gift_card/content_resources"],
    );
    check(
        subscription("A"),
        &["/subscription", "/subscription/subscription_plans/0"],
    );
    check(
        payment("A"),
        &[
            "/payment",
            "/payment/assets",
            "/payment/denominations",
            "/payment/content_resources",
        ],
    );
    // What another payout type has is unknown to this one.
    let (product, report) = round_trip(&with(
        payment("A"),
        "/payment/assets/card_image_url",
        "null",
    ));
    assert_eq!(product.pointer("/payment/assets/card_image_url"), None);
    assert_eq!(
        warnings(&report),
        ["unknown_field /payment/assets/card_image_url"]
    );
}

#[test]
fn warnings_are_grouped_by_rule_with_a_count_and_three_examples() {
    let store = Store::new();
    let line = |index: usize| {
        let code = format!("A{index}");
        with(gift_card(&code), "/name", "\" Name\"").replacen('{', "{\"x\":1,", 1)
    };
    let lines: Vec<String> = (0..50).map(line).collect();
    let (exit, report) = store.try_load(lines.join("\n"));
    assert_eq!(exit, 0);
    let warnings = report["warnings"].as_object().expect("groups");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for rule in ["blanks_trimmed", "unknown_field"] {
        assert_eq!(warnings[rule]["count"], 50);
        let examples = warnings[rule]["examples"].as_array().expect("examples");
        let lines: Vec<&Value> = examples.iter().map(|example| &example["line"]).collect();
        assert_eq!(lines, [1, 2, 3]);
    }
    let tried = store.path("tried.json").display().to_string();
    let said = String::from_utf8(store.run(&["load", &tried]).stdout).expect("UTF-8");
    assert!(
        said.contains("warning: 50 products: unknown field"),
        "{said}"
    );
    assert_eq!(said.matches("warning: ").count(), 2, "{said}");
}

#[test]
fn disabled_product_that_can_be_ordered_is_a_warning() {
    for (state, is_orderable, warned) in [
        ("TEMPORARILY_DISABLED", true, true),
        ("TEMPORARILY_DISABLED", false, false),
        ("TEMPORARILY_DEGRADED", true, false),
        ("LIVE", false, false),
    ] {
        let mut product = gift_card("A");
        product["state"] = json!(state);
        product["is_orderable"] = json!(is_orderable);
        let (served, report) = round_trip(&product.to_string());
        assert_eq!(served["state"], state);
        assert_eq!(served["is_orderable"], is_orderable);
        assert_eq!(
            !warnings(&report).is_empty(),
            warned,
            "{state} {is_orderable}: {report}"
        );
    }
}

#[test]
fn lists_may_be_empty_and_kosovo_is_a_country() {
    let (product, _) = round_trip(&with(gift_card("A"), "/categories", "[]"));
    assert_eq!(product["categories"], json!([]));
    let (product, _) = round_trip(&with(gift_card("A"), "/countries_redeemable_in", "[]"));
    assert_eq!(product["countries_redeemable_in"], json!([]));
    let raw = r#"["XK","AX"]"#;
    let (product, report) = round_trip(&with(gift_card("A"), "/countries_redeemable_in", raw));
    assert_eq!(product["countries_redeemable_in"], json!(["XK", "AX"]));
    assert_eq!(warnings(&report), Vec::<String>::new());
}
