//! Filters of lists and changes against a search through all products.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::feed::FeedServer;
use crate::harness::{Server, Store, gift_card};

/// Values of a filter: its name, values, and the field of a product that has them.
type Filter = (&'static str, &'static [&'static str], &'static str);

/// Values that some products have, and values that none has.
const FILTERS: [Filter; 14] = [
    ("currencies", &["GBP"], "currency"),
    ("currencies", &["SEK", "ZZZ", "USD", "SEK"], "currency"),
    ("currencies", &["ZZZ"], "currency"),
    ("payout_types", &["gift_card"], "payout_type"),
    (
        "payout_types",
        &["payment", "prepaid_card", "a"],
        "payout_type",
    ),
    ("payout_types", &["later_than_all"], "payout_type"),
    ("codes", &["HALLOWMERE-GB"], "code"),
    (
        "codes",
        &["TONVIK-SE", "none", "HALLOWMERE-GB", "BRIARWICK-GB"],
        "code",
    ),
    ("codes", &["none"], "code"),
    (
        "countries_redeemable_in",
        &["GB", "SE"],
        "countries_redeemable_in",
    ),
    (
        "countries_redeemable_in",
        &["US"],
        "countries_redeemable_in",
    ),
    ("categories", &["travel", "games"], "categories"),
    ("categories", &["food-and-drink"], "categories"),
    ("is_orderable", &["true"], "is_orderable"),
];

fn query(filters: &[Filter]) -> String {
    let pairs = filters
        .iter()
        .flat_map(|(name, values, _)| values.iter().map(move |value| format!("{name}={value}")));
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns the codes of products that have one of the values of each filter.
fn matching(products: &[Value], filters: &[Filter]) -> Vec<String> {
    let has = |product: &Value, (_, values, field): &Filter| match &product[*field] {
        Value::Array(own) => own
            .iter()
            .any(|one| values.contains(&one.as_str().expect("a text"))),
        Value::Bool(own) => *own,
        own => values.contains(&own.as_str().expect("a text")),
    };
    let matches = |product: &&Value| filters.iter().all(|filter| has(product, filter));
    let found = products.iter().filter(matches);
    found
        .map(|product| product["code"].as_str().expect("a code").to_owned())
        .collect()
}

/// Walks a list by its `Link` header, in a direction from a cursor.
fn walk(server: &Server, key: &str, query: &str, start: &str, relation: &str) -> Vec<String> {
    let mut target = format!("/v2/product?{query}&limit=2{start}");
    let mut pages: Vec<Vec<String>> = Vec::new();
    loop {
        let reply = server.get(key, &target);
        pages.push(reply.codes());
        assert!(pages.len() < 80, "it ends");
        let links = reply.header("link").unwrap_or_default().to_owned();
        let end = format!(">; rel=\"{relation}\"");
        let Some((head, _)) = links.split_once(&end) else {
            break;
        };
        let (_, next) = head.rsplit_once('<').expect("an address");
        target = format!("/v2/product{next}");
    }
    if relation == "prev" {
        pages.reverse();
    }
    pages.concat()
}

#[test]
fn combined_filters_find_what_a_search_finds() {
    let served = FeedServer::over(Store::sample(), &[]);
    let (server, key) = (&served.server, &*served.key);
    let all = server.get(key, "/v2/product").json();
    let products = all["catalog"].as_array().expect("products");
    let mut found_by_many = BTreeSet::new();
    for one in FILTERS {
        for other in FILTERS {
            let filters = match one.0 == other.0 {
                true => vec![one],
                false => vec![one, other],
            };
            let expected = matching(products, &filters);
            let query = query(&filters);
            let reply = server.get(key, &format!("/v2/product?{query}"));
            assert_eq!(reply.codes(), expected, "{query}");
            if filters.len() > 1 {
                found_by_many.extend(expected.clone());
            }
            if expected.len() < 12 {
                assert_eq!(walk(server, key, &query, "", "next"), expected, "{query}");
                assert_eq!(
                    walk(server, key, &query, "&before=~", "prev"),
                    expected,
                    "{query}"
                );
            }
            let changes = server
                .get(key, &format!("/v2/product/changes?{query}"))
                .json();
            let changes = changes["changes"].as_array().expect("changes").iter();
            let codes: Vec<&str> = changes
                .map(|one| one["code"].as_str().expect("a code"))
                .collect();
            assert_eq!(codes, expected, "{query}");
        }
    }
    assert!(found_by_many.len() > 20, "{found_by_many:?}");
}

#[test]
fn hundred_codes_are_taken_and_one_more_is_refused() {
    let names: Vec<String> = (0..150).map(|number| format!("P{number:03}")).collect();
    let products: Vec<Value> = names.iter().map(|code| gift_card(code)).collect();
    let store = Store::of(&products);
    let (key, server) = (store.key("partner", &[]), store.serve());
    let target = |codes: &[String]| {
        let codes: Vec<String> = codes.iter().map(|code| format!("codes={code}")).collect();
        format!("/v2/product?{}", codes.join("&"))
    };
    assert_eq!(
        server.get(&key, &target(&names[7..107])).codes(),
        names[7..107]
    );
    for count in [101, 150] {
        let reply = server.get(&key, &target(&names[..count]));
        assert_eq!((reply.status, &*reply.error()), (400, "bad_request"));
        let details = &reply.json()["details"];
        assert_eq!(details.as_array().map(Vec::len), Some(1), "{details}");
        assert_eq!(details[0]["type"], "out_of_range");
        assert_eq!(details[0]["location"], json!(["query", "codes"]));
        assert!(reply.json()["help"].to_string().contains("100"));
    }
    // What is malformed behind them is told, too.
    let target = format!("{}&codes=a%20b&codes=", target(&names[..100]));
    let details = server.get(&key, &target).json()["details"].clone();
    let types: Vec<&Value> = details
        .as_array()
        .expect("details")
        .iter()
        .map(|one| &one["type"])
        .collect();
    assert_eq!(types, ["out_of_range", "invalid_value", "invalid_value"]);
}

#[test]
fn product_that_leaves_a_filter_is_told_as_removed() {
    let product = |code: &str, currency: &str, payout_type: &str| {
        let mut product = gift_card(code);
        product["currency"] = currency.into();
        let detail = product["gift_card"].take();
        product
            .as_object_mut()
            .expect("an object")
            .remove("gift_card");
        product["payout_type"] = payout_type.into();
        product[payout_type] = match payout_type {
            "gift_card" => detail,
            _ => json!({"content_resources": detail["content_resources"]}),
        };
        product
    };
    let before = [
        product("A", "EUR", "gift_card"),
        product("B", "EUR", "gift_card"),
        product("C", "SEK", "prepaid_card"),
    ];
    let served = FeedServer::of(&before, &[]);
    let filters = [
        ("currencies=EUR", &["-A", "B", "C"][..]),
        ("currencies=SEK&currencies=DKK", &["A", "-C"]),
        ("payout_types=gift_card", &["A", "-B", "C"]),
        ("payout_types=prepaid_card", &["B", "-C"]),
        ("currencies=EUR&payout_types=gift_card", &["-A", "-B", "C"]),
        ("codes=A&codes=none&codes=D", &["A"]),
        ("codes=A&codes=B&currencies=EUR", &["-A", "B"]),
        ("codes=none", &[]),
    ];
    let mut copies = filters.map(|(filter, _)| served.copy(filter));
    served.load(&[
        product("A", "SEK", "gift_card"),
        product("B", "EUR", "prepaid_card"),
        product("C", "EUR", "gift_card"),
    ]);
    for (copy, (filter, expected)) in copies.iter_mut().zip(filters) {
        assert_eq!(served.walk(copy), expected, "{filter}");
        served.settle(copy);
    }
    served.change(|store| {
        store.ok(&["rollback", "1", "--yes"]);
    });
    for copy in &mut copies {
        served.walk(copy);
        served.settle(copy);
    }
}
