//! Edits of assortments in the changes feed: told like changes of the catalog, to those whom they concern.

use serde_json::{Value, json};

use crate::assortments::{Catalog, product, set};
use crate::harness::feed::CatalogCopy;
use crate::harness::{Store, scrape, text, wait_for};

#[test]
fn edits_are_told_by_the_changes_feed() {
    let products: Vec<Value> = (0..300).map(|number| product(number, "0.05")).collect();
    let swedish = json!({"allow": [{"countries": ["SE"]}]});
    let catalog = Catalog::new(products, vec![swedish.clone()]);
    let (server, key) = (&catalog.server, &catalog.keys[0][1]);
    let mut copy = CatalogCopy::of("");
    copy.settle(server, key);
    let before = copy.products.clone();
    let edits = [
        json!({"allow": [{"countries": ["SE", "DE"]}], "deny": [{"categories": ["a"]}]}),
        json!({"allow": [{"codes": ["P001", "P002"]}]}),
        json!({"allow": [{"codes": ["P001", "P002"]}], "discounts": [{"codes": ["P002"], "set": "0.0125"}]}),
        json!({"allow": []}),
        swedish,
    ];
    for rules in edits {
        set(&catalog.store, "assortment-0", &rules);
        let named = wait_for("the edit in the feed", || {
            let named = copy.walk(server, key, "");
            (!named.is_empty()).then_some(named)
        });
        // Each fourth has no country, and none of them is ever shown.
        let was_never = |code: &&String| {
            let number = code.trim_start_matches(['-', 'P']);
            number.parse::<usize>().expect("a number") % 4 == 3
        };
        assert_eq!(named.iter().find(was_never), None, "{rules}");
        copy.settle(server, key);
    }
    assert_eq!(copy.products, before);
}

#[test]
fn wait_ends_with_an_edit_that_concerns_its_key() {
    let products: Vec<Value> = (0..20).map(|number| product(number, "0.05")).collect();
    let rules = json!({"allow": [{"countries": ["SE"]}]});
    let catalog = Catalog::new(products, vec![rules.clone(), rules]);
    let server = &catalog.store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    let keys = &catalog.keys;
    let copies = [&keys[0][0], &keys[1][0]].map(|key| {
        let mut copy = CatalogCopy::of("");
        copy.settle(server, key);
        copy
    });
    let mut waiting = copies.each_ref().map(|_| server.keep_alive());
    for ((connection, copy), key) in waiting
        .iter_mut()
        .zip(&copies)
        .zip([&keys[0][0], &keys[1][0]])
    {
        let target = copy.target("wait=3");
        connection.write(&format!(
            "GET {target} HTTP/1.1\r\nHost: catalog\r\nX-Api-Key: {key}\r\n\r\n"
        ));
    }
    wait_for("both to wait", || {
        (scrape(server).value("vitrine_changes_waiting") == 2.0).then_some(())
    });
    set(
        &catalog.store,
        "assortment-1",
        &json!({"allow": [{"codes": ["P000"]}]}),
    );
    let changed = waiting[1].read("GET").expect("an answer").json();
    assert!(!changed["changes"].as_array().expect("changes").is_empty());
    let unconcerned = waiting[0].read("GET").expect("an answer").json();
    assert_eq!(unconcerned["changes"], json!([]));
}

#[test]
fn share_above_one_shows_the_list_discount() {
    let store = Store::of(&[product(0, "0.5")]);
    let rules = json!({"discounts": [{"share": "1.5"}]});
    set(&store, "partner", &rules);
    let key = store.key("partner", &["--assortment", "partner"]);
    let server = store.serve();
    let shown = || server.get(&key, "/v2/product/P000").json()["discount_multiplier"].clone();
    assert_eq!(shown(), "0.75");
    store.load_products(&[product(0, "0.9")]);
    wait_for("the load", || (shown() == "0.90").then_some(()));
    wait_for("a warning", || {
        let log = server.stderr();
        log.contains("shares of discounts would be above 1")
            .then_some(())
    });
    let file = store.write("rules.json", r#"{"discounts": [{"share": "1.6"}]}"#);
    let edit = ["assortments", "set", "partner", &file.display().to_string()];
    let refused = store.run(&edit);
    assert_eq!(refused.status.code(), Some(3));
    let told = text(&refused.stderr);
    assert!(told.contains("discounts[0].share"), "{told}");
}
