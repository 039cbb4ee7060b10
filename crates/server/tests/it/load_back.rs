//! Responses of the service, saved and loaded back: an address of a text that the store has is that text, whether its product is
//! live, changed or another one.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::{Store, gift_card};
use crate::products::served;

const URL: &str = "description_markdown_url";
const MARKDOWN: &str = "description_md";

fn described(code: &str, name: &str, value: &str) -> Value {
    let mut product = gift_card(code);
    let content = product["gift_card"]["content_resources"].as_object_mut();
    let content = content.expect("texts");
    content.remove(MARKDOWN);
    content.insert(name.to_owned(), json!(value));
    product
}

/// Returns an address of a text at some server.
fn address(markdown: &str) -> String {
    let digest = Sha256::digest(markdown);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("https://shop.example/v2/texts/{hex}.md")
}

/// Returns the response for a product.
fn response(store: &Store, code: &str, form: &str) -> Value {
    let body = served(store, &format!("/v2/product/{code}?content={form}"));
    serde_json::from_str(&body).expect("JSON")
}

/// Asserts that a product has this description, by its address and as Markdown, and that an export has it.
fn assert_described(store: &Store, code: &str, markdown: &str) {
    let resources = |form| response(store, code, form)["gift_card"]["content_resources"].take();
    assert_eq!(resources("md")[MARKDOWN], markdown, "{code}");
    let url = address(markdown).replace("https://shop.example", "http://SERVER");
    assert_eq!(resources("url")[URL], json!(url), "{code}");
    let exported = store.ok(&["export"]);
    let exported = exported
        .lines()
        .find(|line| line.contains(&format!("\"code\":\"{code}\"")));
    let exported: Value = serde_json::from_str(exported.expect("the product")).expect("JSON");
    let exported = &exported["gift_card"]["content_resources"];
    assert_eq!(exported[MARKDOWN], markdown, "{code}");
    assert_eq!(exported.get(URL), None, "{code}");
}

#[test]
fn retired_product_comes_back_with_its_text() {
    let store = Store::of(&[described("A", MARKDOWN, "# A"), gift_card("B")]);
    let saved = response(&store, "A", "url");
    store.load_products(&[gift_card("B")]);
    let report = store.load_products(&[saved.clone(), gift_card("B")]);
    assert_eq!(report["counts"]["created"], 1, "{report}");
    assert_described(&store, "A", "# A");
    let again = store.load_products(&[saved, gift_card("B")]);
    assert_eq!(again["revision"], Value::Null, "{again}");
    assert_described(&store, "A", "# A");
    store.ok(&["check"]);
}

#[test]
fn saved_response_brings_an_earlier_text_back() {
    let store = Store::of(&[described("A", MARKDOWN, "# Old")]);
    let saved = response(&store, "A", "url");
    store.load_products(&[described("A", MARKDOWN, "# New")]);
    store.load_products(&[saved]);
    assert_described(&store, "A", "# Old");
}

#[test]
fn text_of_another_product_is_found_by_its_address() {
    let store = Store::of(&[described("A", MARKDOWN, "# A"), gift_card("B")]);
    let named = |code| described(code, URL, &address("# A"));
    // One new product, and one that is live.
    store.load_products(&[described("A", MARKDOWN, "# A"), named("B"), named("C")]);
    for code in ["A", "B", "C"] {
        assert_described(&store, code, "# A");
    }
    // A text may come with the same load.
    let second = [
        described("A", MARKDOWN, "# A2"),
        described("C", URL, &address("# A2")),
    ];
    store.load_products(&second);
    assert_described(&store, "C", "# A2");
}

#[test]
fn address_of_an_unknown_text_stays_an_address() {
    let store = Store::of(&[described("A", MARKDOWN, "# A")]);
    let held = address("# A");
    for other in [
        address("# B"),
        format!("{held}?x"),
        held.replace("/v2/texts/", "/texts/"),
        held.replace(".md", ""),
    ] {
        store.load_products(&[described("A", MARKDOWN, "# A"), described("B", URL, &other)]);
        let shown = |form| response(&store, "B", form)["gift_card"]["content_resources"].take();
        assert_eq!(shown("url")[URL], json!(other));
        assert_eq!(shown("md")[MARKDOWN], Value::Null, "{other}");
    }
}

#[test]
fn text_taken_down_stays_down_when_loaded_back() {
    let store = Store::of(&[described("A", MARKDOWN, "# A"), gift_card("B")]);
    let saved = response(&store, "A", "url");
    store.load_products(&[gift_card("B")]);
    store.ok(&["texts", "take-down", &address("# A")]);
    store.load_products(&[saved, gift_card("B")]);
    let shown = response(&store, "A", "url");
    assert_eq!(shown["gift_card"]["content_resources"][URL], Value::Null);
    store.ok(&["texts", "put-back", &address("# A")]);
    assert_described(&store, "A", "# A");
}
