//! `kill -9` at 200 moments of a load, with and without a server over the store: spread over all of its
//! time, and over the time of its commit. What is live afterwards is one catalog or the other, whole.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Server, Store, gift_card, text};
use crate::random::Random;

/// Kills of each kind, with and without a server.
const KILLS: u32 = 50;

/// Enough that a commit takes some time.
const PRODUCTS: usize = 40;

/// Maximum number of loads that are measured, to see three that commit.
const MAX_MEASURED: u32 = 50;

/// A catalog whose every product differs from those of another name.
fn catalog(store: &Store, name: &str) -> PathBuf {
    let line = |number: usize| {
        let mut product = gift_card(&format!("P{number:05}"));
        product["name"] = json!(name);
        product["gift_card"]["expiry"]["date_policy"] = json!(name.repeat(1_000));
        product.to_string()
    };
    let lines: Vec<String> = (0..PRODUCTS).map(line).collect();
    store.write(&format!("{name}.ndjson"), lines.join("\n"))
}

/// Start of the time to a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// So long after its start.
    Start,
    /// So long after the first byte of its commit.
    Commit,
}

/// A store that loads are killed over.
struct Target {
    store: Store,
    old: PathBuf,
    new: PathBuf,
}

/// Progress of a load.
#[derive(Debug, Default, Clone, Copy)]
struct Progress {
    began_to_commit: bool,
    ended: bool,
}

impl Target {
    fn new() -> Self {
        let store = Store::new();
        let (old, new) = (catalog(&store, "old"), catalog(&store, "new"));
        store.load(&old);
        Self { store, old, new }
    }

    /// Returns length and time of change of the store's log, which change with the first byte of a commit.
    fn log(&self) -> Option<(u64, i64, i64)> {
        let log = std::fs::metadata(self.store.path("vitrine.db-wal")).ok()?;
        (log.len() > 0).then(|| (log.len(), log.mtime(), log.mtime_nsec()))
    }

    fn start(&self) -> Child {
        let mut command = self.store.command(&["load"]);
        command.arg(&self.new).stdout(Stdio::null());
        command.spawn().expect("vitrine runs")
    }

    /// Loads the new catalog and kills the load at a moment.
    fn kill(&self, from: From, after: Duration) -> Progress {
        let log = self.log();
        let mut progress = Progress::default();
        let mut load = self.start();
        let mut since = Instant::now();
        while !progress.ended && (!progress.counts(from) || since.elapsed() < after) {
            if !progress.began_to_commit && self.log() != log && self.log().is_some() {
                progress.began_to_commit = true;
                if from == From::Commit {
                    since = Instant::now();
                }
            }
            progress.ended = load.try_wait().expect("a child").is_some();
            // Short: the commit takes milliseconds.
            std::thread::sleep(Duration::from_micros(50));
        }
        load.kill().expect("killed");
        load.wait().expect("an end");
        progress
    }

    /// Returns the durations of a load and of its commit, undisturbed.
    fn measure(&self) -> (Duration, Duration) {
        let mut takes = Vec::new();
        // On a busy machine a whole commit may pass between two looks: such a load tells nothing.
        for _ in 0..MAX_MEASURED {
            let (log, started) = (self.log(), Instant::now());
            let mut load = self.start();
            let mut committing = None;
            while load.try_wait().expect("a child").is_none() {
                if committing.is_none() && self.log() != log && self.log().is_some() {
                    committing = Some(Instant::now());
                }
            }
            if let Some(committing) = committing {
                takes.push((started.elapsed(), committing.elapsed()));
            }
            assert!(self.was_new("not killed at all"));
            if takes.len() == 3 {
                takes.sort();
                return takes[1];
            }
        }
        panic!(
            "of {MAX_MEASURED} loads only {} were seen to commit",
            takes.len()
        );
    }

    /// After a kill: the store is sound, one of the two catalogs is live, and the next load works. It makes
    /// the old catalog live again. Returns whether the new one was.
    fn was_new(&self, when: &str) -> bool {
        let check = self.store.run(&["check"]);
        assert!(check.status.success(), "{when}: {}", text(&check.stdout));
        let report = self.store.load(&self.old);
        let counts = ["created", "changed", "retired", "unchanged"]
            .map(|name| report["counts"][name].as_u64().expect("a number"));
        let all = PRODUCTS as u64;
        assert!(
            [[0, 0, 0, all], [0, all, 0, 0]].contains(&counts),
            "{when}: a mix: {report}"
        );
        counts[1] == all
    }
}

impl Progress {
    /// Returns true if the time to the kill runs.
    fn counts(self, from: From) -> bool {
        from == From::Start || self.began_to_commit
    }
}

/// Asks a server again and again; every answer must be of the one catalog or the other.
fn ask(server: &Server, key: &str, done: &AtomicBool) -> usize {
    let mut answers = 0;
    while !done.load(Ordering::Relaxed) {
        let reply = server.get(key, "/v2/product?limit=500");
        let catalog = reply.json();
        let products = catalog["catalog"].as_array().expect("a list");
        let name = &products[0]["name"];
        assert_eq!(products.len(), PRODUCTS);
        assert!(products.iter().all(|product| product["name"] == *name));
        answers += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    answers
}

#[derive(Debug, Default)]
struct Tally {
    before_the_commit: u32,
    in_the_commit: u32,
    after_the_end: u32,
    new: u32,
}

fn kill_at_many_moments(target: &Target, random: &mut Random) -> Tally {
    let mut tally = Tally::default();
    let (load, commit) = target.measure();
    println!("a load takes {load:?}, the last {commit:?} of it for the commit");
    for number in 0..KILLS {
        for (from, takes) in [(From::Start, load), (From::Commit, commit)] {
            // One moment in each part of the time, and some after the end.
            let part = (f64::from(number) + random.fraction()) / f64::from(KILLS);
            let after = takes.mul_f64(part * 1.2);
            let progress = target.kill(from, after);
            let when = format!("{after:?} after {from:?}: {progress:?}");
            let is_new = target.was_new(&when);
            tally.new += u32::from(is_new);
            match progress {
                Progress { ended: true, .. } => {
                    assert!(is_new, "{when}: it was done");
                    tally.after_the_end += 1;
                }
                Progress {
                    began_to_commit: true,
                    ..
                } => tally.in_the_commit += 1,
                // It may have begun between the last look and the kill.
                _ => tally.before_the_commit += 1,
            }
        }
    }
    println!("{tally:?}");
    let least = KILLS / 10;
    assert!(tally.before_the_commit >= least, "{tally:?}");
    assert!(tally.in_the_commit >= least, "{tally:?}");
    assert!(tally.new >= least, "{tally:?}");
    tally
}

#[test]
fn killed_load_leaves_the_old_or_the_new_catalog() {
    kill_at_many_moments(&Target::new(), &mut Random::seeded("kills"));
}

#[test]
fn killed_load_leaves_a_server_answering() {
    let target = Target::new();
    let key = target.store.key("reader", &[]);
    let server = target.store.serve();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&server, &key, &done));
        let mut random = Random::seeded("kills under a server");
        // Whatever comes of it, the asking ends.
        let kills = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            kill_at_many_moments(&target, &mut random)
        }));
        done.store(true, Ordering::Relaxed);
        println!("{} answers", asking.join().expect("answers"));
        kills.map(drop).expect("the kills");
    });
}
