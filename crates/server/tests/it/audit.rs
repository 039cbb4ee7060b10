//! The audit log, and how much keys were used: by the commands that show them.

use serde_json::{Value, json};

use crate::harness::{Server, Store, gift_card, text};
use crate::keys::prefix_of;

/// Runs a command as `by`; returns what it prints.
fn run_as(store: &Store, by: &str, arguments: &[&str]) -> String {
    let mut command = store.command(arguments);
    command.env("SUDO_USER", "").env("USER", by);
    let output = command.output().expect("vitrine runs");
    let said = text(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    text(&output.stdout)
}

fn entries(store: &Store, options: &[&str]) -> Vec<Value> {
    let entries = store.json(&[&["audit", "--json"], options].concat());
    entries.as_array().expect("a list").clone()
}

/// Returns the fields of an entry that changed, as `field before after`.
fn changes(entry: &Value) -> Vec<String> {
    let changes = entry["changes"].as_array().expect("a list").iter();
    let line = |change: &Value| {
        let text = |name: &str| change[name].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", text("field"), text("before"), text("after"))
    };
    changes.map(line).collect()
}

/// Takes the only text of a store's product down and puts it back; returns its digest.
fn take_down_and_put_back(store: &Store) -> String {
    let product = store.json(&["show", "A-1"]);
    let markdown = product["gift_card"]["content_resources"]["description_md"]
        .as_str()
        .expect("a text");
    let digest = vitrine_model::content::TextDigest::of(markdown).to_string();
    let note = ["--note", "by request of the brand"];
    store.ok(&[&["texts", "take-down", &digest], &note[..]].concat());
    store.ok(&["texts", "put-back", &digest]);
    digest
}

fn with_text() -> Value {
    let mut product = gift_card("A-1");
    product["gift_card"]["content_resources"]["description_md"] = json!("# Words");
    product
}

#[test]
fn each_change_is_listed_with_author_and_note() {
    let store = Store::of(&[with_text()]);
    let note = ["--note", "ticket 7"];
    let create = ["keys", "create", "--label", "partner"];
    let key = run_as(&store, "olga", &[&create, &note[..]].concat());
    let key = key.trim();
    let set = ["keys", "set", "partner", "--quota", "600/60"];
    run_as(&store, "ines", &[&set, &note[..]].concat());
    run_as(&store, "ines", &set);
    let rotated = run_as(&store, "olga", &["keys", "rotate", "partner"]);
    let rotated = rotated.trim();
    run_as(&store, "olga", &["keys", "revoke", prefix_of(key)]);
    let digest = take_down_and_put_back(&store);
    let all = entries(&store, &[]);
    let told: Vec<String> = all
        .iter()
        .rev()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            let names = ["by", "action", "subject_kind", "subject", "note"];
            names.map(text).join(" ")
        })
        .collect();
    let by = all[0]["by"].as_str().expect("an author");
    let (old, new) = (prefix_of(key), prefix_of(rotated));
    assert_eq!(
        told,
        [
            format!("olga create key {old} ticket 7"),
            format!("ines set key {old} ticket 7"),
            format!("olga rotate key {old} -"),
            format!("olga rotate key {new} -"),
            format!("olga revoke key {old} -"),
            format!("{by} take-down text {digest} by request of the brand"),
            format!("{by} put-back text {digest} -"),
        ]
    );
    let numbers: Vec<_> = all.iter().map(|entry| entry["number"].as_u64()).collect();
    assert_eq!(numbers, [7, 6, 5, 4, 3, 2, 1].map(Some));
    assert_eq!(changes(&all[5]), ["quota - 600/60"]);
    assert_eq!(changes(&all[1]), ["status served taken_down"]);
    let revoked = changes(&all[2]);
    assert!(revoked[0].starts_with("revoked_at - 2"), "{revoked:?}");
    let of_old = entries(&store, &["--key", key]);
    assert_eq!(of_old.len(), 4, "{of_old:?}");
    assert_eq!(entries(&store, &["--text", &digest]).len(), 2);
    assert_eq!(entries(&store, &["--limit", "1"]), all[..1]);
    let table = store.ok(&["audit"]);
    for part in ["ticket 7", "quota 600/60", "served → taken_down", new] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let said = table + &store.ok(&["audit", "--json"]);
    for key in [key, rotated] {
        let (_, secret) = key.split_once('.').expect("PREFIX.SECRET");
        assert!(!said.contains(secret), "{said}");
    }
    store.ok(&["check"]);
}

#[test]
fn failed_commands_have_no_entry() {
    let store = Store::of(&[gift_card("A-1")]);
    store.key("partner", &["--expires", "90d"]);
    let expires = store.json(&["keys", "list", "--json"])[0]["expires_at"].clone();
    let created = &entries(&store, &[])[0]["changes"];
    assert_eq!(
        (&created[3]["field"], &created[3]["after"]),
        (&json!("expires_at"), &expires)
    );
    for arguments in [
        &["keys", "set", "nobody", "--no-quota"][..],
        &["keys", "revoke", "partner", "nobody"],
        &["keys", "rotate", "nobody"],
        &["texts", "take-down", &"0".repeat(64)],
    ] {
        assert_eq!(store.run(arguments).status.code(), Some(1), "{arguments:?}");
    }
    assert_eq!(entries(&store, &[]).len(), 1);
}

#[test]
fn outside_text_in_the_table_is_escaped() {
    let store = Store::of(&[gift_card("A-1")]);
    let steering = "x\u{9b}2J\u{202e}\ny";
    let create = ["keys", "create", "--label", "a\u{202e}b"];
    run_as(
        &store,
        steering,
        &[&create, &["--note", steering][..]].concat(),
    );
    let table = store.ok(&["audit"]);
    assert_eq!(table.lines().count(), 2, "{table:?}");
    assert!(!table.contains(['\u{9b}', '\u{202e}']), "{table:?}");
    let entry = &entries(&store, &[])[0];
    assert_eq!(
        (&entry["by"], &entry["note"]),
        (&json!(steering), &json!(steering))
    );
}

/// Returns the numbers of requests and of charged ones, over all days.
fn usage(store: &Store, key: &str) -> (u64, u64) {
    let days = store.json(&["keys", "usage", key, "--json"]);
    let days = days.as_array().expect("a list");
    let sum = |name: &str| days.iter().filter_map(|day| day[name].as_u64()).sum();
    (sum("requests"), sum("charged"))
}

fn end(mut server: Server) {
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert_eq!(server.stderr().matches("days of keys").count(), 0);
}

#[test]
fn requests_of_keys_are_shown_by_day() {
    let store = Store::of(&[gift_card("A-1")]);
    let limited = store.key("limited", &["--quota", "3/86400"]);
    let free = store.key("free", &[]);
    store.key("unused", &[]);
    let server = store.serve();
    let list = server.get(&free, "/v2/product");
    let tag = list.header("etag").expect("a tag").to_owned();
    for (key, target, tag, status) in [
        (&limited, "/v2/product", "", 200),
        (&limited, "/v2/product/NONE", "", 404),
        (&limited, "/v2/product", tag.as_str(), 304),
        (&limited, "/v2/product?x=1", "", 400),
        (&limited, "/v2/product", "", 200),
        (&limited, "/v2/product", "", 429),
        (&free, "/v2/product", tag.as_str(), 304),
    ] {
        let headers = [("X-Api-Key", key.as_str()), ("If-None-Match", tag)];
        assert_eq!(server.send("GET", target, &headers).status, status);
    }
    let wrong = format!("{}.wrong", prefix_of(&free));
    assert_eq!(server.get(&wrong, "/v2/product").status, 401);
    end(server);
    assert_eq!(usage(&store, "limited"), (6, 3));
    assert_eq!(usage(&store, prefix_of(&free)), (2, 1));
    assert_eq!(usage(&store, "unused"), (0, 0));
    // Another server adds to them.
    let server = store.serve();
    server.get(&free, "/v2/product");
    end(server);
    assert_eq!(usage(&store, "free"), (3, 2));
    let table = store.ok(&["keys", "usage", "--days", "2"]);
    let day = store.json(&["keys", "usage", "limited", "--json"])[0].clone();
    let listed = (&day["prefix"], &day["label"]);
    assert_eq!(listed, (&json!(prefix_of(&limited)), &json!("limited")));
    for part in ["CHARGED", "limited", day["day"].as_str().expect("a day")] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(!table.contains("unused"), "{table}");
    for (name, code) in [("nobody", 1), ("free", 0)] {
        assert_eq!(
            store.run(&["keys", "usage", name]).status.code(),
            Some(code)
        );
    }
    assert_eq!(
        store.run(&["keys", "usage", "--days", "0"]).status.code(),
        Some(2)
    );
    assert_eq!(entries(&store, &[]).len(), 3, "use is no change");
}

#[test]
fn requests_that_can_not_be_stored_are_told_at_the_end() {
    let store = Store::of(&[gift_card("A-1")]);
    let key = store.key("partner", &[]);
    let mut server = store.serve();
    assert_eq!(server.get(&key, "/v2/product").status, 200);
    store.sql("alter table api_key_day rename to away");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let said = server.stderr();
    assert!(said.contains("may lack these requests"), "{said}");
    store.sql("alter table away rename to api_key_day");
    // The last use is written apart.
    let keys = store.json(&["keys", "list", "--json"]);
    assert!(keys[0]["last_used_at"].is_string(), "{keys}");
}

#[test]
fn restore_adds_to_the_log_that_it_finds() {
    if !crate::harness::are_files("backups of stores") {
        return;
    }
    let store = Store::of(&[gift_card("A-1")]);
    store.key("old", &[]);
    let backup = store.path("backup.db").display().to_string();
    store.ok(&["backup", &backup]);
    let new = store.key("new", &[]);
    store.ok(&["restore", "--yes", "--note", "went wrong", &backup]);
    let all = entries(&store, &[]);
    let told: Vec<_> = all
        .iter()
        .map(|entry| (&entry["action"], &entry["subject"], &entry["note"]))
        .collect();
    let note = json!("went wrong");
    assert_eq!(
        told[..2],
        [
            (&json!("restore"), &json!(prefix_of(&new)), &note),
            (&json!("restore"), &json!(backup), &note),
        ]
    );
    assert_eq!(all.len(), 4, "{all:?}");
    store.ok(&["check"]);
}
