//! Entity tags of answers with another discount than the rendered one: a key's own, or a version's form. They are of the bytes
//! that are sent, so they tell nothing of the discount that isn't shown, and outlive its changes.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::assortments::set;
use crate::harness::{Reply, Server, Store, gift_card};

const VERSIONS: [&str; 2] = ["2024-02-05", "2026-12-01"];

const ONE: &str = "/v2/product/A";

const TARGETS: [&str; 7] = [
    "/v2/product",
    "/v2/product?limit=2",
    "/v2/product?limit=2&after=A",
    "/v2/product?codes=A&codes=C",
    ONE,
    "/v2/product/A?content=md",
    "/v2/product/A?content=html",
];

/// Returns products with these list discounts.
fn products(discounts: [&str; 4]) -> Vec<Value> {
    let numbered = ["A", "B", "C", "D"].into_iter().zip(discounts);
    let product = |(code, discount)| {
        let mut product = gift_card(code);
        product["discount_multiplier"] = json!(discount);
        product["gift_card"]["content_resources"]["description_md"] = json!("# About");
        product
    };
    numbered.map(product).collect()
}

/// Returns a store with these list discounts, whose assortment `own` has own discounts for two of the products.
fn store(discounts: [&str; 4]) -> Store {
    let store = Store::of(&products(discounts));
    let own =
        json!({"discounts": [{"codes": ["A"], "set": "0.07"}, {"codes": ["C"], "set": "0.0525"}]});
    set(&store, "own", &own);
    store
}

/// Returns a key of each version.
fn keys(store: &Store, label: &str, options: &[&str]) -> [String; 2] {
    VERSIONS.map(|version| store.key(label, &[options, &["--api-version", version]].concat()))
}

fn tag(reply: &Reply) -> &str {
    reply.header("etag").expect("a tag")
}

/// Returns the answers to a key, after checking that each tag selects a 304.
fn read(server: &Server, key: &str) -> [Reply; 7] {
    TARGETS.map(|target| {
        let reply = server.get(key, target);
        assert_eq!(reply.status, 200, "{target}");
        assert_known(server, key, target, tag(&reply));
        reply
    })
}

fn assert_known(server: &Server, key: &str, target: &str, tag: &str) {
    let headers = [("X-Api-Key", key), ("If-None-Match", tag)];
    assert_eq!(server.send("GET", target, &headers).status, 304, "{target}");
}

/// Asserts that answers have the same bytes and tags.
fn assert_same(one: &[Reply], other: &[Reply]) {
    for ((one, other), target) in one.iter().zip(other).zip(TARGETS) {
        assert!(one.body == other.body, "{target}: other bytes");
        assert_eq!(tag(one), tag(other), "{target}");
    }
}

#[test]
fn tags_of_own_discounts_outlive_other_list_discounts() {
    let store = store(["0.05", "0.05", "0.0512", "0.0512"]);
    let own = keys(&store, "own", &["--assortment", "own"]);
    let all = keys(&store, "all", &[]);
    let server = store.serve();
    let load = |discounts| server.wait_for_loaded(&store.load_products(&products(discounts)));
    let [before, of_all] = [&own, &all].map(|keys| keys.each_ref().map(|key| read(&server, key)));

    load(["0.06", "0.05", "0.0634", "0.0512"]);
    for version in 0..VERSIONS.len() {
        for (target, reply) in TARGETS.iter().zip(&before[version]) {
            assert_known(&server, &own[version], target, tag(reply));
        }
        assert_same(&read(&server, &own[version]), &before[version]);
        for (one, other) in read(&server, &all[version]).iter().zip(&of_all[version]) {
            assert!(one.body != other.body && tag(one) != tag(other));
        }
    }

    // The list discounts are what the own ones were.
    load(["0.07", "0.05", "0.0525", "0.0512"]);
    for version in 0..VERSIONS.len() {
        assert_same(&read(&server, &own[version]), &before[version]);
        assert_same(&read(&server, &all[version]), &before[version]);
    }
}

#[test]
fn tag_of_a_product_is_of_the_sent_bytes() {
    let store = store(["0.0512", "0.05", "0.05", "0.05"]);
    let own = keys(&store, "own", &["--assortment", "own"]);
    let all = keys(&store, "all", &[]);
    let server = store.serve();
    for key in own.iter().chain(&all) {
        let reply = server.get(key, ONE);
        let digest = Sha256::digest(&reply.body);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(tag(&reply), format!("W/\"{}\"", &hex[..32]));
    }
}
