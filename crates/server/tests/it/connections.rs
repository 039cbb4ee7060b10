//! Connections: how a server ends, and how it treats clients that are slow, silent or greedy.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{Reply, Server, Store, text, wait_for};

fn served() -> (Store, String, Server) {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve();
    (store, key, server)
}

#[test]
fn draining_server_answers_and_closes_open_connections() {
    let (_store, key, mut server) = served();
    let mut connection = server.keep_alive();
    assert_eq!(
        connection
            .get(&key, "/v2/ping")
            .expect("an answer")
            .header("connection"),
        None
    );
    server.signal("TERM");
    loop {
        let reply = connection.get(&key, "/v2/ping").expect("an answer");
        assert_eq!(reply.json()["message"], "pong");
        if reply.header("connection") == Some("close") {
            break;
        }
    }
    assert!(connection.read("GET").is_none(), "closed after the goodbye");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn request_under_way_is_answered_during_shutdown() {
    let (_store, key, mut server) = served();
    let mut socket = server.connect();
    socket
        .write_all(b"GET /v2/ping HTTP/1.1\r\nHost: x\r\n")
        .expect("written");
    // A second connection tells that the first was accepted: they are taken in order.
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    server.signal("TERM");
    while !server.stderr().contains("draining") {
        std::thread::yield_now();
    }
    write!(socket, "X-Api-Key: {key}\r\n\r\n").expect("written");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("an answer");
    let reply = Reply::parse(&answer, "GET");
    assert_eq!(
        (reply.status, reply.header("connection")),
        (200, Some("close"))
    );
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn ending_under_load_loses_no_answer() {
    for _ in 0..5 {
        let (_store, key, mut server) = served();
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    // Whoever gets a connection gets a whole answer; in the end nobody gets one.
                    while let Ok(mut socket) = TcpStream::connect(server.address) {
                        let request = format!(
                            "GET /v2/product HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nConnection: close\r\n\r\n"
                        );
                        let mut answer = Vec::new();
                        let written = socket.write_all(request.as_bytes());
                        match written.and_then(|()| socket.read_to_end(&mut answer)) {
                            Ok(_) => assert_eq!(Reply::parse(&answer, "GET").codes().len(), 72),
                            // The kernel took the connection when the listener was closing.
                            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                                assert!(answer.is_empty(), "cut in the middle");
                                return;
                            }
                            Err(error) => panic!("{error}"),
                        }
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while answered.load(Ordering::Relaxed) < 40 {
                std::thread::yield_now();
            }
            server.signal("TERM");
        });
        assert_eq!(server.wait(), Some(0));
    }
}

/// Sends some bytes and waits for the server to cut the connection; returns how long that took.
fn cut_after(server: &Server, sent: &str) -> Duration {
    let mut socket = server.connect();
    let started = Instant::now();
    socket.write_all(sent.as_bytes()).expect("written");
    let mut answer = Vec::new();
    // Closed or reset: cut, either way. The harness's time limit would be another kind of error.
    match socket.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => started.elapsed(),
    }
}

#[test]
fn silent_clients_and_half_heads_are_cut() {
    let (_store, key, server) = served();
    std::thread::scope(|scope| {
        for sent in ["", "GET", "GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-"] {
            let server = &server;
            scope.spawn(move || {
                let time = cut_after(server, sent);
                eprintln!("after {sent:?} cut in {time:?} (the limit is 5 s)");
                assert!(time >= Duration::from_secs(4), "not before its time");
            });
        }
        assert_eq!(server.get(&key, "/v2/ping").status, 200);
    });
}

#[test]
fn quiet_connection_outlives_the_limit_for_heads() {
    let (_store, key, server) = served();
    let mut connection = server.keep_alive();
    assert_eq!(
        connection.get(&key, "/v2/ping").expect("an answer").status,
        200
    );
    // A silent connection beside it shows when the limit for heads has passed.
    cut_after(&server, "");
    assert_eq!(
        connection.get(&key, "/v2/ping").expect("an answer").status,
        200
    );
}

#[test]
fn client_that_never_reads_is_cut() {
    let (_store, key, server) = served();
    let mut socket = server.connect();
    let request = format!("GET /v2/product HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n\r\n");
    socket
        .set_write_timeout(Some(Duration::from_secs(60)))
        .expect("a timeout");
    let started = Instant::now();
    // Asking on and on without reading, until the server has had enough.
    let error = loop {
        if let Err(error) = socket.write_all(request.as_bytes()) {
            break error;
        }
    };
    eprintln!(
        "a client that never reads was cut in {:?} (the limit is 10 s)",
        started.elapsed()
    );
    assert!(
        matches!(
            error.kind(),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
        ),
        "{error}"
    );
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
}

#[test]
fn body_that_never_comes_is_answered_with_timeout() {
    let (_store, key, server) = served();
    let head = format!(
        "GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nContent-Length: 5\r\n\r\n"
    );
    let reply = Reply::parse(&server.raw(head.as_bytes()), "GET");
    assert_eq!((reply.status, reply.error().as_str()), (504, "timeout"));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (_store, key, server) = served();
    let mut connection = server.keep_alive();
    let request =
        |target: &str| format!("GET {target} HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n\r\n");
    connection.write(
        &[
            request("/v2/ping"),
            request("/v2/none"),
            request("/v2/product?limit=1"),
        ]
        .concat(),
    );
    assert_eq!(connection.read("GET").expect("an answer").status, 200);
    assert_eq!(
        connection.read("GET").expect("an answer").error(),
        "not_found"
    );
    assert_eq!(connection.read("GET").expect("an answer").codes().len(), 1);
}

#[test]
fn malformed_head_is_refused_and_closes_the_connection() {
    let (_store, _key, server) = served();
    for head in [
        "NOT HTTP\r\n\r\n",
        "GET /v2/ping\r\n\r\n",
        "GET / HTTP/1.1\r\nbad header\r\n\r\n",
    ] {
        let answer = text(&server.raw(head.as_bytes()));
        assert!(answer.starts_with("HTTP/1.1 400"), "{head:?}: {answer}");
    }
}

#[test]
fn access_log_has_one_json_line_a_request_without_secrets() {
    let (_store, key, mut server) = served();
    let secret = key.split_once('.').expect("two parts").1.to_owned();
    let id = [("X-Api-Key", key.as_str()), ("X-Request-Id", "my-id:1")];
    server.send("GET", "/v2/product?limit=2", &id);
    server.send("GET", &format!("/v2/ping?X-Api-Key={key}"), &[]);
    server.signal("TERM");
    server.wait();
    let log = server.stdout();
    assert!(!log.contains(&secret) && !server.stderr().contains(&secret));
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2, "{log}");
    let first = &lines[0];
    assert_eq!(first["request_id"], "my-id:1");
    assert_eq!(first["route"], "/v2/product");
    assert_eq!(first["status"], 200);
    assert_eq!(first["key"], key.split_once('.').expect("two parts").0);
    assert_eq!(first["version"], "2024-02-05");
    assert_eq!(lines[1]["status"], 401);
}

#[test]
fn old_connection_ends_without_losing_a_request() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve_with(&["--connection-age", "1s"]);
    // Of several clients that ask all the time, none is left without an answer.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let started = Instant::now();
                    let mut connection = server.keep_alive();
                    loop {
                        let reply = connection.get(&key, "/v2/ping").expect("an answer");
                        assert_eq!(reply.status, 200);
                        if reply.header("connection") == Some("close") {
                            break;
                        }
                    }
                    let age = started.elapsed();
                    eprintln!("a connection's last answer came after {age:?} (the age is 1 s)");
                    assert!(age >= Duration::from_millis(900), "not before its time");
                    assert!(connection.read("GET").is_none(), "closed after it");
                }
            });
        }
    });
    // One that is quiet then is answered once more.
    let mut quiet = server.keep_alive();
    assert!(quiet.get(&key, "/v2/ping").is_some());
    let aged = Instant::now();
    wait_for("a connection to grow old", || {
        (aged.elapsed() > Duration::from_millis(1_500)).then_some(())
    });
    let last = quiet.get(&key, "/v2/ping").expect("an answer");
    assert_eq!(last.header("connection"), Some("close"));
}

#[test]
fn half_a_head_behind_a_whole_request_is_cut() {
    let (_store, key, server) = served();
    let request = format!("GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n\r\nGET /v2/pi");
    let time = cut_after(&server, &request);
    eprintln!("half a head behind a request was cut in {time:?} (the limit is 5 s)");
    assert!(time >= Duration::from_secs(4), "not before its time");
    // The limit for quiet connections is 75 s, and the harness waits for 60.
}
