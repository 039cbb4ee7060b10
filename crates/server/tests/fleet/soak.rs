//! Load, loads and revocations for a long time: memory and descriptors stay where they are.

use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clients::Clients;
use crate::database::{Database, is_there};
use crate::harness::{Server, scrape, text, wait_for};
use crate::world::{Fleet, seconds};

/// A load, a key and a revocation come once in this time.
const ROUND_TAKES: Duration = Duration::from_secs(1);

/// Resident bytes and open descriptors.
fn taken(server: &Server) -> [f64; 2] {
    let metrics = scrape(server);
    ["process_resident_memory_bytes", "process_open_fds"].map(|name| metrics.value(name))
}

/// Runs an operator's command until it succeeds. While a machine starves, a command may wait for the database in vain and
/// say that it should be run again; what the soak asks of servers, it doesn't ask of commands.
fn in_the_end(what: &str, mut run: impl FnMut() -> Output) -> String {
    wait_for(what, || {
        let output = run();
        if !output.status.success() {
            println!("{what} again: {}", text(&output.stderr));
        }
        output.status.success().then(|| text(&output.stdout))
    })
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
        let code = format!("SOAK{}", number % 50);
        in_the_end("a load", || fleet.try_add(&code));
        let create = ["keys", "create", "--json", "--label", "soak"];
        let made = in_the_end("a key", || fleet.store.run(&create));
        let made: Value = serde_json::from_str(&made).expect("JSON");
        let prefix = made["prefix"].as_str().expect("a prefix");
        in_the_end("a revocation", || {
            fleet.store.run(&["keys", "revoke", prefix])
        });
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
