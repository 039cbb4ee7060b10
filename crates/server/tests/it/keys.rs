//! Keys: which are let in, how the others are turned away, and their life from made to revoked.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Headers, Reply, Server, Store, gift_card, text, wait_for};

pub fn catalog() -> Store {
    Store::of(&[gift_card("A-1")])
}

pub fn listed(store: &Store) -> Vec<Value> {
    let keys = store.json(&["keys", "list", "--json"]);
    keys.as_array().expect("a list").clone()
}

pub fn labelled(store: &Store, label: &str) -> Vec<Value> {
    let mut keys = listed(store);
    keys.retain(|key| key["label"] == label);
    keys
}

/// Waits until a key is answered with a status.
pub fn wait_for_status(server: &Server, key: &str, status: u16) -> Reply {
    wait_for("the server to see a change of keys", || {
        let reply = server.get(key, "/v2/ping");
        (reply.status == status).then_some(reply)
    })
}

#[test]
fn every_keyed_route_needs_a_key() {
    let store = catalog();
    let server = store.serve();
    for target in [
        "/v2/product",
        "/v2/product/A-1",
        "/v2/product/NONE",
        "/v2/product/categories",
        "/v2/product/countries",
        "/v2/ping",
    ] {
        for headers in [
            &[] as Headers<'_>,
            &[("X-Api-Key", "")],
            &[("X-Api-Key", "  ")],
        ] {
            let reply = server.send("GET", target, headers);
            assert_eq!(reply.status, 401, "{target} {headers:?}");
            assert_eq!(reply.error(), "unauthorized", "{target} {headers:?}");
            let challenge = reply.header("www-authenticate").expect("a challenge");
            assert!(!challenge.is_empty());
        }
        let reply = server.get("wrong.key", target);
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (401, "invalid_api_key")
        );
        assert!(reply.header("www-authenticate").is_some());
    }
    assert_eq!(server.send("GET", "/openapi.json", &[]).status, 200);
}

#[test]
fn inexact_key_is_invalid() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let other = store.key("other", &[]);
    let server = store.serve();
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    assert_eq!(server.get(&format!(" {key} "), "/v2/ping").status, 200);
    let (prefix, secret) = key.split_once('.').expect("PREFIX.SECRET");
    let (other_prefix, other_secret) = other.split_once('.').expect("PREFIX.SECRET");
    let last = secret.chars().last().expect("a character");
    let changed = if last == 'a' { 'b' } else { 'a' };
    for wrong in [
        prefix.to_owned(),
        secret.to_owned(),
        format!("{prefix}."),
        format!(".{secret}"),
        ".".to_owned(),
        "nonsense".to_owned(),
        "caf\u{e9}.\u{e9}".to_owned(),
        format!("{key}x"),
        format!("{key}."),
        format!("{key}, {key}"),
        format!("Bearer {key}"),
        format!("\"{key}\""),
        key[..key.len() - 1].to_owned(),
        format!("{}{changed}", &key[..key.len() - 1]),
        format!("{prefix}.{other_secret}"),
        format!("{other_prefix}.{secret}"),
        "x".repeat(5_000),
    ] {
        let reply = server.get(&wrong, "/v2/ping");
        assert_eq!(reply.status, 401, "{wrong}");
        assert_eq!(reply.error(), "invalid_api_key", "{wrong}");
    }
    let twice = [("X-Api-Key", key.as_str()), ("x-api-key", key.as_str())];
    let reply = server.send("GET", "/v2/ping", &twice);
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (401, "invalid_api_key")
    );
}

#[test]
fn wrong_key_is_refused_like_an_expired_or_revoked_one() {
    let store = catalog();
    let good = store.key("good", &[]);
    let expired = store.key("expired", &["--expires", "2020-01-01"]);
    let revoked = store.key("revoked", &[]);
    store.ok(&["keys", "revoke", "revoked"]);
    let server = store.serve();
    let (prefix, _) = good.split_once('.').expect("PREFIX.SECRET");
    let keys = [
        "unknown.key".to_owned(),
        format!("{prefix}.wrong"),
        expired,
        revoked,
    ];
    let replies = keys.map(|key| server.get(&key, "/v2/product"));
    let headers = |reply: &Reply| {
        let mut headers = reply.headers.clone();
        headers.retain(|(name, _)| name != "date" && name != "x-request-id");
        headers
    };
    for reply in &replies {
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (401, "invalid_api_key")
        );
        assert_eq!(text(&reply.body), text(&replies[0].body));
        assert_eq!(headers(reply), headers(&replies[0]));
    }
    assert_eq!(server.get(&good, "/v2/product").status, 200);
}

#[test]
fn key_in_the_query_is_ignored_and_not_logged() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let mut server = store.serve();
    let (_, secret) = key.split_once('.').expect("PREFIX.SECRET");
    for name in ["api_key", "X-Api-Key", "x-api-key", "key"] {
        for target in [
            format!("/v2/product?{name}={key}"),
            format!("/v2/ping?{name}={key}"),
        ] {
            let reply = server.send("GET", &target, &[]);
            assert_eq!(
                (reply.status, reply.error().as_str()),
                (401, "unauthorized")
            );
            // With a good key in the header it is an unknown parameter like any other.
            let reply = server.get(&key, &target);
            assert_eq!((reply.status, reply.error().as_str()), (400, "bad_request"));
        }
    }
    let last = [
        ("X-Api-Key", key.as_str()),
        ("X-Request-Id", "the-last-one"),
    ];
    assert_eq!(server.send("GET", "/v2/ping", &last).status, 200);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    wait_for("the log", || {
        server.stdout().contains("the-last-one").then_some(())
    });
    for log in [server.stdout(), server.stderr()] {
        assert!(!log.is_empty());
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn revoked_key_is_refused_by_a_running_server() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let other = store.key("other", &[]);
    let server = store.serve();
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    store.ok(&["keys", "revoke", "partner"]);
    let revoked = Instant::now();
    let reply = wait_for_status(&server, &key, 401);
    let took = revoked.elapsed();
    eprintln!("a revocation was seen after {took:?}; the contract promises 1 s");
    assert_eq!(reply.error(), "invalid_api_key");
    // Ten times what is promised: the machine may be busy.
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(server.get(&other, "/v2/ping").status, 200);
}

#[test]
fn revocation_is_seen_beside_an_unreadable_key() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let other = store.key("other", &[]);
    let server = store.serve();
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    // Only what changed is read.
    store.sql("update api_key set quota_requests = -1, quota_seconds = 60 where label = 'other'");
    store.ok(&["keys", "revoke", "partner"]);
    wait_for_status(&server, &key, 401);
    assert_eq!(server.get(&other, "/v2/ping").status, 200);
    let late = store.key("late", &[]);
    wait_for_status(&server, &late, 200);
}

#[test]
fn key_of_a_lost_change_is_refused_once_keys_change() {
    let store = catalog();
    let kept = store.key("kept", &[]);
    let lost = store.key("lost", &[]);
    let server = store.serve();
    assert_eq!(server.get(&lost, "/v2/ping").status, 200);
    // As a copy of the store that was behind, put in its place.
    store.sql("delete from audit_entry where number > 1; delete from api_key where label = 'lost'");
    let new = store.key("new", &[]);
    wait_for_status(&server, &new, 200);
    assert_eq!(server.get(&lost, "/v2/ping").status, 401);
    assert_eq!(server.get(&kept, "/v2/ping").status, 200);
    store.ok(&["keys", "revoke", "kept"]);
    wait_for_status(&server, &kept, 401);
    assert_eq!(server.get(&new, "/v2/ping").status, 200);
}

#[test]
fn new_key_is_accepted_by_a_running_server() {
    let store = catalog();
    let server = store.serve();
    let key = store.key("late", &[]);
    wait_for_status(&server, &key, 200);
}

#[test]
fn lists_of_keys_show_no_secret() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let test = store.key("tester", &["--test", "--quota", "5/60"]);
    for arguments in [&["keys", "list", "--json"] as &[_], &["keys", "list"]] {
        let shown = store.ok(arguments);
        for key in [&key, &test] {
            let (prefix, secret) = key.split_once('.').expect("PREFIX.SECRET");
            assert!(shown.contains(prefix), "{shown}");
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    let database = match store.database() {
        Some(database) => database
            .run("select k::text from vitrine.api_key k")
            .concat()
            .into_bytes(),
        None => std::fs::read(store.path("vitrine.db")).expect("a store"),
    };
    let (prefix, secret) = key.split_once('.').expect("PREFIX.SECRET");
    let holds = |needle: &str| {
        database
            .windows(needle.len())
            .any(|w| w == needle.as_bytes())
    };
    assert!(
        holds(prefix) && !holds(secret),
        "of the secret only a hash is stored"
    );
}

#[test]
fn last_use_of_a_key_is_stored() {
    let store = catalog();
    let key = store.key("used", &[]);
    store.key("unused", &[]);
    let mut server = store.serve();
    assert_eq!(labelled(&store, "used")[0]["last_used_at"], Value::Null);
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let used = &labelled(&store, "used")[0];
    assert!(used["last_used_at"].is_string(), "{used}");
    assert_eq!(labelled(&store, "unused")[0]["last_used_at"], Value::Null);
}

fn rotated(store: &Store, options: &[&str]) -> String {
    rotated_of(store, "partner", options)
}

fn rotated_of(store: &Store, name: &str, options: &[&str]) -> String {
    let made = store.json(&[&["keys", "rotate", "--json", name], options].concat());
    made["key"].as_str().expect("a key").to_owned()
}

pub fn prefix_of(key: &str) -> &str {
    key.split_once('.').expect("PREFIX.SECRET").0
}

#[test]
fn both_keys_are_valid_until_the_overlap_ends() {
    let store = catalog();
    let old = store.key("partner", &["--quota", "100/60"]);
    let server = store.serve();
    let new = rotated(&store, &["--overlap", "1h"]);
    assert_ne!(old, new);
    let reply = wait_for_status(&server, &new, 200);
    // The server knows of the rotation, and the old key is still let in.
    assert_eq!(server.get(&old, "/v2/ping").status, 200);
    let policy = reply.header("ratelimit-policy").expect("a quota");
    assert!(
        policy.contains("q=100") && policy.contains("w=60"),
        "{policy}"
    );
    let keys = labelled(&store, "partner");
    assert_eq!(keys.len(), 2);
    let expiring = keys.iter().filter(|key| key["expires_at"].is_string());
    assert_eq!(expiring.count(), 1, "{keys:?}");

    let newest = rotated(&store, &["--overlap", "0s"]);
    for (key, status) in [(&newest, 200), (&new, 401), (&old, 401)] {
        wait_for_status(&server, key, status);
    }
}

#[test]
fn rotate_prints_which_key_ends_when() {
    let store = catalog();
    for (overlap, end) in [
        ("99999d", "ends at 2099-01-01T00:00:00Z;"),
        ("0s", "has ended."),
    ] {
        let old = store.key(overlap, &["--expires", "2099-01-01"]);
        let output = store.run(&["keys", "rotate", overlap, "--overlap", overlap]);
        let said = text(&output.stderr);
        let end = format!("{} {end}", prefix_of(&old));
        assert!(said.contains(&end), "{end}: {said}");
    }
}

#[test]
fn rotation_by_prefix_ends_known_predecessors() {
    let store = catalog();
    let oldest = store.key("partner", &[]);
    let old = rotated(&store, &["--overlap", "1h"]);
    let other = store.key("partner", &[]);
    let new = rotated_of(&store, prefix_of(&old), &["--overlap", "0s"]);
    let server = store.serve();
    // The oldest may have been the other's as well.
    for (key, status) in [(&oldest, 200), (&old, 401), (&other, 200), (&new, 200)] {
        assert_eq!(server.get(key, "/v2/ping").status, status);
    }
    store.ok(&["keys", "revoke", prefix_of(&other)]);
    // A whole key is known by its prefix.
    let newest = rotated_of(&store, &new, &["--overlap", "0s"]);
    for (key, status) in [(&newest, 200), (&new, 401), (&oldest, 401)] {
        wait_for_status(&server, key, status);
    }
}

#[test]
fn unknown_key_names_are_shown_without_secrets() {
    let store = catalog();
    let key = store.key("acme.com", &[]);
    let secret = &key[prefix_of(&key).len() + 1..];
    let [unknown, behind_another] =
        ["vitrine_unknown", "partner"].map(|prefix| format!("{prefix}.{secret}"));
    for (name, told) in [
        ("acme.org", "`acme.org`"),
        ("www.acme.com", "`www.acme.com`"),
        (unknown.as_str(), "`vitrine_unknown`"),
        (behind_another.as_str(), "`partner`"),
        ("vitrine_unknown.sh0rt", "`vitrine_unknown`"),
    ] {
        for command in ["revoke", "rotate"] {
            let output = store.run(&["keys", command, name]);
            let said = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(told), "{said}");
            assert!(!said.contains(secret) && !said.contains("sh0rt"), "{said}");
        }
    }
    let (server, prefix) = (store.serve(), prefix_of(&key));
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    let said = store.ok(&["keys", "revoke", "acme.com"]);
    assert_eq!(said, format!("revoked {prefix}\n"));
    wait_for_status(&server, &key, 401);
}

#[test]
fn rotate_refuses_an_ambiguous_label() {
    let store = catalog();
    let first = store.key("partner", &[]);
    let second = store.key("partner", &[]);
    let refused = store.run(&["keys", "rotate", "partner"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("partner"));
    assert!(refused.stdout.is_empty());
    assert_eq!(labelled(&store, "partner").len(), 2);

    let prefix = first.split_once('.').expect("two parts").0;
    store.ok(&["keys", "rotate", prefix, "--overlap", "0s"]);
    let server = store.serve();
    assert_eq!(server.get(&first, "/v2/ping").status, 401);
    assert_eq!(server.get(&second, "/v2/ping").status, 200);

    store.ok(&["keys", "revoke", "partner"]);
    wait_for_status(&server, &second, 401);
    let states = labelled(&store, "partner");
    assert!(
        states.iter().all(|key| key["state"] == "revoked"),
        "{states:?}"
    );
    assert_eq!(states.len(), 3);
}

#[test]
fn unknown_key_names_are_refused() {
    let store = catalog();
    let key = store.key("partner", &[]);
    for arguments in [
        &["keys", "revoke", "nobody"] as &[_],
        &["keys", "revoke", "partner", "nobody"],
        &["keys", "rotate", "nobody"],
    ] {
        assert!(!store.run(arguments).status.success(), "{arguments:?}");
    }
    assert_eq!(listed(&store).len(), 1);
    let server = store.serve();
    assert_eq!(server.get(&key, "/v2/ping").status, 200);
    // A prefix names a key as its label does.
    let (prefix, _) = key.split_once('.').expect("PREFIX.SECRET");
    store.ok(&["keys", "revoke", prefix]);
    wait_for_status(&server, &key, 401);
}

#[test]
fn whole_key_is_refused_as_label_note_or_name() {
    let store = catalog();
    for options in [&[][..], &["--test"]] {
        let key = store.key("partner", options);
        let secret = &key[prefix_of(&key).len() + 1..];
        let (note, prefix) = (format!("of {key}"), prefix_of(&key));
        for arguments in [
            &["keys", "create", "--label", &key][..],
            &["keys", "create", "--label", "b", "--note", &note],
            &["keys", "set", prefix, "--label", &key],
            &["keys", "revoke", prefix, "--note", &note],
            &["operators", "add", &key, "--role", "owner", "--proxy-only"],
            &["disable", "A", "--note", &note],
            &["load", "feed.ndjson", "--note", &note],
            &["rollback", "1", "--note", &note],
            &["assortments", "remove", "nordic", "--note", &note],
            &["webhooks", "pause", "wh_none", "--note", &note],
            &["texts", "fetch", "--note", &note],
        ] {
            let output = store.run(arguments);
            let said = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains("has an API key in it"), "{said}");
            assert!(!said.contains(secret), "{said}");
        }
    }
    assert_eq!(listed(&store).len(), 2);
}

#[test]
fn new_key_says_when_servers_accept_it() {
    let store = catalog();
    let created = store.run(&["keys", "create", "--label", "partner"]);
    assert!(text(&created.stderr).contains("Servers accept it within a second."));
    assert_eq!(text(&created.stdout).lines().count(), 1);
    let created = store.run(&["keys", "create", "--label", "partner", "--json"]);
    assert!(created.stderr.is_empty(), "{created:?}");
}
