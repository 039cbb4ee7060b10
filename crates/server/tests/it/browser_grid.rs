//! The catalog browser's grid: what is searched and filtered is what a look at each product would find, and its counts
//! and pages hold together.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use vitrine_model::search::{Search, words_of};

use crate::harness::browsed::{Browsed, codes, counts, open};
use crate::harness::{SAMPLE, Store, gift_card};

const PER_PAGE: usize = 100;

/// The made-up products: enough for several pages and several blocks.
pub fn made_up() -> Vec<Value> {
    let states = ["LIVE", "TEMPORARILY_DISABLED", "TEMPORARILY_DEGRADED"];
    let countries = ["SE", "NO", "DK", "FI", "DE", "US"];
    let categories = ["food-and-drink", "café & bistro", "games"];
    let one = |number: usize| {
        let mut product = gift_card(&format!("P-{number:04}"));
        product["name"] = match number % 5 {
            0 => format!("Ångström Café {number}").into(),
            1 => format!("<script>alert({number})</script>").into(),
            2 => format!("ZÜRICH “Quotes” & Co {number}").into(),
            _ => format!("Plain {number}").into(),
        };
        product["state"] = states[number % 3].into();
        product["is_orderable"] = number.is_multiple_of(6).into();
        let some = |all: &[&str], step: usize| -> Vec<String> {
            let taken = all
                .iter()
                .enumerate()
                .filter(|(at, _)| (number / step + at).is_multiple_of(3));
            taken.map(|(_, one)| (*one).to_owned()).collect()
        };
        product["countries_redeemable_in"] = json!(some(&countries, 1));
        product["categories"] = json!(some(&categories, 2));
        product["currency"] = ["EUR", "SEK"][number % 2].into();
        product
    };
    let mut products: Vec<Value> = (0..600).map(one).collect();
    products.push(json!({
        "name": "Later kind", "code": "LATER-1", "currency": "EUR", "state": "LIVE", "is_orderable": true,
        "payout_type": "hologram", "categories": [], "countries_redeemable_in": ["SE"],
        "customer_service": {"phone_number": null, "website_url": null}, "discount_multiplier": "0.01",
        "hologram": {"shine": 1.50, "assets": {"primary_color": "#112233"}},
    }));
    products
}

/// The values of a product that a group filters by.
fn values(product: &Value, group: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
    match group {
        "orderable" => vec![
            if product["is_orderable"] == true {
                "yes"
            } else {
                "no"
            }
            .to_owned(),
        ],
        "country" => list(&product["countries_redeemable_in"]),
        "category" => list(&product["categories"]),
        other => vec![text(&product[other])],
    }
}

const GROUPS: [&str; 6] = [
    "orderable",
    "state",
    "payout_type",
    "country",
    "category",
    "currency",
];

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced)
        .decode_utf8()
        .expect("UTF-8")
        .into_owned()
}

/// Returns true if a query selects the product; `but` is a group that isn't looked at.
fn is_wanted(product: &Value, query: &[(String, String)], but: &str) -> bool {
    let text = |field: &str| product[field].as_str().unwrap_or_default();
    let words = words_of(text("name"), text("code"));
    let mut searches = query.iter().filter(|(name, _)| name == "q");
    searches.all(|(_, search)| Search::parse(search).is_some_and(|search| search.matches(&words)))
        && GROUPS.iter().filter(|group| **group != but).all(|group| {
            let mut picked = query.iter().filter(|(name, _)| name == group).peekable();
            picked.peek().is_none()
                || picked.any(|(_, value)| values(product, group).contains(value))
        })
}

/// Reads all pages forth; then all back; each product must come once.
fn walk(browsed: &Browsed, query: &str) -> Vec<String> {
    let target = if query.is_empty() {
        "/catalog".to_owned()
    } else {
        format!("/catalog?{query}")
    };
    let mut page = browsed.page(&target);
    let mut forth = vec![codes(&page)];
    while let Some(next) = page.link("next") {
        page = browsed.page(&next);
        forth.push(codes(&page));
    }
    let mut back = vec![codes(&page)];
    while let Some(previous) = page.link("prev") {
        page = browsed.page(&previous);
        back.push(codes(&page));
    }
    back.reverse();
    assert!(forth.iter().all(|page| page.len() <= PER_PAGE));
    assert_eq!(back, forth, "{query}");
    forth.concat()
}

/// Asserts that a query shows what a naive filter of the products finds.
pub fn compare(browsed: &Browsed, products: &[Value], query: &str) {
    let pairs: Vec<(String, String)> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect();
    let wanted = products
        .iter()
        .filter(|product| is_wanted(product, &pairs, ""));
    let mut wanted: Vec<&str> = wanted
        .filter_map(|product| product["code"].as_str())
        .collect();
    wanted.sort_unstable();
    assert_eq!(walk(browsed, query), wanted, "{query}");
    let page = browsed.page(&format!("/catalog?{query}"));
    for (group, value, count, is_picked) in counts(&page) {
        let others = products
            .iter()
            .filter(|product| is_wanted(product, &pairs, &group));
        let naive = others
            .filter(|product| values(product, &group).contains(&value))
            .count();
        assert_eq!(count, naive, "{query}: {group}={value}");
        assert_eq!(
            is_picked,
            pairs.contains(&(group.clone(), value.clone())),
            "{query}: {group}={value}"
        );
    }
    for group in GROUPS {
        let others = products
            .iter()
            .filter(|product| is_wanted(product, &pairs, group));
        let all: BTreeSet<String> = others.flat_map(|product| values(product, group)).collect();
        let page_counts = counts(&page);
        let shown = page_counts
            .iter()
            .filter(|(of, _, count, _)| of == group && *count > 0);
        let shown: BTreeSet<String> = shown.map(|(_, value, _, _)| value.clone()).collect();
        assert_eq!(shown, all, "{query}: {group}");
    }
}

#[test]
fn grid_equals_a_naive_filter_of_the_sample() {
    let products = std::fs::read_to_string(SAMPLE).expect("the sample catalog");
    let products: Vec<Value> = products
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let browsed = open(Store::sample(), &[]);
    for query in [
        "",
        "orderable=yes",
        "orderable=no&orderable=yes",
        "country=US",
        "country=US&country=SE&orderable=yes",
        "category=caf%C3%A9+%26+bistro",
        "payout_type=payment",
        "payout_type=subscription&currency=USD&state=LIVE",
        "q=pass",
        "q=HAWKER+pandan",
        "q=-us",
        "q=nothing+of+the+kind",
        "country=ZZ",
    ] {
        compare(&browsed, &products, query);
    }
}

#[test]
fn grid_equals_a_naive_filter_of_several_blocks() {
    let products = made_up();
    let browsed = open(Store::of(&products), &[]);
    for query in [
        "",
        "q=%C3%A5ngstr%C3%B6m",
        "q=z%C3%BCrich+%26",
        "q=%3Cscript%3E",
        "q=p-05&country=SE&country=DE",
        "state=LIVE&state=TEMPORARILY_DISABLED&orderable=no&category=games",
        "country=SE&category=caf%C3%A9%20%26%20bistro&currency=SEK&orderable=yes",
        "payout_type=hologram",
        "q=5+%C3%A5+plain",
    ] {
        compare(&browsed, &products, query);
    }
}

#[test]
fn grid_follows_loads() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let browsed = open(store, &[]);
    assert_eq!(walk(&browsed, ""), ["A", "B"]);
    let mut changed = gift_card("B");
    changed["name"] = "Renamed".into();
    changed["state"] = "TEMPORARILY_DISABLED".into();
    let report = browsed.store.load_products(&[changed, gift_card("C")]);
    browsed.server.wait_for_loaded(&report);
    assert_eq!(walk(&browsed, ""), ["B", "C"]);
    assert_eq!(walk(&browsed, "q=renamed"), ["B"]);
    assert_eq!(walk(&browsed, "state=TEMPORARILY_DISABLED"), ["B"]);
    let counts = counts(&browsed.page("/catalog"));
    for value in ["LIVE", "TEMPORARILY_DISABLED"] {
        let count = ("state".to_owned(), value.to_owned(), 1, false);
        assert!(counts.contains(&count), "{counts:?}");
    }
}

#[test]
fn empty_result_and_lost_page_lead_back() {
    let browsed = open(Store::sample(), &[]);
    let page = browsed.page("/catalog?q=nothing+of+the+kind");
    assert!(page.text().contains("No products match"), "{}", page.text());
    let page = browsed.page("/catalog?page=1000");
    assert!(
        page.text().contains("This page is past the end"),
        "{}",
        page.text()
    );
    assert_eq!(page.link("prev").as_deref(), Some("/catalog"));
}

#[test]
fn wrong_browser_parameters_are_refused() {
    let browsed = open(Store::sample(), &[]);
    for (target, named) in [
        ("/catalog?colour=red", "colour"),
        ("/catalog?q=a&q=b", "twice"),
        ("/catalog?country=", "country"),
        ("/catalog?page=0", "page"),
        ("/catalog?sort=colour", "sort"),
        ("/catalog?q=%FF", "UTF-8"),
        ("/catalog?%3Cscript%3E=1", "<script>"),
        ("/catalog/PANDANLANE-SG?x=1", "x"),
        ("/revisions?page=0", "page"),
        ("/revisions/1?before=A", "before"),
        ("/keys?secret=1", "secret"),
        ("/?x=1", "x"),
    ] {
        let page = browsed.ask(target);
        assert_eq!(page.status, 400, "{target}");
        assert!(page.text().contains(named), "{target}: {}", page.text());
    }
}
