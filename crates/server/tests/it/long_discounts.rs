//! Discounts loaded with more than six digits: an assortment's share multiplies all of them, wherever it is shown.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::assortments::set;
use crate::harness::browsed::{Browsed, attribute, open};
use crate::harness::feed::{CatalogCopy, list};
use crate::harness::{Server, Store, gift_card, text, wait_for};

const VERSIONS: [&str; 2] = ["2024-02-05", "2026-12-01"];

/// Products by code, each with its discount and three times that, in both versions.
fn catalog() -> [(&'static str, String, [&'static str; 2]); 5] {
    [
        ("A", "0.1234567".to_owned(), ["0.37", "0.37037"]),
        ("B", format!("0.{}", "3".repeat(28)), ["0.99", "0.999999"]),
        ("C", format!("0.{}4", "3".repeat(27)), ["1.00", "1.00"]),
        ("D", "0.0125".to_owned(), ["0.03", "0.0375"]),
        ("E", "0.030000333333333334".to_owned(), ["0.09", "0.090001"]),
    ]
}

fn product(code: &str, discount: &str) -> Value {
    let mut product = gift_card(code);
    product["discount_multiplier"] = json!(discount);
    product["gift_card"]["content_resources"]["description_md"] = json!("# About");
    product
}

fn products() -> Vec<Value> {
    let products = catalog();
    let products = products.iter();
    products
        .map(|(code, discount, _)| product(code, discount))
        .collect()
}

/// Rules by which all discounts are three times as high.
fn threefold() -> Value {
    json!({"discounts": [{"share": "3"}]})
}

/// Returns the discounts of products by code.
fn discounts(products: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let discount = |product: &str| {
        let product: Value = serde_json::from_str(product).expect("JSON");
        let discount = product["discount_multiplier"].as_str();
        discount.expect("a discount").to_owned()
    };
    let products = products.into_iter();
    products
        .map(|(code, product)| (code, discount(&product)))
        .collect()
}

/// Asserts that all reads of a key show these discounts.
fn assert_shown(server: &Server, key: &str, expected: &BTreeMap<String, String>) {
    assert_eq!(&discounts(list(server, key, "")), expected);
    assert_eq!(&discounts(list(server, key, "limit=2")), expected);
    // The changes feed may be a moment behind the list.
    wait_for("a copy by the changes feed", || {
        let mut copy = CatalogCopy::of("limit=2");
        copy.walk(server, key, "");
        (discounts(copy.products) == *expected).then_some(())
    });
    for (code, discount) in expected {
        for form in ["url", "md", "html"] {
            let product = server.get(key, &format!("/v2/product/{code}?content={form}"));
            assert_eq!(product.json()["discount_multiplier"], json!(discount));
        }
    }
}

/// Asserts that the browser shows these discounts, in the grid and on the page of each product.
fn assert_browsed(browsed: &Browsed, expected: &BTreeMap<String, String>) {
    let table = browsed.page("/catalog?as=threefold");
    for (code, discount) in expected {
        let exact = format!("discount_multiplier {discount}");
        for page in [
            &table,
            &browsed.page(&format!("/catalog/{code}?as=threefold")),
        ] {
            let titles = page.tags("span");
            let mut titles = titles.iter().filter_map(|tag| attribute(tag, "title"));
            assert!(
                titles.any(|title| title == exact),
                "{code}: {}",
                page.text()
            );
        }
        // Among the assortments that show it.
        let page = browsed.page(&format!("/catalog/{code}"));
        assert!(page.text().contains("threefold"), "{code}: {}", page.text());
    }
}

#[test]
fn shares_of_long_discounts_are_exact_in_all_reads() {
    let store = Store::of(&products());
    set(&store, "threefold", &threefold());
    let options = ["--assortment", "threefold", "--api-version"];
    let keys = VERSIONS.map(|version| store.key(version, &[&options[..], &[version]].concat()));
    let directory = store.path("state").display().to_string();
    let options = [
        "--state-dir",
        &directory,
        "--public-url",
        "https://catalog.example",
    ];
    let expected = [0, 1].map(|version| {
        let products = catalog();
        let products = products.iter();
        let shown = products.map(|(code, _, shown)| (*code, shown[version]));
        let shown = shown.map(|(code, shown)| (code.to_owned(), shown.to_owned()));
        shown.collect::<BTreeMap<_, _>>()
    });
    let mut browsed = open(store, &options);
    // From the store, then from the snapshot file.
    for source in ["store", "snapshot file"] {
        for (key, expected) in keys.iter().zip(&expected) {
            assert_shown(&browsed.server, key, expected);
        }
        assert_browsed(&browsed, &expected[1]);
        let made_from = format!("\"made_from\":\"{source}\"");
        let log = browsed.server.stderr();
        assert!(log.contains(&made_from), "{log}");
        wait_for("the snapshot file", || {
            let is_written = source != "store"
                || (browsed.server.stderr()).contains("the snapshot file is written");
            is_written.then_some(())
        });
        let Browsed { store, server } = browsed;
        drop(server);
        browsed = open(store, &options);
    }
    // With a neighbour that changed, so that the block is made anew.
    let mut changed = products();
    changed[3] = product("D", "0.020000333333333334");
    let report = browsed.store.load_products(&changed);
    browsed.server.wait_for_loaded(&report);
    let [_, mut expected] = expected;
    expected.insert("D".to_owned(), "0.060001".to_owned());
    assert_shown(&browsed.server, &keys[1], &expected);
}

#[test]
fn change_of_a_late_digit_is_told_with_its_share() {
    let store = Store::of(&products());
    set(&store, "threefold", &threefold());
    let options = ["--assortment", "threefold", "--api-version", VERSIONS[1]];
    let key = store.key("threefold", &options);
    let server = store.serve();
    let mut copy = CatalogCopy::of("");
    copy.settle(&server, &key);
    let page = || server.get(&key, "/v2/product?limit=5");
    let before = page();
    let mut changed = products();
    changed[1] = product("B", &format!("0.{}4", "3".repeat(27)));
    let report = store.load_products(&changed);
    assert_eq!(report["counts"]["changed"], 1, "{report}");
    server.wait_for_loaded(&report);
    let after = page();
    assert_ne!(before.header("etag"), after.header("etag"));
    assert_eq!(after.json()["catalog"][1]["discount_multiplier"], "1.00");
    let named = wait_for("the change in the feed", || {
        Some(copy.walk(&server, &key, "")).filter(|named| !named.is_empty())
    });
    assert_eq!(named, ["B"]);
    assert_eq!(discounts(copy.products)["B"], "1.00");
}

#[test]
fn edits_judge_shares_by_all_digits() {
    let mut products = products();
    // Cut at six digits, three times it would be 0.999999; with all, it is 1.000001.
    products.push(product("X", "0.333333666666666666666667"));
    let store = Store::of(&products);
    let file = store.write("rules.json", threefold().to_string());
    let file = file.display().to_string();
    let refused = store.run(&["assortments", "set", "threefold", &file]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    let fault = "discounts[0].share: the discount of `X` would be above 1";
    assert!(told.contains(fault), "{told}");
    let rules = json!({"deny": [{"codes": ["X"]}], "discounts": [{"share": "1"}]});
    set(&store, "threefold", &rules);
    let rules = json!({"deny": [{"codes": ["X"]}], "discounts": [{"share": "3"}]});
    let file = store.write("rules.json", rules.to_string());
    let file = file.display().to_string();
    let diff = store.json(&[
        "assortments",
        "set",
        "threefold",
        &file,
        "--dry-run",
        "--json",
    ]);
    let told = diff["discounts"].as_array().expect("a list").iter();
    let after: Vec<&Value> = told.map(|one| &one["after"]).collect();
    assert_eq!(after, catalog().map(|(_, _, [_, exact])| exact), "{diff}");
}
