//! Three servers over one database.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::harness::{Server, Store, gift_card, text, wait_for};

/// The servers, and how they are reached.
pub struct Fleet {
    pub servers: Vec<Server>,
    pub store: Store,
    pub key: String,
}

/// Returns the duration of a fault.
pub fn fault_lasts() -> Duration {
    seconds("VITRINE_FAULT_SECONDS", 5)
}

/// A number of seconds that the environment may set.
pub fn seconds(variable: &str, usual: u64) -> Duration {
    let set = std::env::var(variable).ok();
    let set = set.map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is seconds"))
    });
    Duration::from_secs(set.unwrap_or(usual))
}

impl Fleet {
    /// A catalog of 600 products, and three servers of it.
    pub fn new(url: String) -> Self {
        let mut fleet = Self::without_servers(url);
        fleet.servers = (0..3).map(|number| fleet.serve(number, &[])).collect();
        fleet
    }

    /// The catalog, and no servers yet.
    pub fn without_servers(url: String) -> Self {
        let store = Store::at(url);
        let products: Vec<_> = (0..600).map(|n| gift_card(&format!("P{n:04}"))).collect();
        store.load_products(&products);
        Self {
            servers: Vec::new(),
            key: store.key("reader", &[]),
            store,
        }
    }

    /// A server's state directory.
    pub fn state(&self, number: usize) -> PathBuf {
        self.store.path(&format!("state-{number}"))
    }

    /// The command that serves, with a state directory for each number. What it says of texts' addresses is the same
    /// for all.
    pub fn serve_command(&self, number: usize, options: &[&str]) -> Command {
        let mut command = self.store.command(&["serve", "--listen", "127.0.0.1:0"]);
        command
            .args(["--public-url", "https://catalog.example"])
            .args(["--admin-listen", "127.0.0.1:0"])
            .arg("--state-dir")
            .arg(self.state(number))
            .args(options);
        command
    }

    /// One more server.
    pub fn serve(&self, number: usize, options: &[&str]) -> Server {
        Server::start(self.serve_command(number, options))
    }

    /// Tries to load one more product.
    pub fn try_add(&self, code: &str) -> Output {
        let file = self.store.write(code, gift_card(code).to_string());
        let file = file.display().to_string();
        self.store.run(&["load", "--mode", "merge", &file])
    }

    /// Loads one more product.
    pub fn add(&self, code: &str) {
        let output = self.try_add(code);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    /// Returns the addresses that the servers listen on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(|server| server.address).collect()
    }

    /// Waits until every server says so of itself; returns how long that took.
    pub fn wait_for_all(&self, what: &str, mut is_so: impl FnMut(&Server) -> bool) -> Duration {
        let started = Instant::now();
        let mut waiting: Vec<_> = self.servers.iter().collect();
        wait_for(what, || {
            waiting.retain(|server| !is_so(server));
            waiting.is_empty().then_some(())
        });
        started.elapsed()
    }

    /// Waits until every server serves a product; returns how long that took.
    pub fn wait_for_product(&self, code: &str) -> Duration {
        let target = format!("/v2/product/{code}");
        self.wait_for_all(code, |server| server.get(&self.key, &target).status == 200)
    }
}
