//! `X-Api-Version`: what is asked for, what answers, and which answers say so.

use crate::harness::{Headers, Server, Store, gift_card};

const CURRENT: &str = "2024-02-05";
const NEWEST: &str = "2026-12-01";

fn catalog() -> Store {
    Store::of(&[gift_card("A-1")])
}

#[test]
fn current_version_is_the_default() {
    let store = catalog();
    let plain = store.key("plain", &[]);
    let pinned = store.key("pinned", &["--api-version", CURRENT]);
    let server = store.serve();
    let version = |value| ("X-Api-Version", value);
    let asked: [Headers<'_>; 5] = [
        &[],
        &[version(CURRENT)],
        &[version("")],
        &[version("   ")],
        &[version("  2024-02-05 ")],
    ];
    for key in [&plain, &pinned] {
        for headers in asked {
            let headers = [&[("X-Api-Key", key.as_str())], headers].concat();
            for path in ["/v2/product", "/v2/product/A-1", "/v2/ping"] {
                let reply = server.send("GET", path, &headers);
                assert_eq!(reply.status, 200, "{headers:?}");
                assert_eq!(reply.header("x-api-version"), Some(CURRENT));
            }
        }
    }
}

#[test]
fn requested_version_answers_before_the_pinned_one() {
    let store = catalog();
    let keys = [CURRENT, NEWEST].map(|date| (date, store.key(date, &["--api-version", date])));
    let server = store.serve();
    for (pinned, key) in &keys {
        let key = ("X-Api-Key", key.as_str());
        for path in [
            "/v2/product",
            "/v2/product/changes",
            "/v2/product/A-1",
            "/v2/ping",
        ] {
            let reply = server.send("GET", path, &[key]);
            assert_eq!(reply.header("x-api-version"), Some(*pinned), "{path}");
            for asked in [CURRENT, NEWEST] {
                let reply = server.send("GET", path, &[key, ("X-Api-Version", asked)]);
                assert_eq!(reply.header("x-api-version"), Some(asked), "{path}");
            }
        }
    }
}

/// Asserts an error of the version step: it doesn't name a version that would have answered.
fn assert_refused(server: &Server, headers: Headers<'_>, status: u16, error: &str) {
    let reply = server.send("GET", "/v2/product", headers);
    assert_eq!(reply.status, status, "{headers:?}");
    assert_eq!(reply.error(), error, "{headers:?}");
    assert_eq!(reply.header("x-api-version"), None, "{headers:?}");
}

#[test]
fn unknown_version_is_refused() {
    let store = catalog();
    let plain = store.key("plain", &[]);
    let pinned = store.key("pinned", &["--api-version", CURRENT]);
    let server = store.serve();
    for key in [&plain, &pinned] {
        let key = ("X-Api-Key", key.as_str());
        for version in [
            "2024-2-5",
            "latest",
            "2099-01-01",
            "2024-02-06",
            "2024-02-05T00:00:00Z",
            "2024-02-05, 2024-02-05",
            "v2",
            "2",
            "20240205",
            "\"2024-02-05\"",
            "caf\u{e9}",
        ] {
            let headers = [key, ("X-Api-Version", version)];
            assert_refused(&server, &headers, 400, "invalid_version");
        }
        for second in [CURRENT, "2023-07-27", "no"] {
            let headers = [key, ("X-Api-Version", CURRENT), ("x-api-version", second)];
            assert_refused(&server, &headers, 400, "invalid_version");
        }
        for removed in ["2023-07-27", "2023-01-16"] {
            let headers = [key, ("X-Api-Version", removed)];
            assert_refused(&server, &headers, 410, "version_removed");
        }
    }
}

#[test]
fn refused_version_names_all_served_versions() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for version in ["2026-12-1", "v2", "2023-07-27"] {
        let headers = [("X-Api-Key", key.as_str()), ("X-Api-Version", version)];
        let body = server.send("GET", "/v2/product", &headers).json();
        let help = body["help"].as_str().expect("help");
        for served in [CURRENT, NEWEST] {
            assert!(help.contains(served), "{version}: {help}");
        }
    }
}

#[test]
fn key_is_pinned_only_to_a_served_version() {
    let store = catalog();
    for version in ["2023-07-27", "2099-01-01", "latest", ""] {
        let option = format!("--api-version={version}");
        let output = store.run(&["keys", "create", "--label", "x", &option]);
        assert!(!output.status.success(), "{version}");
    }
    assert_eq!(store.ok(&["keys", "list", "--json"]).trim(), "[]");
}

#[test]
fn answers_past_the_version_step_name_the_version() {
    let store = catalog();
    let key = store.key("partner", &["--quota", "2/3600"]);
    let test = store.key("tester", &["--test"]);
    let server = store.serve();
    let tag = server
        .get(&test, "/v2/product")
        .header("etag")
        .map(str::to_owned);
    let known = ("If-None-Match", tag.as_deref().expect("a tag"));
    let (key, test) = (("X-Api-Key", key.as_str()), ("X-Api-Key", test.as_str()));
    let cases: [(&str, &str, Headers<'_>, u16, bool); 15] = [
        ("GET", "/v2/product", &[key], 200, true),
        ("GET", "/v2/product", &[key, known], 304, true),
        ("HEAD", "/v2/product", &[key, known], 304, true),
        ("GET", "/v2/product?limit=0", &[key], 400, true),
        ("GET", "/v2/product?x=0", &[key], 400, true),
        ("GET", "/v2/product/NONE", &[key], 404, true),
        ("GET", "/v2/product", &[key], 429, true),
        (
            "GET",
            "/v2/product",
            &[test, ("X-Simulate", "timeout")],
            504,
            true,
        ),
        (
            "GET",
            "/v2/product",
            &[key, ("X-Simulate", "timeout")],
            403,
            true,
        ),
        ("GET", "/v2/product", &[], 401, false),
        (
            "GET",
            "/v2/product",
            &[("X-Api-Key", "wrong.key")],
            401,
            false,
        ),
        (
            "GET",
            "/v2/product",
            &[key, ("X-Api-Version", "no")],
            400,
            false,
        ),
        (
            "GET",
            "/v2/product",
            &[key, ("X-Api-Version", "2023-01-16")],
            410,
            false,
        ),
        ("POST", "/v2/product", &[key], 405, false),
        ("GET", "/v2/nothing", &[key], 404, false),
    ];
    for (method, target, headers, status, bears) in cases {
        let reply = server.send(method, target, headers);
        assert_eq!(reply.status, status, "{method} {target} {headers:?}");
        let version = reply.header("x-api-version");
        assert_eq!(
            version,
            bears.then_some(CURRENT),
            "{method} {target} {headers:?}"
        );
    }
}
