//! A change or a revocation is acted on by every server within a second. Waited for longer, and printed.

use std::time::{Duration, Instant};

use crate::clients::Clients;
use crate::database::{Database, is_there};
use crate::harness::wait_for;
use crate::world::Fleet;

const TRIALS: usize = 20;

/// Delay that the contract promises.
const PROMISED: Duration = Duration::from_secs(1);

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let (median, slowest) = (took[took.len() / 2], took[took.len() - 1]);
    println!("{what} on three servers, {TRIALS} trials: median {median:?}, slowest {slowest:?}");
    // The machine may be busy with other tests.
    assert!(slowest < 10 * PROMISED, "{took:?}");
}

#[test]
fn revoked_key_is_refused_by_all_servers_within_a_second() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let fleet = Fleet::new(database.url());
    let clients = Clients::start(&fleet.addresses(), &fleet.key);
    let trial = |number: usize| {
        let key = fleet.store.key(&format!("trial {number}"), &[]);
        let prefix = key.split_once('.').expect("a key").0.to_owned();
        wait_for("the key to be known", || {
            let knows =
                |server: &crate::harness::Server| server.get(&key, "/v2/ping").status == 200;
            fleet.servers.iter().all(knows).then_some(())
        });
        fleet.store.ok(&["keys", "revoke", &prefix]);
        let revoked = Instant::now();
        fleet.wait_for_all("the key to be refused", |server| {
            server.get(&key, "/v2/ping").status == 401
        });
        revoked.elapsed()
    };
    report("a revocation", (0..TRIALS).map(trial).collect());
    clients.finish("revocations");
}

#[test]
fn published_change_is_served_by_all_servers_within_a_second() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let fleet = Fleet::new(database.url());
    let clients = Clients::start(&fleet.addresses(), &fleet.key);
    let trial = |number: usize| {
        let code = format!("NEW{number}");
        fleet.add(&code);
        fleet.wait_for_product(&code)
    };
    report("a published change", (0..TRIALS).map(trial).collect());
    clients.finish("published changes");
}
