//! A store that can't be read, while a server runs: reads go on from memory, and keys are trusted for as long as the
//! operator said.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::harness::{Reply, Server, Store, are_files, gift_card, text, wait_for};

/// A server with an admin port over a store with one product.
struct Setup {
    store: Store,
    key: String,
    server: Server,
}

impl Setup {
    fn new(options: &[&str]) -> Self {
        let store = Store::of(&[gift_card("A")]);
        let key = store.key("reader", &[]);
        let admin = ["--admin-listen", "127.0.0.1:0"];
        let server = store.serve_with(&[&admin[..], options].concat());
        Self { store, key, server }
    }

    /// The files of the store, and where they go.
    fn files(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> {
        ["vitrine.db", "vitrine.db-wal", "vitrine.db-shm"]
            .map(|name| {
                (
                    self.store.path(name),
                    self.store.path(&format!("away-{name}")),
                )
            })
            .into_iter()
    }

    /// Puts something in the store's place that can't be read.
    fn take_away(&self) {
        self.files()
            .filter(|(here, _)| here.exists())
            .for_each(|(here, there)| fs::rename(here, there).expect("renamed"));
        self.store.write("vitrine.db", "no store at all");
        wait_for("the store to be missed", || {
            self.server
                .stderr()
                .contains("the store can't be read; serving from memory")
                .then_some(())
        });
    }

    fn bring_back(&self) {
        fs::remove_file(self.store.path("vitrine.db")).expect("removed");
        self.files()
            .filter(|(_, there)| there.exists())
            .for_each(|(here, there)| fs::rename(there, here).expect("renamed"));
    }

    fn get(&self) -> Reply {
        self.server.get(&self.key, "/v2/product/A")
    }

    fn metric(&self, line: &str) -> bool {
        let metrics = text(&self.server.ask_admin("GET", "/metrics").body);
        metrics.lines().any(|found| found == line)
    }
}

#[test]
fn reads_continue_while_the_store_is_away() {
    if !are_files("reads go on while the store is away and its changes come with it") {
        return;
    }
    let setup = Setup::new(&[]);
    let before = setup.get();
    assert_eq!(before.status, 200);
    setup.take_away();
    let after = setup.get();
    assert_eq!((after.status, after.body), (200, before.body));
    let ready = setup.server.ask_admin("GET", "/readyz");
    assert_eq!(ready.status, 200, "keys are good for an hour");
    let store = &ready.json()["store"];
    assert_eq!(store["readable"], false, "{store}");
    assert!(store["contact_age_seconds"].is_u64(), "{store}");
    assert!(setup.metric("vitrine_follow_store_readable 0"));
    setup.bring_back();
    let report = setup.store.load_products(&[gift_card("A"), gift_card("B")]);
    setup.server.wait_for_loaded(&report);
    assert_eq!(setup.server.get(&setup.key, "/v2/product/B").status, 200);
    wait_for("the store to be readable", || {
        setup
            .metric("vitrine_follow_store_readable 1")
            .then_some(())
    });
    wait_for("the message", || {
        let said = setup.server.stderr();
        said.contains("the store can be read again").then_some(())
    });
}

#[test]
fn stale_keys_get_503_not_401() {
    if !are_files("keys that are older than allowed open nothing and are not called wrong") {
        return;
    }
    let setup = Setup::new(&["--max-stale-keys", "1s"]);
    assert_eq!(setup.get().status, 200);
    setup.take_away();
    let refused = wait_for("keys to be too old", || {
        let reply = setup.get();
        (reply.status != 200).then_some(reply)
    });
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["type"], "unavailable");
    assert!(refused.header("retry-after").is_some());
    // Whatever the key, nobody knows better.
    let wrong = setup.server.get("vitrine_x.y", "/v2/ping");
    assert_eq!((wrong.status, wrong.body), (503, refused.body));
    let ready = setup.server.ask_admin("GET", "/readyz");
    assert_eq!(
        (ready.status, &ready.json()["reason"]),
        (503, &"stale_keys".into())
    );
    // What needs no key doesn't need the store either.
    assert_eq!(setup.server.send("GET", "/openapi.json", &[]).status, 200);
    setup.bring_back();
    wait_for("keys to be good again", || {
        (setup.get().status == 200).then_some(())
    });
    assert_eq!(setup.server.ask_admin("GET", "/readyz").status, 200);
}

/// Both following threads wait for a lock for as long as `--wait` lets them.
#[test]
fn hung_store_makes_the_server_unready_until_it_answers() {
    if !are_files("hung store makes the server unready until it answers") {
        return;
    }
    let setup = Setup::new(&["--wait", "3600"]);
    let hung = setup.store.path("hung.db");
    setup.store.ok(&["backup", &hung.display().to_string()]);
    let locked = fs::OpenOptions::new().read(true).write(true).open(&hung);
    let locked = locked.expect("the copy");
    let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::fcntl_lock(&locked, lock).expect("the lock");
    fs::rename(&hung, setup.store.path("vitrine.db")).expect("renamed");
    let ready = wait_for("the server to be unready", || {
        let ready = setup.server.ask_admin("GET", "/readyz");
        (ready.status == 503).then_some(ready)
    });
    let reason = ready.json()["reason"].clone();
    let reasons = ["keys_thread_stuck", "catalog_thread_stuck"];
    assert!(reasons.iter().any(|known| reason == *known), "{reason}");
    wait_for("the metric", || {
        setup
            .metric("vitrine_follow_stuck{of=\"keys\"} 1")
            .then_some(())
    });
    assert_eq!(setup.get().status, 200, "reads go on from memory");
    drop(locked);
    wait_for("the server to be ready", || {
        (setup.server.ask_admin("GET", "/readyz").status == 200).then_some(())
    });
    assert!(setup.metric("vitrine_follow_stuck{of=\"keys\"} 0"));
}

#[test]
fn emptied_store_does_not_stop_serving() {
    if !are_files("an empty store in the place of a full one takes nothing down") {
        return;
    }
    let setup = Setup::new(&[]);
    setup
        .files()
        .filter(|(here, _)| here.exists())
        .for_each(|(here, there)| fs::rename(here, there).expect("renamed"));
    wait_for("the store to be missed", || {
        let missed = setup.server.stderr().contains("the store can't be read");
        missed.then_some(())
    });
    // Made by a command, as an operator might by mistake.
    let other = setup.store.key("of the new store", &[]);
    wait_for("the empty store to be refused", || {
        setup
            .server
            .stderr()
            .contains("the store is empty now")
            .then_some(())
    });
    assert_eq!(setup.get().status, 200);
    assert_eq!(setup.server.get(&other, "/v2/ping").status, 401);
    // Once something is loaded, somebody means it.
    let report = setup.store.load_products(&[gift_card("C")]);
    setup.server.wait_for_loaded(&report);
    wait_for("the new store's keys", || {
        (setup.server.get(&other, "/v2/product/C").status == 200).then_some(())
    });
    assert_eq!(setup.get().status, 401);
}

#[test]
fn start_over_an_emptied_store_serves_the_last_good() {
    if !are_files("a server that starts over an emptied store serves what was last good") {
        return;
    }
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("reader", &[]);
    let state = store.path("state").display().to_string();
    let options = ["--state-dir", &state, "--public-url", "https://c.example"];
    let server = store.serve_with(&options);
    wait_for("the files", || {
        let written = server.stderr().contains("the snapshot file is written");
        (written && store.path("state/keys").exists()).then_some(())
    });
    drop(server);
    for name in ["vitrine.db", "vitrine.db-wal", "vitrine.db-shm"] {
        let _ = fs::remove_file(store.path(name));
    }
    // As an operator might make a new one by mistake.
    let other = store.key("of the new store", &[]);
    let server = store.serve_with(&options);
    assert!(server.stderr().contains("\"made_from\":\"last good file\""));
    assert_eq!(server.get(&key, "/v2/product/A").status, 200);
    assert_eq!(server.get(&other, "/v2/product/A").status, 401);
    let report = store.load_products(&[gift_card("C")]);
    server.wait_for_loaded(&report);
    wait_for("the new store's keys", || {
        (server.get(&other, "/v2/product/C").status == 200).then_some(())
    });
}

#[test]
fn stopped_server_refuses_a_key_revoked_meanwhile() {
    let setup = Setup::new(&[]);
    wait_for("the key", || (setup.get().status == 200).then_some(()));
    let mut connections: Vec<_> = (0..20).map(|_| setup.server.keep_alive()).collect();
    for connection in &mut connections {
        let reply = connection.get(&setup.key, "/v2/ping").expect("an answer");
        assert_eq!(reply.status, 200);
    }
    setup.server.signal("STOP");
    setup.store.ok(&["keys", "revoke", "reader"]);
    // Requests that are queued when it goes on are answered before its threads ask the store.
    std::thread::sleep(Duration::from_secs(3));
    let request = format!(
        "GET /v2/ping HTTP/1.1\r\nHost: vitrine.test\r\nX-Api-Key: {}\r\n\r\n",
        setup.key
    );
    for connection in &mut connections {
        connection.write(&request);
    }
    setup.server.signal("CONT");
    for connection in &mut connections {
        assert_eq!(connection.read("GET").expect("an answer").status, 401);
    }
}
