//! Assortments in a fleet: an edit reaches all servers, and whatever happens to the database, nobody is shown more than what
//! was last known to be allowed.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clients::THINKING;
use crate::database::{Database, is_there};
use crate::harness::server::KeepAlive;
use crate::harness::{Reply, Server, text, wait_for};
use crate::world::Fleet;

/// Numbers of products that an assortment shows, one edit after the other.
const WIDTHS: [usize; 4] = [300, 200, 100, 50];

/// Delay that the contract promises.
const PROMISED: Duration = Duration::from_secs(1);

/// Rules that show the first products, at a discount of their own.
fn rules(step: usize) -> Value {
    let codes: Vec<String> = (0..WIDTHS[step])
        .map(|number| format!("P{number:04}"))
        .collect();
    json!({"allow": [{"codes": codes}], "discounts": [{"set": discount(step)}]})
}

fn discount(step: usize) -> String {
    format!("0.{}0", step + 1)
}

/// The step whose rules gave a page of all products; `None` if those of none did.
fn step_of(page: &Reply) -> Option<usize> {
    let page = page.json();
    let products = page["catalog"].as_array()?;
    let step = WIDTHS.iter().position(|width| *width == products.len())?;
    let is_right = |(number, product): (usize, &Value)| {
        product["code"] == format!("P{number:04}")
            && product["discount_multiplier"] == discount(step)
    };
    products.iter().enumerate().all(is_right).then_some(step)
}

/// Tries to make rules live.
fn try_set(fleet: &Fleet, name: &str, step: usize) -> bool {
    let file = (fleet.store).write(&format!("{name}.json"), rules(step).to_string());
    let file = file.display().to_string();
    let allow = ["--allow", "retire=100%"];
    let set = ["assortments", "set", name, &file];
    fleet
        .store
        .run(&[&set[..], &allow].concat())
        .status
        .success()
}

fn set(fleet: &Fleet, name: &str, step: usize) {
    assert!(try_set(fleet, name, step), "{name}, {step}");
}

/// The status of a page of all products, and the step that it shows.
fn shown(server: &Server, key: &str) -> (u16, Option<usize>) {
    let reply = server.get(key, "/v2/product?limit=500");
    let step = if reply.status == 200 {
        step_of(&reply)
    } else {
        None
    };
    (reply.status, step)
}

/// Observations of a client of one server.
#[derive(Default)]
struct Seen {
    answers: AtomicU64,
    /// The newest step.
    step: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

/// A client of each server, which asks all the time, and may never see more than it saw before.
struct Watchers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    seen: Vec<Arc<Seen>>,
}

impl Watchers {
    fn start(servers: &[SocketAddr], key: &str) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let seen: Vec<_> = servers.iter().map(|_| Arc::<Seen>::default()).collect();
        let watch = |(server, seen): (&SocketAddr, &Arc<Seen>)| {
            let (server, key) = (*server, key.to_owned());
            let (stop, seen) = (Arc::clone(&stop), Arc::clone(seen));
            std::thread::spawn(move || watch(server, &key, &stop, &seen))
        };
        let threads = servers.iter().zip(&seen).map(watch).collect();
        Self {
            stop,
            threads,
            seen,
        }
    }

    /// Waits until each has some more answers.
    fn wait_for_answers(&self) {
        let counts = || {
            self.seen
                .iter()
                .map(|seen| seen.answers.load(Ordering::Relaxed))
        };
        let wanted: Vec<u64> = counts().map(|count| count + 30).collect();
        wait_for("answers", || {
            let mut counts = counts().zip(&wanted);
            counts.all(|(count, wanted)| count >= *wanted).then_some(())
        });
    }

    /// Waits until all see a step; returns how long that took.
    fn wait_for_step(&self, step: usize) -> Duration {
        let started = Instant::now();
        wait_for("the edit", || {
            let mut seen = self.seen.iter();
            seen.all(|seen| seen.step.load(Ordering::Relaxed) == step)
                .then_some(())
        });
        started.elapsed()
    }

    /// Returns true if any sees a step.
    fn any_sees(&self, step: usize) -> bool {
        let mut seen = self.seen.iter();
        seen.any(|seen| seen.step.load(Ordering::Relaxed) == step)
    }

    fn finish(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a client");
        }
        for seen in &self.seen {
            let wrong = seen.wrong.lock().expect("unpoisoned");
            assert!(wrong.is_empty(), "{} wrong: {wrong:?}", wrong.len());
        }
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn watch(server: SocketAddr, key: &str, stop: &AtomicBool, seen: &Seen) {
    let mut connection = KeepAlive::to(server);
    while !stop.load(Ordering::Relaxed) {
        let Some(reply) = connection.get(key, "/v2/product?limit=500") else {
            connection = KeepAlive::to(server);
            continue;
        };
        let before = seen.step.load(Ordering::Relaxed);
        let step = (reply.status == 200).then(|| step_of(&reply)).flatten();
        match step.filter(|step| *step >= before) {
            Some(step) => seen.step.store(step, Ordering::Relaxed),
            None => {
                let (status, body) = (reply.status, text(&reply.body));
                let wrong = format!("{server}: {step:?} after {before}: {status} {body:.200}");
                seen.wrong.lock().expect("unpoisoned").push(wrong);
            }
        }
        seen.answers.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(THINKING);
    }
}

#[test]
fn narrowing_while_the_database_is_killed_shows_no_more() {
    if !is_there() {
        return;
    }
    let mut database = Database::new();
    let mut fleet = Fleet::without_servers(database.url());
    set(&fleet, "partner", 0);
    let key = fleet.store.key("partner", &["--assortment", "partner"]);
    fleet.servers = (0..3).map(|number| fleet.serve(number, &[])).collect();
    let watchers = Watchers::start(&fleet.addresses(), &key);
    watchers.wait_for_answers();
    for (step, width) in WIDTHS.iter().enumerate().skip(1) {
        let fleet = &fleet;
        std::thread::scope(|scope| {
            // It may be made or not when the database is gone.
            let edit = scope.spawn(move || try_set(fleet, "partner", step));
            wait_for("a moment of the edit", || {
                let is_over = match step {
                    1 => true,
                    2 => edit.is_finished(),
                    _ => watchers.any_sees(step),
                };
                is_over.then_some(())
            });
            database.kill();
        });
        watchers.wait_for_answers();
        let already = watchers.any_sees(step);
        database.run();
        wait_for("the edit", || try_set(fleet, "partner", step).then_some(()));
        let took = watchers.wait_for_step(step);
        println!(
            "{width} products: shown by a server while the database was away: {already}; by all {took:?} after the edit"
        );
        assert!(took < 10 * PROMISED);
    }
    watchers.finish();
}

#[test]
fn key_of_an_unreadable_assortment_gets_503_until_it_is_known() {
    if !is_there() {
        return;
    }
    let mut database = Database::new();
    let fleet = Fleet::without_servers(database.url());
    set(&fleet, "partner", 0);
    let key = fleet.store.key("partner", &["--assortment", "partner"]);
    let sql = |statement: &str| {
        let ran = database.sql(statement);
        assert!(ran.status.success(), "{ran:?}");
    };
    // As a newer release might have stored it.
    sql("create table public.kept as select rules from vitrine.assortment_version");
    sql("update vitrine.assortment_version set rules = '{\"future\": []}'");
    let sees_nothing = |server: &Server| {
        for path in [
            "",
            "/P0007",
            "/NONE",
            "/categories",
            "/countries",
            "/changes",
        ] {
            let reply = server.get(&key, &format!("/v2/product{path}"));
            let answer = (reply.status, reply.error());
            assert_eq!(answer, (503, "unavailable".to_owned()), "{path}");
        }
        assert_eq!(server.get(&fleet.key, "/v2/product").status, 200);
    };
    let server = fleet.serve(0, &[]);
    sees_nothing(&server);
    wait_for("the files", || {
        let files = ["catalog.snapshot", "keys"].map(|name| fleet.state(0).join(name));
        files.iter().all(|file| file.exists()).then_some(())
    });
    drop(server);
    database.kill();
    let server = fleet.serve(0, &[]);
    assert!(server.stderr().contains("\"made_from\":\"last good file\""));
    sees_nothing(&server);
    database.run();
    let ran =
        database.sql("update vitrine.assortment_version set rules = kept.rules from public.kept");
    assert!(ran.status.success(), "{ran:?}");
    // Servers look at what is new.
    fleet.store.key("later", &[]);
    wait_for("the assortment", || {
        (shown(&server, &key) == (200, Some(0))).then_some(())
    });
}

#[test]
fn older_assortments_put_back_are_held_until_accepted() {
    if !is_there() {
        return;
    }
    let mut database = Database::new();
    let mut fleet = Fleet::without_servers(database.url());
    set(&fleet, "partner", 0);
    set(&fleet, "other", 0);
    let [key, other] =
        ["partner", "other"].map(|name| fleet.store.key(name, &["--assortment", name]));
    database.save();
    set(&fleet, "partner", 1);
    fleet.servers = (0..3).map(|number| fleet.serve(number, &[])).collect();
    fleet.wait_for_all("the edit", |server| shown(server, &key) == (200, Some(1)));
    wait_for("the files", || {
        let is_there = |number| fleet.state(number).join("keys").exists();
        (0..3).all(is_there).then_some(())
    });
    // What happens before they look again doesn't hide that it went back.
    (fleet.servers.iter()).for_each(|server| server.signal("STOP"));
    database.fail_over();
    (0..WIDTHS.len()).for_each(|step| set(&fleet, "busy", step));
    (fleet.servers.iter()).for_each(|server| server.signal("CONT"));
    let mut statuses = BTreeSet::new();
    let took = fleet.wait_for_all("the key to be held", |server| {
        let (status, step) = shown(server, &key);
        assert_ne!(step, Some(0), "more than before");
        statuses.insert(status);
        status == 503
    });
    println!("held by all {took:?} after the database was put back; until then {statuses:?}");
    let is_held = |fleet: &Fleet| {
        for server in &fleet.servers {
            assert_eq!(shown(server, &key), (503, None));
            assert_eq!(shown(server, &other), (200, Some(0)), "as it was");
            assert_eq!(server.get(&fleet.key, "/v2/product").status, 200);
        }
    };
    is_held(&fleet);
    // Also by a server that starts over it, from its files' word.
    fleet.servers[0].signal("KILL");
    fleet.servers[0].wait();
    fleet.servers[0] = fleet.serve(0, &[]);
    is_held(&fleet);
    fleet.store.ok(&["assortments", "accept", "--yes"]);
    let took = fleet.wait_for_all("the acceptance", |server| {
        shown(server, &key) == (200, Some(0))
    });
    println!("accepted by all after {took:?}");
    assert!(took < 10 * PROMISED);
}

#[test]
fn token_of_rules_that_a_server_skipped_is_continued() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let mut fleet = Fleet::without_servers(database.url());
    set(&fleet, "partner", 0);
    let key = fleet.store.key("partner", &["--assortment", "partner"]);
    fleet.servers = (0..3).map(|number| fleet.serve(number, &[])).collect();
    let [first, second, third] = &fleet.servers[..] else {
        panic!("three servers");
    };
    let shows = |server: &Server, step| {
        wait_for("the edit", || {
            (shown(server, &key) == (200, Some(step))).then_some(())
        });
    };
    let copy = |server: &Server, since: &str| {
        let target = format!("/v2/product/changes?limit=500{since}");
        let reply = server.get(&key, &target);
        (reply.status == 200).then(|| reply.json())
    };
    set(&fleet, "partner", 1);
    fleet.servers.iter().for_each(|server| shows(server, 1));
    wait_for("the file", || {
        let keys = std::fs::read(fleet.state(2).join("keys")).unwrap_or_default();
        let keys = String::from_utf8_lossy(&keys);
        keys.contains("\"number\":2").then_some(())
    });
    // The second one misses an edit, the third one all.
    second.signal("STOP");
    third.signal("KILL");
    set(&fleet, "partner", 2);
    shows(first, 2);
    let token = copy(first, "").expect("an answer")["next"].clone();
    let token = token.as_str().expect("a token");
    set(&fleet, "partner", 3);
    second.signal("CONT");
    shows(second, 3);
    let third = fleet.serve(2, &[]);
    for server in [first, second, &third] {
        let answer = wait_for("the former rules", || {
            copy(server, &format!("&since={token}"))
        });
        let changes = answer["changes"].as_array().expect("changes");
        let gone = changes.iter().filter(|change| change["product"].is_null());
        assert_eq!(gone.count(), WIDTHS[2] - WIDTHS[3]);
        assert_eq!(changes.len(), WIDTHS[2], "the others' discounts changed");
    }
}
