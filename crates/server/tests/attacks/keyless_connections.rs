//! Addresses without a key hold as many connections as they get. Clients with a key are answered all the same: at the
//! limit the connection that was idle longest is closed for a new one, and keyless ones have a share only.
//!
//! The limits are scaled down by 25: 400 connections in all, 80 from one address, so 300 and 40 without a key.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::harness::{KeepAlive, Server, Store, scrape, wait_for};

const LIMITS: [&str; 4] = [
    "--max-connections",
    "400",
    "--max-connections-per-address",
    "80",
];
const REQUEST: &[u8] = b"GET /v2/ping HTTP/1.1\r\nHost: x\r\n\r\n";
/// Time after which an attacker opens a connection anew that was closed.
const REOPENED_AFTER: Duration = Duration::from_secs(5);
/// Requests of the healthy client, each on a connection of its own.
const ASKED: usize = 300;

/// One address that holds connections, each of which asks every so often, and opens anew those that are closed.
struct Attacker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Attacker {
    fn start(from: Ipv4Addr, to: SocketAddr, count: usize, every: Duration) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut held: Vec<(Option<TcpStream>, Instant)> = Vec::new();
            let mut number = 0;
            held.resize_with(count, || {
                number += 1;
                // Reopened one after the other: all at once would be a flood, which may keep others out (docs/operate/configuration.md).
                let ago = REOPENED_AFTER * number / u32::try_from(count).expect("a small number");
                (connect(from, to).ok(), Instant::now() - ago)
            });
            let mut opened = count;
            while !stopped.load(Ordering::Relaxed) {
                for (socket, tried) in &mut held {
                    let is_held = socket.as_mut().is_some_and(is_open);
                    let pause = if is_held { every } else { REOPENED_AFTER };
                    if tried.elapsed() < pause {
                        continue;
                    }
                    *tried = Instant::now();
                    match socket {
                        Some(socket) if is_held => drop(socket.write(REQUEST)),
                        _ => {
                            *socket = connect(from, to).ok();
                            opened += 1;
                        }
                    }
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            opened
        });
        Self { stop, thread }
    }

    /// Ends the attack; returns how many connections it opened.
    fn finish(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("an attacker")
    }
}

/// Takes what has come; false once the server has closed.
fn is_open(socket: &mut TcpStream) -> bool {
    let mut taken = [0; 4096];
    loop {
        match socket.read(&mut taken) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// A connection from this address of the machine that has asked without a key.
fn connect(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(IpAddr::V4(from), 0).into())?;
    socket.connect(&to.into())?;
    let mut socket = TcpStream::from(socket);
    socket.write_all(REQUEST)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Resident memory of a process and its peak, in MiB.
fn resident(process: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.expect("a size") / 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Asks on a new connection each time; returns how many answers had each status (0: none), and their p99.
fn ask_newly(server: &Server, key: &str) -> (BTreeMap<u16, usize>, Duration) {
    let (mut statuses, mut times) = (BTreeMap::new(), Vec::new());
    for _ in 0..ASKED {
        let began = Instant::now();
        let reply = server.keep_alive().get(key, "/v2/product?limit=10");
        times.push(began.elapsed());
        let status = reply.map_or(0, |reply| reply.status);
        *statuses.entry(status).or_default() += 1;
    }
    times.sort_unstable();
    (statuses, times[times.len() * 99 / 100])
}

/// Attacks from so many addresses with so many connections each, which ask every so often.
fn attack(addresses: u8, each: usize, every: Duration) {
    let store = Store::sample();
    let key = store.key("healthy", &[]);
    let options = [
        &LIMITS as &[_],
        &["--admin-listen", "127.0.0.1:0", "--access-log", "off"],
    ];
    let server = store.serve_with(&options.concat());
    let mut kept: KeepAlive = server.keep_alive();
    assert_eq!(kept.get(&key, "/v2/ping").expect("an answer").status, 200);
    let before = resident(server.id()).0;
    let attackers: Vec<Attacker> = (2..2 + addresses)
        .map(|last| Attacker::start(Ipv4Addr::new(127, 0, 0, last), server.address, each, every))
        .collect();
    let share = usize::from(addresses) * each.min(40);
    wait_for("all that attackers get", || {
        let open = scrape(&server).value("vitrine_http_connections_open");
        (open >= share.min(300) as f64).then_some(())
    });
    // Who was idle for less than a second is in use: the attack is at its worst, and lasts, from then on.
    let full_since = Instant::now();
    wait_for("the attack to last", || {
        (full_since.elapsed() > Duration::from_secs(2)).then_some(())
    });
    let (statuses, p99) = ask_newly(&server, &key);
    let is_kept = kept
        .get(&key, "/v2/ping")
        .is_some_and(|reply| reply.status == 200);
    let peak = resident(server.id()).1;
    let evicted = scrape(&server).sum("vitrine_http_connections_evicted_total");
    let opened: usize = attackers.into_iter().map(Attacker::finish).sum();
    std::thread::sleep(Duration::from_secs(10));
    let after = resident(server.id()).0;
    eprintln!(
        "{addresses} addresses without a key, {each} connections each ({opened} opened), a request each {every:?}: a healthy client on new \
         connections saw {statuses:?}, p99 {p99:.1?}; {evicted} connections evicted; resident {before} MiB before, \
         {peak} at the peak, {after} ten seconds after"
    );
    assert_eq!(statuses, BTreeMap::from([(200, ASKED)]));
    assert!(is_kept, "a connection with a key was closed");
}

#[test]
fn five_keyless_addresses_lock_nobody_out() {
    attack(5, 80, Duration::from_millis(500));
}

#[test]
fn fifty_idle_keyless_addresses_lock_nobody_out() {
    attack(50, 20, Duration::from_secs(30));
}
