//! Overrides that begin and end while those who apply that are killed, and their clocks are off: each instant is applied once,
//! in order.
//!
//! `VITRINE_TICK_KILLS` says how many are killed (10).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::database::{Database, is_there};
use crate::faketime;
use crate::harness::console::{Console, hidden};
use crate::harness::{Server, Store, gift_card, text, wait_for};
use crate::random::Random;

/// Clocks of those who apply instants.
const CLOCKS: [&str; 3] = ["+0", "+1h", "-1h"];

const PRODUCTS: usize = 40;

/// Returns the products that overrides are about.
fn catalog() -> Vec<Value> {
    let numbers = 0..PRODUCTS;
    numbers
        .map(|number| gift_card(&format!("P{number:02}")))
        .collect()
}

fn ticker(store: &Store, clock: &str) -> Server {
    let mut command = store.command(&["tick", "--follow"]);
    if clock != "+0"
        && let Some(library) = faketime::library("a clock off by an hour")
    {
        faketime::preload(&mut command, &library);
        command.env("FAKETIME", clock);
    }
    Server::start(command)
}

/// Makes an override of a product that begins and ends soon; false where the database is away.
fn make(store: &Store, random: &mut Random, number: usize) -> bool {
    let product = format!("P{:02}", number % PRODUCTS);
    let after = |random: &mut Random, time: Timestamp| {
        let millis = 200.0 + 800.0 * random.fraction();
        time + SignedDuration::from_secs_f64(millis / 1_000.0)
    };
    let from = after(random, Timestamp::now());
    let until = after(random, from);
    let (from, until) = (from.to_string(), until.to_string());
    let value = format!("categories+=sale {number}");
    let made = store.run(&["set", &product, &value, "--from", &from, "--until", &until]);
    made.status.success()
}

/// Asserts that each override began once and ended once, and that no instant was applied before one that is earlier.
fn assert_each_once(store: &Store) {
    let mut due: BTreeMap<(u64, &str), Timestamp> = BTreeMap::new();
    let overrides = store.json(&["overrides", "list", "--all", "--json"]);
    for one in overrides.as_array().expect("a list") {
        let number = one["number"].as_u64().expect("a number");
        let time = |field: &str| -> Timestamp {
            one[field]
                .as_str()
                .expect("a time")
                .parse()
                .expect("a time")
        };
        // One that was made when its time had come began at once.
        due.insert((number, "begins"), time("from").max(time("created_at")));
        due.insert((number, "ends"), time("until"));
    }
    let all = due.len();
    let history = store.json(&["history", "--json", "--limit", "100000"]);
    let (mut last, mut latest) = (Timestamp::UNIX_EPOCH, Duration::ZERO);
    for revision in history.as_array().expect("a list").iter().rev() {
        let Some(note) = revision["note"].as_str() else {
            continue;
        };
        let at: Timestamp = revision["created_at"]
            .as_str()
            .expect("a time")
            .parse()
            .expect("a time");
        for part in note.split("; ") {
            let mut words = part.split(' ').skip(1);
            let number = words.next().and_then(|number| number.parse().ok());
            let word = words.next().expect("a word");
            let key = (
                number.expect("a number"),
                if word == "begins" { "begins" } else { "ends" },
            );
            let time = due.remove(&key).unwrap_or_else(|| panic!("twice: {part}"));
            assert!(last <= time, "{part} after one that is due later");
            last = time;
            let late = at.duration_since(time);
            assert!(!late.is_negative(), "{part} before its time, {time}: {at}");
            latest = latest.max(late.unsigned_abs());
        }
    }
    assert_eq!(due, BTreeMap::new(), "never applied");
    println!(
        "{all} instants; the latest {latest:?} late, with what was killed; the promise is 1 s"
    );
}

#[test]
fn each_instant_is_applied_once_through_kills() {
    if !is_there() {
        return;
    }
    let kills =
        std::env::var("VITRINE_TICK_KILLS").map_or(10, |kills| kills.parse().expect("a number"));
    let mut database = Database::new();
    let store = Store::at(database.url());
    store.load_products(&catalog());
    let mut tickers: Vec<Server> = CLOCKS.iter().map(|clock| ticker(&store, clock)).collect();
    let mut random = Random::seeded("instants");
    let is_done = AtomicBool::new(false);
    let made = std::thread::scope(|scope| {
        let making = scope.spawn(|| {
            let (mut random, mut made) = (Random::seeded("overrides"), 0);
            while !is_done.load(Ordering::SeqCst) {
                made += usize::from(make(&store, &mut random, made));
            }
            made
        });
        for kill in 0..kills {
            // At any moment.
            std::thread::sleep(Duration::from_secs_f64(random.fraction() / 2.0));
            if kill % 10 == 9 {
                database.kill();
                database.run();
            } else {
                let number = usize::try_from(random.next() % CLOCKS.len() as u64).expect("small");
                tickers[number].signal("KILL");
                tickers[number].wait();
                tickers[number] = ticker(&store, CLOCKS[number]);
            }
        }
        is_done.store(true, Ordering::SeqCst);
        making.join().expect("overrides")
    });
    assert!(made > 0);
    wait_for("the last end", || {
        let open = store.json(&["overrides", "list", "--json"]);
        (open == Value::Array(Vec::new())).then_some(())
    });
    assert_each_once(&store);
    assert_eq!(
        store.ok(&["diff", "1", "--stat"]),
        format!("0 created, 0 changed, 0 retired, {PRODUCTS} unchanged\n")
    );
    assert_eq!(store.json(&["check", "--json"])["clean"], true);
}

/// Nobody applied anything meanwhile: what comes then is what would have come.
#[test]
fn instants_of_an_outage_come_in_order_afterwards() {
    if !is_there() {
        return;
    }
    let database = Database::new();
    let store = Store::at(database.url());
    store.load_products(&catalog());
    let mut random = Random::seeded("an outage");
    // One whose end has passed before a busy machine gets to it is refused.
    let made = (0..20).filter(|number| make(&store, &mut random, *number));
    assert!(made.count() > 0);
    let last = Timestamp::now() + SignedDuration::from_secs(3);
    wait_for("the last time", || (Timestamp::now() > last).then_some(()));
    let _tickers: Vec<Server> = CLOCKS.iter().map(|clock| ticker(&store, clock)).collect();
    wait_for("the last end", || {
        let open = store.json(&["overrides", "list", "--json"]);
        (open == Value::Array(Vec::new())).then_some(())
    });
    assert_each_once(&store);
}

#[test]
fn spans_are_counted_from_the_clock_of_the_database() {
    if !is_there() {
        return;
    }
    let Some(library) = faketime::library("an operator's clock off by an hour") else {
        return;
    };
    let database = Database::new();
    let store = Store::at(database.url());
    store.load_products(&[gift_card("A")]);
    for clock in ["+1h", "-1h"] {
        let mut command = store.command(&["set", "A", "discount_multiplier=0.01", "--from", "2h"]);
        faketime::preload(&mut command, &library);
        let output = command.env("FAKETIME", clock).output().expect("a process");
        assert!(output.status.success(), "{output:?}");
    }
    let listed = store.json(&["overrides", "list", "--json"]);
    for one in listed.as_array().expect("a list") {
        let from: Timestamp = one["from"]
            .as_str()
            .and_then(|from| from.parse().ok())
            .expect("a time");
        let span = from.duration_since(Timestamp::now());
        let expected = SignedDuration::from_mins(90)..SignedDuration::from_hours(2);
        assert!(expected.contains(&span), "{span}: {one}");
    }
}

#[test]
fn console_counts_spans_by_the_clock_of_the_store() {
    if !is_there() {
        return;
    }
    let Some(library) = faketime::library("a console with a wrong clock") else {
        return;
    };
    let database = Database::new();
    let store = Store::at(database.url());
    store.load_products(&catalog());
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let mut command = store.command(&[&serve[..], &["--admin-listen", "127.0.0.1:0"]].concat());
    faketime::preload(&mut command, &library);
    command.env("FAKETIME", "+1h");
    let server = Server::start(command);
    let console = Console { store, server };
    console.add("editor", "editor");
    let editor = console.sign_in("editor");
    // For the server, this time is over.
    let fields = [("code", "P00"), ("from", "10m"), ("until", "30m")];
    let plan = text(&console.post_form("/acts/disable", &editor, &fields).body);
    let minutes = ["from", "until"].map(|name| {
        let time = hidden(&plan, name).expect("a time");
        let time: Timestamp = time.parse().expect("a time");
        time.duration_since(Timestamp::now()).as_secs() / 60
    });
    assert_eq!(minutes, [9, 29], "{plan}");
    let added = ["code", "confirm", "from", "once", "plan", "until"];
    let confirmed = added.map(|name| (name, hidden(&plan, name).expect("a field")));
    let confirmed = confirmed.each_ref();
    let confirmed = confirmed.map(|(name, value)| (*name, value.as_str()));
    let done = text(&console.post_form("/acts/disable", &editor, &confirmed).body);
    assert!(done.contains("Undo: end the override"), "{done}");
    // It can be ended, and made again.
    let fields = [("number", "1"), ("confirm", "yes")];
    let ended = text(
        &console
            .post_form("/acts/end-override", &editor, &fields)
            .body,
    );
    assert!(ended.contains("Undo: make the override again"), "{ended}");
    let again = console.post_form("/acts/make-override-again", &editor, &fields);
    assert_eq!(again.status, 200, "{}", text(&again.body));
}
