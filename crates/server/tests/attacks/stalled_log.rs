//! A reader of the server's messages that stalls: the pipe at standard error is full, and nobody takes anything from it.

use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{KeepAlive, Reply, Store, gift_card, wait_for};
use crate::healthy::Healthy;
use crate::memory::{forget_peak, resident};

/// Time in which a server acts on a revocation (docs/contract/access.md#keys), ten times: the
/// machine is busy.
const REVOKED_WITHIN: Duration = Duration::from_secs(10);

/// A server whose standard error is a full pipe.
struct Stalled {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
    reader: BufReader<PipeReader>,
}

impl Stalled {
    /// Serves a store, and stops reading its messages once it listens.
    fn start(store: &Store, options: &[&str]) -> Self {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let filled = writer.try_clone().expect("a pipe");
        let mut serve = store.command(&["serve", "--listen", "127.0.0.1:0", "--access-log", "off"]);
        serve.args(["--admin-listen", "127.0.0.1:0"]).args(options);
        let child = serve.stdin(Stdio::null()).stderr(writer).spawn();
        let child = child.expect("vitrine starts");
        // It keeps an end of the pipe otherwise.
        drop(serve);
        let mut reader = BufReader::with_capacity(1, reader);
        let mut address_after = |words: &str| {
            loop {
                let mut line = String::new();
                let read = reader.read_line(&mut line).expect("a line");
                assert!(read > 0, "it ended before it listened");
                if let Some((_, rest)) = line.split_once(words) {
                    let address = rest.split([',', '"']).next();
                    break address.expect("an address").parse().expect("an address");
                }
            }
        };
        let admin = address_after("admin port on ");
        let address = address_after("listening on ");
        fill(&filled);
        Self {
            child,
            address,
            admin,
            reader,
        }
    }

    fn get(&self, key: &str, target: &str) -> Reply {
        let mut connection = KeepAlive::to(self.address);
        connection.get(key, target).expect("an answer")
    }

    fn ask_admin(&self, target: &str) -> Reply {
        let mut connection = KeepAlive::to(self.admin);
        connection.get("", target).expect("an answer")
    }

    fn dropped_lines(&self) -> f64 {
        let metrics = self.ask_admin("/metrics").body;
        let metrics = String::from_utf8(metrics).expect("text");
        let line = |line: &str| {
            line.strip_prefix("vitrine_messages_dropped_lines_total ")?
                .parse()
                .ok()
        };
        metrics.lines().find_map(line).expect("the metric")
    }

    fn terminate(&self) {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-s", "TERM", &id]).status();
        assert!(killed.expect("kill runs").success());
    }

    fn wait(&mut self) -> Option<i32> {
        wait_for("the server's end", || {
            self.child.try_wait().expect("a child")
        })
        .code()
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Fills a pipe, through a description of its own: the server's stays one that blocks.
fn fill(pipe: &PipeWriter) {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits();
    let opened = std::fs::OpenOptions::new()
        .write(true)
        .custom_flags(nonblocking as i32)
        .open(path);
    let mut pipe = opened.expect("the pipe");
    let line = [b'.'; 4096];
    while pipe.write(&line).is_ok() {}
    while pipe.write(b".").is_ok() {}
    // Whatever the server writes later begins a line.
}

#[test]
fn stalled_log_reader_delays_nothing() {
    let store = Store::of(&[gift_card("A")]);
    let (key, revoked) = (store.key("healthy", &[]), store.key("revoked", &[]));
    let mut server = Stalled::start(&store, &[]);
    let (process, address) = (server.child.id(), server.address);
    let before = resident(process).0;
    forget_peak(process);
    let headers = format!("X-Api-Key: {key}\r\n");
    let healthy = Healthy::start(
        move || Box::new(TcpStream::connect(address).expect("a connection")),
        move || ("/v2/product".to_owned(), headers.clone()),
    );
    // A thread that the first message blocks doesn't see the second load.
    let mut followed = Duration::ZERO;
    for code in ["B", "C"] {
        store.load_products(&[gift_card("A"), gift_card(code)]);
        let loaded = Instant::now();
        wait_for("the load to be followed", || {
            let reply = server.get(&key, &format!("/v2/product/{code}"));
            (reply.status == 200).then_some(())
        });
        followed = followed.max(loaded.elapsed());
    }
    assert_eq!(server.get(&revoked, "/v2/ping").status, 200);
    let prefix = revoked.split('.').next().expect("a prefix");
    store.ok(&["keys", "revoke", prefix]);
    let revocation = Instant::now();
    wait_for("the key to be refused", || {
        (server.get(&revoked, "/v2/ping").status == 401).then_some(())
    });
    let revocation = revocation.elapsed();
    assert!(revocation < REVOKED_WITHIN, "{revocation:?}");
    assert_eq!(server.ask_admin("/readyz").status, 200);
    let peak = resident(process).1;
    std::thread::sleep(Duration::from_secs(10));
    let mut seen = healthy.finish();
    let after = resident(process).0;
    server.terminate();
    let ended = Instant::now();
    assert_eq!(server.wait(), Some(0));
    let (p99, mib) = (seen.p99(), |bytes: u64| bytes >> 20);
    let line = format!(
        "stalled log reader: loads followed after {followed:.1?}, key refused after {revocation:.1?}, ended {:.1?} after \
         SIGTERM; healthy clients saw {:?}, p99 {p99:.1?}; resident {} MiB before, {} at the peak, {} after\n",
        ended.elapsed(),
        seen.statuses,
        mib(before),
        mib(peak),
        mib(after),
    );
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("written");
    let statuses: Vec<u16> = seen.statuses.keys().copied().collect();
    assert_eq!(statuses, [200]);
}

#[test]
fn dropped_messages_are_counted_and_reported() {
    let store = Store::of(&[gift_card("A")]);
    let mut server = Stalled::start(&store, &["--log-level", "debug"]);
    assert!(server.dropped_lines() < 1.0);
    // Each is a message of some hundred bytes; a mebibyte of them may wait.
    wait_for("the queue to be full", || {
        for _ in 0..200 {
            let mut socket = TcpStream::connect(server.address).expect("a connection");
            let _ = socket.write_all(b"no request\r\n\r\n");
            let _ = socket.read(&mut [0; 64]);
        }
        (server.dropped_lines() > 0.0).then_some(())
    });
    let told = "lines of the server log were dropped: its reader is slow";
    let message = loop {
        let mut line = String::new();
        let read = server.reader.read_line(&mut line).expect("a line");
        assert!(read > 0, "the server ended");
        if line.contains(told) {
            break line;
        }
    };
    let message: serde_json::Value = serde_json::from_str(&message).expect("JSON");
    let dropped = message["fields"]["dropped"].as_u64().expect("a number");
    assert!(dropped > 0, "{message}");
    assert!(server.dropped_lines() >= dropped as f64);
}
