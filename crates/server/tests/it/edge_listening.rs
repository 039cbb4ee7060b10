//! Listening: several addresses, Unix sockets, sockets that systemd passes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::harness::{Reply, Server, Store, text, wait_for};

fn ping(key: &str) -> String {
    format!("GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nConnection: close\r\n\r\n")
}

fn ask(mut stream: impl Read + Write, key: &str) -> Reply {
    stream.write_all(ping(key).as_bytes()).expect("written");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    Reply::parse(&answer, "GET")
}

/// Returns the addresses that a server listens on beside its first.
fn others(server: &Server) -> Vec<String> {
    let said = server.stderr();
    said.lines()
        .filter_map(|line| line.split_once("listening on ")?.1.split('"').next())
        .filter(|said| !said.contains(", serving "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_listener_answers_and_all_end_together() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let path = store.path("v.sock");
    let unix = format!("unix:{}", path.display());
    let options = ["--listen", "127.0.0.1:0,127.0.0.2:0", "--listen", &unix];
    let mut command = store.command(&["serve"]);
    command.args(["--listen", "127.0.0.1:0"]).args(options);
    let mut server = Server::start(command);
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    let others = wait_for("all listeners", || {
        Some(others(&server)).filter(|others| others.len() == 3)
    });
    assert_eq!(others[2], unix);
    for other in &others[..2] {
        let address: SocketAddr = other.parse().expect("an address");
        let stream = TcpStream::connect(address).expect("a connection");
        assert_eq!(ask(stream, &key).status, 200);
    }
    let stream = UnixStream::connect(&path).expect("a connection");
    assert_eq!(ask(stream, &key).json()["message"], "pong");
    let mode = std::fs::metadata(&path)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o660);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(!path.exists(), "removed at the end");
    let log = server.stdout();
    assert!(log.contains("\"remote\":\"unix\""), "{log}");
}

/// A server on a Unix socket; its first address is TCP, for the harness.
fn on_socket(store: &Store, path: &Path, more: &[&str]) -> Server {
    let unix = format!("unix:{}", path.display());
    store.serve_with(&[&["--listen", &unix], more].concat())
}

#[test]
fn socket_of_a_dead_server_only_is_replaced() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let path = store.path("v.sock");
    drop(UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists(), "what a dead server leaves");
    let server = on_socket(&store, &path, &["--unix-socket-mode", "600"]);
    assert!(
        !store.path("v.sock.lock").exists(),
        "nothing is left behind"
    );
    let mode = std::fs::metadata(&path)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let unix = format!("unix:{}", path.display());
    let refused = store.run(&[
        "serve",
        "--listen",
        &unix,
        "--public-url",
        "http://x.example",
    ]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(
        said.contains(&unix) && said.contains("another program listens there"),
        "{said}"
    );
    let stream = UnixStream::connect(&path).expect("it still listens");
    assert_eq!(ask(stream, &key).status, 200);
    drop(server);

    let file = store.write("file", "mine");
    let unix = format!("unix:{}", file.display());
    let refused = store.run(&[
        "serve",
        "--listen",
        &unix,
        "--public-url",
        "http://x.example",
    ]);
    assert!(
        text(&refused.stderr).contains("isn't a socket"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "mine");
}

#[test]
fn socket_of_a_live_program_stays() {
    let store = Store::sample();
    let path = store.path("v.sock");
    let address = SockAddr::unix(&path).expect("an address");
    let socket = || {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        socket.set_nonblocking(true).expect("set");
        socket
    };
    let busy = socket();
    busy.bind(&address).expect("bound");
    busy.listen(0).expect("it listens");
    let mut waiting = Vec::new();
    loop {
        let next = socket();
        if next.connect(&address).is_err() {
            break;
        }
        waiting.push(next);
    }
    let unix = format!("unix:{}", path.display());
    let refused = store.run(&[
        "serve",
        "--listen",
        &unix,
        "--public-url",
        "http://x.example",
    ]);
    let said = text(&refused.stderr);
    assert!(said.contains("another program listens there"), "{said}");
    assert!(path.exists());
}

#[test]
fn socket_of_a_successor_is_not_removed() {
    let store = Store::sample();
    let path = store.path("v.sock");
    let mut server = on_socket(&store, &path, &[]);
    std::fs::remove_file(&path).expect("removed");
    let _successor = UnixListener::bind(&path).expect("a socket");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(path.exists());
}

#[test]
fn wrong_addresses_are_refused_with_a_correction() {
    let store = Store::new();
    for (listen, code, what) in [
        ("8080", 2, "127.0.0.1:8080"),
        ("unix:v.sock", 2, "absolute path"),
        ("unix:/nowhere/v.sock", 2, "--public-url"),
        ("systemd", 1, "passed no socket"),
    ] {
        let output = store.run(&["serve", "--listen", listen]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(what), "{said}");
    }
}

/// Starts a program as systemd does: with sockets as descriptors from 3 on.
const PASS: &str = "
import os, socket, sys
tcp = socket.socket(); tcp.bind(('127.0.0.1', 0)); tcp.listen()
unix = socket.socket(socket.AF_UNIX); unix.bind(sys.argv[1]); unix.listen()
fds = [os.dup2(os.dup(fd), 20 + i) for i, fd in enumerate((tcp.fileno(), unix.fileno()))]
for i, fd in enumerate(fds): os.dup2(fd, 3 + i, inheritable=True)
os.environ.update(LISTEN_FDS='2', LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
";

#[test]
fn sockets_that_systemd_passes_are_served() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let path = store.path("passed.sock");
    let mut command = Command::new("python3");
    command
        .args(["-c", PASS])
        .arg(&path)
        .args([
            env!("CARGO_BIN_EXE_vitrine"),
            "serve",
            "--listen",
            "systemd",
        ])
        .env("VITRINE_STORE", store.url());
    let mut server = Server::start(command);
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    let stream = UnixStream::connect(&path).expect("a connection");
    assert_eq!(ask(stream, &key).status, 200);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(path.exists(), "systemd's file is systemd's");
}
