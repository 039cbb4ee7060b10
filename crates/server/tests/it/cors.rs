//! Pages of other origins: what needs no key is readable from any, what needs one from those that `--cors-origins` names.

use crate::harness::{Reply, Server, Store, gift_card, text, wait_for};

const SHOP: &str = "https://shop.example";
const EXPOSED: &str =
    "ETag, Link, RateLimit, RateLimit-Policy, Retry-After, X-Api-Version, X-Request-Id";

fn cors_headers(reply: &Reply) -> Vec<&str> {
    let names = reply.headers.iter().map(|(name, _)| name.as_str());
    names
        .filter(|name| name.starts_with("access-control-"))
        .collect()
}

fn varies_by_origin(reply: &Reply) -> bool {
    let vary = reply.header("vary").unwrap_or_default();
    vary.split(',').any(|name| name.trim() == "Origin")
}

/// The path of a text of the sample catalog.
fn text_path(server: &Server, key: &str) -> String {
    let catalog = server.get(key, "/v2/product").json().to_string();
    let (_, rest) = catalog.split_once("/v2/texts/").expect("a text");
    format!("/v2/texts/{}.md", &rest[..64])
}

#[test]
fn public_resources_are_readable_from_any_origin() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    for options in [&[] as &[&str], &["--cors-origins", SHOP]] {
        let server = store.serve_with(options);
        let text = text_path(&server, &key);
        let missing = format!("/v2/texts/{}.md", "0".repeat(64));
        for (path, status) in [
            (&*text, 200),
            ("/openapi.json", 200),
            ("/docs", 200),
            ("/docs/paging", 200),
            (&missing, 404),
            ("/openapi.json?x=1", 400),
        ] {
            for origin in [&[] as &[_], &[("Origin", "https://other.example")]] {
                let reply = server.send("GET", path, origin);
                assert_eq!(reply.status, status, "{path}");
                assert_eq!(
                    reply.header("access-control-allow-origin"),
                    Some("*"),
                    "{path}"
                );
                assert!(
                    !varies_by_origin(&reply),
                    "one answer for all origins: {path}"
                );
            }
        }
        let tag = server
            .send("GET", &text, &[])
            .header("etag")
            .map(str::to_owned);
        let unchanged = [("If-None-Match", tag.as_deref().expect("a tag"))];
        let reply = server.send("GET", &text, &unchanged);
        assert_eq!(reply.status, 304);
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
        let preflight = [
            ("Origin", "https://other.example"),
            ("Access-Control-Request-Method", "GET"),
        ];
        assert_eq!(server.send("OPTIONS", &text, &preflight).status, 204);
    }
}

#[test]
fn keyed_answers_have_no_cors_headers_by_default() {
    let store = Store::of(&[gift_card("A-1")]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    let headers = &[
        ("X-Api-Key", key.as_str()),
        ("Origin", SHOP),
        ("Access-Control-Request-Method", "GET"),
    ];
    for path in ["/v2/product", "/v2/product/A-1", "/v2/ping", "/nowhere"] {
        for method in ["GET", "OPTIONS"] {
            let reply = server.send(method, path, headers);
            assert_eq!(cors_headers(&reply), [""; 0], "{method} {path}");
            assert!(!varies_by_origin(&reply), "{method} {path}");
            if method == "OPTIONS" && path != "/nowhere" {
                assert_eq!(reply.status, 405, "{path}");
            }
        }
    }
}

#[test]
fn keyed_answers_are_readable_from_named_origins_only() {
    let store = Store::of(&[gift_card("A-1")]);
    let key = store.key("partner", &["--quota", "1000/60"]);
    let origins = format!("{SHOP},HTTP://LocalHost:5173");
    let server = store.serve_with(&["--cors-origins", &origins]);
    let tag = server
        .get(&key, "/v2/product")
        .header("etag")
        .map(str::to_owned);
    let tag = tag.expect("a tag");
    for (method, path, key, unchanged, status) in [
        ("GET", "/v2/product", &*key, "", 200),
        ("HEAD", "/v2/product", &key, "", 200),
        ("GET", "/v2/product", &key, &*tag, 304),
        ("GET", "/v2/product?limit=0", &key, "", 400),
        ("GET", "/v2/product", "wrong.key", "", 401),
        ("GET", "/v2/product", "", "", 401),
        ("GET", "/v2/product/NONE", &key, "", 404),
        ("GET", "/v2/none", &key, "", 404),
        ("POST", "/v2/ping", &key, "", 405),
    ] {
        let ask = |origin: Option<&str>| {
            let mut headers = vec![("X-Api-Key", key)];
            headers.extend((!unchanged.is_empty()).then_some(("If-None-Match", unchanged)));
            headers.extend(origin.map(|origin| ("Origin", origin)));
            let reply = server.send(method, path, &headers);
            assert_eq!(reply.status, status, "{method} {path}");
            assert!(varies_by_origin(&reply), "{method} {path}");
            reply
        };
        for origin in [SHOP, "http://localhost:5173"] {
            let reply = ask(Some(origin));
            let header = |name| reply.header(name);
            assert_eq!(
                header("access-control-allow-origin"),
                Some(origin),
                "{path}"
            );
            assert_eq!(
                header("access-control-expose-headers"),
                Some(EXPOSED),
                "{path}"
            );
            assert_eq!(header("access-control-allow-credentials"), None);
        }
        for origin in [
            None,
            Some("null"),
            Some("https://evil.example"),
            Some("https://shop.example.evil.example"),
            Some("https://shop.example:8443"),
            Some("http://shop.example"),
        ] {
            assert_eq!(cors_headers(&ask(origin)), [""; 0], "{origin:?} {path}");
        }
    }
    let vary = server
        .get(&key, "/v2/product")
        .header("vary")
        .map(str::to_owned);
    let expected = "Accept-Encoding, X-Api-Version, X-Api-Key, Origin";
    assert_eq!(vary.as_deref(), Some(expected));
}

#[test]
fn preflights_of_named_origins_need_no_key() {
    let store = Store::of(&[gift_card("A-1")]);
    let server = store.serve_with(&["--cors-origins", SHOP]);
    let preflight = |origin: &str, path: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "GET"),
            ("Access-Control-Request-Headers", "x-api-key,x-api-version"),
        ];
        server.send("OPTIONS", path, &headers)
    };
    // The last is for reading the 404.
    for path in ["/v2/product", "/v2/product/A-1", "/v2/ping?x=1", "/v2/none"] {
        let reply = preflight(SHOP, path);
        assert_eq!((reply.status, reply.body.len()), (204, 0), "{path}");
        let header = |name: &str| reply.header(name).unwrap_or_default().to_lowercase();
        assert_eq!(header("access-control-allow-origin"), SHOP);
        assert_eq!(header("access-control-allow-methods"), "get, head");
        let accepted = header("access-control-allow-headers");
        for name in ["x-api-key", "x-api-version", "if-none-match", "x-simulate"] {
            assert!(accepted.split(", ").any(|other| other == name), "{name}");
        }
        assert!(header("access-control-max-age").parse::<u32>().is_ok());
        assert!(varies_by_origin(&reply));
        assert!(reply.header("x-request-id").is_some());
        let refused = preflight("https://evil.example", path).status;
        assert_eq!(
            refused,
            if path == "/v2/none" { 404 } else { 405 },
            "{path}"
        );
    }
    // Any other OPTIONS is none.
    for headers in [&[] as &[_], &[("Origin", SHOP)]] {
        let reply = server.send("OPTIONS", "/v2/ping", headers);
        assert_eq!((reply.status, &*reply.error()), (405, "method_not_allowed"));
    }
}

#[test]
fn values_that_are_not_origins_stop_the_start() {
    let store = Store::of(&[gift_card("A-1")]);
    for (value, reason) in [
        ("*", "every page"),
        ("null", "SCHEME://HOST"),
        ("shop.example", "SCHEME://HOST"),
        ("https://shop.example/", "after its host"),
        ("https://shop.example/app", "after its host"),
        ("https://*.shop.example", "SCHEME://HOST"),
        ("https://me@shop.example", "SCHEME://HOST"),
    ] {
        let output = store.run(&["serve", "--listen", "127.0.0.1:0", "--cors-origins", value]);
        assert_eq!(output.status.code(), Some(2), "{value}");
        let told = text(&output.stderr);
        assert!(told.contains(reason), "{value}: {told}");
    }
}

#[test]
fn origins_change_with_sighup() {
    let store = Store::of(&[gift_card("A-1")]);
    let file = |origin: &str| {
        let content = format!("cors_origins = ['{origin}']\n");
        store.write("vitrine.toml", content).display().to_string()
    };
    let path = file(SHOP);
    let command = store.command(&["serve", "--config", &path, "--listen", "127.0.0.1:0"]);
    let server = Server::start(command);
    let is_allowed = |origin: &str| {
        let reply = server.send("GET", "/v2/ping", &[("Origin", origin)]);
        reply.header("access-control-allow-origin") == Some(origin)
    };
    assert!(is_allowed(SHOP));
    file("https://new.example");
    server.signal("HUP");
    wait_for("the new origin", || {
        is_allowed("https://new.example").then_some(())
    });
    assert!(!is_allowed(SHOP));
}
