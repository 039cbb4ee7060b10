//! Events of the format `product.update`: one for each product and revision, with the states before and after.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::docs_copies::node;
use crate::harness::receiver::{Delivery, Event, HOOK};
use crate::harness::{Page, are_files, gift_card, skipped, wait_for};

pub const FORMAT: [&str; 2] = ["--format", "product.update"];

/// Returns a product with a discount, in a country.
pub fn product(code: &str, discount: &str, country: &str) -> Value {
    let mut product = gift_card(code);
    product["discount_multiplier"] = json!(discount);
    product["countries_redeemable_in"] = json!([country]);
    product
}

/// Returns the state of such a product.
pub fn state(discount: &str) -> Value {
    let denominations = &gift_card("A")["gift_card"]["denominations"];
    json!({"price_multiplier": discount, "is_orderable": true, "denominations": denominations})
}

/// Returns code and states of events.
fn told(events: &[Event]) -> Vec<(String, Value, Value)> {
    let told = events.iter().map(|event| {
        let body = &event.body;
        let code = body["product_code"].as_str().expect("a code").to_owned();
        (code, body["old_state"].clone(), body["new_state"].clone())
    });
    told.collect()
}

/// Edits an assortment.
pub fn set(delivery: &Delivery, rules: &Value) {
    let file = delivery.store.write("own.json", rules.to_string());
    let file = file.display().to_string();
    let set = ["assortments", "set", "own", &file];
    delivery
        .store
        .ok(&[&set[..], &["--allow", "retire=100%"]].concat());
}

#[test]
fn each_product_and_revision_is_told_in_order_with_both_states() {
    let delivery = Delivery::of(&[product("A", "0.05", "DE"), product("B", "0.05", "DE")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&FORMAT);
    let report = delivery
        .store
        .load_products(&[product("A", "0.0125", "DE"), product("C", "0.1", "DE")]);
    delivery
        .store
        .load_products(&[product("A", "0.02", "DE"), product("C", "0.1", "DE")]);
    let events = delivery.events(4);
    assert_eq!(
        told(&events),
        [
            ("A".to_owned(), state("0.05"), state("0.0125")),
            ("B".to_owned(), state("0.05"), Value::Null),
            ("C".to_owned(), Value::Null, state("0.10")),
            ("A".to_owned(), state("0.0125"), state("0.02")),
        ]
    );
    let published = report["revision"]["created_at"].as_str();
    let first = events[0].body["timestamp"].as_str().expect("a time");
    if let Some(published) = published {
        assert_eq!(first[..19], published[..19]);
    }
    for event in &events {
        assert!(event.is_signed_by(&endpoint.secret));
        for name in ["id", "timestamp", "signature"] {
            let [older, newer] = ["svix", "webhook"].map(|start| format!("{start}-{name}"));
            assert_eq!(event.header(&older), event.header(&newer));
        }
    }
}

#[test]
fn public_library_of_receivers_in_the_field_accepts_them() {
    let Some(node) = node() else {
        return;
    };
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/clients/node");
    if !std::path::Path::new(root)
        .join("node_modules/svix")
        .exists()
    {
        let is_ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!is_ci, "svix is missing");
        return skipped("events with svix-… headers: the library isn't installed");
    }
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&FORMAT);
    let [option, path, ..] = delivery.options();
    delivery.store.load_products(&[gift_card("B")]);
    delivery.events(2);
    let rotate = ["webhooks", "rotate", &endpoint.id, "--json", &option, &path];
    let second = delivery.store.json(&rotate)["secret"].clone();
    let second = second.as_str().expect("a secret");
    delivery.store.load_products(&[gift_card("C")]);
    let events = delivery.events(4);
    let script = "
        const { Webhook } = require('svix');
        const lines = require('fs').readFileSync(0, 'utf8').trim().split('\\n').map(line => JSON.parse(line));
        for (const { secret, body, headers } of lines) {
          let verdict = 'accepted';
          try { new Webhook(secret).verify(body, headers); } catch { verdict = 'refused'; }
          console.log(verdict);
        }";
    let mut lines = Vec::new();
    let mut expected = Vec::new();
    let mut add = |event: &Event, secret: &str, body: &[u8], is_good: bool| {
        let names = ["svix-id", "svix-timestamp", "svix-signature"];
        let headers = names.map(|name| (name.to_owned(), event.header(name).into()));
        let headers: serde_json::Map<String, Value> = headers.into_iter().collect();
        let body = String::from_utf8_lossy(body);
        lines.push(json!({"secret": secret, "body": body, "headers": headers}).to_string());
        expected.push(if is_good { "accepted" } else { "refused" });
    };
    for event in &events {
        add(event, &endpoint.secret, event.bytes(), true);
    }
    add(&events[0], second, events[0].bytes(), false);
    add(&events[3], second, events[3].bytes(), true);
    let flipped = String::from_utf8_lossy(events[3].bytes()).replace("0.05", "0.06");
    add(&events[3], second, flipped.as_bytes(), false);
    let mut child = Command::new(node)
        .args(["-e", script])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin
        .write_all(lines.join("\n").as_bytes())
        .expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    let verdicts = crate::harness::text(&output.stdout);
    assert_eq!(verdicts.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn products_come_and_go_by_filters_and_rules() {
    let delivery = Delivery::of(&[product("A", "0.05", "SE"), product("B", "0.05", "SE")]);
    set(&delivery, &json!({"deny": [{"codes": ["B"]}]}));
    let prefix = delivery.prefix();
    delivery
        .store
        .ok(&["keys", "set", prefix, "--assortment", "own"]);
    let _server = delivery.serve();
    delivery.endpoint(&[&FORMAT[..], &["--country", "SE"]].concat());
    // B isn't shown, and A leaves the filter.
    delivery
        .store
        .load_products(&[product("A", "0.05", "DE"), product("B", "0.06", "SE")]);
    delivery.events(1);
    // By other rules, B is shown and at an own discount.
    let own = json!({"discounts": [{"codes": ["B"], "set": "0.0375"}]});
    set(&delivery, &own);
    delivery.events(2);
    delivery
        .store
        .load_products(&[product("A", "0.05", "SE"), product("B", "0.07", "SE")]);
    let events = delivery.events(4);
    assert_eq!(
        told(&events),
        [
            ("A".to_owned(), state("0.05"), Value::Null),
            ("B".to_owned(), Value::Null, state("0.0375")),
            ("A".to_owned(), Value::Null, state("0.05")),
            ("B".to_owned(), state("0.0375"), state("0.0375")),
        ]
    );
}

#[test]
fn own_discounts_are_shares_of_all_loaded_digits() {
    let delivery = Delivery::of(&[product("A", "0.1234567", "SE")]);
    set(&delivery, &json!({"discounts": [{"share": "3"}]}));
    let prefix = delivery.prefix();
    delivery
        .store
        .ok(&["keys", "set", prefix, "--assortment", "own"]);
    let _server = delivery.serve();
    delivery.endpoint(&FORMAT);
    delivery
        .store
        .load_products(&[product("A", "0.1234569", "SE")]);
    let expected = ("A".to_owned(), state("0.37037"), state("0.37037"));
    assert_eq!(told(&delivery.events(1)), [expected]);
}

/// Returns products of which some come, change and go with each step.
pub fn catalog(step: usize) -> Vec<Value> {
    let codes = ["A", "B", "C", "D", "E", "F"].into_iter().enumerate();
    let some = codes.filter(|(place, _)| !(place + step).is_multiple_of(4));
    some.map(|(place, code)| {
        let is_german = (place + step).is_multiple_of(3);
        let discount = format!("0.{:02}", (step / 2 + place) % 40);
        product(code, &discount, if is_german { "DE" } else { "SE" })
    })
    .collect()
}

/// Returns the states of a step's products that can be redeemed in Sweden.
pub fn swedish(step: usize) -> BTreeMap<String, Value> {
    let visible = catalog(step).into_iter();
    let visible = visible.filter(|product| product["countries_redeemable_in"][0] == "SE");
    let member = |product: &Value, name: &str| product[name].as_str().expect("a text").to_owned();
    visible
        .map(|product| {
            let state = state(&member(&product, "discount_multiplier"));
            (member(&product, "code"), state)
        })
        .collect()
}

/// Applies events, each of which must begin with the state that the one before left; returns all states.
pub fn applied(mut states: BTreeMap<String, Value>, events: &[Event]) -> BTreeMap<String, Value> {
    let mut last = "";
    for event in events {
        if event.id() == last {
            continue;
        }
        last = event.id();
        let (code, old, new) = told(std::slice::from_ref(event)).remove(0);
        assert_eq!(states.get(&code).unwrap_or(&Value::Null), &old, "{code}");
        match new {
            Value::Null => states.remove(&code),
            new => states.insert(code, new),
        };
    }
    states
}

#[test]
fn chain_of_states_ends_with_the_catalog_through_failures() {
    const STEPS: usize = 12;
    let delivery = Delivery::of(&catalog(0));
    let failure = Page::status("500 Internal Server Error");
    let mut pages = vec![Page::ok(""); 20];
    pages[7] = failure;
    delivery.web.set(HOOK, &pages);
    let mut server = Some(delivery.serve());
    let endpoint = delivery.endpoint(&[&FORMAT[..], &["--country", "SE"]].concat());
    for step in 1..=STEPS {
        delivery.store.load_products(&catalog(step));
        if step.is_multiple_of(5) {
            // Killed at any moment, and another one goes on.
            drop(server.take());
            server = Some(delivery.serve());
        }
    }
    wait_for("the newest states", || {
        let is_idle = delivery.show(&endpoint)["pending"].is_null();
        let states = applied(swedish(0), &delivery.events(0));
        (is_idle && states == swedish(STEPS)).then_some(())
    });
    assert!(delivery.events(0).len() > STEPS);
    drop(server);
}

#[test]
fn updates_go_on_after_a_restore() {
    if !are_files("updates after a restore") {
        return;
    }
    let delivery = Delivery::of(&[product("A", "0.05", "DE"), product("B", "0.05", "DE")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&FORMAT);
    delivery
        .store
        .load_products(&[product("A", "0.02", "DE"), product("B", "0.05", "DE")]);
    delivery.events(1);
    delivery.wait_for_member(&endpoint, "pending", &Value::Null);
    let backup = delivery.store.path("backup").display().to_string();
    delivery.store.ok(&["backup", &backup]);
    delivery.store.ok(&["restore", "--yes", &backup]);
    let report = delivery
        .store
        .load_products(&[product("A", "0.01", "DE"), product("B", "0.05", "DE")]);
    server.wait_for_loaded(&report);
    delivery.store.ok(&["webhooks", "enable", &endpoint.id]);
    let events = delivery.events(2);
    let expected = ("A".to_owned(), state("0.02"), state("0.01"));
    assert_eq!(told(&events[1..]), [expected]);
    delivery.wait_for_member(&endpoint, "pending", &Value::Null);
    assert_eq!(delivery.web.posts().len(), 2);
}

#[test]
fn lost_position_is_told_as_everything_anew() {
    let delivery = Delivery::of(&[gift_card("A")]);
    delivery.endpoint(&FORMAT);
    for codes in [["B", "C"], ["C", "D"], ["D", "E"]] {
        delivery.store.load_products(&codes.map(gift_card));
    }
    delivery.store.ok(&["prune", "--keep", "1", "--yes"]);
    let _server = delivery.serve();
    let events = delivery.events(2);
    let new = |code: &str| (code.to_owned(), Value::Null, state("0.05"));
    assert_eq!(told(&events), [new("D"), new("E")]);
    delivery.store.load_products(&[gift_card("E")]);
    let events = delivery.events(3);
    assert_eq!(
        told(&events[2..]),
        [("D".to_owned(), state("0.05"), Value::Null)]
    );
}
