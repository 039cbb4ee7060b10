//! Help for wrong requests: the nearest path and parameter, and names that other APIs use.

use serde_json::{Value, json};

use crate::assortments::set;
use crate::harness::{Store, gift_card, text};

const BAD: &str = "bad_request";

#[test]
fn unknown_paths_are_answered_with_the_nearest_one() {
    let store = Store::of(&[gift_card("A-1")]);
    let server = store.serve();
    for (path, nearest) in [
        ("/v2/products", Some("`/v2/product`")),
        ("/countries", Some("`/v2/product/countries`")),
        ("/v2/categories?x=1", Some("`/v2/product/categories`")),
        ("/v2/product/", Some("`/v2/product`")),
        ("/product/A-1", Some("`/v2/product/{product_code}`")),
        ("/openapi.yaml", Some("`/openapi.json`")),
        ("/swagger.json", Some("`/openapi.json`")),
        ("/v2/swagger.yaml", Some("`/openapi.json`")),
        ("/swagger-ui/index.html", Some("`/openapi.json`")),
        ("/v3/api-docs", Some("`/openapi.json`")),
        ("/v2/none", None),
        ("/", None),
    ] {
        let reply = server.send("GET", path, &[]);
        assert_eq!(
            (reply.status, &*reply.error()),
            (404, "not_found"),
            "{path}"
        );
        let help = reply.json()["help"].as_str().expect("help").to_owned();
        assert!(help.contains("/docs"), "{path}: {help}");
        assert_eq!(
            help.contains("did you mean"),
            nearest.is_some(),
            "{path}: {help}"
        );
        assert!(help.contains(nearest.unwrap_or_default()), "{path}: {help}");
    }
}

#[test]
fn unknown_parameter_is_answered_with_the_nearest_name() {
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (target, hint) in [
        (
            "/v2/product?countries=US",
            "did you mean `countries_redeemable_in`?",
        ),
        (
            "/v2/product?country_redeemable_in=US",
            "did you mean `countries_redeemable_in`?",
        ),
        ("/v2/product?category=games", "did you mean `categories`?"),
        ("/v2/product?Limit=5", "did you mean `limit`?"),
        ("/v2/product?limt=5", "did you mean `limit`?"),
        ("/v2/product?orderable=true", "did you mean `is_orderable`?"),
        // A part of a name, or more than it; but of three letters at least.
        (
            "/v2/product?redeemable=US",
            "did you mean `countries_redeemable_in`?",
        ),
        ("/v2/product?max_page_limit=5", "did you mean `limit`?"),
        ("/v2/product?or=1", "it takes `is_orderable`, "),
        (
            "/v2/product?categories[]=games",
            "repeat `categories` instead",
        ),
        (
            "/v2/product?categories%5B%5D=games",
            "repeat `categories` instead",
        ),
        (
            "/v2/product?countries_redeemable_in[]=US",
            "repeat `countries_redeemable_in` instead",
        ),
        ("/v2/product/A?contents=md", "did you mean `content`?"),
    ] {
        let reply = server.get(&key, target);
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (400, BAD),
            "{target}"
        );
        let body = reply.json();
        let help = body["help"].as_str().expect("help");
        assert!(help.contains(hint), "{target}: {help}");
    }
}

#[test]
fn comma_lists_get_advice_to_repeat() {
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    for query in [
        "countries_redeemable_in=US,CA",
        "countries_redeemable_in=US%2CCA",
        "countries_redeemable_in=US,+CA",
    ] {
        let reply = server.get(&key, &format!("/v2/product?{query}"));
        assert_eq!((reply.status, &*reply.error()), (400, BAD), "{query}");
        let help = reply.json()["help"].as_str().expect("help").to_owned();
        assert!(help.contains("repeat the parameter"), "{query}: {help}");
    }
    // The name of a category may have a comma.
    let reply = server.get(&key, "/v2/product?categories=fashion,home");
    assert_eq!(reply.status, 200);
}

/// Returns a product with categories.
fn product_of(code: &str, categories: &[&str]) -> Value {
    let mut product = gift_card(code);
    product["categories"] = json!(categories);
    product
}

#[test]
fn categories_in_one_value_or_encoded_twice_are_refused() {
    let products = [
        product_of("A", &["fashion", "food & drink"]),
        product_of("B", &["home", "toys, games"]),
    ];
    let store = Store::of(&products);
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (value, meant) in [
        ("fashion,home", "`categories=fashion&categories=home`"),
        ("fashion%2Chome", "`categories=fashion&categories=home`"),
        (
            "home&categories=fashion,home",
            "`categories=fashion&categories=home`",
        ),
        (
            "food%2520%2526%2520drink",
            "`categories=food%20%26%20drink`",
        ),
    ] {
        for path in ["/v2/product", "/v2/product/changes"] {
            let target = format!("{path}?categories={value}");
            let reply = server.get(&key, &target);
            assert_eq!((reply.status, &*reply.error()), (400, BAD), "{target}");
            let body = reply.json();
            assert_eq!(body["details"][0]["type"], "invalid_value", "{target}");
            assert_eq!(body["details"][0]["location"][1], "categories", "{target}");
            let help = body["help"].as_str().expect("help");
            assert!(help.contains(meant), "{target}: {help}");
        }
    }
    // Categories with a comma, and lists that aren't of categories; a walk that goes on never fails.
    for query in [
        "categories=toys%2C%20games",
        "categories=fashion,none",
        "categories=food%2520and%2520drink",
        "categories=fashion,home&after=A",
        "categories=fashion,home&before=B",
    ] {
        let reply = server.get(&key, &format!("/v2/product?{query}"));
        assert_eq!(reply.status, 200, "{query}: {}", text(&reply.body));
    }
}

#[test]
fn categories_of_other_keys_arent_given_away() {
    let products = [product_of("A", &["fashion"]), product_of("B", &["secret"])];
    let store = Store::of(&products);
    set(&store, "few", &json!({"allow": [{"codes": ["A"]}]}));
    let key = store.key("partner", &["--assortment", "few"]);
    let server = store.serve();
    let reply = server.get(&key, "/v2/product?categories=fashion,secret");
    assert_eq!(reply.status, 200, "{}", text(&reply.body));
}

#[test]
fn names_of_other_apis_get_a_pointer() {
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (query, pointers) in [
        ("page=2", &["`after`", "`limit`"] as &[_]),
        ("offset=500", &["`after`", "`limit`"]),
        ("per_page=50", &["`after`", "`limit`"]),
        ("cursor=A", &["`after`", "`limit`"]),
        ("Page=2", &["`after`", "`limit`"]),
        ("page_size=50", &["as `limit`"]),
        ("pageSize=50", &["as `limit`"]),
        ("count=50", &["as `limit`"]),
        ("code=A", &["`/v2/product/{code}`"]),
    ] {
        let reply = server.get(&key, &format!("/v2/product?{query}"));
        assert_eq!((reply.status, &*reply.error()), (400, BAD), "{query}");
        let body = reply.json();
        for pointer in pointers {
            let help = body["help"].as_str().expect("help");
            assert!(help.contains(pointer), "{query}: {help}");
        }
    }
    // Operations without paging don't name it.
    let reply = server.get(&key, "/v2/product/categories?page=2");
    let help = reply.json()["help"].as_str().expect("help").to_owned();
    assert_eq!(help, "this operation takes no parameters");
}
