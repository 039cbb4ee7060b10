//! The `Link` header of lists: the page's neighbours (RFC 8288).

use serde_json::json;

use crate::harness::{Reply, Server, Store, gift_card};

fn catalog() -> Store {
    Store::of(&["A", "B", "C", "D", "E"].map(gift_card))
}

/// The targets of a `Link` header, as (relation, query).
fn links(reply: &Reply) -> Vec<(String, String)> {
    let Some(header) = reply.header("link") else {
        return Vec::new();
    };
    assert!(header.is_ascii(), "{header}");
    let link = |link: &str| {
        let (query, relation) = link.split_once(">; rel=\"").expect("one relation");
        let query = query.strip_prefix("<?").expect("a query-only reference");
        let relation = relation.strip_suffix('"').expect("nothing else");
        assert!(!query.contains(['<', '>', '"', ' ', ',']), "{query}");
        (relation.to_owned(), query.to_owned())
    };
    let mut links: Vec<_> = header.split(", ").map(link).collect();
    links.sort();
    links
}

/// The query of one relation.
fn to<'l>(links: &'l [(String, String)], relation: &str) -> Option<&'l str> {
    let found = links.iter().find(|(name, _)| name == relation);
    found.map(|(_, query)| query.as_str())
}

#[test]
fn link_header_matches_the_contract() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let reply = server.get(&key, "/v2/product?countries_redeemable_in=US&limit=5");
    let codes = reply.codes();
    let expected = format!(
        "<?countries_redeemable_in=US&limit=5&after={}>; rel=\"next\"",
        codes[4]
    );
    assert_eq!(reply.header("link"), Some(expected.as_str()));
    let reply = server.get(&key, "/v2/product");
    assert_eq!(reply.header("link"), None, "everything is on the page");
}

#[test]
fn link_header_names_existing_neighbours() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (query, previous, next) in [
        ("limit=2", None, Some("limit=2&after=B")),
        (
            "limit=2&after=B",
            Some("limit=2&before=C"),
            Some("limit=2&after=D"),
        ),
        ("limit=2&after=D", Some("limit=2&before=E"), None),
        ("limit=2&after=C", Some("limit=2&before=D"), None),
        ("limit=2&before=C", None, Some("limit=2&after=B")),
        (
            "limit=2&before=D",
            Some("limit=2&before=B"),
            Some("limit=2&after=C"),
        ),
        ("limit=5", None, None),
        ("limit=500", None, None),
        ("limit=4", None, Some("limit=4&after=D")),
        ("after=A", Some("before=B"), None),
        ("before=E", None, Some("after=D")),
        // Cursors needn't exist.
        (
            "limit=1&after=BB",
            Some("limit=1&before=C"),
            Some("limit=1&after=C"),
        ),
        // Nothing on the page: nothing beside it.
        ("after=E", None, None),
        ("before=A", None, None),
        ("categories=nothing", None, None),
    ] {
        let reply = server.get(&key, &format!("/v2/product?{query}"));
        assert_eq!(reply.status, 200, "{query}");
        let found = links(&reply);
        assert_eq!(to(&found, "prev"), previous, "{query}");
        assert_eq!(to(&found, "next"), next, "{query}");
        let count = usize::from(previous.is_some()) + usize::from(next.is_some());
        assert_eq!(found.len(), count, "{query}");
        assert_eq!(reply.header("link").is_some(), count > 0, "{query}");
    }
}

#[test]
fn links_keep_parameter_order_with_the_cursor_last() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (query, expected) in [
        (
            "after=A&limit=1&countries_redeemable_in=DE",
            "limit=1&countries_redeemable_in=DE&after=B",
        ),
        (
            "countries_redeemable_in=US&limit=1&is_orderable=true&countries_redeemable_in=DE",
            "countries_redeemable_in=US&limit=1&is_orderable=true&countries_redeemable_in=DE&after=A",
        ),
        (
            "is_orderable=false&before=D&categories=fashion&limit=2",
            "is_orderable=false&categories=fashion&limit=2&after=C",
        ),
    ] {
        let reply = server.get(&key, &format!("/v2/product?{query}"));
        assert_eq!(to(&links(&reply), "next"), Some(expected), "{query}");
    }
}

#[test]
fn only_neighbours_that_match_the_filters_count() {
    let mut products = ["A", "B", "C", "D"].map(gift_card);
    products[0]["is_orderable"] = json!(false);
    products[3]["countries_redeemable_in"] = json!(["FR"]);
    let store = Store::of(&products);
    let key = store.key("partner", &[]);
    let server = store.serve();
    let query = "is_orderable=true&countries_redeemable_in=DE&limit=2";
    let reply = server.get(&key, &format!("/v2/product?{query}"));
    assert_eq!(reply.codes(), ["B", "C"]);
    assert_eq!(reply.header("link"), None);
}

/// Follows `next` from a target to the end; returns all codes.
fn walk(server: &Server, key: &str, query: &str) -> Vec<String> {
    let mut query = query.to_owned();
    let mut codes = Vec::new();
    loop {
        let reply = server.get(key, &format!("/v2/product?{query}"));
        codes.extend(reply.codes());
        assert!(codes.len() < 100, "the walk doesn't end");
        match to(&links(&reply), "next") {
            Some(next) => query = next.to_owned(),
            None => return codes,
        }
    }
}

#[test]
fn link_values_are_percent_encoded() {
    let hostile = "<a>; rel=\"x\", &b=c+d%41#e'\u{1f600}\\";
    let category = "café & bistro";
    let mut products = ["A", "B", "C", "D"].map(gift_card);
    for product in &mut products[..3] {
        product["categories"] = json!([category, hostile]);
    }
    let store = Store::of(&products);
    let key = store.key("partner", &[]);
    let server = store.serve();
    let encoded = "caf%C3%A9%20%26%20bistro";
    for sent in [encoded, "caf%c3%a9+%26+bistro"] {
        let query = format!("categories={sent}&limit=1");
        let reply = server.get(&key, &format!("/v2/product?{query}"));
        let next = format!("categories={encoded}&limit=1&after=A");
        assert_eq!(to(&links(&reply), "next"), Some(next.as_str()));
        assert_eq!(walk(&server, &key, &query), ["A", "B", "C"]);
    }
    let every_byte: String = hostile.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let walked = walk(&server, &key, &format!("categories={every_byte}&limit=1"));
    assert_eq!(walked, ["A", "B", "C"]);
}

#[test]
fn walk_along_the_links_meets_every_product_once() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let all = server.get(&key, "/v2/product").codes();
    for limit in [1, 7, 71, 72] {
        assert_eq!(walk(&server, &key, &format!("limit={limit}")), all);
    }
    // And back again.
    let mut query = "limit=7&before=~".to_owned();
    let mut pages = Vec::new();
    loop {
        let reply = server.get(&key, &format!("/v2/product?{query}"));
        pages.push(reply.codes());
        match to(&links(&reply), "prev") {
            Some(previous) => query = previous.to_owned(),
            None => break,
        }
    }
    pages.reverse();
    assert_eq!(pages.concat(), all);
}

#[test]
fn header_longer_than_2_kb_is_left_out() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (length, is_there) in [(1_800, true), (2_100, false), (5_000, false)] {
        let long = "x".repeat(length);
        let target = format!("/v2/product?categories={long}&categories=fashion&limit=2");
        let reply = server.get(&key, &target);
        assert_eq!(reply.codes(), ["A", "B"]);
        assert_eq!(reply.header("link").is_some(), is_there, "{length}");
    }
}

#[test]
fn only_lists_of_products_have_neighbours() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for target in [
        "/v2/product/B",
        "/v2/product/categories",
        "/v2/product/countries",
        "/v2/ping",
    ] {
        assert_eq!(server.get(&key, target).header("link"), None, "{target}");
    }
}
