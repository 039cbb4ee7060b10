//! `vitrine keys set`: a key in use is changed, and a running server follows.

use serde_json::Value;

use crate::harness::{Store, scrape, text};
use crate::keys::{catalog, labelled, listed, prefix_of, wait_for_status};

/// Changes a key, and returns what is said of it.
fn set(store: &Store, name: &str, options: &[&str]) -> String {
    store.ok(&[&["keys", "set", name], options].concat())
}

#[test]
fn key_in_use_is_changed_in_place() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let prefix = prefix_of(&key);
    assert_eq!(
        wait_for_status(&server, &key, 200).header("ratelimit-policy"),
        None
    );
    let said = set(
        &store,
        "partner",
        &["--quota", "2/3600", "--label", "other"],
    );
    assert_eq!(
        said,
        format!("{prefix}: label partner → other, quota none → 2/3600\n")
    );
    wait_for_status(&server, &key, 429);
    let said = set(&store, prefix, &["--quota", "100/60"]);
    assert_eq!(said, format!("{prefix}: quota 2/3600 → 100/60\n"));
    let policy = wait_for_status(&server, &key, 200);
    assert_eq!(
        policy.header("ratelimit-policy"),
        Some("\"default\";q=100;w=60")
    );
    set(&store, prefix, &["--no-quota", "--expires", "0s"]);
    wait_for_status(&server, &key, 401);
    let options = ["--no-expiry", "--api-version", "2026-12-01", "--json"];
    let changed = store.json(&[&["keys", "set", prefix], &options[..]].concat());
    assert_eq!(changed["before"]["state"], "expired");
    assert_eq!(changed["after"], listed(&store)[0]);
    let reply = wait_for_status(&server, &key, 200);
    assert_eq!(reply.header("ratelimit-policy"), None);
    let after = &labelled(&store, "other")[0];
    assert_eq!(after["api_version"], "2026-12-01");
    assert_eq!(
        (&after["quota"], &after["expires_at"]),
        (&Value::Null, &Value::Null)
    );
    let before = listed(&store);
    assert_eq!(
        set(&store, prefix, &["--no-quota"]),
        format!("{prefix}: nothing differs\n")
    );
    assert_eq!(listed(&store), before);
    set(&store, prefix, &["--no-api-version"]);
    assert_eq!(labelled(&store, "other")[0]["api_version"], Value::Null);
    store.ok(&["check"]);
}

#[test]
fn label_means_the_only_key_in_use() {
    let store = catalog();
    let old = store.key("partner", &[]);
    set(&store, prefix_of(&old), &["--expires", "0s"]);
    // Alone it is meant, although it has expired.
    let said = set(&store, "partner", &["--quota", "5/60"]);
    assert!(said.starts_with(prefix_of(&old)), "{said}");
    let new = store.key("partner", &[]);
    let said = set(&store, "partner", &["--quota", "7/60"]);
    assert_eq!(said, format!("{}: quota none → 7/60\n", prefix_of(&new)));
}

#[test]
fn rotated_key_without_an_expiry_is_warned_of() {
    let store = catalog();
    let old = store.key("partner", &[]);
    store.ok(&["keys", "rotate", "partner", "--overlap", "30d"]);
    let change = |options: &[&str]| {
        let output = store.run(&[&["keys", "set", prefix_of(&old)], options].concat());
        assert!(output.status.success(), "{output:?}");
        text(&output.stderr)
    };
    assert_eq!(change(&["--expires", "60d"]), "");
    let said = change(&["--no-expiry"]);
    assert!(
        said.contains("warning") && said.contains("was rotated"),
        "{said}"
    );
    assert_eq!(change(&["--no-expiry"]), "");
}

#[test]
fn change_of_no_single_key_in_use_is_refused() {
    let store = catalog();
    let (one, _) = (store.key("twice", &[]), store.key("twice", &[]));
    let revoked = store.key("gone", &[]);
    store.ok(&["keys", "revoke", "gone"]);
    let before = listed(&store);
    for (name, options, code, expected) in [
        ("twice", &["--no-quota"][..], 1, "2 keys have the label"),
        (
            "none",
            &["--no-quota"],
            1,
            "no key has the prefix or label `none`",
        ),
        (
            prefix_of(&revoked),
            &["--label", "back"],
            1,
            "is revoked for good",
        ),
        (
            "gone",
            &["--label", "back"],
            1,
            "no key has the prefix or label",
        ),
        (prefix_of(&one), &[], 2, "required"),
        (prefix_of(&one), &["--quota", "many"], 2, "--quota"),
        (
            prefix_of(&one),
            &["--quota", "1/1", "--no-quota"],
            2,
            "--no-quota",
        ),
        (prefix_of(&one), &["--expires", "soon"], 2, "--expires"),
        (
            prefix_of(&one),
            &["--api-version", "2023-07-27"],
            2,
            "2024-02-05",
        ),
        (prefix_of(&one), &["--label", " "], 2, "--label"),
    ] {
        let output = store.run(&[&["keys", "set", name], options].concat());
        let said = text(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{name} {options:?}: {said}"
        );
        assert!(said.contains(expected), "{name} {options:?}: {said}");
    }
    assert_eq!(listed(&store), before);
    // A whole key is accepted as its prefix, and not shown.
    let said = set(&store, &one, &["--label", "once"]);
    assert_eq!(said, format!("{}: label twice → once\n", prefix_of(&one)));
}

#[test]
fn keys_in_use_that_expire_soon_are_in_the_metrics() {
    let store = catalog();
    let key = store.key("soon", &["--expires", "3d"]);
    store.key("unused", &["--expires", "1d"]);
    let late = store.key("late", &["--expires", "30d"]);
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    wait_for_status(&server, &late, 200);
    let earliest = "vitrine_keys_earliest_expiry_timestamp_seconds";
    let before = scrape(&server);
    assert_eq!(before.value("vitrine_keys_expiring"), 0.0);
    assert_eq!(before.value(earliest), 0.0);
    wait_for_status(&server, &key, 200);
    let after = scrape(&server);
    assert_eq!(after.value("vitrine_keys_expiring"), 1.0);
    let stored = labelled(&store, "soon")[0]["expires_at"].clone();
    let expires: jiff::Timestamp = stored.as_str().expect("an expiry").parse().expect("a time");
    assert_eq!(after.value(earliest), expires.as_second() as f64);
}
