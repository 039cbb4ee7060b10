//! Events of webhooks as receivers get them: what is sent, in which order, and how it is signed.

use serde_json::{Value, json};

use crate::harness::feed::{CHANGES, Changes};
use crate::harness::receiver::{Delivery, Event, HOOK};
use crate::harness::{ALLOW_ALL, Page, Server, gift_card, wait_for};

/// Returns a product with another name, in a country.
fn product(code: &str, name: &str, country: &str) -> Value {
    let mut product = gift_card(code);
    product["name"] = json!(name);
    product["countries_redeemable_in"] = json!([country]);
    product
}

/// Returns what `changes_url` names, each code behind a minus if its product isn't visible any more.
fn named(server: &Server, delivery: &Delivery, event: &Event) -> Vec<String> {
    Changes::of(&server.get(&delivery.key, event.changes())).named()
}

#[test]
fn changes_are_told_once_in_order_and_signed() {
    let delivery = Delivery::of(&[product("A", "old", "DE"), product("B", "old", "DE")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let report = delivery.store.load_products(&[product("A", "new", "DE")]);
    let first = delivery.events(1).remove(0);
    assert!(first.is_signed_by(&endpoint.secret));
    assert_eq!(first.body["type"], "catalog.changed");
    let data = first.data();
    assert_eq!(data["revision"]["number"], report["revision"]["number"]);
    assert_eq!(
        (&data["changed"], &data["removed"], &data["resync"]),
        (&json!(1), &json!(1), &json!(false))
    );
    assert_eq!(first.codes(), ["A", "B"]);
    assert_eq!(named(&server, &delivery, &first), ["A", "-B"]);
    for step in 0..5 {
        let name = format!("step {step}");
        delivery.store.load_products(&[product("A", &name, "DE")]);
        let events = delivery.events(step + 2);
        assert_eq!(events.len(), step + 2, "each once");
        assert!(events[step + 1].is_signed_by(&endpoint.secret));
        assert_eq!(named(&server, &delivery, &events[step + 1]), ["A"]);
    }
    let shown = delivery.wait_for_member(&endpoint, "pending", &Value::Null);
    assert_eq!(shown["attempts"].as_array().expect("attempts").len(), 6);
    assert_eq!(
        (&shown["state"], &shown["pending"]),
        (&json!("active"), &Value::Null)
    );
}

#[test]
fn signature_is_of_every_byte_the_time_and_the_secret() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let other = delivery.endpoint_at(&delivery.web.url("/other"), &[]);
    delivery.store.load_products(&[gift_card("B")]);
    let event = delivery.events(1).remove(0);
    let time = event.header("webhook-timestamp");
    assert!(
        event.is_accepted(&endpoint.secret, event.bytes(), time)
            != event.is_accepted(&other.secret, event.bytes(), time)
    );
    for at in 0..event.bytes().len() {
        let mut flipped = event.bytes().to_vec();
        flipped[at] ^= 1;
        assert!(!event.is_accepted(&endpoint.secret, &flipped, time), "{at}");
    }
    let old = (time.parse::<i64>().expect("seconds") - 301).to_string();
    assert!(!event.is_accepted(&endpoint.secret, event.bytes(), &old));
}

#[test]
fn rotated_secret_overlaps_the_older_one() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    let options = delivery.options();
    let rotate = |overlap: &str| {
        let rotate = [
            "webhooks",
            "rotate",
            &endpoint.id,
            "--json",
            "--overlap",
            overlap,
        ];
        let made = delivery
            .store
            .json(&[&rotate[..], &[&options[0], &options[1]]].concat());
        made["secret"].as_str().expect("a secret").to_owned()
    };
    let second = rotate("1h");
    delivery.store.load_products(&[gift_card("B")]);
    let event = delivery.events(1).remove(0);
    assert!(event.is_signed_by(&endpoint.secret) && event.is_signed_by(&second));
    let third = rotate("0s");
    delivery.store.load_products(&[gift_card("C")]);
    let event = delivery.events(2).remove(1);
    let signed = [&endpoint.secret, &second, &third].map(|secret| event.is_signed_by(secret));
    assert_eq!(signed, [false, false, true]);
}

#[test]
fn changes_during_an_attempt_join_the_next_event() {
    let delivery = Delivery::of(&[product("A", "old", "DE")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    delivery
        .web
        .set(HOOK, &[Page::ok("").gated(), Page::ok("")]);
    delivery.store.load_products(&[product("A", "1", "DE")]);
    delivery.events(1);
    for code in ["B", "C", "D"] {
        let line = product(code, "new", "DE").to_string();
        let file = delivery.store.write("one.json", line);
        let load = ["load", "--mode", "merge", &file.display().to_string()];
        delivery.store.ok(&load);
    }
    wait_for("the feed to show all", || {
        let feed = Changes::of(&server.get(&delivery.key, CHANGES));
        feed.named().contains(&"D".to_owned()).then_some(())
    });
    assert_eq!(delivery.web.posts().len(), 1, "one attempt in flight");
    delivery.web.open_gate();
    let events = delivery.events(2);
    assert_eq!(events[1].codes(), ["B", "C", "D"]);
    assert_ne!(events[0].id(), events[1].id());
    delivery.wait_for_member(&endpoint, "pending", &Value::Null);
    assert_eq!(delivery.web.posts().len(), 2);
}

#[test]
fn endpoint_is_told_only_of_what_it_sees() {
    let start = [product("DE-1", "old", "DE"), product("SE-1", "old", "SE")];
    let delivery = Delivery::of(&start);
    let server = delivery.serve();
    delivery.endpoint(&["--country", "SE"]);
    // Neither this…
    delivery
        .store
        .load_products(&[product("DE-1", "new", "DE"), start[1].clone()]);
    server.wait_for_revision(2);
    // …nor what leaves its filters again before it is sent.
    let both = [product("DE-1", "new", "DE"), product("SE-1", "new", "SE")];
    delivery.store.load_products(&both);
    let event = delivery.events(1).remove(0);
    assert_eq!(event.codes(), ["SE-1"]);
    assert!(
        event
            .changes()
            .contains("countries_redeemable_in=SE&since=")
    );
    assert_eq!(named(&server, &delivery, &event), ["SE-1"]);
    // It left the filter: removed, though it is still there.
    delivery
        .store
        .load_products(&[product("DE-1", "new", "DE"), product("SE-1", "new", "DE")]);
    let event = delivery.events(2).remove(1);
    assert_eq!(
        (&event.data()["changed"], &event.data()["removed"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(named(&server, &delivery, &event), ["-SE-1"]);
    assert_eq!(delivery.web.posts().len(), 2);
}

#[test]
fn assortment_of_the_key_narrows_what_is_told() {
    let delivery = Delivery::of(&[product("A", "old", "DE"), product("B", "old", "DE")]);
    let rules = delivery
        .store
        .write("own.json", json!({"allow": [{"codes": ["A"]}]}).to_string());
    let assortments = ["assortments", "set", "own", &rules.display().to_string()];
    delivery.store.ok(&assortments);
    let prefix = delivery.prefix();
    delivery
        .store
        .ok(&["keys", "set", prefix, "--assortment", "own"]);
    let server = delivery.serve();
    delivery.endpoint(&[]);
    delivery
        .store
        .load_products(&[product("A", "old", "DE"), product("B", "new", "DE")]);
    server.wait_for_revision(2);
    delivery
        .store
        .load_products(&[product("A", "new", "DE"), product("B", "newer", "DE")]);
    let event = delivery.events(1).remove(0);
    assert_eq!(event.codes(), ["A"]);
    // Rules that show more are a change, too.
    let rules = json!({"allow": [{"codes": ["A", "B"]}]}).to_string();
    delivery.store.write("own.json", rules);
    delivery.store.ok(&assortments);
    let event = delivery.events(2).remove(1);
    assert_eq!(event.codes(), ["B"]);
    assert_eq!(named(&server, &delivery, &event), ["B"]);
}

#[test]
fn many_changes_are_counted_and_not_named() {
    let products = |name: &str, count: usize| -> Vec<Value> {
        (0..count)
            .map(|number| product(&format!("P{number:03}"), name, "DE"))
            .collect()
    };
    let delivery = Delivery::of(&products("old", 101));
    let _server = delivery.serve();
    delivery.endpoint(&[]);
    delivery
        .store
        .load_products(&[products("new", 100), products("old", 101)[100..].to_vec()].concat());
    delivery.events(1);
    delivery.store.load_products(&products("newer", 101));
    let events = delivery.events(2);
    assert_eq!(events[0].codes().len(), 100);
    assert_eq!(events[1].data()["codes"], Value::Null);
    assert_eq!(events[1].data()["changed"], 101);
}

#[test]
fn changes_url_is_of_the_named_version() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let server = delivery.serve();
    delivery.endpoint(&["--api-version", "2026-12-01"]);
    delivery.store.load_products(&[gift_card("B")]);
    let event = delivery.events(1).remove(0);
    let ask = |version: &str| {
        let headers = [("X-Api-Key", &*delivery.key), ("X-Api-Version", version)];
        server.send("GET", event.changes(), &headers)
    };
    assert_eq!(Changes::of(&ask("2026-12-01")).named(), ["-A", "B"]);
}

#[test]
fn position_outside_the_journal_is_told_as_a_resync() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let endpoint = delivery.endpoint(&[]);
    for code in ["B", "C", "D"] {
        delivery.store.load_products(&[gift_card(code)]);
    }
    let prune = ["prune", "--keep", "1", "--yes"];
    delivery.store.ok(&prune);
    let server = delivery.serve();
    let event = delivery.events(1).remove(0);
    assert!(event.is_signed_by(&endpoint.secret));
    assert_eq!(event.data()["resync"], true);
    assert_eq!(event.changes(), "/v2/product/changes");
    assert_eq!(named(&server, &delivery, &event), ["D"]);
    // From then on it goes on in order.
    delivery.store.load_products(&[gift_card("E")]);
    let event = delivery.events(2).remove(1);
    assert_eq!(
        (&event.data()["resync"], event.codes()),
        (&json!(false), vec!["D", "E"])
    );
}

#[test]
fn replay_tells_again_of_all_changes_since_a_revision() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    for (events, code) in ["B", "C"].into_iter().enumerate() {
        let file = delivery
            .store
            .write("one.json", gift_card(code).to_string());
        let file = file.display().to_string();
        delivery
            .store
            .ok(&[&["load", "--mode", "merge", &file], &ALLOW_ALL[..]].concat());
        delivery.events(events + 1);
    }
    delivery
        .store
        .ok(&["webhooks", "replay", &endpoint.id, "--since", "1"]);
    let events = delivery.events(3);
    assert_eq!(events[2].codes(), ["B", "C"]);
    assert_eq!(named(&server, &delivery, &events[2]), ["B", "C"]);
    for (since, fault) in [
        ("99", "there is no revision 99"),
        ("soon", "is no revision"),
        ("1999-01-01", "nothing was live at 1999-01-01"),
    ] {
        let output = delivery
            .store
            .run(&["webhooks", "replay", &endpoint.id, "--since", since]);
        let told = crate::harness::text(&output.stderr);
        assert!(!output.status.success() && told.contains(fault), "{told}");
    }
}

#[test]
fn replay_from_a_revision_not_told_yet_is_refused() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    for format in ["catalog.changed", "product.update"] {
        delivery
            .web
            .set(HOOK, &[Page::status("500 Internal Server Error")]);
        let endpoint = delivery.endpoint(&["--format", format]);
        let report = delivery.store.load_products(&[gift_card(format)]);
        assert_eq!(delivery.wait_for_outcome(&endpoint), "500");
        let newest = report["revision"]["number"].to_string();
        let replay = ["webhooks", "replay", &endpoint.id, "--since"];
        let output = delivery.store.run(&[&replay[..], &[&newest]].concat());
        let told = crate::harness::text(&output.stderr);
        assert!(!output.status.success(), "{format}");
        assert!(told.contains("only, and will be sent all"), "{told}");
        delivery.store.ok(&[&replay[..], &["1"]].concat());
        delivery
            .store
            .ok(&["webhooks", "delete", &endpoint.id, "--yes"]);
    }
}

#[test]
fn replay_during_an_attempt_is_not_lost() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let endpoint = delivery.endpoint(&[]);
    delivery.store.load_products(&[gift_card("B")]);
    delivery.events(1);
    delivery.wait_for_member(&endpoint, "pending", &Value::Null);
    delivery
        .web
        .set(HOOK, &[Page::ok("").gated(), Page::ok("")]);
    delivery.store.load_products(&[gift_card("C")]);
    assert_eq!(delivery.events(2)[1].codes(), ["B", "C"]);
    delivery
        .store
        .ok(&["webhooks", "replay", &endpoint.id, "--since", "1"]);
    delivery.web.open_gate();
    let events = delivery.events(3);
    assert_eq!(events[2].codes(), ["A", "B", "C"]);
}

#[test]
fn endpoints_of_one_catalog_are_all_told() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let _server = delivery.serve();
    let paths: Vec<String> = (0..20).map(|number| format!("/hook/{number}")).collect();
    for path in &paths {
        delivery.web.set(path, &[Page::ok("")]);
        delivery.endpoint_at(&delivery.web.url(path), &[]);
    }
    delivery.store.load_products(&[gift_card("B")]);
    delivery.events(paths.len());
    let told = || {
        let events = delivery.events(0);
        let mut told: Vec<String> = events.iter().map(|event| event.path().to_owned()).collect();
        told.sort();
        told
    };
    let mut sorted = paths.clone();
    sorted.sort();
    wait_for("every endpoint", || (told() == sorted).then_some(()));
    assert!(
        delivery.web.max_concurrent() <= 8,
        "at most eight at a time for a host"
    );
}
