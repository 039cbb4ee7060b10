//! The admin port: where it may be, whether the server lives and is ready. `metrics` has what it counts.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::harness::console::Console;
use crate::harness::{KeepAlive, Reply, SAMPLE, Server, Store, text, wait_for};

const FREE_PORT: [&str; 2] = ["--admin-listen", "127.0.0.1:0"];

fn served() -> (Store, String, Server) {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve_with(&FREE_PORT);
    (store, key, server)
}

fn assert_guarded(reply: &Reply) {
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn only_get_and_head_are_answered() {
    let (_store, _key, server) = served();
    for (target, status, content_type) in [
        ("/livez", 200, "text/plain; charset=utf-8"),
        ("/readyz", 200, "application/json"),
        ("/metrics", 200, "text/plain; version=0.0.4; charset=utf-8"),
        ("/livez?verbose", 200, "text/plain; charset=utf-8"),
        ("/", 421, "text/plain; charset=utf-8"),
        ("/metrics/", 404, "text/plain; charset=utf-8"),
        ("/v2/ping", 404, "text/plain; charset=utf-8"),
    ] {
        let reply = server.ask_admin("GET", target);
        assert_eq!(reply.status, status, "{target}");
        assert_eq!(reply.header("content-type"), Some(content_type), "{target}");
        assert!(!reply.body.is_empty(), "{target}");
        assert_guarded(&reply);
        let head = server.ask_admin("HEAD", target);
        assert_eq!((head.status, head.body.len()), (status, 0), "{target}");
        assert_guarded(&head);
        let length: usize = head
            .header("content-length")
            .expect("a length")
            .parse()
            .expect("a number");
        assert!(length > 0, "{target}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"] {
        let reply = server.ask_admin(method, "/livez");
        assert_eq!(
            (reply.status, reply.header("allow")),
            (405, Some("GET, HEAD")),
            "{method}"
        );
        assert_guarded(&reply);
    }
    for path in ["/acts/disable", "/acts/set-assortment", "/sign-in"] {
        let reply = server.ask_admin("PUT", path);
        assert_eq!(
            (reply.status, reply.header("allow")),
            (405, Some("GET, HEAD, POST")),
            "{path}"
        );
    }
    // The two ports share nothing.
    assert_eq!(server.send("GET", "/livez", &[]).status, 404);
    assert_eq!(server.send("GET", "/metrics", &[]).status, 404);
}

#[test]
fn server_is_ready_once_a_catalog_is_live() {
    let store = Store::new();
    let server = store.serve_with(&FREE_PORT);
    assert_eq!(server.ask_admin("GET", "/livez").status, 200);
    let reply = server.ask_admin("GET", "/readyz");
    assert_eq!(reply.status, 503);
    let body = reply.json();
    assert_eq!(
        (&body["ready"], &body["reason"], &body["revision"]),
        (
            &false.into(),
            &"no_catalog".into(),
            &serde_json::Value::Null
        )
    );
    assert_eq!(
        (
            &body["store"]["readable"],
            &body["store"]["max_stale_keys_seconds"]
        ),
        (&true.into(), &3600.into())
    );
    let report = store.load(SAMPLE);
    server.wait_for_loaded(&report);
    let reply = server.ask_admin("GET", "/readyz");
    assert_eq!(reply.status, 200);
    let body = reply.json();
    assert_eq!(
        (&body["ready"], &body["reason"]),
        (&true.into(), &serde_json::Value::Null)
    );
    assert_eq!(body["revision"]["number"], report["revision"]["number"]);
    assert_eq!(body["revision"]["id"], report["revision"]["id"]);
    for age in ["age_seconds", "live_seconds"] {
        let seconds = body["revision"][age].as_i64().expect("seconds");
        assert!((0..3600).contains(&seconds), "{body}");
    }
}

#[test]
fn draining_server_lives_and_is_not_ready() {
    let (_store, key, mut server) = served();
    let mut connection = server.keep_alive();
    assert_eq!(
        connection.get(&key, "/v2/ping").expect("an answer").status,
        200
    );
    server.signal("TERM");
    let reply = wait_for("readiness to fail", || {
        let reply = server.ask_admin("GET", "/readyz");
        (reply.status == 503).then_some(reply)
    });
    assert_eq!(reply.json()["reason"], "draining");
    assert!(reply.json()["revision"]["number"].is_number());
    assert_eq!(server.ask_admin("GET", "/livez").status, 200);
    let metrics = text(&server.ask_admin("GET", "/metrics").body);
    assert!(metrics.contains("\nvitrine_ready 0\n"), "{metrics}");
    // Clients are still answered.
    let reply = connection.get(&key, "/v2/ping").expect("an answer");
    assert_eq!(
        (reply.status, reply.header("connection")),
        (200, Some("close"))
    );
    assert_eq!(server.wait(), Some(0));
    assert!(
        TcpStream::connect(server.admin()).is_err(),
        "it ends with the server"
    );
}

#[test]
fn without_a_setting_there_is_no_admin_port() {
    let store = Store::sample();
    let server = store.serve();
    assert!(!server.stderr().contains("admin"), "{}", server.stderr());
}

#[test]
fn admin_port_beyond_loopback_needs_two_settings() {
    let store = Store::sample();
    for address in [
        "0.0.0.0:0",
        "[::]:0",
        "192.0.2.1:9090",
        "[::ffff:192.0.2.1]:9090",
    ] {
        let listen = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            address,
        ];
        let output = store.run(&listen);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{address}: {said}");
        assert!(
            said.contains(address) && said.contains("--admin-beyond-loopback"),
            "{said}"
        );
    }
    let options = ["--admin-listen", "0.0.0.0:0", "--admin-beyond-loopback"];
    let server = store.serve_with(&options);
    assert_eq!(server.ask_admin("GET", "/livez").status, 200);
    let mut command = store.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("VITRINE_ADMIN_LISTEN", "0.0.0.0:0");
    command.env("VITRINE_ADMIN_BEYOND_LOOPBACK", "true");
    let server = Server::start(command);
    assert_eq!(server.ask_admin("GET", "/livez").status, 200);
}

#[test]
fn taken_address_ends_the_command_and_is_named() {
    let (store, _key, server) = served();
    let taken = server.admin().to_string();
    let output = store.run(&["serve", "--listen", "127.0.0.1:0", "--admin-listen", &taken]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&taken) && said.contains("admin port"),
        "{said}"
    );
}

#[test]
fn admin_requests_are_neither_logged_nor_counted() {
    let (_store, key, mut server) = served();
    for target in ["/livez", "/readyz", "/metrics", "/none"] {
        server.ask_admin("GET", target);
    }
    server.get(&key, "/v2/ping");
    let metrics = text(&server.ask_admin("GET", "/metrics").body);
    assert!(
        metrics.contains("\nvitrine_http_connections_accepted_total 1\n"),
        "{metrics}"
    );
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert_eq!(server.stdout().lines().count(), 1, "{}", server.stdout());
}

#[test]
fn silent_admin_clients_are_cut_and_others_answered() {
    let (_store, _key, server) = served();
    let connect = |_| TcpStream::connect(server.admin()).expect("a connection");
    let mut silent: Vec<TcpStream> = (0..10).map(connect).collect();
    silent[0]
        .write_all(b"GET /livez HTTP/1.1\r\nHos")
        .expect("written");
    assert_eq!(server.ask_admin("GET", "/livez").status, 200);
    for mut socket in silent {
        let mut answer = Vec::new();
        match socket.read_to_end(&mut answer) {
            Ok(_) => assert!(answer.is_empty(), "{}", text(&answer)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

/// Time within which a probe must be answered, on a busy machine.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

fn assert_probed(server: &Server) {
    let asked = Instant::now();
    assert_eq!(server.ask_admin("GET", "/readyz").status, 200);
    assert!(asked.elapsed() < PROBE_LIMIT, "{:?}", asked.elapsed());
}

/// Opens more connections than the admin port has at a time, and sends this on each.
fn opened(server: &Server, sent: &str) -> Vec<KeepAlive> {
    let open = |_| {
        let mut connection = server.keep_alive_admin();
        connection.write(sent);
        connection
    };
    (0..150).map(open).collect()
}

#[test]
fn silent_admin_connections_make_room_for_probes() {
    let (_store, _key, server) = served();
    let silent = opened(&server, "");
    assert_probed(&server);
    drop(silent);
    assert_probed(&server);
}

#[test]
fn idle_admin_connections_make_room_for_probes() {
    let (_store, _key, server) = served();
    let ask = "GET /livez HTTP/1.1\r\nHost: vitrine.test\r\n\r\n";
    let mut idle = opened(&server, ask);
    assert_probed(&server);
    let newest = idle.last_mut().expect("a connection");
    assert_eq!(newest.read("GET").expect("an answer").status, 200);
    newest.write(ask);
    let again = newest.read("GET").expect("the oldest made room");
    assert_eq!(again.status, 200);
}

#[test]
fn unread_admin_pages_make_room_for_probes() {
    let (_store, _key, server) = served();
    let ask = "GET /assets/browser.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".repeat(40);
    let _unread = opened(&server, &ask);
    assert_probed(&server);
}

#[test]
fn unfinished_forms_make_room_for_probes() {
    let (_store, _key, server) = served();
    let head = "POST /sign-in HTTP/1.1\r\nHost: vitrine.test\r\nContent-Length: 99\r\n\
                Content-Type: application/x-www-form-urlencoded\r\n\r\nname=";
    let _unfinished = opened(&server, head);
    assert_probed(&server);
}

#[test]
fn long_form_without_sign_in_is_refused_unread() {
    let console = Console::open(Store::sample(), &[]);
    console.add("ines", "owner");
    for framing in ["Content-Length: 2000000", "Transfer-Encoding: chunked"] {
        let mut connection = console.server.keep_alive_admin();
        connection.write(&format!(
            "POST /acts/set-assortment HTTP/1.1\r\nHost: 127.0.0.1\r\n{framing}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        ));
        let reply = connection.read("POST").expect("an answer before the form");
        assert_eq!(reply.status, 401, "{framing}");
    }
    let reply = console.post("/sign-in", &[], &"a".repeat((16 << 10) + 1));
    assert_eq!(reply.status, 413);
}
