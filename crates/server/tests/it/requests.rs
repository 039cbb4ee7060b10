//! Routes, methods, codes in paths, HEAD, and the order in which a request is judged.

use serde_json::json;

use crate::harness::{Headers, Reply, Server, Store, gift_card};

/// A path of every route, with what must be there.
const KNOWN: [&str; 7] = [
    "/v2/product",
    "/v2/product/changes",
    "/v2/product/A-1",
    "/v2/product/categories",
    "/v2/product/countries",
    "/v2/ping",
    "/openapi.json",
];

fn catalog() -> Store {
    Store::of(&[gift_card("A-1"), gift_card("B.2~x_y")])
}

fn assert_error(reply: &Reply, status: u16, error: &str, what: &str) {
    assert_eq!(reply.status, status, "{what}");
    assert_eq!(reply.error(), error, "{what}");
}

#[test]
fn json_is_sent_as_exactly_application_json() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let unkeyed: Headers<'_> = &[];
    let keyed: Headers<'_> = &[
        ("X-Api-Key", &key),
        ("Accept", "application/json;charset=utf-8, text/html"),
    ];
    let others = ["/v2/product/A-1?content=md", "/v2/product/NONE", "/nowhere"];
    for target in KNOWN.iter().chain(&others) {
        for method in ["GET", "HEAD", "POST"] {
            for headers in [keyed, unkeyed] {
                let reply = server.send(method, target, headers);
                let content_type = reply.header("content-type");
                assert_eq!(content_type, Some("application/json"), "{method} {target}");
            }
        }
    }
}

#[test]
fn paths_are_exact() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for path in KNOWN {
        assert_eq!(server.get(&key, path).status, 200, "{path}");
    }
    for path in [
        "/",
        "/v2",
        "/v2/",
        "/v1/product",
        "/product",
        "/V2/product",
        "/v2/Product",
        "/v2/products",
        "/v2/product/",
        "/v2//product",
        "//v2/product",
        "/v2/product//A-1",
        "/v2/product/A-1/",
        "/v2/product/A-1/terms",
        "/v2/product/categories/",
        "/v2/product/countries/",
        "/v2/product/changes/",
        "/v2/ping/",
        "/v2/./product",
        "/v2/x/../product",
        "/v2/texts",
        "/v2/texts/",
        "/v2/texts/abc.md",
        "/openapi.json/",
    ] {
        assert_error(&server.get(&key, path), 404, "not_found", path);
    }
}

#[test]
fn impossible_code_is_not_found() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let longest = "x".repeat(64);
    let too_long = "x".repeat(65);
    for code in [
        "A%201",
        "A+1",
        "A%2F1",
        "A%5C1",
        "A%251",
        "A%2",
        "A%",
        "%",
        "%FF",
        "%00",
        "A-1%0A",
        "caf%C3%A9",
        "A-1,B.2~x_y",
        "A-1;v=1",
        ".",
        "..",
        "%2e%2e",
        "a-1",
        &longest,
        &too_long,
    ] {
        let target = format!("/v2/product/{code}");
        assert_error(&server.get(&key, &target), 404, "not_found", code);
    }
}

#[test]
fn raw_non_uri_character_finds_no_product() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for code in ["caf\u{e9}", "A 1", "\u{ff21}-1"] {
        let reply = server.get(&key, &format!("/v2/product/{code}"));
        assert!([400, 404].contains(&reply.status), "{code}");
    }
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
}

#[test]
fn percent_encoded_code_is_the_code() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (segment, code) in [
        ("A-1", "A-1"),
        ("A%2D1", "A-1"),
        ("%41%2d%31", "A-1"),
        ("B%2E2%7Ex%5Fy", "B.2~x_y"),
        ("B.2~x_y", "B.2~x_y"),
    ] {
        let reply = server.get(&key, &format!("/v2/product/{segment}"));
        assert_eq!(reply.status, 200, "{segment}");
        assert_eq!(reply.json()["code"], code, "{segment}");
    }
}

#[test]
fn retired_product_is_not_found_until_loaded() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (codes, status) in [(&["B"] as &[&str], 404), (&["A-1", "B"], 200)] {
        let products: Vec<_> = codes.iter().map(|code| gift_card(code)).collect();
        let report = store.load_products(&products);
        server.wait_for_loaded(&report);
        assert_eq!(server.get(&key, "/v2/product/A-1").status, status);
    }
}

#[test]
fn only_get_and_head_are_allowed_on_known_paths() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let headers = &[("X-Api-Key", key.as_str())];
    for method in [
        "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PURGE", "get",
    ] {
        for path in KNOWN {
            let reply = server.send(method, path, headers);
            let what = format!("{method} {path}");
            assert_error(&reply, 405, "method_not_allowed", &what);
            let allow = reply.header("allow").expect("Allow");
            let mut allowed: Vec<&str> = allow.split(',').map(str::trim).collect();
            allowed.sort_unstable();
            assert_eq!(allowed, ["GET", "HEAD"], "{what}");
        }
        for path in ["/", "/v2/nothing", "/v2/product/", "/v2/product/changes/"] {
            let reply = server.send(method, path, headers);
            assert_error(&reply, 404, "not_found", &format!("{method} {path}"));
        }
    }
}

/// The headers that don't differ from one answer to the next.
fn lasting(reply: &Reply) -> Vec<(String, String)> {
    let mut headers = reply.headers.clone();
    headers.retain(|(name, _)| name != "date" && name != "x-request-id");
    headers.sort();
    headers
}

#[test]
fn head_is_get_without_the_body() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let tag = server
        .get(&key, "/v2/product")
        .header("etag")
        .map(str::to_owned);
    let key: (&str, &str) = ("X-Api-Key", &key);
    let known: (&str, &str) = ("If-None-Match", tag.as_deref().expect("a tag"));
    for (target, headers, status) in [
        ("/v2/product", &[key] as &[_], 200),
        ("/v2/product?limit=1", &[key], 200),
        ("/v2/product", &[key, known], 304),
        ("/v2/product/A-1?content=html", &[key], 200),
        ("/v2/product/categories", &[key], 200),
        ("/v2/product/countries", &[key], 200),
        ("/v2/ping", &[key], 200),
        ("/openapi.json", &[], 200),
        ("/v2/product/NONE", &[key], 404),
        ("/v2/product?limit=0", &[key], 400),
        ("/v2/product", &[], 401),
        ("/nowhere", &[key], 404),
    ] {
        let get = server.send("GET", target, headers);
        let head = server.send("HEAD", target, headers);
        assert_eq!((get.status, head.status), (status, status), "{target}");
        assert_eq!(lasting(&head), lasting(&get), "{target}");
        assert!(head.body.is_empty(), "{target}");
        if status != 304 {
            let length = get.body.len().to_string();
            assert_eq!(head.header("content-length"), Some(length.as_str()));
            assert!(length != "0", "{target}");
        }
        assert_eq!(head.header("etag").is_some(), [200, 304].contains(&status));
    }
}

/// A method, a target, headers; the status and the error that must come.
type Judged<'c> = (&'c str, &'c str, Headers<'c>, u16, &'c str);

fn judge(server: &Server, cases: &[Judged<'_>]) {
    for (method, target, headers, status, error) in cases {
        let reply = server.send(method, target, headers);
        let what = format!("{method} {target} {headers:?}");
        assert_error(&reply, *status, error, &what);
    }
}

#[test]
fn empty_store_answers_503_before_the_key() {
    let store = Store::new();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let key = ("X-Api-Key", key.as_str());
    let wrong = ("X-Api-Key", "wrong.key");
    let headers: [Headers<'_>; 4] = [&[], &[key], &[wrong], &[key, ("X-Api-Version", "no")]];
    for path in [
        "/v2/product",
        "/v2/product/A",
        "/v2/product/countries",
        "/v2/ping",
    ] {
        for headers in headers {
            let target = format!("{path}?bad=1");
            let reply = server.send("GET", &target, headers);
            assert_error(&reply, 503, "unavailable", path);
            let seconds = reply.header("retry-after").expect("Retry-After");
            assert!(seconds.parse::<u32>().is_ok_and(|s| s > 0), "{seconds}");
        }
    }
    judge(
        &server,
        &[
            ("GET", "/v2/nothing", &[], 404, "not_found"),
            ("POST", "/v2/product", &[], 405, "method_not_allowed"),
        ],
    );
    let report = store.load_products(&[gift_card("A")]);
    server.wait_for_loaded(&report);
    assert_eq!(server.send("GET", "/v2/product", &[key]).status, 200);
}

#[test]
fn categories_and_countries_come_from_products() {
    let mut product = gift_card("A");
    product["categories"] = json!([]);
    product["countries_redeemable_in"] = json!([]);
    let mut products = [product, gift_card("B"), gift_card("C")];
    let bare = Store::of(&products[..1]);
    let key = bare.key("partner", &[]);
    let server = bare.serve();
    for (path, expected) in [
        ("/v2/product/categories", json!({"categories": []})),
        ("/v2/product/countries", json!({"countries": []})),
        ("/v2/ping", json!({"message": "pong"})),
    ] {
        assert_eq!(server.get(&key, path).json(), expected);
    }
    products[1]["categories"] = json!(["zoo", "café & bistro", "Zoo"]);
    products[2]["countries_redeemable_in"] = json!(["FR", "AT", "DE"]);
    server.wait_for_loaded(&bare.load_products(&products));
    let categories = ["Zoo", "café & bistro", "fashion", "zoo"].map(|code| json!({"code": code}));
    for (path, expected) in [
        ("/v2/product/categories", json!({"categories": categories})),
        (
            "/v2/product/countries",
            json!({"countries": ["AT", "DE", "FR"]}),
        ),
    ] {
        assert_eq!(server.get(&key, path).json(), expected);
    }
}

#[test]
fn first_failing_step_answers() {
    let store = catalog();
    let key = store.key("partner", &["--quota", "1/3600"]);
    let server = store.serve();
    let key = ("X-Api-Key", key.as_str());
    let wrong = ("X-Api-Key", "wrong.key");
    let (no_version, removed) = (("X-Api-Version", "no"), ("X-Api-Version", "2023-07-27"));
    // Everything is wrong in the first case; from case to case one thing less is.
    let cases: [Judged<'_>; 10] = [
        (
            "POST",
            "/v2/nothing?x=1",
            &[wrong, no_version],
            404,
            "not_found",
        ),
        (
            "POST",
            "/v2/product/NONE?x=1",
            &[wrong, no_version],
            405,
            "method_not_allowed",
        ),
        (
            "POST",
            "/v2/product/NONE?x=1",
            &[],
            405,
            "method_not_allowed",
        ),
        (
            "GET",
            "/v2/product/NONE?x=1",
            &[no_version],
            401,
            "unauthorized",
        ),
        (
            "GET",
            "/v2/product/NONE?x=1",
            &[wrong, no_version],
            401,
            "invalid_api_key",
        ),
        (
            "GET",
            "/v2/product/NONE?x=1",
            &[key, no_version],
            400,
            "invalid_version",
        ),
        (
            "GET",
            "/v2/product/NONE?x=1",
            &[key, removed],
            410,
            "version_removed",
        ),
        ("GET", "/v2/product/NONE?x=1", &[key], 400, "bad_request"),
        ("GET", "/v2/product/NONE", &[key], 404, "not_found"),
        ("GET", "/v2/product/NONE", &[key], 429, "rate_limited"),
    ];
    judge(&server, &cases);
}
