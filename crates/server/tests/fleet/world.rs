//! Three servers over one database.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{ALLOW_ALL, Server, gift_card, text, wait_for};

/// The servers, and how they are reached.
pub struct Fleet {
    pub servers: Vec<Server>,
    /// The store's address.
    pub url: String,
    pub key: String,
    directory: TempDir,
}

/// How long a fault lasts.
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
        let directory = tempfile::tempdir().expect("a directory");
        let mut fleet = Self {
            servers: Vec::new(),
            url,
            key: String::new(),
            directory,
        };
        let products: Vec<_> = (0..600).map(|n| gift_card(&format!("P{n:04}"))).collect();
        fleet.load(&products);
        fleet.key = fleet.make_key("reader");
        fleet
    }

    /// A command on the store.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vitrine"));
        command.args(arguments).env("VITRINE_STORE", &self.url);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("vitrine runs")
    }

    /// Runs a command that must succeed; returns what it prints.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Makes a key; returns it.
    pub fn make_key(&self, label: &str) -> String {
        self.make_key_with(label, &[])
    }

    /// Makes a key with more options; returns it.
    pub fn make_key_with(&self, label: &str, options: &[&str]) -> String {
        let made = self.ok(&[&["keys", "create", "--json", "--label", label], options].concat());
        let made: Value = serde_json::from_str(&made).expect("JSON");
        made["key"].as_str().expect("a key").to_owned()
    }

    /// A server's state directory.
    pub fn state(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("state-{number}"))
    }

    /// The command that serves, with a state directory for each number. What it says of texts' addresses is the same
    /// for all.
    pub fn serve_command(&self, number: usize, options: &[&str]) -> Command {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
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

    fn write(&self, products: &[Value]) -> String {
        let lines: Vec<String> = products.iter().map(Value::to_string).collect();
        let (_, path) = tempfile::NamedTempFile::new_in(self.directory.path())
            .and_then(|file| file.keep().map_err(Into::into))
            .expect("a file");
        std::fs::write(&path, lines.join("\n")).expect("a file");
        path.display().to_string()
    }

    /// Loads a whole catalog.
    pub fn load(&self, products: &[Value]) {
        let file = self.write(products);
        self.ok(&[&["load", &file], &ALLOW_ALL[..]].concat());
    }

    /// Tries to load one more product.
    pub fn try_add(&self, code: &str) -> Output {
        let file = self.write(&[gift_card(code)]);
        self.run(&["load", "--mode", "merge", &file])
    }

    /// Loads one more product.
    pub fn add(&self, code: &str) {
        let output = self.try_add(code);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    /// Where the servers listen.
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
