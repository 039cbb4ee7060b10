//! Load, loads and revocations for a long time: memory and descriptors stay where they are.

use std::time::{Duration, Instant};

use crate::clients::Clients;
use crate::database::{Database, is_there};
use crate::harness::{Scrape, Server, text};
use crate::world::{Fleet, seconds};

/// A load, a key and a revocation come once in this time.
const ROUND_TAKES: Duration = Duration::from_secs(1);

/// Resident bytes and open descriptors.
fn taken(server: &Server) -> [f64; 2] {
    let scrape = Scrape::parse(&text(&server.ask_admin("GET", "/metrics").body));
    ["process_resident_memory_bytes", "process_open_fds"].map(|name| scrape.value(name))
}

#[test]
fn memory_and_descriptors_stay_flat() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let mut fleet = Fleet::without_servers(database.url());
    // Connections grow old too.
    let options = ["--connection-age", "10s"];
    fleet.servers = (0..3).map(|n| fleet.serve(n, &options)).collect();
    let clients = Clients::start(&fleet.addresses(), &fleet.key);
    let lasts = seconds("VITRINE_SOAK_SECONDS", 20);
    let started = Instant::now();
    let mut number = 0;
    let mut round = || {
        let begun = Instant::now();
        number += 1;
        fleet.add(&format!("SOAK{}", number % 50));
        let key = fleet.store.key("soak", &[]);
        fleet
            .store
            .ok(&["keys", "revoke", key.split_once('.').expect("a key").0]);
        // Half the load that the machine could bear, or less.
        std::thread::sleep(ROUND_TAKES.saturating_sub(begun.elapsed()));
    };
    // Caches and buffers fill first.
    while started.elapsed() < lasts / 3 {
        round();
    }
    let before: Vec<_> = fleet.servers.iter().map(taken).collect();
    while started.elapsed() < lasts {
        round();
    }
    for (server, [memory_before, files_before]) in fleet.servers.iter().zip(before) {
        let [memory, files] = taken(server);
        println!(
            "after {lasts:?} and {number} rounds: {:.1} MiB, before {:.1}; {files} descriptors, before {files_before}",
            memory / 1048576.0,
            memory_before / 1048576.0
        );
        assert!(memory < memory_before * 1.2 + 16e6, "memory grows");
        assert!(files <= files_before + 8.0, "descriptors grow");
    }
    clients.finish("the soak");
}
