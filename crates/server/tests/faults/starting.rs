//! A server that starts while calls fail: it serves what is right, or it ends and says why. The next start works.

use std::io::{Read as _, Write as _};

use crate::disk::{BROKEN, Calls, Disk, Errno, FULL, NO_DESCRIPTORS, numbers};
use crate::harness::{Reply, Server, text, wait_for};
use crate::world::{SCENARIOS, World, answer, reader};

/// A world whose server ran before, and kept what was live.
struct Setup {
    world: World,
    expected: String,
}

impl Setup {
    fn new() -> Self {
        let world = World::new(SCENARIOS[0]);
        let server = Server::start(Self::command(&world));
        wait_for("the files", || {
            let written = server.stderr().contains("the snapshot file is written");
            (written && world.store.path("state/keys").exists()).then_some(())
        });
        let expected = answer(&server);
        drop(server);
        Self { world, expected }
    }

    fn command(world: &World) -> std::process::Command {
        let mut command = world.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.args([
            "--public-url",
            "https://vitrine.test",
            "--state-dir",
            "state",
        ]);
        command
    }

    /// Starts a server on a disk whose calls fail, and looks what comes of it. Returns whether it served.
    fn start(&self, disk: &Disk, which: &str, error: Errno) -> bool {
        let mut command = Self::command(&self.world);
        disk.carry(&mut command);
        disk.fail(which, error);
        let started = Server::try_start(command);
        let serves = started.is_ok();
        disk.mend();
        let when = format!("{} {which}: {}", error.0, disk.failed());
        match started {
            Ok(mut server) => {
                assert_eq!(answer(&server), self.expected, "{when}");
                server.signal("TERM");
                assert_eq!(server.wait(), Some(0), "{when}");
                assert!(!server.stderr().contains("panicked"), "{when}");
            }
            Err((status, said)) => {
                assert_eq!(status.code(), Some(1), "{when}: {said}");
                assert!(said.contains("\"level\":\"ERROR\""), "{when}: {said}");
                assert!(!said.contains("panicked"), "{when}: {said}");
            }
        }
        serves
    }
}

fn starts_with_calls_failing(calls: Calls, error: Errno, how: &str, apart: u64) {
    let setup = Setup::new();
    let under = setup.world.store.path("");
    let disk = Disk::new(&under, &under, calls);
    let (mut survived, mut ended) = (0, 0);
    for number in numbers("calls of a start", apart) {
        let serves = setup.start(&disk, &format!("{how} {number}"), error);
        let failed = disk.take_failed();
        survived += failed.lines().count();
        ended += usize::from(!serves);
        if failed.is_empty() {
            assert!(serves);
            break;
        }
    }
    println!(
        "{} {how} {calls:?}: {survived} calls failed, {ended} starts ended",
        error.0
    );
    assert!(survived > 0);
    // Nothing is lost.
    let server = Server::start(Setup::command(&setup.world));
    assert_eq!(answer(&server), setup.expected);
    setup.world.assert_clean("in the end");
    let report = setup.world.load_next("in the end");
    server.wait_for_loaded(&report);
}

#[test]
fn each_call_of_a_start_may_fail() {
    starts_with_calls_failing(Calls::All, BROKEN, "nth", 6);
}

#[test]
fn each_file_that_a_start_opens_may_be_one_too_many() {
    starts_with_calls_failing(Calls::Opens, NO_DESCRIPTORS, "nth", 2);
    starts_with_calls_failing(Calls::Opens, NO_DESCRIPTORS, "from", 2);
}

#[test]
fn start_on_a_full_disk_serves_or_reports_why_not() {
    starts_with_calls_failing(Calls::Writes, FULL, "from", 2);
}

/// Returns the answer of a server, if it has a descriptor for one connection more.
fn answers_unless_it_says_why_not(server: &Server) -> Option<String> {
    let mut socket = server.connect();
    let soon = std::time::Duration::from_millis(100);
    socket.set_read_timeout(Some(soon)).expect("a timeout");
    let key = reader();
    let head = format!("GET /v2/product?limit=500 HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n");
    let _ = socket.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes());
    let mut read = Vec::new();
    wait_for("an answer, or why there is none", || {
        let is_whole = socket.read_to_end(&mut read).is_ok() && !read.is_empty();
        let says = || server.stderr().contains("connections can't be accepted");
        (is_whole || says()).then(|| is_whole.then(|| text(&Reply::parse(&read, "GET").body)))
    })
}

/// The limits that a shell sets: what works with so many descriptors, and what is said with fewer.
#[test]
fn start_with_few_descriptors_serves_or_reports_why_not() {
    let setup = Setup::new();
    let mut served = 0;
    for most in (4..64).step_by(3) {
        let serve = Setup::command(&setup.world);
        let mut command = crate::descriptors::limited(&serve, &format!("ulimit -n {most}"));
        command.current_dir(setup.world.store.path(""));
        match Server::try_start(command) {
            Ok(server) => {
                let answered = answers_unless_it_says_why_not(&server);
                assert!(answered.is_none_or(|body| body == setup.expected), "{most}");
                served += 1;
            }
            Err((status, said)) => {
                let is_refused = [Some(1), Some(101), Some(127)].contains(&status.code());
                assert!(is_refused, "{most}: {status}: {said}");
                // With hardly any, the runtime panics; it says of what.
                let is_named = said.contains("Too many open files") || said.contains("libraries");
                assert!(is_named || !said.contains("panicked"), "{most}: {said}");
                assert!(said.len() > 20, "{most}: {said}");
            }
        }
    }
    println!("with {served} of 20 limits it served");
    assert!(served > 0);
}
