//! Failures of the Redis in which servers share quotas, under constant load of a key with a quota: no read
//! fails.

use std::time::Instant;

use crate::clients::Clients;
use crate::database::{Database, is_there};
use crate::harness::{Redis, wait_for};
use crate::world::{Fleet, fault_lasts};

fn survives(
    fleet: &Fleet,
    key: &str,
    name: &str,
    redis: &mut Redis,
    begin: fn(&mut Redis),
    end: fn(&mut Redis),
) {
    let clients = Clients::start(&fleet.addresses(), key);
    wait_for("the load", || (clients.fewest_answers() > 20).then_some(()));
    begin(redis);
    let begun = Instant::now();
    let answers = clients.fewest_answers();
    std::thread::sleep(fault_lasts().saturating_sub(begun.elapsed()));
    let during = clients.fewest_answers() - answers;
    assert!(during > 20, "{name}: only {during} answers of one server");
    end(redis);
    let returned = Instant::now();
    let took = fleet.wait_for_all("shared limits", |server| {
        let metrics = crate::harness::text(&server.ask_admin("GET", "/metrics").body);
        metrics.contains("\nvitrine_limits_breaker_open 0\n")
    });
    println!(
        "Redis: {name}, for {:?}: shared again {took:?} after its return",
        returned - begun
    );
    clients.finish(name);
}

#[test]
fn reads_survive_failing_shared_limits() {
    if !is_there() {
        return;
    }
    let Some(mut redis) = Redis::start("a fleet's shared limits") else {
        return;
    };
    let database = Database::new();
    let mut fleet = Fleet::without_servers(database.url());
    let limits = ["--limits", &redis.url()];
    fleet.servers = (0..3).map(|number| fleet.serve(number, &limits)).collect();
    // More than is asked for: whoever is refused was counted wrongly.
    let key = fleet.store.key("counted", &["--quota", "1000000/60"]);
    fleet.wait_for_all("the key", |server| {
        server.get(&key, "/v2/product/P0007").status == 200
    });
    survives(
        &fleet,
        &key,
        "killed",
        &mut redis,
        Redis::kill,
        Redis::restart,
    );
    survives(
        &fleet,
        &key,
        "stopped",
        &mut redis,
        |redis| redis.signal("STOP"),
        |redis| redis.signal("CONT"),
    );
    survives(
        &fleet,
        &key,
        "flushed",
        &mut redis,
        |redis| assert_eq!(redis.ask("FLUSHALL"), "+OK"),
        |_| {},
    );
}
