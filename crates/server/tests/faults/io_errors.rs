//! A disk that fails under the program: calls of the system's library fail, one after the other or by
//! chance, with EIO (the disk is broken) and with ENOSPC (it is full). What a command then says must be
//! so and must help, the store is sound, and the next load works.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::disk::{BROKEN, Calls, Disk, Errno, FULL, NO_DESCRIPTORS, numbers};
use crate::harness::{Server, text};
use crate::random::Random;
use crate::world::{Allowed, SCENARIOS, World, answer};

/// Errors of a failing disk.
const ERRORS: [Errno; 2] = [BROKEN, FULL];

/// The disk of a world.
fn disk(world: &World, calls: Calls) -> Disk {
    // Without the slash at its end: the directory itself is synced, too.
    let under = world.store.path("vitrine.db");
    let under = under.parent().expect("a directory");
    Disk::new(under, under, calls)
}

/// Runs the world's command with faults; what it says must be so, and the store of use. Returns how many
/// calls failed.
fn run(world: &World, allowed: &Allowed, calls: Calls, which: &str, error: Errno) -> usize {
    let disk = disk(world, calls);
    let mut command = world.scenario();
    disk.carry(&mut command);
    disk.fail(which, error);
    let output = command.output().expect("vitrine runs");
    let failed = disk.take_failed();
    let when = format!("{}: {} {which}: {failed}", world.scenario.name, error.0);
    let is_new = allowed.assert_honest(world, &output, &when);
    if failed.is_empty() {
        assert!(is_new, "{when}: {}", text(&output.stderr));
    }
    world.assert_clean(&when);
    world.load_next(&when);
    world.assert_clean(&when);
    failed.lines().count()
}

/// Does `work` for 0, 1, 2 … on two threads until it says that it is done.
fn on_two_threads(work: impl Fn(usize) -> bool + Sync) {
    let next = AtomicUsize::new(0);
    let run = || while work(next.fetch_add(1, Ordering::Relaxed)) {};
    std::thread::scope(|scope| {
        let other = scope.spawn(run);
        run();
        other.join().expect("its cases hold");
    });
}

/// In every scenario calls fail, as `which` says, until a run has no call that fails: every one of them, or one in so
/// many as are `apart`.
fn one_call_after_the_other(which: &str, calls: Calls, error: Errno, apart: u64) {
    let numbers: Vec<u64> = match apart {
        1 => (1..=MAX_CALLS).collect(),
        _ => numbers("calls", apart)
            .take_while(|call| *call <= MAX_CALLS)
            .collect(),
    };
    on_two_threads(|number| {
        let Some(scenario) = SCENARIOS.get(number) else {
            return false;
        };
        let (allowed, _) = Allowed::by(*scenario);
        let mut survived = 0;
        let unfailing = numbers.iter().find(|call| {
            let world = World::new(*scenario);
            let failed = run(&world, &allowed, calls, &format!("{which} {call}"), error);
            survived += failed;
            failed == 0
        });
        let (name, end) = (scenario.name, unfailing.expect("an end"));
        println!(
            "{name}: {} {which}: {survived} calls failed, by {end} at the latest",
            error.0
        );
        let least = if calls == Calls::Opens { 1 } else { 5 };
        assert!(*end > least, "{name} hardly wrote");
        true
    });
}

/// More than any command makes.
const MAX_CALLS: u64 = 10_000;

#[test]
fn each_call_that_writes_may_fail() {
    one_call_after_the_other("nth", Calls::Writes, BROKEN, 1);
    one_call_after_the_other("nth", Calls::Writes, FULL, 3);
}

#[test]
fn each_file_may_be_one_too_many() {
    one_call_after_the_other("nth", Calls::Opens, NO_DESCRIPTORS, 1);
}

#[test]
fn disk_may_break_for_good_at_each_call() {
    one_call_after_the_other("from", Calls::Writes, BROKEN, 3);
    one_call_after_the_other("from", Calls::Writes, FULL, 3);
}

/// One call in a hundred fails, while a server with a sound disk answers.
#[test]
fn any_calls_may_fail_under_a_server() {
    const RUNS: usize = 200;
    let mut random = Random::seeded("calls that fail");
    let seeds: Vec<u64> = (0..RUNS).map(|_| random.next() >> 24).collect();
    let allowed = SCENARIOS.map(|scenario| Allowed::by(scenario).0);
    let failed = AtomicUsize::new(0);
    on_two_threads(|number| {
        let Some(seed) = seeds.get(number) else {
            return false;
        };
        let scenario = number % SCENARIOS.len();
        let world = World::new(SCENARIOS[scenario]);
        let server = world.serve();
        let which = format!("percent 1 {seed}");
        let error = ERRORS[number / SCENARIOS.len() % 2];
        failed.fetch_add(
            run(&world, &allowed[scenario], Calls::Writes, &which, error),
            Ordering::Relaxed,
        );
        answer(&server);
        true
    });
    let failed = failed.into_inner();
    println!("{failed} calls failed in {RUNS} runs");
    assert!(failed > 0);
}

/// A prune frees what nobody reads any more, batch by batch: broken off anywhere, it can be done again.
#[test]
fn prune_may_be_broken_off_at_each_call() {
    for error in ERRORS {
        let mut survived = 0;
        for call in numbers("calls of a prune", 2) {
            let world = World::new(SCENARIOS[0]);
            let before = world.state();
            let prune = || world.command(&["prune", "--keep", "1", "--yes"]);
            let disk = disk(&world, Calls::Writes);
            let mut command = prune();
            disk.carry(&mut command);
            disk.fail(&format!("nth {call}"), error);
            let output = command.output().expect("vitrine runs");
            let failed = disk.take_failed();
            let when = format!("{} {call}: {failed}: {}", error.0, text(&output.stderr));
            assert!(output.status.success() || !failed.is_empty(), "{when}");
            assert!(!text(&output.stderr).contains("panicked"), "{when}");
            assert_eq!(world.state(), before, "{when}");
            world.assert_clean(&when);
            let again = prune().output().expect("vitrine runs");
            assert!(again.status.success(), "{when}: {}", text(&again.stderr));
            assert_eq!(world.state(), before, "{when}");
            world.load_next(&when);
            world.assert_clean(&when);
            survived += failed.lines().count();
            if failed.is_empty() {
                break;
            }
        }
        println!("prune: {}: {survived} calls failed", error.0);
        assert!(survived > 3);
    }
}

/// A server whose own disk fails goes on answering, and follows once the disk is well again.
#[test]
fn server_may_meet_a_failing_disk() {
    for (number, error) in ERRORS.into_iter().enumerate() {
        let world = World::new(SCENARIOS[0]);
        let mut command = world.store.command(&["serve", "--listen", "127.0.0.1:0"]);
        let disk = disk(&world, Calls::All);
        disk.carry(&mut command);
        let server = Server::start(command);
        answer(&server);
        disk.fail(&format!("percent 20 {number}"), error);
        for round in 0..20 {
            let mut load = world.command(&["load", ["old.ndjson", "new.ndjson"][round % 2]]);
            load.arg("--allow=retire=100%");
            assert!(load.status().expect("vitrine runs").success());
            answer(&server);
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        assert!(!disk.failed().is_empty(), "no call failed");
        disk.mend();
        let report = world.load_next("the disk is well again");
        server.wait_for_loaded(&report);
        answer(&server);
        world.assert_clean("in the end");
    }
}
