//! Query parameters: what is refused, as what, where, and with which help.

use serde_json::Value;

use crate::harness::{Reply, Store, gift_card};

const BAD: &str = "bad_request";
const PAGING: &str = "pagination_error";

/// The faults of a refusal, as `type name` in the answer's order.
fn faults(reply: &Reply) -> Vec<String> {
    let body = reply.json();
    let fault = |detail: &Value| {
        assert!(detail["message"].is_string(), "{body}");
        assert_eq!(detail.as_object().map(serde_json::Map::len), Some(3));
        assert_eq!(detail["location"][0], "query", "{body}");
        assert_eq!(detail["location"].as_array().map(Vec::len), Some(2));
        let name = detail["location"][1].as_str().expect("a name");
        format!("{} {name}", detail["type"].as_str().expect("a type"))
    };
    let details = body["details"].as_array();
    details.expect("details").iter().map(fault).collect()
}

/// A query, its error, and all faults in order.
type Case = (&'static str, &'static str, &'static [&'static str]);

fn assert_refused(path: &str, cases: &[Case]) {
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (query, error, expected) in cases {
        let reply = server.get(&key, &format!("{path}?{query}"));
        assert_eq!(reply.status, 400, "{query}");
        assert_eq!(reply.error(), *error, "{query}");
        assert_eq!(faults(&reply), *expected, "{query}");
    }
}

#[test]
fn wrong_limit_is_a_pagination_error() {
    let out = &["out_of_range limit"] as &[_];
    let invalid = &["invalid_value limit"] as &[_];
    let cases: [Case; 19] = [
        ("limit=0", PAGING, out),
        ("limit=000", PAGING, invalid),
        ("limit=05", PAGING, invalid),
        ("limit=0500", PAGING, invalid),
        ("limit=-0", PAGING, invalid),
        ("limit=-05", PAGING, invalid),
        ("limit=+5", PAGING, invalid),
        ("limit=501", PAGING, out),
        ("limit=-1", PAGING, out),
        ("limit=12345678901234567890", PAGING, out),
        ("limit=-12345678901234567890", PAGING, out),
        ("limit=1.5", PAGING, invalid),
        ("limit=1e2", PAGING, invalid),
        ("limit=", PAGING, invalid),
        ("limit", PAGING, invalid),
        ("limit=%2B5", PAGING, invalid),
        ("limit=0x10", PAGING, invalid),
        ("limit=%EF%BC%95", PAGING, invalid),
        ("limit=ten", PAGING, invalid),
    ];
    assert_refused("/v2/product", &cases);
}

#[test]
fn cursors_exclude_each_other_and_are_codes() {
    let cases: [Case; 11] = [
        ("before=B&after=A", PAGING, &["mutually_exclusive after"]),
        ("after=A&before=B", PAGING, &["mutually_exclusive before"]),
        ("after=", PAGING, &["invalid_cursor after"]),
        ("before", PAGING, &["invalid_cursor before"]),
        ("after=a%20b", PAGING, &["invalid_cursor after"]),
        ("after=a%2Fb", PAGING, &["invalid_cursor after"]),
        ("before=caf%C3%A9", PAGING, &["invalid_cursor before"]),
        ("before=%FF", PAGING, &["invalid_cursor before"]),
        ("before=..", PAGING, &["invalid_cursor before"]),
        ("after=changes", PAGING, &["invalid_cursor after"]),
        (
            "after=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            PAGING,
            &["invalid_cursor after"],
        ),
    ];
    assert_refused("/v2/product", &cases);
}

#[test]
fn bad_filter_is_a_bad_request() {
    let orderable = &["invalid_value is_orderable"] as &[_];
    let country = &["invalid_value countries_redeemable_in"] as &[_];
    let category = &["invalid_value categories"] as &[_];
    let currency = &["invalid_value currencies"] as &[_];
    let payout_type = &["invalid_value payout_types"] as &[_];
    let code = &["invalid_value codes"] as &[_];
    let cases: [Case; 31] = [
        ("currencies=eur", BAD, currency),
        ("currencies=EU", BAD, currency),
        ("currencies=EURO", BAD, currency),
        ("currencies=EUR,SEK", BAD, currency),
        ("currencies=", BAD, currency),
        ("currencies=SEK&currencies=%FF", BAD, currency),
        ("payout_types=Gift_card", BAD, payout_type),
        ("payout_types=gift-card", BAD, payout_type),
        ("payout_types=gift_card,payment", BAD, payout_type),
        ("payout_types", BAD, payout_type),
        ("codes=A,B", BAD, code),
        ("codes=a%20b", BAD, code),
        ("codes=..", BAD, code),
        ("codes=", BAD, code),
        ("codes=A&codes=changes", BAD, code),
        ("is_orderable=maybe", BAD, orderable),
        ("is_orderable=TRUE", BAD, orderable),
        ("is_orderable=1", BAD, orderable),
        ("is_orderable=true%20", BAD, orderable),
        ("is_orderable=", BAD, orderable),
        ("is_orderable", BAD, orderable),
        ("countries_redeemable_in=us", BAD, country),
        ("countries_redeemable_in=USA", BAD, country),
        ("countries_redeemable_in=U1", BAD, country),
        ("countries_redeemable_in=US,GB", BAD, country),
        ("countries_redeemable_in=", BAD, country),
        ("countries_redeemable_in=%FF", BAD, country),
        ("categories=", BAD, category),
        ("categories", BAD, category),
        ("categories=%FF", BAD, category),
        (
            "countries_redeemable_in=US&countries_redeemable_in=gb",
            BAD,
            country,
        ),
    ];
    assert_refused("/v2/product", &cases);
}

#[test]
fn repeated_single_parameter_is_refused() {
    let cases: [Case; 6] = [
        ("limit=5&limit=5", BAD, &["repeated_parameter limit"]),
        (
            "is_orderable=true&is_orderable=true",
            BAD,
            &["repeated_parameter is_orderable"],
        ),
        ("after=A&after=A", BAD, &["repeated_parameter after"]),
        ("before=A&before=A", BAD, &["repeated_parameter before"]),
        // The name counts decoded.
        ("limit=5&li%6Dit=5", BAD, &["repeated_parameter limit"]),
        (
            "limit=5&is_orderable=true&limit=6",
            BAD,
            &["repeated_parameter limit"],
        ),
    ];
    assert_refused("/v2/product", &cases);
}

#[test]
fn all_faults_are_reported_in_request_order() {
    let cases: [Case; 6] = [
        (
            "limit=0&before=B&after=A",
            PAGING,
            &["out_of_range limit", "mutually_exclusive after"],
        ),
        (
            "after=%20&limit=x",
            PAGING,
            &["invalid_cursor after", "invalid_value limit"],
        ),
        (
            "limit=0&is_orderable=maybe",
            BAD,
            &["out_of_range limit", "invalid_value is_orderable"],
        ),
        (
            "is_orderable=maybe&limit=0",
            BAD,
            &["invalid_value is_orderable", "out_of_range limit"],
        ),
        (
            "before=B&after=A&sort=name",
            BAD,
            &["mutually_exclusive after", "unknown_parameter sort"],
        ),
        (
            "z=1&categories=&limit=1.5&countries_redeemable_in=us&a=2&after=%FF",
            BAD,
            &[
                "unknown_parameter z",
                "invalid_value categories",
                "invalid_value limit",
                "invalid_value countries_redeemable_in",
                "unknown_parameter a",
                "invalid_cursor after",
            ],
        ),
    ];
    assert_refused("/v2/product", &cases);
}

#[test]
fn operations_refuse_the_parameters_of_others() {
    for path in [
        "/v2/ping",
        "/v2/product/categories",
        "/v2/product/countries",
    ] {
        let cases: [Case; 3] = [
            ("limit=5", BAD, &["unknown_parameter limit"]),
            ("content=md", BAD, &["unknown_parameter content"]),
            (
                "x=1&categories=a",
                BAD,
                &["unknown_parameter x", "unknown_parameter categories"],
            ),
        ];
        assert_refused(path, &cases);
    }
    // The product isn't there: parameters are judged first.
    let cases: [Case; 7] = [
        ("limit=5", BAD, &["unknown_parameter limit"]),
        ("content=", BAD, &["invalid_value content"]),
        ("content=HTML", BAD, &["invalid_value content"]),
        ("content=pdf", BAD, &["invalid_value content"]),
        ("content=%FF", BAD, &["invalid_value content"]),
        (
            "content=md&content=md",
            BAD,
            &["repeated_parameter content"],
        ),
        ("contents=md", BAD, &["unknown_parameter contents"]),
    ];
    assert_refused("/v2/product/NO-SUCH", &cases);
    let cases: [Case; 1] = [("content=md", BAD, &["unknown_parameter content"])];
    assert_refused("/v2/product", &cases);
}

#[test]
fn malformed_percent_escapes_are_refused() {
    let category = &["invalid_value categories"] as &[_];
    let cases: [Case; 12] = [
        ("categories=%ZZ", BAD, category),
        ("categories=%", BAD, category),
        ("categories=100%", BAD, category),
        ("categories=%4", BAD, category),
        ("categories=a%20%", BAD, category),
        ("categories=%25%2", BAD, category),
        ("limit=%ZZ", PAGING, &["invalid_value limit"]),
        ("after=%ZZ", PAGING, &["invalid_cursor after"]),
        ("is_orderable=true%", BAD, &["invalid_value is_orderable"]),
        (
            "countries_redeemable_in=%",
            BAD,
            &["invalid_value countries_redeemable_in"],
        ),
        ("categories%=a", BAD, &["unknown_parameter categories%"]),
        ("%ZZ", BAD, &["unknown_parameter %ZZ"]),
    ];
    assert_refused("/v2/product", &cases);
    let cases: [Case; 1] = [("content=md%", BAD, &["invalid_value content"])];
    assert_refused("/v2/product/A", &cases);

    let store = Store::of(&[gift_card("A")]);
    let key = store.key("partner", &[]);
    let reply = store.serve().get(&key, "/v2/product?categories=100%");
    let body = reply.json();
    let message = body["message"].as_str().expect("a message");
    assert!(message.contains("\"100%\""), "{body}");
    assert!(
        body["help"].as_str().expect("help").contains("%25"),
        "{body}"
    );
}

#[test]
fn edges_of_every_parameter_are_taken() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (query, count) in [
        ("", 72),
        ("?", 72),
        ("?limit=1", 1),
        ("?limit=500", 72),
        ("?limit=7", 7),
        ("?is_orderable=false", 72),
        ("?l%69mit=%31", 1),
        ("?categories=caf%C3%A9+%26+bistro&limit=2", 2),
        ("?categories=caf%C3%A9%20%26%20bistro&limit=2", 2),
        ("?after=-", 72),
        ("?before=~", 72),
        ("?after=~", 0),
    ] {
        let codes = server.get(&key, &format!("/v2/product{query}")).codes();
        assert_eq!(codes.len(), count, "{query}");
    }
}

#[test]
fn filters_that_no_product_matches_give_an_empty_page() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for query in [
        "categories=no-such-thing",
        "categories=GAMES",
        "countries_redeemable_in=AQ",
        "countries_redeemable_in=US&categories=nothing",
        "currencies=ZZZ",
        "payout_types=no_such_type",
        "codes=no-such-code",
    ] {
        let reply = server.get(&key, &format!("/v2/product?{query}&limit=9"));
        assert_eq!(reply.status, 200, "{query}");
        let expected = serde_json::json!({
            "catalog": [],
            "pagination": {"cursors": {"before": null, "after": null}, "page": {"limit": 9}},
        });
        assert_eq!(reply.json(), expected, "{query}");
    }
}

#[test]
fn hundred_faults_are_told_at_most() {
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    let names: Vec<String> = (0..1_200).map(|number| format!("x{number}")).collect();
    for path in ["/v2/product", "/openapi.json"] {
        let reply = server.get(&key, &format!("{path}?{}", names.join("&")));
        assert_eq!((reply.status, &*reply.error()), (400, BAD));
        assert_eq!(faults(&reply).len(), 100);
        let body = reply.json();
        let help = body["help"].as_str().expect("help");
        assert!(help.contains("more is wrong"), "{help}");
    }
}

#[test]
fn words_of_empty_variables_are_refused_with_help() {
    let mut named = gift_card("A");
    named["categories"] = serde_json::json!(["None"]);
    let store = Store::of(&[named]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    let refused = |target: &str| {
        let reply = server.get(&key, target);
        assert_eq!(reply.status, 400, "{target}");
        let body = reply.json();
        let help = body["help"].as_str().expect("help");
        assert!(
            help.contains("a variable of your program seems to be empty"),
            "{body}"
        );
        let fault = &body["details"][0];
        let place = format!("{}.{}", fault["location"][0], fault["location"][1]).replace('"', "");
        format!("{} {place}", fault["type"].as_str().expect("a type"))
    };
    for word in [
        "undefined",
        "null",
        "None",
        "nil",
        "NaN",
        "%5Bobject%20Object%5D",
    ] {
        let path = format!("/v2/product/{word}");
        assert_eq!(refused(&path), "invalid_value path.product_code");
        for (name, fault) in [
            ("after", "invalid_cursor query.after"),
            ("before", "invalid_cursor query.before"),
            ("codes", "invalid_value query.codes"),
            ("categories", "invalid_value query.categories"),
        ] {
            let target = format!("/v2/product?{name}={word}");
            match (name, word) {
                // A category of the catalog.
                ("categories", "None") => assert_eq!(server.get(&key, &target).codes(), ["A"]),
                _ => assert_eq!(refused(&target), fault, "{word}"),
            }
        }
    }
    // In the midst of a walk, the category may be gone; and words are compared exactly.
    for target in [
        "?categories=null&after=A",
        "?categories=Null",
        "/changes?categories=Null",
    ] {
        assert_eq!(
            server.get(&key, &format!("/v2/product{target}")).status,
            200,
            "{target}"
        );
    }
    let first = "/v2/product/changes?categories=null";
    assert_eq!(refused(first), "invalid_value query.categories");
    assert_eq!(server.get(&key, "/v2/product/Null").status, 404);
}

#[test]
fn countries_that_no_iso_code_is_of_are_refused() {
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (country, help) in [
        ("UK", "did you mean `GB`?"),
        ("EN", "did you mean `GB`?"),
        ("se", "did you mean `SE`?"),
        ("XX", ""),
    ] {
        for path in ["/v2/product", "/v2/product/changes"] {
            let reply = server.get(&key, &format!("{path}?countries_redeemable_in={country}"));
            assert_eq!(faults(&reply), ["invalid_value countries_redeemable_in"]);
            assert!(
                reply.json()["help"].as_str().expect("help").contains(help),
                "{country}"
            );
        }
    }
    let kosovo = server.get(&key, "/v2/product?countries_redeemable_in=XK");
    assert_eq!(kosovo.status, 200);
}
