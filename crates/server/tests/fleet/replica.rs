//! A server that follows a replica: what that lacks isn't gone.

use std::process::Command;

use serde_json::json;

use crate::cluster::{Cluster, is_installed};
use crate::harness::feed::{Changes, Refusal, aged, refusal};
use crate::harness::{Server, Store, gift_card, wait_for};

fn set(store: &Store, code: &str) {
    let rules = json!({"allow": [{"codes": [code]}]}).to_string();
    let file = store.write("rules.json", rules).display().to_string();
    store.ok(&[
        "assortments",
        "set",
        "north",
        &file,
        "--allow",
        "retire=100%",
    ]);
}

/// Runs a statement, which the replica accepts.
fn sql(cluster: &Cluster, statement: &str) {
    let ran = Command::new("psql")
        .args([
            &cluster.url("postgres"),
            "--no-psqlrc",
            "--quiet",
            "--command",
            statement,
        ])
        .output();
    assert!(ran.expect("psql runs").status.success(), "{statement}");
}

#[test]
fn token_of_rules_that_a_replica_lacks_is_not_gone() {
    if !is_installed() {
        return;
    }
    let primary = Cluster::start("");
    let store = Store::at(primary.url("postgres"));
    store.load_products(&["A", "B"].map(gift_card));
    set(&store, "A");
    let key = store.key("partner", &["--assortment", "north"]);
    let replica = primary.replica();
    let public_url = ["--public-url", "https://catalog.example"];
    let current = store.serve_with(&public_url);
    let behind = store.serve_with(
        &[
            &public_url[..],
            &["--follow-store", &replica.url("postgres")],
        ]
        .concat(),
    );
    let ask =
        |server: &Server, since: &str| server.get(&key, &format!("/v2/product/changes?{since}"));
    sql(&replica, "select pg_wal_replay_pause()");
    set(&store, "B");
    let token = wait_for("the new rules", || {
        let changes = Changes::of(&ask(&current, ""));
        (changes.named() == ["B"]).then_some(changes.next)
    });
    // Nothing of the catalog differs, only what the key sees.
    let old = format!("since={}", aged(&token, 60));
    for _ in 0..3 {
        assert_eq!(refusal(&ask(&behind, &old)), Some(Refusal::Unknown));
    }
    sql(&replica, "select pg_wal_replay_resume()");
    wait_for("the replica to catch up", || {
        let refused = refusal(&ask(&behind, &old));
        assert_ne!(refused, Some(Refusal::Gone));
        refused.is_none().then_some(())
    });
}
