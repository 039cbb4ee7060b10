//! Quotas, and the errors that a test key can ask for.

use crate::harness::{Headers, Reply, Server, Store, are_files, gift_card, scrape};

fn catalog() -> Store {
    Store::of(&[gift_card("A-1")])
}

/// A parameter of `RateLimit`.
fn parameter_value(reply: &Reply, parameter: &str) -> u64 {
    let limit = reply.header("ratelimit").expect("RateLimit");
    let told = limit
        .split(';')
        .find_map(|part| part.trim().strip_prefix(parameter));
    told.expect(parameter).parse().expect("a number")
}

/// Returns the number of requests left by `RateLimit`.
fn left(reply: &Reply) -> u64 {
    parameter_value(reply, "r=")
}

fn assert_used_up(server: &Server, key: &str) {
    let reply = server.get(key, "/v2/ping");
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (429, "rate_limited")
    );
    let seconds: u64 = reply
        .header("retry-after")
        .expect("Retry-After")
        .parse()
        .expect("seconds");
    assert!((600..=1200).contains(&seconds), "{seconds}");
    assert_eq!(left(&reply), 0);
}

#[test]
fn requests_beyond_the_quota_get_429() {
    let store = catalog();
    let key = store.key("partner", &["--quota", "3/3600"]);
    let other = store.key("other", &["--quota", "3/3600"]);
    let free = store.key("free", &[]);
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    for expected in [2, 1, 0] {
        let reply = server.get(&key, "/v2/product");
        assert_eq!(reply.status, 200);
        assert_eq!(left(&reply), expected);
        // Each request is paid back in twenty minutes; how long this test takes is nobody's promise.
        let owed = (3 - expected) * 1_200;
        let whole_after = parameter_value(&reply, "t=");
        assert!((owed - 600..=owed).contains(&whole_after), "{whole_after}");
        let policy = reply.header("ratelimit-policy").expect("RateLimit-Policy");
        assert!(
            policy.contains("q=3") && policy.contains("w=3600"),
            "{policy}"
        );
    }
    for _ in 0..3 {
        assert_used_up(&server, &key);
    }
    let metrics = scrape(&server);
    for outcome in ["granted", "refused"] {
        let series =
            format!("vitrine_quota_decisions_total{{decided=\"local\",outcome=\"{outcome}\"}}");
        assert_eq!(metrics.value(&series), 3.0, "{outcome}");
    }
    // Nobody pays for another.
    assert_eq!(left(&server.get(&other, "/v2/product")), 2);
    for _ in 0..10 {
        let reply = server.get(&free, "/v2/product");
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("ratelimit"), None);
    }
}

#[test]
fn only_200_and_404_cost_quota() {
    let store = catalog();
    let key = store.key("partner", &["--quota", "3/3600"]);
    let server = store.serve();
    let first = server.get(&key, "/v2/product");
    assert_eq!((first.status, left(&first)), (200, 2));
    let tag = first.header("etag").expect("a tag");
    let free: [(&str, Headers<'_>, u16); 6] = [
        ("/v2/product", &[("If-None-Match", tag)], 304),
        ("/v2/product?limit=0", &[], 400),
        ("/v2/product?x=1", &[], 400),
        ("/v2/product", &[("X-Api-Version", "no")], 400),
        ("/v2/product", &[("X-Api-Version", "2023-07-27")], 410),
        ("/v2/product", &[("X-Simulate", "timeout")], 403),
    ];
    let key_header = ("X-Api-Key", key.as_str());
    for (target, headers, status) in free {
        for _ in 0..4 {
            let headers = [&[key_header], headers].concat();
            assert_eq!(server.send("GET", target, &headers).status, status);
        }
    }
    assert_eq!(server.get("wrong.key", "/v2/product").status, 401);
    let missing = server.get(&key, "/v2/product/NONE");
    assert_eq!((missing.status, left(&missing)), (404, 1));
    let head = server.send("HEAD", "/v2/product/A-1", &[key_header]);
    assert_eq!((head.status, left(&head)), (200, 0));
    assert_used_up(&server, &key);
    // What costs nothing is answered still.
    let headers = [key_header, ("If-None-Match", tag)];
    assert_eq!(server.send("GET", "/v2/product", &headers).status, 304);
    assert_eq!(server.get(&key, "/v2/product?limit=0").status, 400);
    assert_eq!(server.get(&key, "/v2/product/NONE").status, 429);
}

#[test]
fn failed_answer_costs_no_quota() {
    if !are_files("an answer that can't be made costs nothing") {
        return;
    }
    let mut described = gift_card("A-1");
    described["gift_card"]["content_resources"]["description_md"] = "A description".into();
    let store = Store::of(&[described]);
    let key = store.key("partner", &["--quota", "3/3600"]);
    let server = store.serve_with_damaged_texts();
    for form in ["md", "html"] {
        for _ in 0..4 {
            let failed = server.get(&key, &format!("/v2/product/A-1?content={form}"));
            assert_eq!((failed.status, left(&failed)), (500, 3), "{form}");
        }
    }
    let answered = server.get(&key, "/v2/product/A-1");
    assert_eq!((answered.status, left(&answered)), (200, 2));
}

#[test]
fn malformed_quota_makes_no_key() {
    let store = catalog();
    for quota in [
        "", "5", "0/60", "5/0", "-1/60", "5/60/7", "five/60", "1.5/60",
    ] {
        let output = store.run(&[
            "keys",
            "create",
            "--label",
            "x",
            &format!("--quota={quota}"),
        ]);
        assert!(!output.status.success(), "{quota}");
    }
    assert_eq!(store.ok(&["keys", "list", "--json"]).trim(), "[]");
}

/// The contract's table of errors.
const ERRORS: [(&str, u16); 16] = [
    ("bad_request", 400),
    ("pagination_error", 400),
    ("invalid_version", 400),
    ("unauthorized", 401),
    ("invalid_api_key", 401),
    ("forbidden", 403),
    ("not_found", 404),
    ("method_not_allowed", 405),
    ("version_removed", 410),
    ("payload_too_large", 413),
    ("uri_too_long", 414),
    ("headers_too_large", 431),
    ("rate_limited", 429),
    ("internal_server_error", 500),
    ("unavailable", 503),
    ("timeout", 504),
];

#[test]
fn test_key_gets_any_simulated_error() {
    let store = catalog();
    let key = store.key("tester", &["--test"]);
    let server = store.serve();
    for (error, status) in ERRORS {
        for target in ["/v2/product", "/v2/product/A-1", "/v2/ping"] {
            let headers = [("X-Api-Key", key.as_str()), ("X-Simulate", error)];
            let reply = server.send("GET", target, &headers);
            assert_eq!(reply.status, status, "{error}");
            assert_eq!(reply.error(), error);
            if [429, 503].contains(&status) {
                let seconds = reply.header("retry-after").expect("Retry-After");
                assert!(seconds.parse::<u32>().is_ok(), "{seconds}");
            }
            assert_eq!(
                reply.header("www-authenticate").is_some(),
                status == 401,
                "{error}"
            );
            assert_eq!(reply.header("allow").is_some(), status == 405, "{error}");
        }
    }
    assert_eq!(server.get(&key, "/v2/product").codes(), ["A-1"]);
}

#[test]
fn simulated_errors_have_details_and_headers_of_real_ones() {
    let store = catalog();
    let key = store.key("tester", &["--test"]);
    let own = store.key("own", &["--test", "--quota", "3/3600"]);
    let server = store.serve();
    let simulated = |error: &str| {
        let headers = [("X-Api-Key", key.as_str()), ("X-Simulate", error)];
        server.send("GET", "/v2/product", &headers)
    };
    for (error, query) in [
        ("bad_request", "is_orderable=maybe&countries=US"),
        ("pagination_error", "limit=0"),
    ] {
        let real = server.get(&key, &format!("/v2/product?{query}"));
        assert_eq!(simulated(error).json(), real.json(), "{error}");
        assert_eq!(real.error(), error);
    }
    let limited = simulated("rate_limited");
    assert_eq!(
        limited.header("ratelimit-policy"),
        Some("\"default\";q=600;w=60")
    );
    assert_eq!(limited.header("ratelimit"), Some("\"default\";r=0;t=5"));
    assert_eq!(limited.header("retry-after"), Some("5"));
    assert_eq!(simulated("timeout").header("connection"), Some("close"));
    let headers = [("X-Api-Key", own.as_str()), ("X-Simulate", "rate_limited")];
    let limited = server.send("GET", "/v2/product", &headers);
    assert_eq!(
        limited.header("ratelimit-policy"),
        Some("\"default\";q=3;w=3600")
    );
    assert_eq!(left(&limited), 0);
}

#[test]
fn unknown_error_cannot_be_simulated() {
    let store = catalog();
    let key = store.key("tester", &["--test"]);
    let server = store.serve();
    for error in [
        "teapot",
        "TIMEOUT",
        "500",
        "timeout, unavailable",
        "caf\u{e9}",
    ] {
        let headers = [("X-Api-Key", key.as_str()), ("X-Simulate", error)];
        let reply = server.send("GET", "/v2/product", &headers);
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (400, "bad_request"),
            "{error}"
        );
        let body = reply.json();
        let help = body["help"].as_str().expect("help");
        assert!(
            ERRORS.iter().all(|(known, _)| help.contains(known)),
            "{help}"
        );
        let named = body["message"].as_str().expect("a message").contains(error);
        assert_eq!(named, error.is_ascii(), "{body}");
    }
}

#[test]
fn simulated_error_costs_like_a_real_one() {
    let store = catalog();
    let key = store.key("tester", &["--test", "--quota", "3/3600"]);
    let server = store.serve();
    let mut expected = 3;
    for (error, _) in ERRORS {
        let headers = [("X-Api-Key", key.as_str()), ("X-Simulate", error)];
        let reply = server.send("GET", "/v2/product", &headers);
        if error == "not_found" {
            expected -= 1;
        }
        // The simulated one says what a real one does.
        let told = if error == "rate_limited" { 0 } else { expected };
        assert_eq!(left(&reply), told, "{error}");
    }
}

#[test]
fn only_a_test_key_may_simulate() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for error in ["timeout", "forbidden", "not_found"] {
        let headers = [("X-Api-Key", key.as_str()), ("X-Simulate", error)];
        let reply = server.send("GET", "/v2/product", &headers);
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (403, "forbidden"),
            "{error}"
        );
    }
    // Who has no key, or a wrong one, isn't told about it.
    let reply = server.send("GET", "/v2/product", &[("X-Simulate", "timeout")]);
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (401, "unauthorized")
    );
    let headers = [("X-Api-Key", "wrong.key"), ("X-Simulate", "timeout")];
    let reply = server.send("GET", "/v2/product", &headers);
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (401, "invalid_api_key")
    );
}
