//! Discounts in both API versions: 2026-12-01 shows them as loaded, cut at six digits, 2024-02-05 cut at two. All else
//! is the same, byte for byte.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::harness::feed::{CatalogCopy, list};
use crate::harness::{Reply, Server, Store, gift_card, skipped, text, wait_for};
use crate::walks::RECORDED;

/// Versions with the number of digits that they show at most.
const VERSIONS: [(&str, usize); 2] = [("2024-02-05", 2), ("2026-12-01", 6)];

const KEY: &str = "\"discount_multiplier\":\"";

/// Returns a discount as a version with so many digits shows it.
fn shown(loaded: &str, digits: usize) -> String {
    let (whole, fraction) = loaded.split_once('.').unwrap_or((loaded, ""));
    let cut: String = fraction.chars().take(digits).collect();
    format!("{whole}.{:0<2}", cut.trim_end_matches('0'))
}

/// Returns the discount of a record as it was loaded.
fn loaded(record: &Value) -> String {
    match &record["discount_multiplier"] {
        Value::String(text) => text.clone(),
        number => number.to_string(),
    }
}

/// Catalog with its discounts by code, and a server with a key for each version.
struct Catalog {
    store: Store,
    discounts: BTreeMap<String, String>,
    server: Server,
    keys: [String; 2],
}

impl Catalog {
    fn of(records: &[Value]) -> Self {
        let store = Store::of(records);
        let keys = VERSIONS.map(|(date, _)| store.key(date, &["--api-version", date]));
        let code = |record: &Value| record["code"].as_str().expect("a code").to_owned();
        let discounts = records.iter().map(|record| (code(record), loaded(record)));
        Self {
            discounts: discounts.collect(),
            server: store.serve(),
            store,
            keys,
        }
    }

    /// Returns a body of the older version with the discounts of the newer one, which are looked up by the code in front.
    fn exact(&self, older: &Reply) -> String {
        let body = text(&older.body);
        let mut parts = body.split(KEY);
        let mut before = parts.next().expect("a part").to_owned();
        for part in parts {
            let (_, code) = before.rsplit_once("\"code\":\"").expect("a code");
            let (code, _) = code.split_once('"').expect("its end");
            let exact = shown(&self.discounts[code], 6);
            let (_, rest) = part.split_once('"').expect("the end of a discount");
            before = format!("{before}{KEY}{exact}\"{rest}");
        }
        before
    }

    /// Asserts that both versions answer alike but for the discounts, and that their tags are the same if their bytes are.
    fn assert_alike(&self, target: &str) -> [Reply; 2] {
        let replies = [&self.keys[0], &self.keys[1]].map(|key| self.server.get(key, target));
        let [older, newer] = &replies;
        assert_eq!((older.status, newer.status), (200, 200), "{target}");
        assert_eq!(text(&newer.body), self.exact(older), "{target}");
        let tags = replies.each_ref().map(|reply| reply.header("etag"));
        let are_same = older.body == newer.body;
        assert_eq!(tags[0] == tags[1], are_same, "{target}: {tags:?}");
        assert_eq!(newer.header("link"), older.header("link"), "{target}");
        for ((key, (date, _)), reply) in self.keys.iter().zip(VERSIONS).zip(&replies) {
            assert_eq!(reply.header("x-api-version"), Some(date));
            let tag = reply.header("etag").expect("a tag");
            let headers = [("X-Api-Key", key.as_str()), ("If-None-Match", tag)];
            assert_eq!(self.server.send("GET", target, &headers).status, 304);
            let head = self.server.send("HEAD", target, &headers[..1]);
            let length = reply.body.len().to_string();
            assert_eq!(head.header("content-length"), Some(&*length), "{target}");
        }
        replies
    }
}

#[test]
fn recorded_discounts_are_shown_as_loaded() {
    let Ok(recorded) = std::fs::read_to_string(RECORDED) else {
        return skipped(&format!("the recorded catalog isn't there: {RECORDED}"));
    };
    let lines = recorded.lines().filter(|line| !line.is_empty());
    let records: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let catalog = Catalog::of(&records);
    let check = |place: &str, product: &Value, digits: usize| {
        let code = product["code"].as_str().expect("a code");
        let expected = shown(&catalog.discounts[code], digits);
        assert_eq!(product["discount_multiplier"], expected, "{place}: {code}");
    };
    for (key, (date, digits)) in catalog.keys.iter().zip(VERSIONS) {
        let page = catalog.server.get(key, "/v2/product?limit=500").json();
        let page = page["catalog"].as_array().expect("products");
        assert_eq!(page.len(), catalog.discounts.len());
        page.iter().for_each(|product| check(date, product, digits));
        let mut copy = CatalogCopy::of("limit=100");
        copy.settle(&catalog.server, key);
        assert_eq!(copy.products.len(), page.len());
        for product in copy.products.values() {
            check(
                "changes",
                &serde_json::from_str(product).expect("JSON"),
                digits,
            );
        }
        for code in catalog.discounts.keys() {
            for form in ["url", "md", "html"] {
                let target = format!("/v2/product/{code}?content={form}");
                check(form, &catalog.server.get(key, &target).json(), digits);
            }
        }
    }
    catalog.assert_alike("/v2/product?limit=500");
}

/// Returns a product whose strings look like a discount.
fn product(number: usize, discount: &str) -> Value {
    let mut product = gift_card(&format!("P{number:03}"));
    product["name"] = json!(",\"discount_multiplier\":\"0.99\",");
    product["categories"] = json!([["a,"], ["discount_multiplier"]][number % 2]);
    product["countries_redeemable_in"] = json!([["SE"], ["DE"], ["FR"]][number % 3]);
    product["is_orderable"] = json!(!number.is_multiple_of(5));
    product["discount_multiplier"] = json!(discount);
    product["gift_card"]["content_resources"]["description_md"] = json!("# About");
    product
}

#[test]
fn pages_equal_a_naive_rendering_in_both_versions() {
    let discount = select(vec![
        "0",
        "0.05",
        "0.10",
        "0.1230",
        "0.010001",
        "0.9999999",
        "0.0100001",
        "1",
        "1.000",
        "0.5001",
    ]);
    let filter = select(vec![
        "",
        "is_orderable=true&",
        "countries_redeemable_in=SE&countries_redeemable_in=FR&",
        "categories=a%2C&",
        "codes=P001&codes=P006&",
    ]);
    let query = (filter, 1..400_usize, 0..320_usize);
    let config = ProptestConfig {
        cases: 2,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let input = (vec(discount, 300), vec(query, 30));
    let outcome = TestRunner::new(config).run(&input, |(discounts, queries)| {
        let numbered = discounts.iter().enumerate();
        let records: Vec<Value> = numbered
            .map(|(number, text)| product(number, text))
            .collect();
        let catalog = Catalog::of(&records);
        for (filter, limit, after) in queries {
            let target = format!("/v2/product?{filter}limit={limit}&after=P{after:03}");
            catalog.assert_alike(&target);
            // From the caches.
            catalog.assert_alike(&target);
        }
        for form in ["url", "md", "html"] {
            catalog.assert_alike(&format!("/v2/product/P000?content={form}"));
        }
        for key in &catalog.keys {
            let mut copy = CatalogCopy::of("");
            copy.settle(&catalog.server, key);
            prop_assert_eq!(copy.products, list(&catalog.server, key, ""));
        }
        Ok(())
    });
    outcome.expect("both versions answer alike");
}

#[test]
fn change_of_a_later_digit_shows_in_the_newer_version_only() {
    let before = [product(0, "0.0121"), product(1, "0.05")];
    let catalog = Catalog::of(&before);
    let targets = [
        "/v2/product",
        "/v2/product/P000",
        "/v2/product/P000?content=md",
        "/v2/product/P000?content=html",
    ];
    let tags = |reply: &Reply| reply.header("etag").expect("a tag").to_owned();
    let old = targets.map(|target| catalog.assert_alike(target).each_ref().map(tags));
    let mut copy = CatalogCopy::of("");
    copy.settle(&catalog.server, &catalog.keys[1]);
    let report = catalog
        .store
        .load_products(&[product(0, "0.0122"), product(1, "0.05")]);
    catalog.server.wait_for_loaded(&report);
    for (target, [older, newer]) in targets.into_iter().zip(old) {
        let replies =
            [&catalog.keys[0], &catalog.keys[1]].map(|key| catalog.server.get(key, target));
        assert_eq!(tags(&replies[0]), older, "{target}");
        assert_ne!(tags(&replies[1]), newer, "{target}");
        assert!(
            text(&replies[1].body).contains(&format!("{KEY}0.0122\"")),
            "{target}"
        );
    }
    wait_for("the change in the feed", || {
        let named = copy.walk(&catalog.server, &catalog.keys[1], "");
        (!named.is_empty()).then_some(())
    });
    copy.settle(&catalog.server, &catalog.keys[1]);
    assert!(copy.products["P000"].contains(&format!("{KEY}0.0122\"")));
}
