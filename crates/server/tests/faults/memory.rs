//! Too little memory: a limit on the address space, as a shell sets it. A process that runs out of it is aborted at
//! that point. What counts is that nothing is lost: a store is as before or as it was to become, and the next run works.

use std::path::PathBuf;

use crate::descriptors::limited;
use crate::disk::is_thorough;
use crate::harness::{Server, text, wait_for};
use crate::world::{Allowed, SCENARIOS, World, answer};

/// Number of products in the large catalog.
const PRODUCTS: &str = "1500";

/// Limits in KiB: from plenty down to what no program starts in.
fn limits() -> impl Iterator<Item = u64> {
    let parts = if is_thorough() { 40 } else { 14 };
    let (most, least) = (1_500_000_f64, 12_000_f64);
    let shrink = (least / most).powf(1.0 / f64::from(parts));
    (0..=parts).map(move |part| (most * shrink.powi(part)) as u64)
}

/// A large catalog in the world's directory.
fn large(world: &World) -> PathBuf {
    let generated = world
        .command(&["generate", "--products", PRODUCTS, "--seed", "7"])
        .output();
    let generated = generated.expect("vitrine runs");
    assert!(generated.status.success(), "{}", text(&generated.stderr));
    world.store.write("large.ndjson", generated.stdout)
}

/// The number of the live revision.
fn live(world: &World) -> u64 {
    let history = world.command(&["history", "--json"]).output();
    let history: serde_json::Value =
        serde_json::from_slice(&history.expect("vitrine runs").stdout).expect("JSON");
    history[0]["number"].as_u64().expect("a number")
}

#[test]
fn command_without_memory_is_done_or_changes_nothing() {
    for scenario in [SCENARIOS[0], SCENARIOS[1]] {
        let (allowed, _) = Allowed::by(scenario);
        let (mut done, mut failed) = (0, 0);
        for limit in limits() {
            let world = World::new(scenario);
            let when = format!("{}: {limit} KiB", scenario.name);
            let output = limited(&world.scenario(), &format!("ulimit -v {limit}")).output();
            let output = output.expect("sh runs");
            let is_new = allowed.is_new(&world, &when);
            if output.status.success() {
                assert!(is_new, "{when}: {}", text(&output.stderr));
                done += 1;
            } else {
                // The system's loader may not even come to say that.
                let is_said = output.status.code().is_none() || !output.stderr.is_empty();
                assert!(is_said, "{when}: {}", output.status);
                failed += 1;
            }
            world.assert_clean(&when);
            world.load_next(&when);
        }
        println!("{}: {done} did it, {failed} failed", scenario.name);
        assert!(done > 0 && failed > 0);
    }
}

#[test]
fn large_load_without_memory_leaves_a_whole_catalog() {
    let world = World::new(SCENARIOS[0]);
    large(&world);
    let (mut done, mut failed) = (0, 0);
    for limit in limits() {
        let when = format!("{limit} KiB");
        let before = live(&world);
        let load = world.command(&["load", "--allow=retire=100%", "large.ndjson"]);
        let output = limited(&load, &format!("ulimit -v {limit}")).output();
        let output = output.expect("sh runs");
        let is_new = live(&world) > before;
        assert!(is_new || !output.status.success(), "{when}");
        world.assert_clean(&when);
        done += usize::from(is_new);
        failed += usize::from(!output.status.success());
        // Back again, for the next one; nobody is in its way.
        world.load_next(&when);
    }
    println!("a large load: {done} did it, {failed} failed");
    assert!(done > 0 && failed > 0);
}

/// Returns true if a server has ended that this process, its parent, hasn't waited for.
fn has_ended(server: &Server) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()));
    status.expect("not waited for").contains("State:\tZ")
}

#[test]
fn server_without_memory_loses_nothing() {
    let world = World::new(SCENARIOS[0]);
    large(&world);
    let serve = || {
        let mut serve = world.command(&["serve", "--listen", "127.0.0.1:0"]);
        serve.args([
            "--public-url",
            "https://vitrine.test",
            "--state-dir",
            "state",
        ]);
        serve
    };
    let (mut refused, mut followed, mut aborted, mut stayed) = (0, 0, 0, 0);
    for limit in limits() {
        let when = format!("{limit} KiB");
        world.load_next(&when);
        let expected = answer(&Server::start(serve()));
        let started = Server::try_start(limited(&serve(), &format!("ulimit -v {limit}")));
        let Ok(mut server) = started else {
            refused += 1;
            continue;
        };
        // It may still run out of memory while it answers.
        let load = world.command(&["load", "--allow=retire=100%", "--json", "large.ndjson"]);
        let report = { load }.output().expect("vitrine runs").stdout;
        let report: serde_json::Value = serde_json::from_slice(&report).expect("a report");
        let number = report["revision"]["number"].as_u64().expect("a number");
        let follows = format!("\"revision\":{number},");
        // Without memory for one more thread, the system gives none: it says so, and goes on with what it has.
        let outcomes = [follows.as_str(), "the store can't be read"];
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(&when, || match has_ended(&server) {
                true => Some(None),
                false => outcomes
                    .iter()
                    .find(|said| server.stderr().contains(**said))
                    .map(Some),
            })
        }));
        let outcome = outcome.unwrap_or_else(|_| panic!("{when}: {}", server.stderr()));
        match outcome {
            None => aborted += 1,
            Some(said) if *said == follows => {
                // The answer and the drain may still take more memory than is left.
                let answered =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answer(&server)));
                server.signal("TERM");
                let status = server.wait();
                match status {
                    None => aborted += 1,
                    Some(_) => {
                        followed += 1;
                        assert_eq!(status, Some(0), "{when}");
                        assert_ne!(answered.expect("an answer"), expected, "{when}");
                    }
                }
            }
            Some(_) => stayed += 1,
        }
        drop(server);
        // As a service manager starts it again.
        let server = Server::start(serve());
        assert_ne!(answer(&server), expected, "{when}");
        world.assert_clean(&when);
    }
    println!(
        "servers: {refused} didn't start, {aborted} ended, {stayed} said that they can't follow, {followed} followed"
    );
    assert!(refused > 0 && followed > 0);
}
