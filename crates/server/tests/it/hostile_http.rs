//! Requests that are made to be misunderstood: by this server, or by one in front of it. What RFC 9112 refuses is
//! refused, nothing of a request is ever taken for another one, and the server rests as soon as its clients do.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::harness::{KeepAlive, Reply, Server, Store, gift_card, text, wait_for};

/// Bytes that would be answered if they were taken for a request.
const SMUGGLED: &str = "GET /v2/smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

fn served() -> (Store, String, Server) {
    let store = Store::of(&[gift_card("A-1")]);
    let key = store.key("client", &[]);
    let server = store.serve();
    (store, key, server)
}

/// The statuses of all answers to these bytes, until the server closes.
fn statuses(server: &Server, request: &str) -> Vec<u16> {
    let mut socket = server.connect();
    let _ = socket.write_all(request.as_bytes());
    let mut answer = Vec::new();
    // Where the server has closed with bytes unread, what it had sent may be lost with an error at the end.
    let _ = socket.read_to_end(&mut answer);
    let answer = text(&answer);
    let starts = answer.split("HTTP/1.1 ").skip(1);
    starts
        .map(|start| start[..3].parse().expect("a status"))
        .collect()
}

/// The processor time of a process until now, in ticks of a hundredth of a second.
fn ticks(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).expect("a process");
    let (_, fields) = stat.rsplit_once(") ").expect("a name");
    let fields: Vec<&str> = fields.split(' ').collect();
    let number = |at: usize| fields[at].parse::<u64>().expect("a number");
    number(11) + number(12)
}

/// Waits until the server spends less than a tenth of a second's processor time in a second; says how long it took.
pub fn assert_rests(server: &Server, after: &str) {
    let started = Instant::now();
    let mut before = (Instant::now(), ticks(server));
    wait_for("a second of rest", || {
        if before.0.elapsed() < Duration::from_secs(1) {
            return None;
        }
        let now = ticks(server);
        let spent = now - before.1;
        before = (Instant::now(), now);
        (spent < 10).then_some(())
    });
    eprintln!(
        "after {after} the server rested in the second that ended {:?} later",
        started.elapsed()
    );
}

#[test]
fn body_is_never_taken_for_a_request() {
    let (_store, key, server) = served();
    let head = format!("GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n");
    let length = SMUGGLED.len();
    let chunked = format!("{length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n");
    for (what, rest) in [
        // Chunks count where both are there, and nothing is read after them.
        (
            "a length that ends before the chunks do",
            format!("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}"),
        ),
        (
            "chunks that end before the length does",
            format!("Transfer-Encoding: chunked\r\nContent-Length: 500\r\n\r\n0\r\n\r\n{SMUGGLED}"),
        ),
        (
            "chunks alone",
            format!("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}"),
        ),
    ] {
        let found = statuses(&server, &format!("{head}{rest}"));
        assert_eq!(found, [200], "{what}");
    }
    // The next request on the connection is the next one, and nothing else.
    let mut connection = server.keep_alive();
    connection.write(&format!("{head}Content-Length: {length}\r\n\r\n{SMUGGLED}"));
    assert_eq!(connection.read("GET").expect("an answer").status, 200);
    let next = connection.get(&key, "/v2/product").expect("an answer");
    assert_eq!(next.codes(), ["A-1"]);
    assert_rests(&server, "bodies");
}

#[test]
fn body_of_ambiguous_length_is_refused() {
    let (_store, key, server) = served();
    let head = format!("GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n");
    for framing in [
        "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        "Content-Length: 4, 5\r\n\r\nabcd",
        "Content-Length: +4\r\n\r\nabcd",
        "Content-Length: -4\r\n\r\nabcd",
        "Content-Length: 0x4\r\n\r\nabcd",
        "Content-Length: 4 4\r\n\r\nabcd",
        "Content-Length: \r\n\r\nabcd",
        "Content-Length: 18446744073709551616\r\n\r\nabcd",
        "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n-4\r\nabcd\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabcd\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nabcdefgh\r\n0\r\n\r\n",
    ] {
        let found = statuses(&server, &format!("{head}{framing}{SMUGGLED}"));
        assert_eq!(found, [400], "{framing:?}");
    }
    let old = "GET /v2/ping HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(statuses(&server, &format!("{old}{SMUGGLED}")), [400]);
    assert_rests(&server, "bodies without an end");
}

#[test]
fn ambiguous_head_is_refused() {
    let (_store, key, server) = served();
    let valid = format!("GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n");
    for head in [
        // A carriage return, a NUL and other controls inside.
        "X-Note: a\rX-Api-Version: 2023-07-27\r\n\r\n",
        "X-Note: a\0b\r\n\r\n",
        "X-Note\0: a\r\n\r\n",
        // A line that goes on in the next one.
        "X-Note: a\r\n b\r\n\r\n",
        "X-Note: a\r\n\tb\r\n\r\n",
        // Names that are none.
        "X Note: a\r\n\r\n",
        "X-Note : a\r\n\r\n",
        ": a\r\n\r\n",
        "X-Not\u{e9}: a\r\n\r\n",
        "X-Note\r\n\r\n",
    ] {
        assert_eq!(
            statuses(&server, &format!("{valid}{head}")),
            [400],
            "{head:?}"
        );
    }
    for start in [
        "GET  /v2/ping HTTP/1.1",
        "GET /v2/ping  HTTP/1.1",
        "GET\t/v2/ping HTTP/1.1",
        " GET /v2/ping HTTP/1.1",
        "GET /v2/ping HTTP/1.1 ",
        "GET /v2/ping HTTP/1.2",
        "GET /v2/ping http/1.1",
        "GET /v2/ping HTTP/2.0",
        "GET /v2/ping",
        "G@T /v2/ping HTTP/1.1",
    ] {
        let found = statuses(&server, &format!("{start}\r\nHost: x\r\n\r\n"));
        assert_eq!(found, [400], "{start:?}");
    }
    assert_rests(&server, "heads");
}

#[test]
fn one_request_has_one_host() {
    let (_store, key, server) = served();
    let ask = |version: &str, hosts: &str| {
        let head = format!(
            "GET /v2/ping {version}\r\n{hosts}X-Api-Key: {key}\r\nConnection: close\r\n\r\n"
        );
        Reply::parse(&server.raw(head.as_bytes()), "GET")
    };
    for hosts in [
        "Host: catalog.example\r\n",
        "Host: catalog.example:8443\r\n",
        "Host: [::1]:80\r\n",
        "host: 127.0.0.1\r\n",
        "Host:\r\n",
    ] {
        assert_eq!(ask("HTTP/1.1", hosts).status, 200, "{hosts:?}");
    }
    assert_eq!(ask("HTTP/1.0", "").status, 200);
    for hosts in [
        "",
        "Host: a\r\nHost: b\r\n",
        "Host: a\r\nHost: a\r\n",
        "Host: a/b\r\n",
        "Host: a b\r\n",
        "Host: user@a\r\n",
        "Host: a?b\r\n",
        "Host: \u{e4}\r\n",
    ] {
        let refused = ask("HTTP/1.1", hosts);
        assert_eq!(
            (refused.status, &*refused.error()),
            (400, "bad_request"),
            "{hosts:?}"
        );
    }
}

#[test]
fn other_forms_of_a_target_lead_nowhere_else() {
    let (_store, key, server) = served();
    let ask = |method: &str, target: &str| {
        let headers = [("X-Api-Key", &*key)];
        server.send(method, target, &headers)
    };
    // A proxy's form: the path counts.
    assert_eq!(ask("GET", "http://elsewhere.example/v2/ping").status, 200);
    assert_eq!(
        ask("GET", "http://elsewhere.example/v2/nothing").status,
        404
    );
    assert_eq!(ask("GET", "http://elsewhere.example").status, 404);
    for (method, target) in [
        ("CONNECT", "elsewhere.example:443"),
        ("CONNECT", "127.0.0.1:22"),
        ("OPTIONS", "*"),
        ("GET", "*"),
        ("GET", "elsewhere.example:443"),
    ] {
        let refused = ask(method, target);
        assert!(
            [400, 404, 405].contains(&refused.status),
            "{method} {target}: {}",
            refused.status
        );
    }
    for segment in [
        "..",
        "%2e%2e",
        ".%2e",
        "%2e",
        "A-1/../A-1",
        "A-1%2f..%2fA-1",
        "A-1%00",
        "A-1%0d%0aX:y",
        "A%252D1",
        "%41%2D1/",
        "..%5cA-1",
        "A-1;x=y",
        "%c0%ae%c0%ae",
        "%u002e",
    ] {
        let refused = ask("GET", &format!("/v2/product/{segment}"));
        assert_eq!(
            (refused.status, &*refused.error()),
            (404, "not_found"),
            "{segment}"
        );
    }
}

#[test]
fn targets_with_fragments_are_refused() {
    let (_store, key, server) = served();
    let mut connection = server.keep_alive();
    for target in [
        "/v2/ping#",
        "/v2/ping#part",
        "/v2/ping?#part",
        "/v2/product?limit=1#part",
        "http://x/v2/ping#part",
    ] {
        let refused = connection.get(&key, target).expect("an answer");
        assert_eq!(
            (refused.status, &*refused.error()),
            (400, "bad_request"),
            "{target}"
        );
        // Neither the connection nor the next request suffers.
        let reply = connection.get(&key, "/v2/ping").expect("an answer");
        assert_eq!(reply.status, 200, "after {target}");
    }
    let reply = server.send("GET", "/v2/ping", &[("X-Api-Key", &key), ("X-Note", "#1")]);
    assert_eq!(reply.status, 200, "a header may have one");
}

#[test]
fn nothing_is_upgraded() {
    let (_store, key, server) = served();
    let mut connection = server.keep_alive();
    for upgrade in [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    ] {
        connection.write(&format!(
            "GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n{upgrade}\r\n"
        ));
        let reply = connection.read("GET").expect("an answer");
        assert_eq!(reply.status, 200, "{upgrade}");
        assert_eq!(reply.header("upgrade"), None);
    }
}

#[test]
fn http2_without_tls_gets_a_bare_400() {
    let (_store, key, server) = served();
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let request = format!("GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n\r\n");
    let cases: [(String, &[u16]); 4] = [
        (format!("{preface}{SMUGGLED}"), &[400]),
        (format!("{preface}\0\0\0\x04\0\0\0\0\0"), &[400]),
        (format!("{request}{preface}"), &[200, 400]),
        ("GET /v2/ping HTTP/9.9\r\n\r\n".to_owned(), &[400]),
    ];
    for (what, expected) in cases {
        assert_eq!(statuses(&server, &what), expected, "{what:?}");
    }
}

#[test]
fn answers_without_a_body_keep_pipelining_in_order() {
    let (_store, key, server) = served();
    let mut connection: KeepAlive = server.keep_alive();
    let tag = connection.get(&key, "/v2/product").expect("an answer");
    let tag = tag.header("etag").expect("a tag").to_owned();
    for _ in 0..3 {
        connection.write(&format!(
            "HEAD /v2/product HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n\r\n\
             GET /v2/product HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nIf-None-Match: {tag}\r\n\r\n\
             GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n\r\n"
        ));
        assert_eq!(connection.read("HEAD").expect("an answer").status, 200);
        assert_eq!(connection.read("GET").expect("an answer").status, 304);
        let pong = connection.read("GET").expect("an answer");
        assert_eq!(pong.json()["message"], "pong");
    }
}
