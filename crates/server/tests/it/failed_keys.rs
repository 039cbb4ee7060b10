//! Keys that aren't valid, counted per client address; and which address that is, behind proxies.

use serde_json::Value;

use crate::harness::{Headers, Reply, Server, Store, gift_card, scrape, wait_for};

fn catalog() -> Store {
    Store::of(&[gift_card("A-1")])
}

fn assert_told_to_wait(reply: &Reply) {
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (429, "rate_limited")
    );
    let seconds = reply.header("retry-after").expect("Retry-After");
    assert!((1..=3600).contains(&seconds.parse::<u32>().expect("seconds")));
    assert_eq!(reply.header("ratelimit"), None);
    assert_eq!(reply.header("www-authenticate"), None);
}

#[test]
fn only_wrong_keys_are_limited() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let test = store.key("test", &["--test"]);
    let revoked = store.key("revoked", &[]);
    store.ok(&[
        "keys",
        "revoke",
        revoked.split_once('.').expect("a prefix").0,
    ]);
    let server = store.serve_with(&["--failed-keys", "4/3600", "--admin-listen", "127.0.0.1:0"]);
    let twice = [("X-Api-Key", key.as_str()), ("X-Api-Key", key.as_str())];
    let wrong_secret = format!("{key}x");
    let failing = |number: usize| match number % 4 {
        0 => server.get("wrong.key", "/v2/product"),
        1 => server.get(&revoked, "/v2/ping"),
        2 => server.get(&wrong_secret, "/v2/product/A-1"),
        _ => server.send("GET", "/v2/product", &twice),
    };
    // Neither no key nor an error that was asked for is a failed key.
    let harmless = || {
        assert_eq!(
            server.send("GET", "/v2/product", &[]).error(),
            "unauthorized"
        );
        let simulated = [
            ("X-Api-Key", test.as_str()),
            ("X-Simulate", "invalid_api_key"),
        ];
        assert_eq!(server.send("GET", "/v2/product", &simulated).status, 401);
        assert_eq!(server.get(&key, "/v2/product").status, 200);
    };
    for _ in 0..5 {
        harmless();
    }
    let bodies: Vec<Vec<u8>> = (0..4)
        .map(|number| {
            let reply = failing(number);
            assert_eq!(
                (reply.status, reply.error().as_str()),
                (401, "invalid_api_key")
            );
            reply.body
        })
        .collect();
    assert!(
        bodies.iter().all(|body| *body == bodies[0]),
        "all fail alike"
    );
    let bodies: Vec<Vec<u8>> = (0..8)
        .map(|number| {
            let reply = failing(number);
            assert_told_to_wait(&reply);
            reply.body
        })
        .collect();
    assert!(
        bodies.iter().all(|body| *body == bodies[0]),
        "all wait alike"
    );
    harmless();
    let metrics = scrape(&server);
    let failed =
        |status| metrics.value(&format!("vitrine_failed_keys_total{{status=\"{status}\"}}"));
    assert_eq!((failed(401), failed(429)), (4.0, 8.0));
}

#[test]
fn default_limit_of_failed_keys_can_be_lifted() {
    let store = catalog();
    let server = store.serve();
    let mut connection = server.keep_alive();
    let mut first_refused = || {
        let ask = |_: &usize| {
            let reply = connection.get("wrong.key", "/v2/ping");
            reply.expect("an answer").status == 429
        };
        (0..10_000).find(ask)
    };
    assert!(first_refused().is_some_and(|number| number >= 60));
    let server = store.serve_with(&["--failed-keys", "off"]);
    let mut connection = server.keep_alive();
    for _ in 0..200 {
        let reply = connection.get("wrong.key", "/v2/ping");
        assert_eq!(reply.expect("an answer").status, 401);
    }
}

/// Sends a request with a wrong key; returns its status and the address that the log has for it.
fn ask(server: &Server, id: &str, headers: Headers<'_>) -> (u16, String) {
    let own = [("X-Api-Key", "wrong.key"), ("X-Request-Id", id)];
    let reply = server.send("GET", "/v2/ping", &[&own, headers].concat());
    let line = wait_for("a line of the log", || {
        let log = server.stdout();
        let line = log
            .lines()
            .find(|line| line.contains(&format!("\"{id}\"")))?;
        serde_json::from_str::<Value>(line).ok()
    });
    (
        reply.status,
        line["remote"].as_str().expect("an address").to_owned(),
    )
}

#[test]
fn client_address_is_taken_from_a_trusted_proxy() {
    let store = catalog();
    let server = store.serve_with(&[
        "--failed-keys",
        "2/3600",
        "--trusted-proxies",
        "127.0.0.0/8,fd00::/8",
        "--trusted-proxies",
        "192.0.2.7",
    ]);
    let one = "198.51.100.1".to_owned();
    for (id, forwarded, status) in [
        ("a", "198.51.100.1", 401),
        // What its client claims stands further left, what other proxies add further right.
        ("b", "203.0.113.1, 198.51.100.1, 192.0.2.7,fd00::7", 401),
        ("c", "203.0.113.2, 198.51.100.1:4711", 429),
    ] {
        let headers = [
            ("X-Forwarded-For", forwarded),
            ("Forwarded", "for=203.0.113.3"),
        ];
        assert_eq!(ask(&server, id, &headers), (status, one.clone()));
    }
    // Neither its other clients nor the proxy itself wait for it.
    let network = [
        "2001:db8:0:1::1",
        "2001:db8:0:1::2",
        "2001:db8:0:1::3",
        "2001:db8:0:2::1",
    ];
    for (address, status) in network.iter().zip([401, 401, 429, 401]) {
        let headers = [("X-Forwarded-For", *address)];
        assert_eq!(
            ask(&server, address, &headers),
            (status, (*address).to_owned())
        );
    }
    let local = "127.0.0.1".to_owned();
    assert_eq!(
        ask(&server, "d", &[("X-Forwarded-For", "unknown")]),
        (401, local.clone())
    );
    assert_eq!(ask(&server, "e", &[]), (401, local.clone()));
    assert_eq!(ask(&server, "f", &[]), (429, local));
}

#[test]
fn forwarded_header_is_read_if_set() {
    let store = catalog();
    let options = [
        "--trusted-proxies",
        "127.0.0.1",
        "--forwarded-header",
        "forwarded",
    ];
    let server = store.serve_with(&options);
    let headers = [
        ("X-Forwarded-For", "203.0.113.1"),
        (
            "Forwarded",
            "for=203.0.113.2, for=\"[2001:db8::1]:4711\";proto=https",
        ),
    ];
    assert_eq!(ask(&server, "a", &headers), (401, "2001:db8::1".to_owned()));
    let headers = [("X-Forwarded-For", "203.0.113.1")];
    assert_eq!(ask(&server, "b", &headers), (401, "127.0.0.1".to_owned()));
}

#[test]
fn client_address_from_an_untrusted_proxy_is_ignored() {
    let store = catalog();
    for options in [&[][..], &["--trusted-proxies", "10.0.0.0/8,unix"]] {
        let server = store.serve_with(&[&["--failed-keys", "3/3600"], options].concat());
        let local = "127.0.0.1".to_owned();
        for (id, status) in [("a", 401), ("b", 401), ("c", 401), ("d", 429)] {
            let address = format!("198.51.100.{}", id.as_bytes()[0]);
            let forwarded = format!("for={address}");
            let headers = [
                ("X-Forwarded-For", address.as_str()),
                ("Forwarded", &forwarded),
            ];
            assert_eq!(ask(&server, id, &headers), (status, local.clone()));
        }
    }
}
