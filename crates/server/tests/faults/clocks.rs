//! A clock that jumps under a running server: a day ahead, and back behind its start. Keys expire by the clock; quotas,
//! the trust in keys and all patience go by time that passes, so nobody is locked out and nobody let in too often.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::faketime;
use crate::harness::receiver::{Delivery, HOOK};
use crate::harness::{Page, Server, Store, gift_card, scrape, text, wait_for};

/// A clock that programs go by.
struct Clock {
    file: PathBuf,
    library: PathBuf,
}

impl Clock {
    /// A clock in a file, which is right at first. `None`, out loud, where there can be none.
    fn new(file: PathBuf) -> Option<Self> {
        let library = faketime::library("clocks that jump")?;
        let clock = Self { file, library };
        clock.jump("+0");
        Some(clock)
    }

    /// From now on the clock is so far ahead of the right one, or behind it.
    fn jump(&self, by: &str) {
        // In one step: nobody is to read half of it.
        let whole = self.file.with_extension("new");
        std::fs::write(&whole, format!("{by}\n")).expect("a file");
        std::fs::rename(whole, &self.file).expect("a clock");
    }

    fn go_by(&self, command: &mut Command) {
        faketime::preload(command, &self.library);
        command
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1");
    }
}

/// A store, and a clock that its server goes by.
struct Setup {
    store: Store,
    clock: Clock,
}

impl Setup {
    fn new() -> Option<Self> {
        let store = Store::of(&[gift_card("A")]);
        let clock = Clock::new(store.path("clock"))?;
        Some(Self { store, clock })
    }

    fn serve(&self, options: &[&str]) -> Server {
        let mut command = self.store.command(&["serve", "--listen", "127.0.0.1:0"]);
        command
            .args(["--admin-listen", "127.0.0.1:0"])
            .args(options);
        self.clock.go_by(&mut command);
        Server::start(command)
    }

    /// A load by a command on the same clock.
    fn publish(&self, server: &Server, code: &str) {
        let product = gift_card(code).to_string();
        let file = self.store.write("next.ndjson", product);
        let file = file.display().to_string();
        let mut load = self
            .store
            .command(&["load", "--json", "--allow=retire=100%", &file]);
        self.clock.go_by(&mut load);
        let done = load.output().expect("vitrine runs");
        assert!(done.status.success(), "{}", text(&done.stderr));
        let report: Value = serde_json::from_slice(&done.stdout).expect("a report");
        server.wait_for_loaded(&report);
    }
}

/// Returns the line that a server logs for one more request.
fn log_line(server: &Server, key: &str) -> Value {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let id = format!("asked-{}", ASKED.fetch_add(1, Ordering::Relaxed));
    let headers = [("X-Api-Key", key), ("X-Request-Id", &id)];
    assert_eq!(server.send("GET", "/v2/ping", &headers).status, 200);
    let quoted = format!("\"{id}\"");
    let line = wait_for("a line", || {
        let log = server.stdout();
        let mut lines = log.lines();
        lines.find(|line| line.contains(&quoted)).map(str::to_owned)
    });
    serde_json::from_str(&line).expect("JSON")
}

/// By the clock of the access log, the hours by which a server is ahead of the right one.
fn hours_ahead(line: &Value) -> i64 {
    let time = line["time"].as_str().expect("a time");
    let time: jiff::Timestamp = time.parse().expect("a time");
    let ahead = time.duration_since(jiff::Timestamp::now()).as_secs();
    // To the nearest hour: the answer took a moment.
    (ahead + 1_800).div_euclid(3_600)
}

/// The jumps: the clock's offset, its hours, whether a key that is good for twelve hours is still so.
const JUMPS: [(&str, i64, bool); 6] = [
    ("+1d", 24, false),
    ("+0", 0, true),
    ("-1h", -1, true),
    ("+400d", 9_600, false),
    ("-3000d", -72_000, true),
    ("+0", 0, true),
];

#[test]
fn clock_that_jumps_locks_nobody_out() {
    let Some(setup) = Setup::new() else {
        return;
    };
    let key = setup.store.key("reader", &[]);
    let expiring = setup.store.key("expiring", &["--expires", "12h"]);
    let server = setup.serve(&["--max-stale-keys", "10m"]);
    let get = |key: &str, target: &str| server.get(key, target);
    assert_eq!(get(&expiring, "/v2/ping").status, 200);
    for (number, (jump, hours, is_good)) in JUMPS.into_iter().enumerate() {
        setup.clock.jump(jump);
        assert_eq!(hours_ahead(&log_line(&server, &key)), hours, "{jump}");
        assert_eq!(get(&key, "/v2/product").status, 200, "{jump}");
        let status = if is_good { 200 } else { 401 };
        assert_eq!(get(&expiring, "/v2/ping").status, status, "{jump}");
        let ready = server.ask_admin("GET", "/readyz");
        assert_eq!(ready.status, 200, "{jump}: {}", text(&ready.body));
        let contact = &ready.json()["store"]["contact_age_seconds"];
        assert!(
            contact.as_u64().is_some_and(|age| age < 600),
            "{jump}: {contact}"
        );
        // Strict: nothing that counts is below zero.
        scrape(&server);
        let code = format!("JUMP{number}");
        setup.publish(&server, &code);
        assert_eq!(
            get(&key, &format!("/v2/product/{code}")).status,
            200,
            "{jump}"
        );
        let later = setup.store.key("later", &[]);
        wait_for(jump, || {
            (get(&later, "/v2/ping").status == 200).then_some(())
        });
    }
    let said = server.stderr();
    assert!(!said.contains("panicked"), "{said}");
    assert!(!server.stdout().contains("\"status\":5"));
    setup.store.ok(&["check"]);
}

#[test]
fn access_log_times_follow_the_clock() {
    let Some(setup) = Setup::new() else {
        return;
    };
    let key = setup.store.key("reader", &[]);
    let server = setup.serve(&[]);
    for (jump, hours) in [("+0", 0), ("+1d", 24), ("-1h", -1), ("+0", 0)] {
        setup.clock.jump(jump);
        let line = log_line(&server, &key);
        assert_eq!(hours_ahead(&line), hours, "{line}");
        let took = line["duration_microseconds"].as_u64().expect("a number");
        assert!(took < 3_600_000_000, "{line}");
    }
}

#[test]
fn quota_goes_by_time_that_passes() {
    let Some(setup) = Setup::new() else {
        return;
    };
    let key = setup.store.key("limited", &["--quota", "3/3600"]);
    let server = setup.serve(&[]);
    let statuses = || [0; 5].map(|_| server.get(&key, "/v2/product/A").status);
    assert_eq!(statuses(), [200, 200, 200, 429, 429]);
    for jump in ["+1d", "-1h"] {
        setup.clock.jump(jump);
        let refused = server.get(&key, "/v2/product/A");
        assert_eq!(refused.status, 429, "{jump}");
        let again = refused.header("retry-after").expect("a time");
        let again: u64 = again.parse().expect("seconds");
        assert!((1..=3_600).contains(&again), "{jump}: {again}");
    }
}

/// `docs/operate/scale.md`: if the clock was set back, keys are refused until the store is reachable.
#[test]
fn cached_keys_are_refused_after_a_clock_went_back() {
    let Some(setup) = Setup::new() else {
        return;
    };
    let key = setup.store.key("reader", &[]);
    let state = setup.store.path("state").display().to_string();
    let options = ["--state-dir", &state, "--public-url", "https://c.example"];
    setup.clock.jump("+1d");
    let server = setup.serve(&options);
    wait_for("the files", || {
        let written = server.stderr().contains("the snapshot file is written");
        (written && setup.store.path("state/keys").exists()).then_some(())
    });
    drop(server);
    let move_store = |from: &str, to: &str| {
        for ending in ["", "-wal", "-shm"] {
            let [from, to] = [from, to].map(|name| setup.store.path(&format!("{name}{ending}")));
            let _ = std::fs::remove_file(&to);
            if from.exists() {
                std::fs::rename(from, to).expect("renamed");
            }
        }
    };
    move_store("vitrine.db", "away.db");
    // A new one in its place, by mistake, which isn't followed.
    setup.store.key("of the new store", &[]);
    let server = setup.serve(&options);
    assert_eq!(
        server.get(&key, "/v2/product/A").status,
        200,
        "a moment later"
    );
    drop(server);
    setup.clock.jump("-1h");
    let server = setup.serve(&options);
    assert_eq!(server.get(&key, "/v2/product/A").status, 503);
    let ready = server.ask_admin("GET", "/readyz");
    assert_eq!(
        (ready.status, &ready.json()["reason"]),
        (503, &"stale_keys".into())
    );
    move_store("away.db", "vitrine.db");
    wait_for("the store", || {
        (server.get(&key, "/v2/product/A").status == 200).then_some(())
    });
}

#[test]
fn clock_that_jumps_delays_no_webhook() {
    let delivery = Delivery::of(&[gift_card("A")]);
    let Some(clock) = Clock::new(delivery.store.path("clock")) else {
        return;
    };
    let public_url = "https://catalog.example";
    let mut command = delivery
        .store
        .command(&["deliver", "--public-url", public_url]);
    command.args(delivery.options());
    clock.go_by(&mut command);
    let _deliverer = Server::start(command);
    let endpoint = delivery.endpoint(&[]);
    for (number, jump) in ["+1h", "+0", "-1h", "+0"].into_iter().enumerate() {
        let failure = Page::status("500 Internal Server Error");
        delivery.web.set(HOOK, &[failure, Page::ok("")]);
        let code = format!("B{number}");
        delivery.store.load_products(&[gift_card(&code)]);
        delivery.events(number * 2 + 1);
        clock.jump(jump);
        // After five seconds, not after an hour; and once.
        let events = delivery.events(number * 2 + 2);
        let [first, second] = [0, 1].map(|index| &events[number * 2 + index]);
        assert_eq!((first.id(), first.bytes()), (second.id(), second.bytes()));
        delivery.wait_for_member(&endpoint, "pending", &Value::Null);
        assert_eq!(delivery.web.posts().len(), number * 2 + 2, "{jump}");
    }
}

/// The clock of the machine is the store's: what it jumps over has begun, once, and a jump back undoes nothing.
#[test]
fn override_begins_once_when_the_clock_jumps_over_it() {
    let Some(setup) = Setup::new() else {
        return;
    };
    let key = setup.store.key("reader", &[]);
    let server = setup.serve(&[]);
    let is_orderable = || server.get(&key, "/v2/product/A").json()["is_orderable"] == true;
    let allowed = ["--allow=not-orderable=100%", "--allow=states=100%"];
    let disable = ["disable", "A", "--from", "30m"];
    setup.store.ok(&[&disable[..], &allowed].concat());
    assert!(is_orderable());
    setup.clock.jump("+1h");
    wait_for("the override to begin", || (!is_orderable()).then_some(()));
    setup.clock.jump("-1h");
    // A load goes below it.
    setup.publish(&server, "B");
    assert_eq!(
        setup.store.json(&["overrides", "list", "--json"])[0]["status"],
        "active"
    );
    let history = setup.store.json(&["history", "--json"]);
    let notes = history.as_array().expect("a list").iter();
    let begun = notes.filter(|revision| revision["note"].to_string().contains("override 1 begins"));
    assert_eq!(begun.count(), 1);
}
