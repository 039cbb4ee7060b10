//! The way of a newcomer: load, make a key, serve, read.

use crate::harness::Store;

#[test]
fn loaded_catalog_is_served() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = store.serve();
    assert_eq!(server.get(&key, "/v2/ping").json()["message"], "pong");
    let list = server.get(&key, "/v2/product");
    assert_eq!(list.codes().len(), 72);
    let product = server.get(&key, "/v2/product/BRIARWICK-GB?content=html");
    assert_eq!(product.json()["code"], "BRIARWICK-GB");
}

#[test]
fn generated_products_are_valid_and_reproducible() {
    let store = Store::new();
    let generate = ["generate", "--products", "300", "--seed", "7"];
    let products = store.ok(&generate);
    assert_eq!(store.ok(&generate), products);
    assert!(
        store
            .ok(&["generate", "--products", "500", "--seed", "7"])
            .starts_with(&products)
    );
    let report = store.load(store.write("generated.ndjson", &products));
    assert_eq!(report["counts"]["created"], 300);
    assert_eq!(report["warnings"], serde_json::json!({}));
    let key = store.key("reader", &[]);
    let us = store
        .serve()
        .get(&key, "/v2/product?countries_redeemable_in=US")
        .codes()
        .len();
    assert!((70..130).contains(&us), "{us} of 300 in the US");
}

#[test]
fn store_may_be_named_before_and_after_the_command() {
    let store = Store::sample();
    let elsewhere = Store::new();
    for arguments in [
        ["--store", &store.url(), "history", "--json"],
        ["history", "--json", "--store", &store.url()],
    ] {
        // What is said on the command line counts for more than the environment.
        let history: serde_json::Value =
            serde_json::from_str(&elsewhere.ok(&arguments)).expect("JSON");
        assert_eq!(history[0]["counts"]["created"], 72, "{arguments:?}");
    }
}
