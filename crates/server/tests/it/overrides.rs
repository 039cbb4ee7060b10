//! Overrides: what operators say of products holds over every load, until it ends.

use serde_json::{Value, json};

use crate::harness::{ALLOW_ALL, Reply, SAMPLE, Server, Store, gift_card, text, wait_for};
use crate::overrides_commands::refused;

const SHOE: &str = "BRIARWICK-GB";

/// Fields of a product as a client sees it; null if it sees none.
fn seen(server: &Server, key: &str, code: &str) -> Value {
    let Reply { status, body, .. } = server.get(key, &format!("/v2/product/{code}"));
    match status {
        200 => serde_json::from_slice(&body).expect("JSON"),
        404 => Value::Null,
        other => panic!("{other}: {}", text(&body)),
    }
}

fn wait_until(server: &Server, key: &str, code: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_for(&format!("{code} to change"), || {
        Some(seen(server, key, code)).filter(|product| is_so(product))
    })
}

#[test]
fn four_stories_take_one_command_each() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let before = seen(&server, &key, SHOE);
    // A brand is down.
    store.ok(&["disable", "BRIARWICK-*", "--note", "the issuer is down"]);
    let down = wait_until(&server, &key, SHOE, |product| {
        product["is_orderable"] == false
    });
    assert_eq!(down["state"], "TEMPORARILY_DISABLED");
    wait_until(&server, &key, "BRIARWICK-IE", |product| {
        product["is_orderable"] == false
    });
    // The next feed doesn't undo it.
    store.load(SAMPLE);
    assert_eq!(seen(&server, &key, SHOE), down);
    // Back to the feed's word.
    store.ok(&["overrides", "end", "--codes", "BRIARWICK-*"]);
    let after = wait_until(&server, &key, SHOE, |product| {
        product["is_orderable"] == true
    });
    assert_eq!(after, before);
    // Hidden for a while: a server on SQLite ends it by itself, one on PostgreSQL needs `tick`.
    store.ok(&["hide", SHOE, "--until", "6s"]);
    wait_until(&server, &key, SHOE, Value::is_null);
    wait_for("the product to be back", || {
        store.ok(&["tick"]);
        (!seen(&server, &key, SHOE).is_null()).then_some(())
    });
    assert_eq!(seen(&server, &key, SHOE), before);
    // A discount for a week.
    store.ok(&[
        "set",
        "BRIARWICK-*",
        "discount_multiplier=0.02",
        "--until",
        "7d",
    ]);
    let lower = wait_until(&server, &key, SHOE, |product| product != &before);
    assert_eq!(lower["discount_multiplier"], "0.02");
    let mut expected = before;
    expected["discount_multiplier"] = json!("0.02");
    assert_eq!(lower, expected);
    assert_eq!(store.json(&["check", "--json"])["clean"], true);
}

#[test]
fn server_on_a_file_begins_overrides_at_their_time() {
    if !crate::harness::are_files("a server that begins overrides by itself") {
        return;
    }
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    let from = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(6);
    let from = from.to_string();
    let made = store.json(&["disable", SHOE, "--from", &from, "--json"]);
    assert_eq!(made["made"]["status"], "scheduled");
    assert_eq!(made["revision"], Value::Null);
    assert_eq!(seen(&server, &key, SHOE)["is_orderable"], true);
    wait_until(&server, &key, SHOE, |product| {
        product["is_orderable"] == false
    });
    let history = store.json(&["history", "--json"]);
    let note = history[0]["note"].as_str().unwrap();
    assert!(note.starts_with("override 1 begins"), "{note}");
    let began: jiff::Timestamp = history[0]["created_at"].as_str().unwrap().parse().unwrap();
    let due: jiff::Timestamp = made["made"]["from"].as_str().unwrap().parse().unwrap();
    let late = began.duration_since(due);
    println!("late by {late:?}; the promise is 1 s");
    assert!(!late.is_negative() && late.as_secs() < 10);
    wait_for("the metrics", || {
        let metrics = text(&server.ask_admin("GET", "/metrics").body);
        let is_told = metrics.contains("vitrine_override_instants_total 1\n")
            && metrics.contains("vitrine_overrides_overdue_seconds 0\n");
        is_told.then_some(())
    });
}

#[test]
fn tick_writes_metrics_of_what_it_applies() {
    let store = Store::sample();
    let file = store.path("tick.prom");
    let path = file.display().to_string();
    let tick = |path: &str| store.command(&["tick", "--follow", "--metrics-file", path]);
    let refused = tick("/nowhere/tick.prom").output().expect("vitrine runs");
    assert!(text(&refused.stderr).contains("can't write /nowhere/tick.prom"));
    let _tick = Server::start(tick(&path));
    store.ok(&[
        "disable",
        "*",
        "--from",
        "1s",
        "--allow",
        "not-orderable=100%",
        "--allow",
        "states=100%",
    ]);
    wait_for("an instant", || {
        let metrics = std::fs::read_to_string(&file).expect("metrics");
        let has = |line: &str| metrics.lines().any(|other| other == line);
        (has("vitrine_override_instants_total 1")
            && has("vitrine_override_instants_exceeding_total 0"))
        .then_some(())
    });
}

#[test]
fn values_that_end_with_an_override_exceed_no_limit() {
    let products: Vec<Value> = (0..20)
        .map(|number| {
            let mut product = gift_card(&format!("P-{number}"));
            product["availability"] = Value::Null;
            product
        })
        .collect();
    let store = Store::of(&products);
    let set = [
        "set",
        "*",
        "availability=stocked",
        "--until",
        "1s",
        "--json",
    ];
    let until = store.json(&set)["made"]["until"].clone();
    let due: jiff::Timestamp = until.as_str().expect("a time").parse().expect("a time");
    wait_for("its time", || (jiff::Timestamp::now() > due).then_some(()));
    let applied = store.json(&["tick"]);
    assert_eq!(
        (&applied["ended"], &applied["exceeded"]),
        (&json!([1]), &json!([])),
        "{applied}"
    );
}

#[test]
fn load_says_what_overrides_hide_of_it() {
    let store = Store::of(&[gift_card("A"), gift_card("B"), gift_card("C")]);
    store.ok(&["set", "A", "B", "discount_multiplier=0.01"]);
    store.ok(&["hide", "C", "--allow", "retire=100%"]);
    let mut changed = [gift_card("A"), gift_card("B"), gift_card("C")];
    for product in &mut changed {
        product["discount_multiplier"] = json!("0.07");
        product["name"] = json!("New");
    }
    let file = store.write(
        "new.ndjson",
        changed.map(|product| product.to_string()).join("\n"),
    );
    let file = file.display().to_string();
    let load = [&["load", &file], &ALLOW_ALL[..]].concat();
    let planned = store.ok(&[&load[..], &["--dry-run"]].concat());
    for line in [
        "2 changes have no effect until override 1 ends\n",
        "2 changes have no effect until override 2 ends\n",
    ] {
        assert!(planned.contains(line), "{planned}");
    }
    let report = store.json(&[&load[..], &["--json"]].concat());
    let expected = json!([{"override": 1, "changes": 2}, {"override": 2, "changes": 2}]);
    assert_eq!(report["ineffective_changes"], expected);
    // What the feed said comes back with the end.
    let ended = store.json(&["overrides", "end", "1", "2", "--json"]);
    assert_eq!(ended["plan"]["created"], json!(["C"]));
    assert_eq!(ended["counts"]["changed"], 2);
    let export = store.ok(&["export"]);
    assert_eq!(export, store.ok(&["export", "--effective"]));
    assert_eq!(export.matches("\"0.07\"").count(), 3, "{export}");
}

#[test]
fn load_counts_only_what_clients_do_not_see() {
    let store = Store::of(&[gift_card("A"), gift_card("B"), gift_card("C")]);
    store.ok(&["set", "A", "categories+=extra", "minimum_value=10"]);
    store.ok(&[
        "disable",
        "B",
        "--allow",
        "not-orderable=100%",
        "--allow",
        "states=100%",
    ]);
    store.ok(&["hide", "C", "--allow", "retire=100%"]);
    let mut changed = [gift_card("A"), gift_card("B")];
    // Added to by the override, so clients see it.
    changed[0]["categories"] = json!(["food"]);
    changed[1]["is_orderable"] = json!(false);
    let file = store.write("new.ndjson", changed.map(|one| one.to_string()).join("\n"));
    let file = file.display().to_string();
    let load = [&["load", &file, "--json"], &ALLOW_ALL[..]].concat();
    let report = store.json(&load);
    let expected = json!([{"override": 2, "changes": 1}, {"override": 3, "changes": 1}]);
    assert_eq!(report["ineffective_changes"], expected);
    let shown: Value = serde_json::from_str(&store.ok(&["show", "A"])).unwrap();
    assert_eq!(shown["categories"], json!(["food", "extra"]));
}

#[test]
fn base_and_effective_are_told_apart() {
    let store = Store::sample();
    let sample = store.ok(&["export"]);
    store.ok(&["disable", "BRIARWICK-*"]);
    store.ok(&["hide", "NORDHAV-FI"]);
    assert_eq!(store.ok(&["export"]), sample, "the base loads again");
    let effective = store.ok(&["export", "--effective"]);
    assert!(!effective.contains("NORDHAV-FI") && effective.contains("TEMPORARILY_DISABLED"));
    assert_eq!(
        store.ok(&["diff", "1", "--base", "--stat"]),
        "0 created, 0 changed, 0 retired, 72 unchanged\n"
    );
    let diff = store.ok(&["diff", "1", "--stat"]);
    assert!(
        diff.contains(
            "override 1 sets values of these products now: is_orderable of 2, state of 2\n"
        ),
        "{diff}"
    );
    let shown = store.run(&["show", SHOE]);
    assert!(text(&shown.stdout).contains("TEMPORARILY_DISABLED"));
    assert_eq!(
        text(&shown.stderr),
        "vitrine: override 1 sets is_orderable, state\n"
    );
    assert!(store.ok(&["show", SHOE, "--base"]).contains("\"LIVE\""));
    let hidden = refused(&store, 1, &["show", "NORDHAV-FI"]);
    assert!(
        hidden.contains("is hidden by override 2; `vitrine show NORDHAV-FI --base`"),
        "{hidden}"
    );
    assert!(
        store
            .ok(&["show", "NORDHAV-FI", "--base"])
            .contains("NORDHAV-FI")
    );
    let listed = store.ok(&["products", "--format", "ndjson", "BRIARWICK-*", "--base"]);
    assert!(!listed.contains("TEMPORARILY_DISABLED"));
    let history = store.ok(&["history", SHOE]);
    assert!(
        history.contains("override 1 begins (state=TEMPORARILY_DISABLED is_orderable=false)"),
        "{history}"
    );
    // A round trip of base and overrides.
    let copy = Store::new();
    let file = copy.write("base.ndjson", &sample);
    copy.load(file);
    copy.ok(&["disable", "BRIARWICK-*"]);
    copy.ok(&["hide", "NORDHAV-FI"]);
    assert_eq!(copy.ok(&["export", "--effective"]), effective);
}

#[test]
fn overrides_of_older_revisions_are_named() {
    let store = Store::of(&["A", "B", "C"].map(gift_card));
    store.ok(&["set", "A", "discount_multiplier=0.02"]);
    store.ok(&["set", "*", "discount_multiplier=0.01"]);
    store.ok(&["hide", "C", "--allow", "retire=100%"]);
    store.ok(&["overrides", "end", "2"]);
    store.ok(&["overrides", "end", "1", "3"]);
    let set = |from: &str, to: &str| {
        let diff = store.ok(&["diff", from, to, "--stat"]);
        let lines = diff.lines().filter(|line| line.starts_with("override "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let in_revision = |number: u64, revision: u64, fields: &str| {
        format!("override {number} set values of these products in revision {revision}: {fields}")
    };
    let discount = "discount_multiplier of";
    assert_eq!(set("1", "2"), [in_revision(1, 2, &format!("{discount} 1"))]);
    assert_eq!(set("2", "3"), [in_revision(2, 3, &format!("{discount} 3"))]);
    assert_eq!(set("3", "4"), [in_revision(3, 4, "visible of 1")]);
    assert_eq!(set("4", "5"), [in_revision(1, 5, &format!("{discount} 1"))]);
    assert_eq!(set("5", "6"), [""; 0]);
    let json = store.json(&["diff", "1", "3", "--json"]);
    assert_eq!(json["overrides"], json!({"2": {"discount_multiplier": 3}}));
    let told = |revision: &str| text(&store.run(&["show", "A", "--at", revision]).stderr);
    assert_eq!(told("3"), "vitrine: override 2 set discount_multiplier\n");
    assert_eq!(told("5"), "vitrine: override 1 set discount_multiplier\n");
    assert_eq!(told("6"), "");
    let hidden = refused(&store, 1, &["show", "C", "--at", "4"]);
    assert!(
        hidden.contains("was hidden by override 3 in revision 4"),
        "{hidden}"
    );
}

#[test]
fn rollback_restores_the_base_under_the_overrides() {
    let store = Store::sample();
    let mut other: Vec<Value> = vec![gift_card("OTHER")];
    other[0]["categories"] = json!(["fashion"]);
    store.load_products(&other);
    store.ok(&[
        "disable",
        "BRIARWICK-*",
        "OTHER",
        "--allow",
        "not-orderable=100%",
        "--allow",
        "states=100%",
    ]);
    store.ok(&["rollback", "1", "--yes"]);
    assert!(store.ok(&["show", SHOE]).contains("TEMPORARILY_DISABLED"));
    assert!(store.ok(&["show", SHOE, "--base"]).contains("\"LIVE\""));
    // Back to a revision in which the override was active: the base of then.
    store.ok(&["overrides", "end", "1"]);
    store.ok(&["rollback", "3", "--yes"]);
    assert_eq!(
        store
            .ok(&["products", "--format", "csv"])
            .matches("OTHER")
            .count(),
        2
    );
    assert!(store.ok(&["show", "OTHER"]).contains("\"LIVE\""));
    assert_eq!(store.json(&["check", "--json"])["clean"], true);
}

#[test]
fn frozen_override_is_about_the_products_of_then() {
    let store = Store::of(&[gift_card("A")]);
    store.ok(&[
        "set",
        "--category",
        "fashion",
        "categories+=sale",
        "--frozen",
    ]);
    store.ok(&["set", "--category", "fashion", "categories+=new"]);
    store.load_products(&[gift_card("A"), gift_card("B")]);
    let categories = |code| {
        let product: Value = serde_json::from_str(&store.ok(&["show", code])).unwrap();
        product["categories"].clone()
    };
    assert_eq!(categories("A"), json!(["fashion", "sale", "new"]));
    assert_eq!(categories("B"), json!(["fashion", "new"]));
}

#[test]
fn texts_of_a_hidden_product_outlive_a_prune() {
    let mut product = gift_card("A");
    product["gift_card"]["content_resources"]["description_md"] = json!("# Kept");
    let store = Store::of(&[product, gift_card("B")]);
    store.ok(&["hide", "A", "--allow", "retire=100%"]);
    // Two more revisions, so that none kept shows the product.
    for name in ["One", "Two"] {
        let mut other = gift_card("B");
        other["name"] = json!(name);
        let file = store.write("b.ndjson", other.to_string());
        let file = file.display().to_string();
        store.ok(&["load", "--mode", "merge", &file]);
    }
    store.ok(&["prune", "--keep", "1", "--yes"]);
    assert_eq!(store.json(&["check", "--json"])["clean"], true);
    store.ok(&["overrides", "end", "1"]);
    assert!(store.ok(&["show", "A"]).contains("# Kept"));
}

#[test]
fn backup_has_the_overrides_and_the_base() {
    if !crate::harness::are_files("a backup of overrides") {
        return;
    }
    let store = Store::sample();
    store.ok(&["disable", "BRIARWICK-*"]);
    store.ok(&["hide", "NORDHAV-FI"]);
    let (base, effective) = (store.ok(&["export"]), store.ok(&["export", "--effective"]));
    let backup = store.path("backup.db").display().to_string();
    store.ok(&["backup", &backup]);
    store.ok(&["overrides", "end", "1", "2"]);
    store.ok(&["restore", "--yes", &backup]);
    let audit = store.json(&["audit", "--json"]);
    let is_back = |entry: &Value| entry["subject_kind"] == "override" && entry["subject"] == "1";
    assert!(audit.as_array().unwrap().iter().any(is_back), "{audit}");
    assert_eq!(store.ok(&["export"]), base);
    assert_eq!(store.ok(&["export", "--effective"]), effective);
    store.ok(&["overrides", "end", "1", "2"]);
    assert_eq!(store.ok(&["export", "--effective"]), base);
}

#[test]
fn check_finds_bases_that_do_not_fit() {
    for damage in [
        "update product_base set until_revision = from_revision",
        "update product_base set from_revision = 99",
        "update product_base set version_id = (select id from product_version where code = 'B')",
    ] {
        let mut product = gift_card("A");
        product["gift_card"]["content_resources"]["description_md"] = json!("# Text");
        let store = Store::of(&[product, gift_card("B")]);
        store.ok(&["hide", "A", "--allow", "retire=100%"]);
        assert_eq!(store.json(&["check", "--json"])["clean"], true);
        store.sql(damage);
        let found = text(&store.run(&["check"]).stdout);
        assert!(found.contains("base of product A"), "{damage}: {found}");
    }
}
