//! Shutdown of a server: the order of its steps, new connections meanwhile, and that no answer is lost, by
//! either protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{Certificate, Reply, Server, Store, block_on, read, wait_for};

/// Returns the number of times that a server is ended under load: `ci/long` may say more.
fn rounds() -> usize {
    let rounds = std::env::var("VITRINE_DRAIN_ROUNDS");
    rounds.map_or(20, |rounds| rounds.parse().expect("a number"))
}

#[test]
fn readiness_fails_before_listeners_close() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let mut server = store.serve_with(&["--drain-delay", "8s", "--admin-listen", "127.0.0.1:0"]);
    let mut open = server.keep_alive();
    assert_eq!(open.get(&key, "/v2/ping").expect("an answer").status, 200);
    server.signal("TERM");
    wait_for("readiness to fail", || {
        let ready = server.ask_admin("GET", "/readyz");
        (ready.status == 503 && ready.json()["reason"] == "draining").then_some(())
    });
    // Balancers that haven't noticed go on sending, and nothing tells their clients to go away.
    let reply = server
        .keep_alive()
        .get(&key, "/v2/ping")
        .expect("an answer");
    assert_eq!((reply.status, reply.header("connection")), (200, None));
    wait_for("the listener to close", || {
        TcpStream::connect(server.address).is_err().then_some(())
    });
    let reply = open.get(&key, "/v2/ping").expect("an answer");
    assert_eq!(
        (reply.status, reply.header("connection")),
        (200, Some("close"))
    );
    drop(open);
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn open_connections_are_cut_after_the_drain_timeout() {
    let store = Store::sample();
    let mut server = store.serve_with(&["--drain-timeout", "1s"]);
    let key = store.key("client", &[]);
    let mut quiet = server.keep_alive();
    let first = wait_for("the key", || quiet.get(&key, "/v2/ping"));
    assert!([200, 401].contains(&first.status));
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(server.stderr().contains("closed the remaining connections"));
    assert!(quiet.read("GET").is_none());
}

#[test]
fn second_signal_cuts() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let mut server = store.serve_with(&["--drain-delay", "1h"]);
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    server.signal("TERM");
    wait_for("the first", || {
        server
            .stderr()
            .contains("readiness now failing")
            .then_some(())
    });
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(server.stderr().contains("second signal"));
}

/// Ends the server once so many answers were given.
fn end_after(answered: &AtomicUsize, server: &Server) {
    while answered.load(Ordering::Relaxed) < 100 {
        std::thread::yield_now();
    }
    server.signal("TERM");
}

#[test]
fn no_answer_on_an_open_connection_is_lost() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let mut all = 0;
    for _ in 0..rounds() {
        let mut server = store.serve();
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mut connection = server.keep_alive();
                let (key, answered) = (&key, &answered);
                scope.spawn(move || {
                    loop {
                        let reply = connection
                            .get(key, "/v2/product")
                            .expect("no answer is lost");
                        assert_eq!(reply.codes().len(), 72);
                        answered.fetch_add(1, Ordering::Relaxed);
                        if reply.header("connection") == Some("close") {
                            break;
                        }
                    }
                });
            }
            end_after(&answered, &server);
        });
        assert_eq!(server.wait(), Some(0));
        assert!(
            !server.stderr().contains("closed the remaining connections"),
            "{}",
            server.stderr()
        );
        all += answered.into_inner();
    }
    eprintln!("HTTP/1.1: {all} answers under {} ends, none lost", rounds());
}

#[test]
fn no_connection_that_was_made_is_reset() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let request = format!(
        "GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nConnection: close\r\n\r\n"
    );
    let mut all = 0;
    for _ in 0..rounds() {
        let mut server = store.serve();
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    // One connection for each request, until no more can be made.
                    while let Ok(mut socket) = TcpStream::connect(server.address) {
                        socket.write_all(request.as_bytes()).expect("written");
                        let mut answer = Vec::new();
                        socket.read_to_end(&mut answer).expect("an answer");
                        assert_eq!(Reply::parse(&answer, "GET").status, 200);
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            end_after(&answered, &server);
        });
        assert_eq!(server.wait(), Some(0));
        all += answered.into_inner();
    }
    eprintln!("{all} connections under {} ends, none reset", rounds());
}

#[test]
fn no_answer_of_http2_is_lost() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let certificate = Certificate::new(&store, "server");
    let (mut all, mut refused) = (0, 0);
    for _ in 0..rounds() {
        let mut server = certificate.serve(&store, &[]);
        let (answered, sent_back) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| end_after(&answered, &server));
            block_on(async {
                let client = || ask_on(&certificate, &server, &key, &answered, &sent_back);
                tokio::join!(client(), client(), client());
            });
        });
        assert_eq!(server.wait(), Some(0));
        assert!(
            !server.stderr().contains("closed the remaining connections"),
            "{}",
            server.stderr()
        );
        all += answered.into_inner();
        refused += sent_back.into_inner();
    }
    eprintln!(
        "HTTP/2: {all} answers under {} ends, none lost; {refused} sent back to be tried again",
        rounds()
    );
}

/// Asks for ten pages at a time until the server says goodbye.
async fn ask_on(
    certificate: &Certificate,
    server: &Server,
    key: &str,
    answered: &AtomicUsize,
    sent_back: &AtomicUsize,
) {
    let Ok(mut client) = certificate.http2(server.address).await else {
        return;
    };
    loop {
        let mut asked = Vec::new();
        let mut has_ended = false;
        for _ in 0..10 {
            match client.ask(key, "/v2/product").await {
                // Each is read by itself: they share a window, which one that isn't read would fill.
                Ok(answer) => asked.push(tokio::spawn(read(answer))),
                Err(error) => {
                    assert!(error.is_go_away(), "{error}");
                    has_ended = true;
                    break;
                }
            }
        }
        for answer in asked {
            match answer.await.expect("no panic") {
                Ok((status, _)) => {
                    assert_eq!(status, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                // Above the last stream that the server took: nothing was done for it.
                Err(error) => {
                    assert!(error.is_go_away() && error.is_remote(), "lost: {error}");
                    sent_back.fetch_add(1, Ordering::Relaxed);
                    has_ended = true;
                }
            }
        }
        if has_ended {
            return;
        }
    }
}
