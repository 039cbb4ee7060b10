//! The safety of the store as its operator sees it: checks, backups of a store in use, restores under a
//! running server. What damage a check finds is tested where the store is (`crates/store/tests`).

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::answers;
use crate::harness::receiver::Delivery;
use crate::harness::{SAMPLE, Server, Store, are_files, gift_card, text, wait_for};

fn check(store: &Store) -> Value {
    store.json(&["check", "--json"])
}

fn clean() -> Value {
    json!({"clean": true, "problems": []})
}

fn backup(store: &Store, name: &str) -> String {
    let file = store.path(name).display().to_string();
    store.ok(&["backup", &file]);
    file
}

fn exit(output: &Output) -> Option<i32> {
    output.status.code()
}

/// Returns the state of a store that commands show.
fn state(store: &Store) -> (String, Value) {
    (store.ok(&["keys", "list", "--json"]), check(store))
}

#[test]
fn store_is_clean_after_any_load() {
    let store = Store::sample();
    assert_eq!(check(&store), clean());
    let line = std::fs::read_to_string(SAMPLE).expect("the sample");
    let mut products: Vec<Value> = line
        .lines()
        .map(|line| serde_json::from_str(line).expect("a product"))
        .collect();
    products.truncate(40);
    for (number, product) in products.iter_mut().enumerate().take(9) {
        product["name"] = json!(format!("Renamed {number}"));
    }
    store.load_products(&products);
    assert_eq!(store.try_load("{").0, 3);
    store.load_products(&[gift_card("A")]);
    store.load(SAMPLE);
    store.load(SAMPLE);
    store.ok(&["rollback", "--yes", "2"]);
    store.key("reader", &[]);
    assert_eq!(check(&store), clean());
    assert_eq!(store.ok(&["check"]), "the store has no faults\n");
    let empty = Store::new();
    empty.key("only a key", &[]);
    assert_eq!(check(&empty), clean());
}

#[test]
fn check_needs_a_store_and_finds_damage() {
    if !are_files("a check needs a store and tells of a damaged one") {
        return;
    }
    let store = Store::sample();
    let missing = store.run(&["check", "--store", "sqlite:/no/store.db"]);
    assert_eq!(exit(&missing), Some(1), "{}", text(&missing.stderr));
    let file = backup(&store, "backup.db");
    // A page in the middle, without knowing what is in it.
    let url = format!("sqlite:{file}");
    let mut bytes = std::fs::read(&file).expect("a backup");
    store.ok(&["check", "--store", &url]);
    assert!(
        std::fs::read(&file).expect("a backup") == bytes,
        "it stays as it was"
    );
    let middle = bytes.len() / 2 / 16_384 * 16_384;
    bytes[middle..middle + 16_384].fill(0xa5);
    std::fs::write(&file, bytes).expect("a file");
    let found = store.run(&["check", "--store", &url]);
    let report = text(&found.stdout);
    assert_eq!(exit(&found), Some(1), "{report}");
    assert!(
        report.contains("the store is damaged; faults: "),
        "{report}"
    );
    assert!(
        report.contains("fault ") && report.contains("    → "),
        "{report}"
    );
    let found = store.run(&["check", "--json", "--store", &url]);
    let report: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    assert_eq!((exit(&found), &report["clean"]), (Some(1), &json!(false)));
}

#[test]
fn key_unrevoked_by_sql_fails_the_check() {
    let store = Store::new();
    store.key("untouched", &[]);
    let key = store.key("revoked", &[]);
    let (prefix, _) = key.split_once('.').expect("a prefix");
    store.ok(&["keys", "revoke", prefix]);
    assert_eq!(check(&store), clean());
    store.sql("update api_key set revoked_at = null");
    let found = store.run(&["check", "--json"]);
    let report: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    assert_eq!((exit(&found), &report["clean"]), (Some(1), &json!(false)));
    let problems = report["problems"].as_array().expect("problems");
    let facts = problems
        .iter()
        .map(|problem| (&problem["rule"], &problem["place"]));
    let expected = (json!("api_key_digest"), json!(format!("key {prefix}")));
    assert_eq!(facts.collect::<Vec<_>>(), [(&expected.0, &expected.1)]);
    store.ok(&["keys", "revoke", prefix]);
    assert_eq!(check(&store), clean());
}

#[test]
fn backup_during_loads_is_of_one_moment() {
    if !are_files("a backup is of one moment while servers read and loads write") {
        return;
    }
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let done = AtomicBool::new(false);
    let files = std::thread::scope(|scope| {
        // Loads that each replace everything: a mixture of two would have some of both.
        let loads = scope.spawn(|| {
            let mut loads = 0;
            while !done.load(Ordering::Relaxed) {
                let generation = loads;
                let products = (0..60).map(|number| {
                    let mut product = gift_card(&format!("P-{number:02}"));
                    product["name"] = json!(format!("Generation {generation}"));
                    product
                });
                store.load_products(&products.collect::<Vec<_>>());
                assert_eq!(server.get(&key, "/v2/product").status, 200);
                loads += 1;
            }
            loads
        });
        let files: Vec<_> = (0..8).map(|n| backup(&store, &format!("{n}.db"))).collect();
        done.store(true, Ordering::Relaxed);
        println!("8 backups during {} loads", loads.join().expect("loads"));
        files
    });
    for file in files {
        let mode = std::fs::metadata(&file).expect("a file").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let url = format!("sqlite:{file}");
        let report = store.ok(&["check", "--json", "--store", &url]);
        assert_eq!(serde_json::from_str::<Value>(&report).ok(), Some(clean()));
        let mut command = store.command(&["serve", "--listen", "127.0.0.1:0", "--store", &url]);
        command.env_remove("VITRINE_STORE");
        let copy = Server::start(command);
        let list = copy.get(&key, "/v2/product?limit=500").json();
        let products = list["catalog"].as_array().expect("a list");
        let mut names: Vec<_> = products.iter().map(|p| &p["name"]).collect();
        names.dedup();
        let is_whole = (products.len(), names.len()) == (60, 1) || products.len() == 72;
        assert!(is_whole, "{} products, {names:?}", products.len());
    }
}

#[test]
fn running_server_sees_a_restore_within_a_second() {
    if !are_files("a running server sees a restore within a second") {
        return;
    }
    let store = Store::sample();
    let key = store.key("kept", &[]);
    let revoked = store.key("revoked later", &[]);
    let rotated = store.key("rotated later", &[]);
    let expiring = store.key("expiring, rotated later", &["--expires", "2099-01-01"]);
    let server = store.serve_as("https://catalog.example");
    let before = answers::all(&server, &key);
    let file = backup(&store, "backup.db");
    let report = store.load_products(&[gift_card("A")]);
    server.wait_for_loaded(&report);
    let later = store.key("made later", &[]);
    store.ok(&["keys", "revoke", &revoked]);
    for label in ["rotated later", "expiring, rotated later"] {
        store.ok(&["keys", "rotate", label, "--overlap", "0s"]);
    }
    let gone = [&revoked, &rotated, &expiring];
    wait_for("the keys", || {
        let status = |key: &String| server.get(key, "/v2/ping").status;
        (status(&later) == 200 && gone.map(status) == [401; 3]).then_some(())
    });
    let said = store.ok(&["restore", "--yes", &file]);
    let restored = Instant::now();
    assert!(said.starts_with("restored revision 1 of "), "{said}");
    wait_for("the catalog of the backup", || {
        let codes = server.get(&key, "/v2/product?limit=500").codes();
        (codes.len() == 72).then_some(())
    });
    let catalog_after = restored.elapsed();
    wait_for("the keys of the backup", || {
        (server.get(&later, "/v2/ping").status == 401).then_some(())
    });
    let keys_after = restored.elapsed();
    println!("catalog live after {catalog_after:?}, keys after {keys_after:?}");
    assert!(catalog_after.max(keys_after) < Duration::from_secs(10));
    assert_eq!(answers::all(&server, &key), before);
    // Neither a revocation nor a rotation is undone by the way.
    for key in gone {
        assert_eq!(server.get(key, "/v2/ping").status, 401);
    }
    assert_eq!(check(&store), clean());
    // The store goes on from there.
    let report = store.load_products(&[gift_card("B")]);
    server.wait_for_loaded(&report);
    wait_for("the next load", || {
        (server.get(&key, "/v2/product").codes() == ["B"]).then_some(())
    });
}

#[test]
fn restore_says_what_is_paused_and_replaced() {
    if !are_files("a restore says what it pauses and replaces") {
        return;
    }
    let delivery = Delivery::of(&[gift_card("A"), gift_card("B")]);
    let store = &delivery.store;
    let plain = backup(store, "plain.db");
    let said = store.ok(&["restore", "--yes", &plain]);
    assert_eq!(said.lines().count(), 1, "{said}");
    let endpoint = delivery.endpoint(&[]);
    let file = backup(store, "backup.db");
    store.ok(&[
        "disable",
        "A",
        "--allow",
        "not-orderable=100%",
        "--allow",
        "states=100%",
    ]);
    let refused = text(&store.run(&["restore", &file]).stderr);
    for part in [
        "overrides (1 not ended)",
        "pauses all endpoints until `vitrine webhooks enable`",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let said = store.ok(&["restore", "--yes", &file]);
    for part in [
        "overrides are those of the backup: 0 not ended (1 before); see `vitrine overrides list`",
        &format!(
            "1 webhook endpoint is paused; go on with `vitrine webhooks enable {}`",
            endpoint.id
        ),
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn restore_of_the_same_revision_restores_keys() {
    if !are_files("the same revision restored over itself brings its keys back") {
        return;
    }
    let store = Store::of(&[gift_card("A")]);
    let file = backup(&store, "backup.db");
    let later = store.key("made later", &[]);
    let server = store.serve();
    assert_eq!(server.get(&later, "/v2/product").codes(), ["A"]);
    store.ok(&["restore", "--yes", &file]);
    wait_for("the keys of the backup", || {
        (server.get(&later, "/v2/ping").status == 401).then_some(())
    });
}

#[test]
fn lost_store_is_restored_from_a_backup() {
    if !are_files("a store that is gone is made from a backup whole") {
        return;
    }
    let store = Store::sample();
    let key = store.key("kept", &[]);
    let file = backup(&store, "backup.db");
    let server = store.serve_as("https://catalog.example");
    let before = answers::all(&server, &key);
    for name in ["vitrine.db", "vitrine.db-wal", "vitrine.db-shm"] {
        std::fs::rename(store.path(name), store.path(&format!("away-{name}"))).expect("moved");
    }
    // Nothing can be lost, so nobody is asked; what is refused leaves no empty store behind.
    let junk = store.write("junk", "junk").display().to_string();
    assert_eq!(exit(&store.run(&["restore", &junk])), Some(3));
    assert!(!store.path("vitrine.db").exists());
    store.write("vitrine.db-wal", "left behind");
    let refused = store.run(&["restore", &file]);
    assert_eq!(exit(&refused), Some(1));
    assert!(text(&refused.stderr).contains("vitrine.db-wal already exists"));
    std::fs::remove_file(store.path("vitrine.db-wal")).expect("removed");
    store.ok(&["restore", &file]);
    assert_eq!(check(&store), clean());
    // The server that had the old file follows the new one, and never lost its answers.
    assert_eq!(answers::all(&server, &key), before);
    let report = store.load_products(&[gift_card("A")]);
    server.wait_for_loaded(&report);
}

#[test]
fn unsound_backup_is_refused_and_changes_nothing() {
    if !are_files("what is no sound backup is refused and changes nothing") {
        return;
    }
    let store = Store::sample();
    let key = store.key("kept", &[]);
    let server = store.serve();
    let (before, was) = (answers::all(&server, &key), state(&store));
    let file = backup(&store, "backup.db");
    let bytes = std::fs::read(&file).expect("a backup");
    let changed = |name: &str, offset: usize, with: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[offset..offset + with.len()].copy_from_slice(with);
        store.write(name, bytes)
    };
    let cut = |name: &str, length: usize| store.write(name, &bytes[..length]);
    let cases = [
        (
            store.write("junk", "junk ".repeat(9000)),
            "isn't an SQLite database",
        ),
        (store.write("empty", ""), "is empty"),
        // Offsets of the application's id and of the schema's number in SQLite's header.
        (changed("other.db", 68, &[0; 4]), "another program's"),
        (
            changed("newer.db", 60, &[0, 0, 1, 0]),
            "this one reads format 1",
        ),
        (cut("half.db", bytes.len() / 2), "can't be restored"),
        (cut("short.db", bytes.len() - 16_384), "can't be restored"),
        (cut("page.db", 16_384), "can't be restored"),
        (cut("header.db", 100), "can't be restored"),
    ];
    for (path, words) in &cases {
        refused(&store, path, 3, words);
        assert_eq!(state(&store), was, "{}", path.display());
    }
    refused(&store, &store.path("none.db"), 1, "can't open");
    let folder = store.path("x");
    let folder = folder.parent().expect("a folder");
    refused(&store, folder, 3, "isn't a regular file");
    assert_eq!(state(&store), was);
    assert_eq!(answers::all(&server, &key), before);
    assert!(!server.stderr().contains("\"revision\":2,"));
}

fn refused(store: &Store, file: &Path, code: i32, words: &str) {
    let name = file.display().to_string();
    let output = store.run(&["restore", "--yes", &name]);
    let said = text(&output.stderr);
    assert_eq!(exit(&output), Some(code), "{name}: {said}");
    assert!(said.contains(words), "{name}: {said}");
    assert!(said.contains(&name), "{name}: {said}");
}

#[test]
fn restore_needs_consent() {
    if !are_files("a restore needs consent") {
        return;
    }
    let store = Store::sample();
    let file = backup(&store, "backup.db");
    store.load_products(&[gift_card("A")]);
    let output = store.run(&["restore", &file]);
    let said = text(&output.stderr);
    assert_eq!(exit(&output), Some(2), "{said}");
    assert!(said.contains("add --yes"), "{said}");
    // Nothing was restored: the products of the last load are still the live ones.
    let again = store.load_products(&[gift_card("A")]);
    assert_eq!(again["revision"], Value::Null);
}

#[test]
fn backup_overwrites_nothing() {
    if !are_files("a backup overwrites nothing") {
        return;
    }
    let store = Store::sample();
    let file = store.write("taken.db", "mine");
    std::os::unix::fs::symlink("nowhere", store.path("link.db")).expect("a link");
    for name in ["taken.db", "link.db", "vitrine.db"] {
        let output = store.run(&["backup", &store.path(name).display().to_string()]);
        let said = text(&output.stderr);
        assert_eq!(exit(&output), Some(1), "{said}");
        assert!(said.contains("already exists"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(file).expect("a file"), "mine");
    assert_eq!(check(&store), clean());
    let nowhere = store.run(&["backup", "/no/such/folder/backup.db"]);
    assert_eq!(exit(&nowhere), Some(1), "{}", text(&nowhere.stderr));
}

#[test]
fn concurrent_loads_wait_for_each_other() {
    let store = Store::of(&[gift_card("A")]);
    std::thread::scope(|scope| {
        for code in ["B", "C", "D", "E", "F", "G"] {
            let store = &store;
            scope.spawn(move || store.load_products(&[gift_card(code)]));
        }
    });
    assert_eq!(check(&store), clean());
    let key = store.key("reader", &[]);
    let server = store.serve();
    assert_eq!(server.get(&key, "/v2/product").codes().len(), 1);
    assert_eq!(
        store.load_products(&[gift_card("Z")])["revision"]["number"],
        8
    );
}
