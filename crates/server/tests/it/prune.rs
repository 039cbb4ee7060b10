//! Pruning the history as an operator does it: what is kept answers as before, what is gone says so,
//! servers and writers go on, and a kill does no harm.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::{Store, are_files, gift_card, text, wait_for};

fn named(code: &str, name: &str) -> Value {
    let mut product = gift_card(code);
    product["name"] = name.into();
    product
}

/// A store of as many revisions; in each, all of `count` products differ from those of the one before.
fn revisions(revisions: usize, count: usize) -> Store {
    let store = Store::new();
    for revision in 1..=revisions {
        let products = (0..count).map(|n| named(&format!("P{n}"), &format!("Revision {revision}")));
        store.load_products(&products.collect::<Vec<_>>());
    }
    store
}

fn assert_clean(store: &Store) {
    let report = store.json(&["check", "--json"]);
    assert_eq!(report, json!({"clean": true, "problems": []}));
}

#[test]
fn pruned_revisions_are_reported_as_pruned() {
    let store = revisions(5, 3);
    let key = store.key("reader", &[]);
    let server = store.serve();
    let before = server.get(&key, "/v2/product").body;
    let kept = store.ok(&["export", "--at", "4"]);
    let report = store.json(&["prune", "--keep", "2", "--yes", "--json"]);
    let counts = [
        "applied",
        "oldest_readable",
        "revisions",
        "versions",
        "texts",
    ];
    let found = counts.map(|name| report[name].clone());
    assert_eq!(found, [json!(true), json!(4), json!(3), json!(9), json!(0)]);
    assert_eq!(store.ok(&["export", "--at", "4"]), kept);
    assert_eq!(
        store.json(&["show", "P1", "--at", "4"])["name"],
        "Revision 4"
    );
    for refused in [
        &["show", "P1", "--at", "3"][..],
        &["diff", "3", "4"],
        &["diff", "4", "3"],
        &["export", "--at", "1"],
        &["rollback", "--yes", "3"],
    ] {
        let output = store.run(refused);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{refused:?}: {said}");
        assert!(said.contains("was pruned"), "{refused:?}: {said}");
        assert!(
            said.contains("oldest revision that can be read is 4"),
            "{said}"
        );
        assert_eq!(text(&output.stdout), "", "{refused:?}");
    }
    let history = store.json(&["history", "--json"]);
    let told = history.as_array().expect("a list").iter();
    let told: Vec<_> = told.map(|one| (&one["number"], &one["pruned"])).collect();
    let expected = [(5, false), (4, false), (3, true), (2, true), (1, true)];
    let expected = expected.map(|(number, pruned)| (json!(number), json!(pruned)));
    assert_eq!(
        told,
        expected.each_ref().map(|(number, pruned)| (number, pruned))
    );
    let table = store.ok(&["history"]);
    for state in ["live", "kept", "pruned"] {
        assert!(table.contains(state), "{table}");
    }
    assert_clean(&store);
    store.ok(&["rollback", "--yes", "4"]);
    server.wait_for_revision(6);
    assert!(server.get(&key, "/v2/product").body != before);
    // Between the start and the rollback the server saw no change.
    assert_eq!(server.stderr().matches("catalog is live").count(), 2);
    assert_clean(&store);
}

#[test]
fn backup_brings_a_pruned_history_back() {
    if !are_files("a backup brings a pruned history back") {
        return;
    }
    let store = revisions(3, 2);
    let file = store.path("backup.db").display().to_string();
    store.ok(&["backup", &file]);
    store.ok(&["prune", "--keep", "1", "--yes"]);
    // A backup of a pruned store is one: what was pruned stays so.
    let pruned = store.path("pruned.db").display().to_string();
    store.ok(&["backup", &pruned]);
    store.ok(&["restore", "--yes", &file]);
    let shown = store.json(&["show", "P1", "--at", "1"]);
    assert_eq!(shown["name"], "Revision 1");
    assert_clean(&store);
    store.ok(&["restore", "--yes", &pruned]);
    let refused = store.run(&["show", "P1", "--at", "1"]);
    assert!(text(&refused.stderr).contains("was pruned"));
    assert_clean(&store);
}

#[test]
fn prune_needs_consent_and_can_be_tried() {
    let store = revisions(3, 2);
    let tried = store.json(&["prune", "--keep", "1", "--dry-run", "--json"]);
    assert_eq!(
        [&tried["applied"], &tried["versions"]],
        [&json!(false), &json!(4)]
    );
    let said = store.ok(&["prune", "--keep", "1", "--dry-run"]);
    assert!(
        said.contains("would free versions of products: 4"),
        "{said}"
    );
    let refused = store.run(&["prune", "--keep", "1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("add --yes"));
    // Everything was live within a day: nothing goes, and nobody is asked.
    let said = store.ok(&["prune", "--keep", "1d"]);
    assert!(said.contains("nothing to free"), "{said}");
    for wrong in ["0", "-1", "soon", "", "1x"] {
        let output = store.run(&["prune", "--yes", "--keep", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
    assert_eq!(
        store.json(&["show", "P1", "--at", "1"])["name"],
        "Revision 1"
    );
    let said = store.ok(&["prune", "--keep", "0s", "--yes"]);
    assert!(said.contains("the oldest kept revision is 3"), "{said}");
    assert!(said.contains("freed versions of products: 4"), "{said}");
    let again = store.ok(&["prune", "--keep", "1"]);
    assert!(again.contains("nothing to free"), "{again}");
}

#[test]
fn prune_names_the_time_from_which_tokens_go_on() {
    let store = revisions(3, 2);
    let history = store.json(&["history", "--json"]);
    let published = |number: usize| {
        let one = &history.as_array().expect("a list")[3 - number];
        assert_eq!(one["number"], number);
        one["created_at"].as_str().expect("a time").to_owned()
    };
    let line = |number| {
        let since = published(number);
        format!(
            "tokens of `GET /product/changes` from before {since} end (410) once a server reads its history from the store again"
        )
    };
    let idle = store.ok(&["prune", "--keep", "3"]);
    assert!(
        idle.contains("\nno tokens of `GET /product/changes` end\n"),
        "{idle}"
    );
    let plan = store.ok(&["prune", "--keep", "2", "--dry-run"]);
    assert!(plan.contains(&line(2)), "{plan}");
    let plan = store.json(&["prune", "--keep", "2", "--dry-run", "--json"]);
    assert_eq!(plan["tokens_since"], published(2));
    let pruned = store.ok(&["prune", "--keep", "2", "--yes"]);
    assert!(pruned.contains(&line(2)), "{pruned}");
    let pruned = store.json(&["prune", "--keep", "1", "--yes", "--json"]);
    assert_eq!(pruned["tokens_since"], published(3));
    // It is idle now, and keeps what it kept before.
    let idle = store.json(&["prune", "--keep", "3", "--json"]);
    assert_eq!(idle["tokens_since"], published(3));
    let nothing = Store::new();
    nothing.key("reader", &[]);
    let idle = nothing.json(&["prune", "--keep", "1", "--json"]);
    assert_eq!(idle["tokens_since"], Value::Null);
}

fn start_prune(store: &Store) -> Child {
    let mut command = store.command(&["prune", "--keep", "1", "--yes"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("vitrine runs")
}

/// Waits until the first revision can't be read any more: rows are going.
fn wait_for_the_first_row(store: &Store) {
    wait_for("the history to be pruned", || {
        let history = store.json(&["history", "--json", "--limit", "99"]);
        let first = history.as_array().expect("a list").last().cloned();
        (first.expect("a revision")["pruned"] == true).then_some(())
    });
}

#[test]
fn killed_prune_leaves_a_whole_store() {
    if !are_files("a prune that is killed leaves a whole store and the next one ends it") {
        return;
    }
    let store = revisions(4, 2_000);
    let file = store.path("full.db").display().to_string();
    store.ok(&["backup", &file]);
    let live = store.ok(&["export"]);
    // Until a kill hits between the first row and the last.
    for attempt in 1.. {
        let mut prune = start_prune(&store);
        wait_for_the_first_row(&store);
        prune.kill().expect("killed");
        prune.wait().expect("an end");
        assert_clean(&store);
        assert_eq!(store.ok(&["export"]), live);
        let rest = store.json(&["prune", "--keep", "1", "--dry-run", "--json"]);
        let rest = rest["versions"].as_u64().expect("a number");
        if (1..6_000).contains(&rest) {
            break;
        }
        assert!(attempt < 20, "never killed in the middle");
        store.ok(&["restore", "--yes", &file]);
    }
    let rest = store.json(&["prune", "--keep", "1", "--yes", "--json"]);
    assert!(rest["free_bytes"].as_u64() > Some(0), "{rest}");
    let none = store.json(&["prune", "--keep", "1", "--json"]);
    assert_eq!(
        [&none["applied"], &none["versions"]],
        [&json!(false), &json!(0)]
    );
    assert_eq!(store.ok(&["export"]), live);
    assert_clean(&store);
}

#[test]
fn prune_blocks_neither_loads_nor_backups() {
    if !are_files("loads and backups go on while the history is pruned") {
        return;
    }
    let store = revisions(3, 2_000);
    let mut prune = start_prune(&store);
    wait_for_the_first_row(&store);
    let report = store.load_products(&[gift_card("A")]);
    let file = store.path("backup.db").display().to_string();
    store.ok(&["backup", &file]);
    let output = prune.wait().expect("an end");
    assert!(output.success());
    assert_eq!(report["revision"]["number"], 4);
    assert_clean(&store);
    let url = format!("sqlite:{file}");
    let checked = store.json(&["check", "--json", "--store", &url]);
    assert_eq!(checked["clean"], true, "{checked}");
}
