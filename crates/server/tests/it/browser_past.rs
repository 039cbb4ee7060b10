//! Browser pages read from the store: history, revisions and keys; and their message if it can't be read.

use serde_json::Value;

use crate::harness::browsed::{attribute, open};
use crate::harness::{Store, gift_card, text};

#[test]
fn history_shows_what_each_load_changed() {
    let mut product = gift_card("A");
    let browsed = open(Store::of(&[product.clone(), gift_card("GONE")]), &[]);
    product["name"] = "Renamed <b>".into();
    product["countries_redeemable_in"] = serde_json::json!(["DE", "SE"]);
    let report = browsed.store.load_products(&[product, gift_card("NEW")]);
    browsed.server.wait_for_loaded(&report);
    let page = browsed.page("/catalog/A");
    let (del, ins) = (page.tags("del").len(), page.tags("ins").len());
    assert_eq!((del, ins), (1, 2), "{}", page.text());
    for shown in [
        "Product A",
        "Renamed <b>",
        "Countries redeemable in",
        "SE",
        "Created",
        "Changed",
    ] {
        assert!(page.text().contains(shown), "{shown}: {}", page.text());
    }
    let gone = browsed.ask("/catalog/GONE");
    assert_eq!(gone.status, 404);
    assert!(
        gone.text().contains("Retired") && gone.text().contains("Created"),
        "{}",
        gone.text()
    );
    let revision = browsed.page("/revisions/2");
    for shown in [
        "1 created",
        "1 changed",
        "1 retired",
        "GONE",
        "NEW",
        "Renamed <b>",
    ] {
        assert!(
            revision.text().contains(shown),
            "{shown}: {}",
            revision.text()
        );
    }
    let list = browsed.page("/revisions");
    assert!(
        list.text().contains("live") && list.link("next").is_none(),
        "{}",
        list.text()
    );
}

#[test]
fn revision_is_paged_by_product() {
    let products: Vec<Value> = (0..60)
        .map(|number| gift_card(&format!("P-{number:02}")))
        .collect();
    let browsed = open(Store::of(&products), &[]);
    let mut target = Some("/revisions/1".to_owned());
    let mut seen = Vec::new();
    while let Some(next) = target {
        let page = browsed.page(&next);
        let links = page.tags("a");
        let links = links.iter().filter_map(|link| attribute(link, "href"));
        let named = links.filter_map(|href| {
            href.strip_prefix("/catalog/")?
                .strip_suffix("#history")
                .map(str::to_owned)
        });
        seen.extend(named);
        target = page.link("next");
    }
    let codes: Vec<&str> = products
        .iter()
        .filter_map(|product| product["code"].as_str())
        .collect();
    assert_eq!(seen, codes);
}

#[test]
fn wrong_history_parameters_and_lost_pages_are_refused() {
    let browsed = open(Store::of(&[gift_card("A")]), &[]);
    for (target, said) in [
        ("/revisions?page=1&page=2", "page is given twice"),
        ("/revisions?after=A", "Unknown parameter after; remove"),
        ("/revisions/1?after=A&after=B", "after is given twice"),
        ("/revisions/1?page=1", "Unknown parameter page; remove"),
    ] {
        let page = browsed.ask(target);
        assert_eq!(page.status, 400, "{target}");
        assert!(page.text().contains(said), "{target}: {}", page.text());
    }
    for number in [0, 2, u64::MAX] {
        let page = browsed.ask(&format!("/revisions/{number}"));
        let said = format!("Revision {number} not found");
        assert_eq!(page.status, 404, "{number}");
        assert!(page.text().contains(&said), "{}", page.text());
    }
}

#[test]
fn keys_are_shown_without_their_secrets() {
    let store = Store::sample();
    let live = store.key("a partner", &["--quota", "100/60"]);
    let test = store.key("tests", &["--test"]);
    store.key("old", &[]);
    store.ok(&["keys", "revoke", "old"]);
    let browsed = open(store, &[]);
    let page = browsed.page("/keys");
    let body = text(&page.reply.body);
    for key in [&live, &test] {
        let (prefix, secret) = key.split_once('.').expect("a key");
        assert!(body.contains(prefix) && !body.contains(secret), "{body}");
    }
    for shown in ["a partner", "100/60", "Test", "Revoked", "Active", "never"] {
        assert!(page.text().contains(shown), "{shown}: {}", page.text());
    }
    // No long stretch of hexadecimal digits, as hashes are.
    let longest = body
        .split(|letter: char| !letter.is_ascii_hexdigit())
        .map(str::len)
        .max();
    assert!(longest < Some(32), "{body}");
}

#[test]
fn revision_shows_retired_products_alone() {
    let products = ["A", "B", "GONE", "OVER"].map(gift_card);
    let browsed = open(Store::of(&products), &[]);
    let mut changed = gift_card("A");
    changed["name"] = "Renamed".into();
    let report = browsed
        .store
        .load_products(&[changed, gift_card("B"), gift_card("NEW")]);
    browsed.server.wait_for_loaded(&report);
    let shown = |kind: &str| {
        let page = browsed.page(&format!("/revisions/2{kind}"));
        let links = page.tags("a");
        let links = links.iter().filter_map(|link| attribute(link, "href"));
        let products = links.filter(|href| href.ends_with("#history"));
        products.count()
    };
    assert_eq!(shown(""), 4);
    for (kind, count) in [("created", 1), ("changed", 1), ("retired", 2)] {
        assert_eq!(shown(&format!("?kind={kind}")), count, "{kind}");
    }
    let page = browsed.page("/revisions/2?kind=retired");
    let words = page.text();
    assert!(words.contains("GONE") && words.contains("OVER"), "{words}");
    assert!(!words.contains("Renamed"), "{words}");
    let links = text(&browsed.page("/revisions/2").reply.body);
    assert!(links.contains("/revisions/2?kind=retired"), "{links}");
    assert_eq!(browsed.ask("/revisions/2?kind=lost").status, 400);
}

#[test]
fn rotated_key_has_one_status_in_list_and_browser() {
    let store = Store::sample();
    store.key("partner", &[]);
    let rotated = store.json(&["keys", "rotate", "partner", "--overlap", "1h", "--json"]);
    let old = rotated["ending"][0]["prefix"].as_str().expect("a prefix");
    let listed = store.json(&["keys", "list", "--json"]);
    let mut listed = listed.as_array().expect("a list").iter();
    let listed = listed
        .find(|key| key["prefix"] == old)
        .expect("the old key");
    assert_eq!(listed["state"], "rotated");
    let page = open(store, &[]).page("/keys");
    let words = page.text();
    let (before, _) = words.split_once(old).expect("the old key's row");
    assert!(before.trim_end().ends_with("Rotated"), "{words}");
}

#[test]
fn pages_report_a_missing_catalog_or_store() {
    let browsed = open(Store::new(), &[]);
    let page = browsed.ask("/catalog");
    assert_eq!(page.status, 503);
    let body = text(&page.reply.body);
    assert!(!body.contains('`'), "{body}");
    assert!(body.contains("<code>vitrine load FILE</code>"), "{body}");
    assert!(page.text().contains("No catalog yet"), "{}", page.text());
    assert!(
        browsed
            .page("/revisions")
            .text()
            .contains("No revisions yet")
    );
    assert!(browsed.page("/keys").text().contains("No keys yet"));
    if !crate::harness::are_files("a store that is away") {
        return;
    }
    let browsed = open(Store::sample(), &[]);
    assert_eq!(browsed.page("/catalog").status, 200);
    std::fs::rename(
        browsed.store.path("vitrine.db"),
        browsed.store.path("away.db"),
    )
    .expect("moved");
    assert_eq!(browsed.page("/catalog").status, 200);
    let page = browsed.page("/catalog/PANDANLANE-SG");
    assert!(
        page.text().contains("the store is unreachable"),
        "{}",
        page.text()
    );
    for target in ["/revisions", "/revisions/1", "/keys"] {
        let page = browsed.ask(target);
        assert_eq!(page.status, 503, "{target}");
        assert!(
            page.text().contains("The store can't be read"),
            "{}",
            page.text()
        );
    }
}
