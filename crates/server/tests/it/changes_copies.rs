//! Copies kept by the changes feed: what is told to which filters, and that each is equal to the list at rest.

use serde_json::{Value, json};
use vitrine_model::content::TextDigest;

use crate::changes::named;
use crate::harness::feed::{CatalogCopy, FeedServer};
use crate::harness::{ALLOW_ALL, gift_card};

/// A gift card for these countries.
fn in_countries(code: &str, countries: &[&str]) -> Value {
    let mut product = gift_card(code);
    product["countries_redeemable_in"] = json!(countries);
    product
}

fn in_categories(code: &str, categories: &[&str]) -> Value {
    let mut product = gift_card(code);
    product["categories"] = json!(categories);
    product
}

fn orderable(code: &str, is_orderable: bool) -> Value {
    let mut product = gift_card(code);
    product["is_orderable"] = json!(is_orderable);
    product
}

/// A gift card with this description.
fn described(code: &str, markdown: &str) -> Value {
    let mut product = gift_card(code);
    product["gift_card"]["content_resources"]["description_md"] = json!(markdown);
    product
}

const NOTHING: [&str; 0] = [];

#[test]
fn created_changed_and_retired_products_are_told() {
    let served = FeedServer::of(&["A", "B", "C"].map(gift_card), &[]);
    let mut copy = served.copy("");
    served.load(&[gift_card("A"), named("B", "new"), gift_card("D")]);
    assert_eq!(served.walk(&mut copy), ["B", "-C", "D"]);
    assert_eq!(served.walk(&mut copy), NOTHING);
    served.settle(&mut copy);
    // A load that changes nothing tells nothing.
    let same = served
        .store
        .load_products(&[gift_card("A"), named("B", "new"), gift_card("D")]);
    assert_eq!(same["revision"], Value::Null);
    // A merge touches only what it names.
    served.change(|store| {
        let file = store.write("more.json", gift_card("E").to_string());
        let file = file.display().to_string();
        let merge = ["load", "--mode", "merge", "--retire", "A", &file];
        store.ok(&[&merge, &ALLOW_ALL[..]].concat());
    });
    assert_eq!(served.walk(&mut copy), ["-A", "E"]);
    served.settle(&mut copy);
}

/// Products before and after, the filter that one leaves and the other enters, and those that see neither.
type Move = ([Value; 2], &'static str, &'static str, [&'static str; 2]);

#[test]
fn product_that_leaves_a_filter_is_removed_there_only() {
    let moves: [Move; 3] = [
        (
            [
                in_countries("A", &["SE", "FI"]),
                in_countries("A", &["NO", "FI"]),
            ],
            "countries_redeemable_in=SE",
            "countries_redeemable_in=NO",
            [
                "countries_redeemable_in=DK",
                "countries_redeemable_in=SE&categories=toys",
            ],
        ),
        (
            [
                in_categories("A", &["toys", "fashion"]),
                in_categories("A", &["fashion", "games"]),
            ],
            "categories=toys",
            "categories=games",
            [
                "categories=toy",
                "categories=toys&countries_redeemable_in=SE",
            ],
        ),
        (
            [orderable("A", true), orderable("A", false)],
            "is_orderable=true",
            "",
            [
                "is_orderable=true&countries_redeemable_in=SE",
                "categories=none",
            ],
        ),
    ];
    for ([before, after], left, entered, unseen) in moves {
        let served = FeedServer::of(&[before.clone(), gift_card("B")], &[]);
        let mut copies = [left, entered].map(|filters| served.copy(filters));
        let mut strangers = unseen.map(|filters| served.copy(filters));
        let lazy = copies.clone();
        served.load(&[after.clone(), gift_card("B")]);
        let expected = [&["-A"][..], &["A"]];
        for (copy, expected) in copies.iter_mut().zip(expected) {
            assert_eq!(served.walk(copy), expected, "{left}");
        }
        // What changes outside of the filter isn't told.
        let mut again = after;
        again["name"] = "new".into();
        served.load(&[again, gift_card("B")]);
        assert_eq!(served.walk(&mut copies[0]), NOTHING, "{left}");
        assert_eq!(served.walk(&mut copies[1]), ["A"], "{left}");
        served.load(&[before, gift_card("B")]);
        assert_eq!(served.walk(&mut copies[0]), ["A"], "{left}");
        served.load(&[gift_card("B")]);
        for copy in copies.iter_mut().chain(&mut lazy.clone()) {
            assert_eq!(served.walk(copy), ["-A"], "{left}");
            served.settle(copy);
        }
        for copy in &mut strangers {
            assert_eq!(served.walk(copy), NOTHING, "{left}");
            served.settle(copy);
        }
    }
}

#[test]
fn short_lived_product_is_removed_for_those_before_it() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let mut earlier = served.copy("");
    let mut abroad = served.copy("countries_redeemable_in=SE");
    served.load(&["A", "B"].map(gift_card));
    let mut meanwhile = served.copy("");
    assert!(meanwhile.products.contains_key("B"));
    served.load(&[gift_card("A")]);
    let mut later = served.copy("");
    assert_eq!(
        served.walk(&mut earlier),
        ["-B"],
        "a page may have shown it"
    );
    assert_eq!(served.walk(&mut meanwhile), ["-B"]);
    assert_eq!(served.walk(&mut later), NOTHING);
    assert_eq!(served.walk(&mut abroad), NOTHING);
    for copy in [&mut earlier, &mut meanwhile, &mut later] {
        assert_eq!(served.walk(copy), NOTHING);
        served.settle(copy);
    }
}

#[test]
fn product_that_comes_back_is_not_removed() {
    let served = FeedServer::of(&["A", "B"].map(gift_card), &[]);
    let mut lazy = served.copy("");
    let mut filtered = served.copy("countries_redeemable_in=DE");
    let mut eager = lazy.clone();
    served.load(&[gift_card("A")]);
    assert_eq!(served.walk(&mut eager), ["-B"]);
    served.load(&["A", "B"].map(gift_card));
    for copy in [&mut eager, &mut lazy, &mut filtered] {
        assert_eq!(served.walk(copy), ["B"]);
        served.settle(copy);
    }
    // Out of the filter and in again.
    served.load(&[gift_card("A"), in_countries("B", &["SE"])]);
    served.load(&[gift_card("A"), named("B", "new")]);
    assert_eq!(served.walk(&mut filtered), ["B"]);
    served.settle(&mut filtered);
}

#[test]
fn change_that_is_undone_leaves_the_copy_right() {
    let served = FeedServer::of(&[gift_card("A"), gift_card("B")], &[]);
    let mut copy = served.copy("");
    served.load(&[named("A", "new"), gift_card("B")]);
    let mut meanwhile = served.copy("");
    served.load(&["A", "B"].map(gift_card));
    // It may be repeated, and must be for those who saw it.
    let named = served.walk(&mut copy);
    assert!(named.is_empty() || named == ["A"], "{named:?}");
    assert_eq!(served.walk(&mut meanwhile), ["A"]);
    for copy in [&mut copy, &mut meanwhile] {
        served.settle(copy);
    }
}

#[test]
fn rollback_is_told_like_any_revision() {
    let served = FeedServer::of(&["A", "B"].map(gift_card), &[]);
    let mut first = served.copy("");
    served.load(&[named("A", "new"), gift_card("C")]);
    let mut second = served.copy("");
    served.change(|store| drop(store.ok(&["rollback", "--yes", "1"])));
    assert_eq!(served.walk(&mut second), ["A", "B", "-C"]);
    served.walk(&mut first);
    for copy in [&mut first, &mut second] {
        served.settle(copy);
    }
    // And back again.
    served.change(|store| drop(store.ok(&["rollback", "--yes", "2"])));
    assert_eq!(served.walk(&mut first), ["A", "-B", "C"]);
    served.settle(&mut first);
}

#[test]
fn emptied_catalog_removes_all_that_was_seen() {
    let served = FeedServer::of(&["A", "B"].map(gift_card), &[]);
    let filters = [
        "",
        "countries_redeemable_in=DE",
        "countries_redeemable_in=SE",
    ];
    let mut copies = filters.map(|filters| served.copy(filters));
    served.retire_all();
    let expected = [&["-A", "-B"][..], &["-A", "-B"], &[]];
    for (copy, expected) in copies.iter_mut().zip(expected) {
        assert_eq!(served.walk(copy), expected);
        assert!(copy.products.is_empty());
        served.settle(copy);
    }
}

#[test]
fn texts_taken_down_or_put_back_change_their_products() {
    let products = [
        described("A", "# One"),
        described("B", "# One"),
        described("C", "# Two"),
        gift_card("D"),
    ];
    let served = FeedServer::of(&products, &[]);
    let mut copy = served.copy("");
    let mut abroad = served.copy("countries_redeemable_in=SE");
    let before = copy.clone();
    let [one, two] = ["# One", "# Two"].map(|text| TextDigest::of(text).to_string());
    let texts = |command: &'static str, digest: &str| {
        served.change(|store| drop(store.ok(&["texts", command, digest])));
    };
    texts("take-down", &one);
    assert_eq!(served.walk(&mut copy), ["A", "B"]);
    served.settle(&mut copy);
    assert_ne!(copy.products, before.products);
    texts("take-down", &two);
    // The product goes, too: it is only removed.
    served.load(&products[..3]);
    texts("put-back", &one);
    assert_eq!(served.walk(&mut copy), ["A", "B", "C", "-D"]);
    served.settle(&mut copy);
    let mut lazy = before;
    assert_eq!(served.walk(&mut lazy), ["A", "B", "C", "-D"]);
    served.settle(&mut lazy);
    assert_eq!(served.walk(&mut abroad), NOTHING);
    texts("put-back", &two);
    assert_eq!(served.walk(&mut copy), ["C"]);
    served.settle(&mut copy);
}

#[test]
fn loads_between_pages_leave_nothing_out() {
    let codes: Vec<String> = (0..12).map(|number| format!("P{number:02}")).collect();
    let catalog = |step: usize| -> Vec<Value> {
        let product = |(number, code): (usize, &String)| match (number + step) % 4 {
            0 => None,
            1 => Some(named(code, &format!("Step {step}"))),
            2 => Some(in_countries(code, &["SE"])),
            _ => Some(gift_card(code)),
        };
        codes.iter().enumerate().filter_map(product).collect()
    };
    let served = FeedServer::of(&catalog(0), &[]);
    let filters = ["", "countries_redeemable_in=SE"];
    let mut copies = filters.map(CatalogCopy::of);
    for step in 1..=12 {
        served.load(&catalog(step));
        for copy in &mut copies {
            copy.ask(&served.server, &served.key, "limit=2");
        }
    }
    for copy in &mut copies {
        served.settle(copy);
    }
}

#[test]
fn product_shown_only_during_a_walk_is_removed_later() {
    let served = FeedServer::of(&["A", "M", "Z"].map(gift_card), &[]);
    let mut begun = CatalogCopy::of("");
    let mut going_on = served.copy("");
    let page = |copy: &mut CatalogCopy| copy.ask(&served.server, &served.key, "limit=1");
    served.load(&[
        named("A", "new"),
        gift_card("B"),
        named("M", "new"),
        gift_card("Z"),
    ]);
    for copy in [&mut begun, &mut going_on] {
        assert_eq!(page(copy), ["A"]);
    }
    // Created after the first page, and gone before the last.
    served.load(&[
        named("A", "new"),
        gift_card("B"),
        gift_card("K"),
        named("M", "new"),
        gift_card("Z"),
    ]);
    for copy in [&mut begun, &mut going_on] {
        assert_eq!(page(copy), ["B"]);
        assert_eq!(page(copy), ["K"]);
    }
    served.load(&[gift_card("M"), gift_card("Z")]);
    for copy in [&mut begun, &mut going_on] {
        copy.walk(&served.server, &served.key, "limit=1");
        let named = served.walk(copy);
        for gone in ["-A", "-B", "-K"] {
            assert!(named.contains(&gone.to_owned()), "{named:?}");
        }
        served.settle(copy);
    }
}

#[test]
fn rotated_key_goes_on_with_its_token() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let mut copy = served.copy("");
    let rotated = served
        .store
        .json(&["keys", "rotate", "reader", "--overlap", "0s", "--json"]);
    let key = rotated["key"].as_str().expect("a key").to_owned();
    let report = served.store.load_products(&["A", "B"].map(gift_card));
    served.server.wait_for_loaded(&report);
    crate::harness::wait_for("the new key to be known, and the change", || {
        let reply = served.server.get(&key, &copy.target(""));
        (reply.status == 200 && !copy.apply(&reply).changes.is_empty()).then_some(())
    });
    copy.settle(&served.server, &key);
}
