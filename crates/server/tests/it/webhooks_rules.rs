//! Events of the format `product.update` while the rules of the endpoint's assortment change.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::receiver::{Delivery, HOOK};
use crate::harness::{Page, wait_for};
use crate::webhooks_updates::{FORMAT, applied, catalog, product, set, state, swedish};

/// Returns the rules of a step: an own discount for half of the products, and now and then one that isn't shown.
fn rules(step: usize) -> Value {
    let deny = match step.is_multiple_of(3) {
        true => json!([{"codes": ["B"]}]),
        false => json!([]),
    };
    let own = json!([{"codes": ["A", "C", "E"], "set": format!("0.5{}", step % 10)}]);
    json!({"discounts": own, "deny": deny})
}

/// Returns the states of a catalog's Swedish products by the rules of another step.
fn shown(catalog_step: usize, rules_step: usize) -> BTreeMap<String, Value> {
    let mut states = swedish(catalog_step);
    for code in ["A", "C", "E"] {
        if let Some(state) = states.get_mut(code) {
            state["price_multiplier"] = json!(format!("0.5{}", rules_step % 10));
        }
    }
    if rules_step.is_multiple_of(3) {
        states.remove("B");
    }
    states
}

#[test]
fn states_chain_while_catalog_and_rules_change() {
    const STEPS: usize = 12;
    let delivery = Delivery::of(&catalog(0));
    set(&delivery, &rules(0));
    let prefix = delivery.prefix();
    delivery
        .store
        .ok(&["keys", "set", prefix, "--assortment", "own"]);
    let failure = Page::status("500 Internal Server Error");
    let mut pages = vec![Page::ok(""); 30];
    (pages[3], pages[12]) = (failure.clone(), failure);
    delivery.web.set(HOOK, &pages);
    let mut server = Some(delivery.serve());
    let endpoint = delivery.endpoint(&[&FORMAT[..], &["--country", "SE"]].concat());
    for step in 1..=STEPS {
        let before = delivery.events(0).len();
        // The rules change twice as often as the catalog.
        if step.is_multiple_of(2) {
            delivery.store.load_products(&catalog(step));
        }
        set(&delivery, &rules(step));
        // The next step comes while this one is being told.
        delivery.events(before + 1);
        if step.is_multiple_of(5) {
            drop(server.take());
            server = Some(delivery.serve());
        }
    }
    wait_for("the newest states", || {
        let is_idle = delivery.show(&endpoint)["pending"].is_null();
        let states = applied(shown(0, 0), &delivery.events(0));
        (is_idle && states == shown(STEPS, STEPS)).then_some(())
    });
    drop(server);
}

#[test]
fn revisions_while_rules_are_told_are_told_whole() {
    let all = |codes: &[&str]| {
        let products = codes.iter().map(|code| product(code, "0.05", "SE"));
        products.collect::<Vec<Value>>()
    };
    let own = |set_to: &str| json!({"discounts": [{"codes": ["A", "B", "C", "D"], "set": set_to}]});
    let delivery = Delivery::of(&all(&["A", "B", "C", "D"]));
    set(&delivery, &own("0.01"));
    let prefix = delivery.prefix();
    delivery
        .store
        .ok(&["keys", "set", prefix, "--assortment", "own"]);
    let server = delivery.serve();
    delivery.endpoint(&FORMAT);
    // The receiver has B, but doesn't answer yet, while A and C change and other rules come.
    let [ok, gated] = [Page::ok(""), Page::ok("").gated()];
    delivery.web.set(HOOK, &[ok.clone(), gated, ok.clone()]);
    set(&delivery, &own("0.02"));
    delivery.events(2);
    let mut changed = all(&["B", "C", "D", "E"]);
    changed[1]["is_orderable"] = json!(false);
    delivery.store.load_products(&changed);
    set(&delivery, &own("0.03"));
    wait_for("the newest rules", || {
        let shown = server.get(&delivery.key, "/v2/product/D").json();
        (shown["discount_multiplier"] == "0.03").then_some(())
    });
    delivery.web.open_gate();
    let states = |codes: &[&str], discount: &str| -> BTreeMap<String, Value> {
        let states = codes
            .iter()
            .map(|code| ((*code).to_owned(), state(discount)));
        states.collect()
    };
    let mut expected = states(&["B", "C", "D"], "0.03");
    expected.insert("E".to_owned(), state("0.05"));
    if let Some(disabled) = expected.get_mut("C") {
        disabled["is_orderable"] = json!(false);
    }
    let before = states(&["A", "B", "C", "D"], "0.01");
    // The deliverer sees rules a moment later, and may tell some products of the second ones.
    wait_for("the newest states", || {
        let states = applied(before.clone(), &delivery.events(0));
        (states == expected).then_some(())
    });
}
