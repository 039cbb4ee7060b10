//! A running server whose calls fail one after the other: while it follows, and while it keeps what is live for its
//! next start. It answers all the while with one catalog or the other, says how things stand, and follows on; what
//! it keeps is whole.

use std::path::Path;

use serde_json::Value;

use crate::disk::{BROKEN, Calls, Disk, Errno, FULL, NO_DESCRIPTORS, numbers, wait_for_write};
use crate::harness::{Server, text, wait_for};
use crate::world::{SCENARIOS, World, answer, reader};

/// Two catalogs, which are published in turn.
struct Catalogs {
    /// Answers of a server: the one of even revisions, and the one of odd ones.
    answers: [String; 2],
    /// The last revision.
    published: usize,
}

impl Catalogs {
    /// Loads each once, while all is well.
    fn seen_by(world: &World, server: &Server) -> Self {
        // What a world has: revision 4.
        let mut catalogs = Self {
            answers: [answer(server), String::new()],
            published: 4,
        };
        server.wait_for_loaded(&catalogs.publish(world));
        catalogs.answers[1] = answer(server);
        server.wait_for_loaded(&catalogs.publish(world));
        catalogs
    }

    /// Loads the catalog that isn't live; returns the report.
    fn publish(&mut self, world: &World) -> Value {
        self.published += 1;
        let file = ["old.ndjson", "new.ndjson"][self.published % 2];
        let mut load = world.command(&["load", "--allow=retire=100%", "--json", file]);
        let done = load.output().expect("vitrine runs");
        assert!(done.status.success(), "{}", text(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("a report")
    }

    /// Returns the answer once the last published revision is followed.
    fn expected(&self) -> &str {
        &self.answers[self.published % 2]
    }

    /// Returns true if the last revision is live; it may be the one before, but nothing else. Readiness says
    /// the same.
    fn is_followed(&self, server: &Server, when: &str) -> bool {
        let number = || {
            let ready = server.ask_admin("GET", "/readyz");
            // SQLite tries a lock that it doesn't get for ten seconds, now and then twice in one step of a thread.
            let stuck = ["catalog_thread_stuck", "keys_thread_stuck"];
            let is_stuck = stuck.iter().any(|reason| ready.json()["reason"] == *reason);
            assert!(
                ready.status == 200 || is_stuck,
                "{when}: {}",
                text(&ready.body)
            );
            let number = ready.json()["revision"]["number"].as_u64();
            usize::try_from(number.expect("a number")).expect("a small one")
        };
        let (before, answered, after) = (number(), answer(server), number());
        assert!(before <= after && after <= self.published, "{when}");
        let possible = [before, after].map(|number| &self.answers[number % 2]);
        let said = server.stderr();
        assert!(possible.contains(&&answered), "{when}: {answered}: {said}");
        before == self.published
    }
}

/// A server whose disk fails below `under`.
fn serve(world: &World, disk: &Disk, options: &[&str]) -> Server {
    let mut command = world.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.args(["--admin-listen", "127.0.0.1:0"]);
    command.args(["--public-url", "https://vitrine.test"]);
    disk.carry(command.args(options));
    Server::start(command)
}

/// Makes a key; returns it.
fn new_key(world: &World) -> String {
    let mut create = world.command(&["keys", "create", "--json", "--label", "made"]);
    let made = create.output().expect("vitrine runs");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    made["key"].as_str().expect("a key").to_owned()
}

fn opens(server: &Server, key: &str) -> bool {
    server.get(key, "/v2/ping").status == 200
}

fn world() -> World {
    World::new(SCENARIOS[0])
}

/// Only calls on the store fail.
fn store_disk(world: &World, calls: Calls) -> Disk {
    Disk::new(
        &world.store.path("vitrine.db"),
        &world.store.path(""),
        calls,
    )
}

/// Lets call after call fail while a server follows, until there is no such call.
fn follow_with_calls_failing(calls: Calls, error: Errno, apart: u64) {
    let world = world();
    let disk = store_disk(&world, calls);
    let server = serve(&world, &disk, &[]);
    let mut catalogs = Catalogs::seen_by(&world, &server);
    let (mut tried, mut survived) = (0, 0);
    for number in numbers("calls of a server that follows", apart) {
        let when = format!("{}: call {number}", error.0);
        disk.fail(&format!("nth {number}"), error);
        catalogs.publish(&world);
        let key = new_key(&world);
        wait_for(&when, || catalogs.is_followed(&server, &when).then_some(()));
        wait_for(&when, || opens(&server, &key).then_some(()));
        disk.mend();
        let failed = disk.take_failed();
        tried += 1;
        survived += failed.lines().count();
        if failed.is_empty() {
            break;
        }
    }
    println!(
        "{} {calls:?}: {survived} calls failed in {tried} rounds",
        error.0
    );
    assert!(survived > 0, "{}: no call failed", error.0);
    assert!(!server.stderr().contains("panicked"));
    world.assert_clean(error.0);
}

#[test]
fn each_call_of_following_may_fail() {
    follow_with_calls_failing(Calls::All, BROKEN, 3);
    follow_with_calls_failing(Calls::Locks, BROKEN, 3);
}

/// The disk is broken from some call on, until it is mended.
fn follow_on_a_disk_broken_from(calls: Calls, numbers: impl Iterator<Item = u64>) {
    let world = world();
    let disk = store_disk(&world, calls);
    let server = serve(&world, &disk, &[]);
    let mut catalogs = Catalogs::seen_by(&world, &server);
    let mut survived = 0;
    for number in numbers {
        let when = format!("{calls:?}: from call {number} on");
        disk.fail(&format!("from {number}"), BROKEN);
        catalogs.publish(&world);
        let is_readable = || server.ask_admin("GET", "/readyz").json()["store"]["readable"] == true;
        let is_new = wait_for(&when, || {
            let is_new = catalogs.is_followed(&server, &when);
            (is_new || !is_readable()).then_some(is_new)
        });
        disk.mend();
        wait_for(&when, || catalogs.is_followed(&server, &when).then_some(()));
        wait_for(&when, || is_readable().then_some(()));
        let key = new_key(&world);
        wait_for(&when, || opens(&server, &key).then_some(()));
        let failed = disk.take_failed();
        survived += failed.lines().count();
        if is_new && failed.is_empty() {
            break;
        }
    }
    println!("{calls:?}: {survived} calls failed");
    assert!(survived > 0);
    world.assert_clean("in the end");
}

#[test]
fn unreadable_store_is_reported_and_later_followed() {
    let numbers = numbers("calls from which on all fail", 5);
    follow_on_a_disk_broken_from(Calls::All, numbers);
}

/// SQLite held a lock that the system hadn't given back, and the server never read its store again.
#[test]
fn store_whose_locks_failed_is_followed_again() {
    // SQLite itself tries for some ten seconds.
    follow_on_a_disk_broken_from(Calls::LocksAndUnlocks, [4, 6].into_iter());
}

/// State directory of a server, as it is logged and as it lies there.
struct StateFiles<'w> {
    world: &'w World,
    server: &'w Server,
}

impl StateFiles<'_> {
    fn state(&self) -> std::path::PathBuf {
        self.world.store.path("state")
    }

    /// Returns the number of attempts to write the snapshot file.
    fn tries(&self) -> usize {
        self.server.stderr().matches("the snapshot file ").count()
    }

    /// Returns the keys file's number and time of change.
    fn keys(&self) -> Option<(u64, std::time::SystemTime)> {
        use std::os::unix::fs::MetadataExt as _;
        let found = std::fs::metadata(self.state().join("keys")).ok()?;
        Some((found.ino(), found.modified().expect("a time")))
    }

    /// A server that starts with a copy of the files takes the snapshot out of them, and finds nothing wrong.
    fn assert_whole(&self, catalogs: &Catalogs, when: &str) {
        let copy = self.world.store.path("copied-state");
        let _ = std::fs::remove_dir_all(&copy);
        std::fs::create_dir(&copy).expect("a folder");
        let names = || {
            let entries = std::fs::read_dir(self.state()).expect("a folder");
            entries.map(|entry| entry.expect("an entry").file_name())
        };
        // The file of changes may just be written.
        let is_half = |name: std::ffi::OsString| name.as_encoded_bytes().starts_with(b".");
        wait_for(&format!("{when}: nothing to be left"), || {
            (!names().any(is_half)).then_some(())
        });
        for name in names() {
            std::fs::copy(self.state().join(&name), copy.join(&name)).expect("a copy");
        }
        let healthy = Disk::new(Path::new("/nowhere"), &copy, Calls::Writes);
        let copy = copy.display().to_string();
        let server = serve(self.world, &healthy, &["--state-dir", &copy]);
        assert_eq!(answer(&server), catalogs.expected(), "{when}");
        let said = server.stderr();
        assert!(
            said.contains("\"made_from\":\"snapshot file\""),
            "{when}: {said}"
        );
        assert!(!said.contains("damaged"), "{when}: {said}");
        assert!(opens(&server, reader()), "{when}");
    }
}

/// Lets call after call fail with which a server keeps what is live, until there is no such call.
fn keep_with_calls_failing(calls: Calls, error: Errno, apart: u64) {
    let world = world();
    let disk = Disk::new(&world.store.path("state"), &world.store.path(""), calls);
    let state = world.store.path("state").display().to_string();
    let server = serve(&world, &disk, &["--state-dir", &state]);
    let mut catalogs = Catalogs::seen_by(&world, &server);
    let kept = StateFiles {
        world: &world,
        server: &server,
    };
    wait_for("the files", || {
        (kept.tries() > 0 && kept.keys().is_some()).then_some(())
    });
    let mut survived = 0;
    for number in numbers("calls with which a server keeps what is live", apart) {
        let when = format!("{}: call {number}", error.0);
        let (tries, keys) = (kept.tries(), kept.keys());
        disk.fail(&format!("nth {number}"), error);
        catalogs.publish(&world);
        let key = new_key(&world);
        wait_for(&when, || catalogs.is_followed(&server, &when).then_some(()));
        wait_for(&when, || opens(&server, &key).then_some(()));
        wait_for_write(&when, || kept.tries() > tries);
        wait_for(&when, || {
            (kept.keys() != keys || !disk.failed().is_empty()).then_some(())
        });
        disk.mend();
        let failed = disk.take_failed();
        survived += failed.lines().count();
        kept.assert_whole(&catalogs, &format!("{when}: {failed}"));
        if failed.is_empty() {
            break;
        }
    }
    println!("{} {calls:?}: {survived} calls failed", error.0);
    assert!(survived > 0, "{}: no call failed", error.0);
    let said = server.stderr();
    assert!(said.contains("can't be written") && !said.contains("panicked"));
}

#[test]
fn each_call_of_keeping_state_may_fail() {
    for (calls, error, apart) in [
        (Calls::Writes, FULL, 4),
        (Calls::All, BROKEN, 5),
        (Calls::Opens, NO_DESCRIPTORS, 2),
    ] {
        keep_with_calls_failing(calls, error, apart);
    }
}

/// The access log stopped for good when its disk was full once.
#[test]
fn access_log_continues_after_a_full_disk() {
    let world = world();
    let log = world.store.path("access.log");
    let disk = Disk::new(&log, &world.store.path(""), Calls::Writes);
    let script = "log=$1; shift; exec \"$@\" >\"$log\"";
    let serve = world.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, "sh"]).arg(&log);
    command.arg(serve.get_program()).args(serve.get_args());
    command.args(["--admin-listen", "127.0.0.1:0"]);
    let set = serve
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    disk.carry(command.envs(set).current_dir(world.store.path("")));
    let server = Server::start(command);
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    answer(&server);
    wait_for("a line", || lines().contains("/v2/product").then_some(()));
    disk.fail("from 1", FULL);
    answer(&server);
    wait_for("a message", || {
        let said = server.stderr();
        said.contains("the access log can't be written")
            .then_some(())
    });
    let dropped = text(&server.ask_admin("GET", "/metrics").body);
    assert!(dropped.contains("vitrine_access_log_dropped_lines_total 1\n"));
    disk.mend();
    wait_for("a line", || {
        opens(&server, reader());
        lines().contains("/v2/ping").then_some(())
    });
    wait_for("a message", || {
        let said = server.stderr();
        said.contains("the access log can be written again")
            .then_some(())
    });
}
