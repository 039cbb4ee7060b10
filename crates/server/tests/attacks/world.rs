//! A server with the memory that its sizing says, and the table of an attack.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::harness::{Certificate, Server, Store, scrape, wait_for};
use crate::healthy::{Healthy, Stream};
use crate::memory::{MemoryLimit, forget_peak, resident};

/// Codings that attackers ask for.
pub const CODINGS: [&str; 3] = ["identity", "gzip", "zstd"];

/// Time after the last attack in which its memory must be given back.
const GIVEN_BACK_AFTER: Duration = Duration::from_secs(10);

/// Memory that may stay with the server after attacks: what the allocator keeps for the next requests.
const KEPT_BYTES: u64 = 128 * MIB;

const MIB: u64 = 1 << 20;

/// Memory for bodies asked for before, in MiB: less than usual, so that it doesn't hide what attacks take.
const CACHE_MIB: u64 = 6;

/// Memory that a server needs, from docs/deploy.md ("Sizing").
fn documented_bytes(at_rest: u64, connections: u64, edge: Edge) -> u64 {
    let connection = match edge {
        Edge::Plain => MIB / 8,
        Edge::Tls => 2 * MIB,
    };
    2 * at_rest + (CACHE_MIB + 128) * MIB + connections * connection
}

/// One attack at a time: each wants the processor for itself.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server under its documented limit, and keys for an attacker and a healthy client.
pub struct World {
    pub server: Server,
    pub attacker: String,
    pub healthy: String,
    pub certificate: Arc<Certificate>,
    edge: Edge,
    categories: Vec<String>,
    at_rest: u64,
    limit_bytes: u64,
    _limit: MemoryLimit,
    _store: Store,
    _turn: MutexGuard<'static, ()>,
}

/// Transport of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    Plain,
    Tls,
}

impl World {
    /// Serves a store to as many connections as that in the memory that this needs.
    pub fn new(store: Store, edge: Edge, connections: u64) -> Self {
        let turn = turn();
        let (attacker, healthy) = (store.key("attacker", &[]), store.key("healthy", &[]));
        let certificate = Arc::new(Certificate::new(&store, "server"));
        let options = certificate.options();
        let most = connections.to_string();
        let cache = CACHE_MIB.to_string();
        let mut serve = store.command(&["serve", "--listen", "127.0.0.1:0", "--access-log", "off"]);
        serve.args(["--admin-listen", "127.0.0.1:0", "--cache-mib", &cache]);
        serve.args([
            "--max-connections",
            &most,
            "--max-connections-per-address",
            &most,
        ]);
        if edge == Edge::Tls {
            serve.args(&options);
        }
        // Measured on a server without a limit, as an operator does it.
        let at_rest = {
            let server = Server::start({
                let mut unlimited = std::process::Command::new(serve.get_program());
                unlimited
                    .args(serve.get_args())
                    .env("VITRINE_STORE", store.url());
                unlimited
            });
            wait_for_catalog(&server);
            resident(server.id()).0
        };
        let limit_bytes = documented_bytes(at_rest, connections, edge);
        let limit = MemoryLimit::new(limit_bytes);
        let server = Server::start(limit.command(&serve));
        wait_for_catalog(&server);
        let listed = store.ok(&["export"]);
        let categories = listed.lines().take(500).flat_map(categories_of);
        let categories: BTreeSet<String> = categories.collect();
        let categories = categories.into_iter().collect();
        Self {
            server,
            attacker,
            healthy,
            certificate,
            edge,
            categories,
            at_rest,
            limit_bytes,
            _limit: limit,
            _store: store,
            _turn: turn,
        }
    }

    /// Runs an attack beside a healthy client; prints the table's line and checks that the server survived it. The
    /// attack returns what must stay open until the peak is measured.
    pub fn survive<T>(&self, what: &str, healthy: Healthy, attack: impl FnOnce() -> T) {
        // Else the last attack's connections could take the places of this one's.
        wait_for("the last attack's connections to close", || {
            let open = scrape(&self.server).value("vitrine_http_connections_open");
            (open <= 1.0).then_some(())
        });
        let process = self.server.id();
        let before = resident(process).0;
        forget_peak(process);
        let held = attack();
        let peak = resident(process).1;
        let mut seen = healthy.finish();
        drop(held);
        let p99 = seen.p99();
        print(&format!(
            "{what}: healthy clients saw {:?}, p99 {p99:.1?}; resident {} MiB before, {} at the peak; limit {}",
            seen.statuses,
            before / MIB,
            peak / MIB,
            self.limit_bytes / MIB
        ));
        let reply = self.server.ask_admin("GET", "/readyz");
        assert_eq!(reply.status, 200, "{what}: {}", self.server.stderr());
        let good = seen.statuses.get(&200).copied().unwrap_or(0);
        let all: usize = seen.statuses.values().sum();
        assert!(
            good == all && all > 0,
            "{what}: healthy clients saw {:?}",
            seen.statuses
        );
    }

    /// Waits until the memory that attacks took is given back.
    pub fn assert_gives_back(&self) {
        let ended = Instant::now();
        let most = self.at_rest + KEPT_BYTES;
        while ended.elapsed() < GIVEN_BACK_AFTER && resident(self.server.id()).0 > most {
            std::thread::sleep(Duration::from_millis(50));
        }
        let (now, took) = (resident(self.server.id()).0, ended.elapsed());
        print(&format!(
            "resident {} MiB {took:.0?} after the last attack",
            now / MIB
        ));
        assert!(now <= most, "{} MiB at rest", self.at_rest / MIB);
    }

    /// A healthy client that asks for what `next` gives.
    pub fn client(&self, next: impl FnMut() -> (String, String) + Send + 'static) -> Healthy {
        let (server, edge) = (self.server.address, self.edge);
        let tls = Arc::clone(&self.certificate);
        let connect = move || -> Box<dyn Stream> {
            match edge {
                Edge::Plain => Box::new(TcpStream::connect(server).expect("a connection")),
                Edge::Tls => Box::new(tls.connect(server, &["http/1.1"]).expect("TLS")),
            }
        };
        Healthy::start(connect, next)
    }

    /// A healthy client that asks for what isn't attacked, so that answers to attackers can be counted.
    pub fn reader(&self) -> Healthy {
        let own = format!("X-Api-Key: {}\r\nAccept-Encoding: gzip\r\n", self.healthy);
        let targets = [
            "/v2/product/countries",
            "/v2/product/categories",
            "/v2/ping",
        ];
        let mut targets = targets.into_iter().cycle();
        self.client(move || (targets.next().expect("endless").to_owned(), own.clone()))
    }

    /// One of many pages whose products don't lie side by side.
    pub fn page(&self, number: usize) -> String {
        let category = &self.categories[number % self.categories.len()];
        let limit = 500 - number / self.categories.len() % 100;
        format!("/v2/product?categories={category}&limit={limit}")
    }

    /// An attacker's request over HTTP/1.1.
    pub fn request(&self, target: &str, coding: &str) -> String {
        let key = &self.attacker;
        format!(
            "GET {target} HTTP/1.1\r\nHost: v\r\nX-Api-Key: {key}\r\nAccept-Encoding: {coding}\r\n\r\n"
        )
    }

    /// Waits until that many requests for products and pages were answered.
    pub fn wait_for_answers(&self, count: f64) {
        wait_for("all answers to begin", || {
            (self.answered() >= count).then_some(())
        });
    }

    /// Number of answered requests for products and pages.
    pub fn answered(&self) -> f64 {
        let counts = scrape(&self.server);
        let routes = ["/v2/product", "/v2/product/{product_code}"];
        let series = |route| format!("vitrine_http_requests_total{{route=\"{route}\",");
        routes.iter().map(|route| counts.sum(&series(route))).sum()
    }
}

/// Prints past the test runner, which keeps what passing tests print to itself.
fn print(line: &str) {
    let line = format!("{line}\n");
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("written");
}

/// A store of pages that are worth attacking.
pub fn pages() -> Store {
    let store = Store::new();
    let products = store.ok(&["generate", "--products", "3000"]);
    store.load(store.write("products.ndjson", products));
    store
}

fn categories_of(line: &str) -> Vec<String> {
    let product: serde_json::Value = serde_json::from_str(line).expect("a product");
    let categories = product["categories"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let name = |category: serde_json::Value| category.as_str().map(str::to_owned);
    categories.into_iter().filter_map(name).collect()
}

fn wait_for_catalog(server: &Server) {
    wait_for("a catalog", || {
        (server.ask_admin("GET", "/readyz").status == 200).then_some(())
    });
}
