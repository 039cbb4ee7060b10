//! Death and errors at every fail point, in every scenario that passes it.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use vitrine_store::fail_point::FailPoint;

use crate::harness::{Server, text};
use crate::world::{Allowed, DONE_IN_PART, SCENARIOS, Scenario, World, answer};

/// `SIGABRT`, by which a fail point ends the process.
const ABORTED: i32 = 6;

/// Points that only servers pass.
const OF_SERVERS: [&str; 4] = [
    "key_use.written",
    "key_use.committed",
    "key_days.written",
    "key_days.committed",
];

/// From here on, what a command did is there for others.
const DONE_FROM: [&str; 7] = [
    "publish.committed",
    "texts.committed",
    "keys.committed",
    "operators.committed",
    "assortments.committed",
    "restore.committed",
    "file.named",
];

/// The names of the points in the order in which they were passed.
fn passes(said: &str) -> Vec<String> {
    let point = |line: &str| line.strip_prefix("fail point ").map(str::to_owned);
    said.lines().filter_map(point).collect()
}

/// One fault in one scenario.
struct Case<'c> {
    scenario: Scenario,
    allowed: &'c Allowed,
    point: &'c str,
    pass: usize,
    /// True if others see the change when the point is passed.
    is_done: bool,
}

impl Case<'_> {
    fn run(&self, action: &str, world: &World, server: Option<&Server>) {
        let fault = format!("{}={action}@{}", self.point, self.pass);
        let when = format!("{}: {fault}", self.scenario.name);
        let mut command = world.scenario();
        let output = command.env("VITRINE_FAIL_POINT", &fault).output();
        let output = output.expect("vitrine runs");
        if let Some(server) = server {
            assert!(self.allowed.answers.contains(&answer(server)), "{when}");
        }
        if action == "kill" {
            assert_eq!(output.status.signal(), Some(ABORTED), "{when}");
            assert_eq!(self.allowed.is_new(world, &when), self.is_done, "{when}");
        } else {
            self.allowed.assert_honest(world, &output, &when);
            let code = output.status.code();
            assert!(
                [Some(1), Some(DONE_IN_PART)].contains(&code),
                "{when}: {code:?}"
            );
            assert_no_partial_files(world, &when);
        }
        world.assert_clean(&when);
        if !self.allowed.is_new(world, &when) {
            let again = world.scenario().output().expect("vitrine runs");
            assert!(again.status.success(), "{when}: {}", text(&again.stderr));
            assert!(self.allowed.is_new(world, &when), "{when}: done again");
        }
        let report = world.load_next(&when);
        if let Some(server) = server.filter(|_| self.scenario.store == "vitrine.db") {
            server.wait_for_loaded(&report);
            answer(server);
        }
        world.assert_clean(&when);
    }
}

fn assert_no_partial_files(world: &World, when: &str) {
    for entry in std::fs::read_dir(world.store.path("")).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        assert!(!name.contains("partial"), "{when}: {name} was left");
    }
}

/// The first, the second and the last pass through each point.
fn cases<'c>(scenario: Scenario, allowed: &'c Allowed, passed: &'c [String]) -> Vec<Case<'c>> {
    let last =
        |points: &[&str]| (passed.iter()).rposition(|point| points.contains(&point.as_str()));
    // A key is rotated before its webhook endpoints move.
    let done_at = last(&DONE_FROM).or_else(|| last(&["webhooks.committed"]));
    let done_at = done_at.expect("every scenario is done in the end");
    let points: BTreeSet<&String> = passed.iter().collect();
    let mut cases = Vec::new();
    for point in points {
        let places: Vec<usize> = (0..passed.len()).filter(|&n| passed[n] == *point).collect();
        for pass in BTreeSet::from([1, 2, places.len()]) {
            if let Some(place) = places.get(pass - 1) {
                cases.push(Case {
                    scenario,
                    allowed,
                    point,
                    pass,
                    is_done: *place >= done_at,
                });
            }
        }
    }
    cases
}

/// Runs every case of every scenario; two at once, since most of it is waiting.
fn walk(run: impl Fn(&Case<'_>) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(scenario) = SCENARIOS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (allowed, said) = Allowed::by(*scenario);
            let passed = passes(&said);
            let cases = cases(*scenario, &allowed, &passed);
            cases.iter().for_each(&run);
            println!("{}: {} cases", scenario.name, cases.len());
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(work);
        work();
        other.join().expect("its cases hold");
    });
}

#[test]
fn every_point_is_passed_by_a_scenario() {
    let mut passed: BTreeSet<String> = OF_SERVERS.map(str::to_owned).into();
    for scenario in SCENARIOS {
        passed.extend(passes(&Allowed::by(scenario).1));
    }
    let known = FailPoint::ALL.map(|point| point.as_str().to_owned());
    assert_eq!(passed, known.into());
}

#[test]
fn killed_command_leaves_the_old_or_the_new_state() {
    walk(|case| case.run("kill", &World::new(case.scenario), None));
}

#[test]
fn killed_command_leaves_a_server_answering() {
    walk(|case| {
        let world = World::new(case.scenario);
        let server = world.serve();
        case.run("kill", &world, Some(&server));
    });
}

#[test]
fn error_at_any_point_is_reported_and_changes_nothing() {
    walk(|case| case.run("error", &World::new(case.scenario), None));
}

#[test]
fn error_under_a_server_leaves_it_answering() {
    walk(|case| {
        let world = World::new(case.scenario);
        let server = world.serve();
        case.run("error", &world, Some(&server));
    });
}

/// A server writes when keys were used, in the end at the latest.
#[test]
fn server_failing_at_a_write_leaves_a_sound_store() {
    for point in OF_SERVERS {
        for action in ["kill", "error"] {
            let when = format!("serve: {point}={action}@1");
            let world = World::new(SCENARIOS[0]);
            let before = world.state();
            let mut command = world.command(&["serve", "--listen", "127.0.0.1:0"]);
            command.env("VITRINE_FAIL_POINT", format!("{point}={action}@1"));
            let mut server = Server::start(command);
            answer(&server);
            server.signal("TERM");
            let code = server.wait();
            if action == "kill" {
                assert_eq!(code, None, "{when}: it ends by a signal");
            } else {
                assert_eq!(code, Some(0), "{when}");
                let said = server.stderr();
                let told = match point.starts_with("key_days") {
                    true => "the days of keys may lack these requests",
                    false => "can't store the last use of keys",
                };
                assert!(said.contains(told), "{when}: {said}");
            }
            assert_eq!(world.state(), before, "{when}");
            world.assert_clean(&when);
            world.load_next(&when);
        }
    }
}
