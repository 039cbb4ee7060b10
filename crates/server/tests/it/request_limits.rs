//! Limits of a request's size, and its id.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::harness::{Headers, Reply, Server, Store, gift_card, wait_for};

fn catalog() -> Store {
    Store::of(&[gift_card("A-1")])
}

/// A GET with a body of `length` bytes, plain or chunked.
fn get_with_body(server: &Server, key: &str, length: usize, is_chunked: bool) -> Reply {
    let mut request = format!(
        "GET /v2/ping HTTP/1.1\r\nHost: vitrine.test\r\nConnection: close\r\nX-Api-Key: {key}\r\n"
    );
    if is_chunked {
        request.push_str("Transfer-Encoding: chunked\r\n\r\n");
        let mut left = length;
        while left > 0 {
            let chunk = left.min(1000);
            request.push_str(&format!("{chunk:x}\r\n{}\r\n", "b".repeat(chunk)));
            left -= chunk;
        }
        request.push_str("0\r\n\r\n");
    } else {
        request.push_str(&format!(
            "Content-Length: {length}\r\n\r\n{}",
            "b".repeat(length)
        ));
    }
    Reply::parse(&server.raw(request.as_bytes()), "GET")
}

#[test]
fn body_is_ignored_up_to_8_kb() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for is_chunked in [false, true] {
        for length in [1, 5_000, 8_000] {
            let reply = get_with_body(&server, &key, length, is_chunked);
            assert_eq!(reply.status, 200, "{length} {is_chunked}");
            assert_eq!(reply.json()["message"], "pong");
        }
        for length in [9_000, 100_000] {
            let reply = get_with_body(&server, &key, length, is_chunked);
            assert_eq!(reply.status, 413, "{length} {is_chunked}");
            assert_eq!(reply.error(), "payload_too_large");
        }
    }
}

#[test]
fn ignored_body_is_not_taken_for_the_next_request() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let mut connection = server.keep_alive();
    let body = "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n";
    connection.write(&format!(
        "GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!(connection.read("GET").expect("an answer").status, 200);
    let next = connection.get(&key, "/v2/product").expect("an answer");
    assert_eq!(next.codes(), ["A-1"]);
}

#[test]
fn target_of_10_kb_is_too_long() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let long = "x".repeat(10_000);
    for target in [
        format!("/v2/product/{long}"),
        format!("/v2/product?categories={long}"),
        format!("/{long}"),
    ] {
        let reply = server.get(&key, &target);
        assert_eq!(reply.status, 414);
        assert_eq!(reply.error(), "uri_too_long");
    }
    // Long, but not too long: judged like any other.
    let long = "x".repeat(4_000);
    let reply = server.get(&key, &format!("/v2/product?categories={long}"));
    assert!(reply.codes().is_empty());
}

#[test]
fn too_many_or_too_large_headers_are_refused() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let large = "x".repeat(33_000);
    let larger = "x".repeat(60_000);
    let fair = "x".repeat(15_000);
    // `Host`, `Connection` and the key are headers too.
    let fillers = |total: usize| vec![("X-Filler", "f"); total - 3];
    for (fillers, status) in [
        (fillers(60), 200),
        (fillers(65), 431),
        (fillers(300), 431),
        (vec![("X-Fair", fair.as_str()); 2], 200),
        (vec![("X-Fair", fair.as_str()); 3], 431),
        (vec![("X-Large", large.as_str())], 431),
        (vec![("X-Large", larger.as_str())], 431),
    ] {
        let headers = [&[("X-Api-Key", key.as_str())], &fillers[..]].concat();
        let reply = server.send("GET", "/v2/ping", &headers);
        assert_eq!(reply.status, status, "{} headers", headers.len());
        if status == 431 {
            assert_eq!(reply.error(), "headers_too_large");
        }
    }
}

#[test]
fn no_more_than_64_kb_of_a_head_are_kept() {
    let store = catalog();
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    // It never ends: whoever waits for the rest doesn't answer this.
    let head = format!(
        "GET /livez HTTP/1.1\r\nHost: x\r\nX-Endless: {}",
        "x".repeat(70_000)
    );
    for address in [server.address, server.admin()] {
        let mut socket = TcpStream::connect(address).expect("a connection");
        socket.write_all(head.as_bytes()).expect("written");
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).expect("an answer");
        let reply = Reply::parse(&answer, "GET");
        assert_eq!((reply.status, reply.body.len()), (431, 0));
    }
}

#[test]
fn fit_request_id_is_echoed() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let longest = "a".repeat(128);
    for id in ["a", "0", "A-b_c.d:e", "::", longest.as_str()] {
        for (target, status) in [("/v2/ping", 200), ("/v2/ping?x=1", 400), ("/nowhere", 404)] {
            let headers = &[("X-Api-Key", key.as_str()), ("X-Request-Id", id)];
            let reply = server.send("GET", target, headers);
            assert_eq!(reply.status, status);
            assert_eq!(reply.header("x-request-id"), Some(id));
        }
    }
    let line = format!("\"request_id\":\"{longest}\"");
    wait_for("the access log", || {
        server.stdout().contains(&line).then_some(())
    });
}

#[test]
fn every_other_answer_gets_an_id_of_its_own() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let too_long = "a".repeat(129);
    let id = |value| ("X-Request-Id", value);
    let unfit: [Headers<'_>; 9] = [
        &[],
        &[id("")],
        &[id("a b")],
        &[id("a/b")],
        &[id("caf\u{e9}")],
        &[id("<script>")],
        &[id("a\"b")],
        &[id("a,b")],
        &[id(too_long.as_str())],
    ];
    let mut seen = Vec::new();
    for headers in unfit {
        for target in ["/v2/ping", "/nowhere"] {
            let headers = [&[("X-Api-Key", key.as_str())], headers].concat();
            let reply = server.send("GET", target, &headers);
            let own = reply.header("x-request-id").expect("an id").to_owned();
            let is_fit = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
            assert!(
                (1..=128).contains(&own.len()) && own.chars().all(is_fit),
                "{own}"
            );
            assert!(!seen.contains(&own), "{own} again");
            assert!(!headers.iter().any(|(_, value)| *value == own), "{own}");
            seen.push(own);
        }
    }
}

#[test]
fn malformed_head_is_refused_and_closes_the_connection() {
    let store = catalog();
    let server = store.serve();
    for head in [
        "nonsense\r\n\r\n",
        "GET /v2/ping HTTP/9.9\r\nHost: x\r\n\r\n",
        "GET /v2/ping HTTP/1.1\r\nHost x\r\n\r\n",
        "GET /v2/ping HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    ] {
        let mut socket = server.connect();
        socket.write_all(head.as_bytes()).expect("a request");
        let mut answer = Vec::new();
        // It ends only if the server closes.
        socket.read_to_end(&mut answer).expect("an answer");
        let reply = Reply::parse(&answer, "GET");
        assert!((400..500).contains(&reply.status), "{head:?}");
        assert!(reply.body.is_empty(), "{head:?}");
    }
}
