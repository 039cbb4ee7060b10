//! Limits of connections: in all, from one address, and with few descriptors. And a thousand bad connections.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use socket2::{Domain, Socket, Type};
use vitrine::edge::descriptors::{Sockets, make_room};

use crate::harness::{
    Certificate, KeepAlive, Reply, Scrape, Server, Store, scrape, text, wait_for,
};

const ADMIN: [&str; 2] = ["--admin-listen", "127.0.0.1:0"];

fn served(options: &[&str]) -> (Store, String, Server) {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve_with(&[&ADMIN, options].concat());
    (store, key, server)
}

/// A connection that is known to have been let in.
fn open(server: &Server, key: &str) -> KeepAlive {
    let mut connection = server.keep_alive();
    let reply = connection.get(key, "/v2/ping").expect("an answer");
    assert_eq!(reply.status, 200);
    connection
}

/// A connection in use: its request has a body, of which nothing comes.
fn in_use(server: &Server, key: &str) -> KeepAlive {
    let mut connection = open(server, key);
    connection.write(&format!(
        "GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nContent-Length: 4\r\n\r\n"
    ));
    connection
}

/// A connection from this address of the machine, and what it is answered.
fn ask_from(ip: Ipv4Addr, to: SocketAddr, key: &str) -> Reply {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let from = SocketAddr::new(IpAddr::V4(ip), 0);
    socket
        .bind(&from.into())
        .expect("an address of this machine");
    socket.connect(&to.into()).expect("a connection");
    let mut socket = TcpStream::from(socket);
    let request = format!(
        "GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nConnection: close\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).expect("written");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("an answer");
    Reply::parse(&answer, "GET")
}

/// Returns true if a new connection is answered with a 200. While the limit is reached, it may get a 503, or be closed
/// without an answer: few are told at once.
fn is_let_in(server: &Server, key: &str) -> bool {
    let connection = KeepAlive::try_to(server.address);
    let reply = connection.and_then(|mut connection| connection.get(key, "/v2/ping"));
    reply.is_some_and(|reply| reply.status == 200)
}

fn assert_turned_away(reply: &Reply) {
    assert_eq!((reply.status, reply.error().as_str()), (503, "unavailable"));
    assert_eq!(reply.header("retry-after"), Some("5"));
    assert_eq!(reply.header("connection"), Some("close"));
}

#[test]
fn connection_beyond_the_limit_gets_503_until_room() {
    let (_store, key, server) = served(&["--max-connections", "3"]);
    let mut connections: Vec<_> = (0..3).map(|_| in_use(&server, &key)).collect();
    for target in ["/v2/ping", "/v2/product", "/nowhere"] {
        assert_turned_away(&server.get(&key, target));
    }
    for connection in &mut connections {
        connection.write("body");
        assert_eq!(connection.read("GET").expect("an answer").status, 200);
    }
    let refused = scrape(&server).value("vitrine_http_connections_refused_total{limit=\"all\"}");
    assert_eq!(refused, 3.0);
    connections.pop();
    wait_for("room", || is_let_in(&server, &key).then_some(()));
}

#[test]
fn one_address_has_its_share() {
    let (_store, key, server) = served(&["--max-connections-per-address", "2"]);
    let connections = [open(&server, &key), open(&server, &key)];
    assert_turned_away(&ask_from(Ipv4Addr::LOCALHOST, server.address, &key));
    let other = Ipv4Addr::new(127, 0, 0, 2);
    assert_eq!(ask_from(other, server.address, &key).status, 200);
    let refused =
        scrape(&server).value("vitrine_http_connections_refused_total{limit=\"address\"}");
    assert_eq!(refused, 1.0);
    drop(connections);
    wait_for("room", || is_let_in(&server, &key).then_some(()));
}

#[test]
fn tls_connection_beyond_the_limit_is_closed() {
    let store = Store::sample();
    let certificate = Certificate::new(&store, "server");
    let server = certificate.serve(&store, &["--max-connections", "1"]);
    let mut first = certificate.connect(server.address, &[]).expect("a session");
    // In use: of its request's body nothing comes.
    let request = "GET /v2/ping HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n";
    first.write_all(request.as_bytes()).expect("written");
    assert!(certificate.connect(server.address, &[]).is_none());
    drop(first);
    wait_for("room", || certificate.connect(server.address, &[]));
}

#[test]
fn few_descriptors_lower_the_connection_limit() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "ulimit -n 256; exec \"$0\" \"$@\""])
        .args([
            env!("CARGO_BIN_EXE_vitrine"),
            "serve",
            "--listen",
            "127.0.0.1:0",
        ])
        .args(ADMIN)
        .env("VITRINE_STORE", store.url());
    let server = Server::start(command);
    assert!(
        server.stderr().contains("too few file descriptors"),
        "{}",
        server.stderr()
    );
    // One with a key isn't closed for others.
    let mut first = open(&server, &key);
    let connections: Vec<_> = (0..300).map(|_| server.keep_alive()).collect();
    wait_for("all to be accepted", || {
        let counts = scrape(&server);
        let refused = counts.sum("vitrine_http_connections_refused_total");
        let accepted = counts.value("vitrine_http_connections_accepted_total");
        (refused + accepted >= 301.0).then_some(())
    });
    assert_eq!(first.get(&key, "/v2/ping").expect("an answer").status, 200);
    let counts = scrape(&server);
    assert_eq!(counts.value("vitrine_http_accept_failures_total"), 0.0);
    assert!(counts.value("process_open_fds") <= 256.0);
    drop(connections);
    wait_for("room", || is_let_in(&server, &key).then_some(()));
}

#[test]
fn out_of_descriptors_accepts_pause_and_recover() {
    let (_store, key, server) = served(&[]);
    let mut before = open(&server, &key);
    let mut watch = server.keep_alive_admin();
    let opened = scrape(&server).value("process_open_fds") as u64;
    let process = Pid::from_raw(i32::try_from(server.id()).expect("an id"));
    let limit = |current| Rlimit {
        current,
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    // Room for the scrape, and for a connection or two.
    let usual = prlimit(process, Resource::Nofile, limit(Some(opened + 3))).expect("a limit");
    let mut waiting: Vec<_> = (0..50).map(|_| server.connect()).collect();
    wait_for("a failure", || {
        server.stderr().contains("can't be accepted").then_some(())
    });
    assert_eq!(before.get(&key, "/v2/ping").expect("an answer").status, 200);
    // The server tries again and again, and not as fast as it can. Asked on a connection from before.
    let mut failures = || -> f64 {
        watch.write("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let page = text(&watch.read("GET").expect("an answer").body);
        Scrape::parse(&page).value("vitrine_http_accept_failures_total")
    };
    let (start, first) = (Instant::now(), failures());
    let last = wait_for("ten more failures", || {
        Some(failures()).filter(|last| *last >= first + 10.0)
    });
    let tries = (last - first) / start.elapsed().as_secs_f64();
    eprintln!("out of descriptors, {tries:.1} tries to accept a second (20 at most)");
    assert!(tries < 40.0, "it spins");
    prlimit(process, Resource::Nofile, usual).expect("a limit");
    for socket in &mut waiting {
        let request = format!(
            "GET /v2/ping HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\nConnection: close\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).expect("written");
    }
    for socket in &mut waiting {
        let mut answer = Vec::new();
        // Those that were let in before have waited for their request too long by now.
        if socket.read_to_end(&mut answer).is_ok() && !answer.is_empty() {
            assert_eq!(Reply::parse(&answer, "GET").status, 200);
        }
    }
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
}

/// Asks again and again until it is told to end; returns how long 99 of 100 requests took at most.
fn p99_until(server: &Server, key: &str, mut is_over: impl FnMut() -> bool) -> Duration {
    let mut connection = open(server, key);
    let mut times = Vec::new();
    loop {
        for _ in 0..500 {
            let began = Instant::now();
            let reply = connection.get(key, "/v2/product?limit=10");
            times.push(began.elapsed());
            assert_eq!(reply.expect("an answer").status, 200);
        }
        // Seldom, since the server has work to do for that, and in the same way with bad connections and without.
        if is_over() && times.len() >= 2000 {
            times.sort();
            return times[times.len() * 99 / 100];
        }
    }
}

/// Bad behaviour of clients that a server must get rid of.
#[derive(Debug, Clone, Copy)]
enum Bad {
    SendsNothing,
    SendsHalfAHead,
    NeverReads,
}

/// Opens so many bad connections, and returns them with the moment when the first was.
fn open_bad(server: &Server, key: &str, bad: Bad, count: usize) -> (Instant, Vec<Socket>) {
    let request = format!("GET /v2/product HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n\r\n");
    let sent = match bad {
        Bad::SendsNothing => String::new(),
        Bad::SendsHalfAHead => request[..40].to_owned(),
        Bad::NeverReads => request.repeat(60),
    };
    let started = Instant::now();
    let connect = |_| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        // So that it is soon full.
        socket.set_recv_buffer_size(4096).expect("a size");
        socket
            .connect(&server.address.into())
            .expect("a connection");
        let _ = (&socket).write_all(sent.as_bytes());
        socket
    };
    (started, (0..count).map(connect).collect())
}

/// Opens so many bad connections; returns how long it takes until the last one is cut, and how long other clients'
/// requests took meanwhile: 99 of 100 at most.
fn hold(server: &Server, key: &str, bad: Bad, count: usize) -> (Duration, Duration) {
    let opened = || scrape(server).value("vitrine_http_connections_open");
    let already = opened();
    let (started, connections) = open_bad(server, key, bad, count);
    let mut took = None;
    let p99 = p99_until(server, key, || {
        // The other client's connection is one too.
        let is_over = opened() <= already + 1.0;
        if is_over {
            took.get_or_insert_with(|| started.elapsed());
        }
        assert!(started.elapsed() < CUT_TIMEOUT, "{bad:?}: never cut");
        is_over
    });
    drop(connections);
    (took.expect("all were cut"), p99)
}

/// Time after which bad connections can't be believed to be cut any more.
const CUT_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the number of bad connections at once: `ci/long` may say more.
fn bad_connections() -> usize {
    let count = std::env::var("VITRINE_BAD_CONNECTIONS");
    count.map_or(1000, |count| count.parse().expect("a number"))
}

#[test]
fn thousand_bad_connections_are_cut_at_their_limit() {
    let count = bad_connections();
    // This process needs descriptors too.
    let room = make_room(Sockets {
        connections: count * 2,
        webhooks: 0,
    });
    assert!(
        room.connections >= count,
        "too few descriptors for this test"
    );
    let (_store, key, server) = served(&["--max-connections-per-address", "100000"]);
    for (bad, limit) in [
        (Bad::SendsNothing, 5),
        (Bad::SendsHalfAHead, 5),
        (Bad::NeverReads, 10),
    ] {
        let usual = p99_until(&server, &key, || {
            scrape(&server).value("process_open_fds") > 0.0
        });
        let (took, p99) = hold(&server, &key, bad, count);
        eprintln!(
            "{count} x {bad:?}: all cut after {took:.1?} (limit {limit} s); p99 of others {p99:.1?}, before {usual:.1?} \
             (the promise is twice that)"
        );
        // Machines differ, and other tests run: only what can't be an accident is a failure.
        assert!(
            p99 <= (usual * 20).max(Duration::from_secs(1)),
            "other clients suffer"
        );
        assert!(
            took >= Duration::from_secs(limit - 1),
            "not before their time"
        );
        assert!(
            took <= Duration::from_secs(limit * 10),
            "long after their time"
        );
    }
}
