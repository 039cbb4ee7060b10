//! Responses are read without loss, including values, fields and payout types that this crate doesn't know.

use serde_json::{Value, json};
use vitrine_client::{
    Content, ContentMarkdown, DenominationType, Detail, Json, LengthUnit, Open, Page, PayoutType,
    Product, State,
};

use crate::stand_in::StandIn;

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../server/tests/golden/2024-02-05"
);

fn golden(name: &str) -> String {
    std::fs::read_to_string(format!("{GOLDEN}/{name}.json")).expect("a golden answer")
}

#[test]
fn gift_cards_have_all_fields() {
    let text = golden("gift-card-url");
    let product: Product = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (product.code.as_str(), product.currency.as_str()),
        ("HOSHIMICHI-JP", "JPY")
    );
    assert_eq!(product.state, State::Live);
    assert_eq!(product.payout_type, PayoutType::GiftCard);
    let Detail::GiftCard(card) = product.detail() else {
        panic!("{product:?}");
    };
    assert_eq!(
        card.denominations.denomination_type,
        DenominationType::Fixed
    );
    let list = card.denominations.available_list.as_ref().unwrap();
    assert_eq!(list[0].as_str(), card.denominations.minimum_value.as_str());
    assert!(list[0].hundredths() < list[1].hundredths());
    assert_eq!(
        product.content_resources().unwrap().locale.as_deref(),
        Some("ja_JP")
    );
    assert_eq!(serde_json::to_string(&product).unwrap(), text);
}

#[test]
fn subscriptions_have_plans_and_texts_as_requested() {
    let text = golden("subscription-md");
    let product: Product<ContentMarkdown> = serde_json::from_str(&text).unwrap();
    let Detail::Subscription(subscription) = product.detail() else {
        panic!("{product:?}");
    };
    assert_eq!(
        subscription.subscription_plans[0].length_unit,
        LengthUnit::Months
    );
    assert_eq!(
        subscription.subscription_plans[0].price.hundredths(),
        Some(990)
    );
    assert!(
        product
            .content_resources()
            .unwrap()
            .description_md
            .is_some()
    );
    assert_eq!(serde_json::to_string(&product).unwrap(), text);
}

#[test]
fn unknown_payout_types_keep_their_object_unchanged() {
    let text = golden("later-payout-type");
    let product: Product = serde_json::from_str(&text).unwrap();
    assert_eq!(
        product.payout_type,
        Open::<PayoutType>::Unknown("prepaid_card".to_owned())
    );
    let Detail::Unknown(detail) = product.detail() else {
        panic!("{product:?}");
    };
    assert!(
        detail.get().contains(r#""balance_maximum":2.5E+3"#),
        "{detail:?}"
    );
    assert_eq!(detail.parse::<Value>().unwrap()["expiry"]["in_months"], 18);
    assert!(product.content_resources().is_none());
    assert_eq!(serde_json::to_string(&product).unwrap(), text);
}

#[test]
fn unknown_values_and_fields_are_kept_at_all_levels() {
    let mut changed: Value = serde_json::from_str(&golden("gift-card-url")).unwrap();
    changed["state"] = json!("RESTING");
    changed["availability"] = json!("by-post");
    changed["approval_state"] = json!({"by": ["a", null]});
    changed["gift_card"]["barcode_format"] = json!("aztec");
    changed["gift_card"]["redeemable_at"] = json!("by-mail");
    changed["gift_card"]["e_code_usage_type"] = json!("spoken");
    changed["gift_card"]["expiry"]["type"] = json!("from-birth");
    changed["gift_card"]["expiry"]["grace_days"] = json!(3);
    changed["gift_card"]["denominations"]["type"] = json!("stepped");
    changed["gift_card"]["denominations"]["step"] = json!("5.00");
    changed["gift_card"]["content_resources"]["gifting_markdown_url"] = json!("https://a.example/");
    changed["customer_service"]["fax"] = json!(null);
    let product: Product = serde_json::from_str(&changed.to_string()).unwrap();
    assert_eq!(product.state, Open::<State>::Unknown("RESTING".to_owned()));
    assert_eq!(
        product.other.get("approval_state").unwrap().get(),
        r#"{"by":["a",null]}"#
    );
    let Detail::GiftCard(card) = product.detail() else {
        panic!("{product:?}");
    };
    assert_eq!(card.barcode_format, Some(Open::Unknown("aztec".to_owned())));
    assert_eq!(serde_json::to_value(&product).unwrap(), changed);
    // It is readable from a value of `serde_json` as well as from text.
    assert_eq!(serde_json::from_value::<Product>(changed).unwrap(), product);
}

#[test]
fn missing_fields_are_errors_unless_they_are_nullable() {
    let whole: Value = serde_json::from_str(&golden("gift-card-url")).unwrap();
    for field in [
        "name",
        "code",
        "state",
        "is_orderable",
        "customer_service",
        "discount_multiplier",
    ] {
        let mut product = whole.clone();
        product.as_object_mut().unwrap().remove(field);
        let error = serde_json::from_value::<Product>(product).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("missing field `{field}`")),
            "{error}"
        );
    }
    let mut product = whole;
    product["gift_card"]
        .as_object_mut()
        .unwrap()
        .remove("barcode_format");
    product["customer_service"] = json!({});
    product["subscription"] = Value::Null;
    let mut product: Product = serde_json::from_value(product).unwrap();
    assert!(matches!(product.detail(), Detail::GiftCard(card) if card.barcode_format.is_none()));
    product.gift_card = None;
    assert!(matches!(product.detail(), Detail::Missing));
}

#[test]
fn pages_are_read_completely() {
    let text = golden("list-first-page");
    let page: Page = serde_json::from_str(&text).unwrap();
    let raw: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(page.catalog.len(), 5);
    assert_eq!(serde_json::to_value(&page.catalog).unwrap(), raw["catalog"]);
    assert_eq!(
        serde_json::to_value(&page.pagination).unwrap(),
        raw["pagination"]
    );
    assert_eq!(page.pagination.page.unwrap().limit, 5);
    let empty: Page = serde_json::from_str(&golden("list-empty")).unwrap();
    assert!(empty.catalog.is_empty() && empty.pagination.cursors.after.is_none());
}

/// Recorded responses of a real server of this contract, which are beside the project on some machines but not part of it.
#[test]
fn recorded_products_are_serialised_unchanged() {
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let Ok(lines) = std::fs::read_to_string(format!("{recorded}/recorded-catalog.ndjson")) else {
        use std::io::Write as _;
        // Bypasses the test runner, which hides the output of passing tests.
        let _ = std::io::stderr().write_all(b"SKIPPED: recorded products, which aren't there\n");
        return;
    };
    let mut count = 0;
    for line in lines.lines() {
        let product: Product =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        let came: Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&product).unwrap(), came);
        assert!(!matches!(
            product.detail(),
            Detail::Missing | Detail::Unknown(_)
        ));
        count += 1;
    }
    assert!(count > 200, "{count}");
    let page = std::fs::read_to_string(format!("{recorded}/recorded-page.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Page>(&page).unwrap().catalog.len(),
        100
    );
}

#[tokio::test]
async fn products_as_json_are_unchanged() {
    let server = StandIn::start();
    let client =
        vitrine_client::Client::new(&server.base_url(), vitrine_client::Key::new("a.b").unwrap())
            .unwrap();
    let product: Json = client
        .product_as("OPENFARER-US", Content::Url)
        .await
        .unwrap();
    assert_eq!(product.get(), golden("later-payout-type"));
    let page = client.products().read_as::<Json>().page().await.unwrap();
    assert!(golden("list-first-page").contains(page.catalog[4].get()));
    assert_eq!(client.countries().await.unwrap()[0], "AE");
    assert!(
        client
            .categories()
            .await
            .unwrap()
            .iter()
            .any(|category| category.code == "fashion")
    );
}
