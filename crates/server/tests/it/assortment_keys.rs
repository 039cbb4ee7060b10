//! Keys with an assortment: assigned, restored, and served from files; what a key may see is never guessed.

use serde_json::{Value, json};

use crate::assortments::set;
use crate::changes_gone::{KNOWN, LOST};
use crate::harness::feed::{Changes, Refusal, aged, fresh, refusal};
use crate::harness::{Server, Store, are_files, gift_card, text, wait_for};
use crate::keys::prefix_of;

fn catalog() -> Store {
    Store::of(&["A", "B", "C"].map(gift_card))
}

/// Returns the codes that a key sees, or the status of the refusal.
fn seen(server: &Server, key: &str) -> Result<Vec<String>, u16> {
    let reply = server.get(key, "/v2/product");
    match reply.status {
        200 => Ok(reply.codes()),
        status => Err(status),
    }
}

fn wait_to_see(server: &Server, key: &str, expected: Result<&[&str], u16>) {
    let expected = expected.map(|codes| codes.iter().map(|code| (*code).to_owned()).collect());
    wait_for("what a key sees", || {
        (seen(server, key) == expected).then_some(())
    });
}

fn codes(codes: &[&str]) -> Value {
    json!({"allow": [{"codes": codes}]})
}

fn only(code: &str) -> Value {
    codes(&[code])
}

#[test]
fn key_in_use_is_given_an_assortment_and_loses_it() {
    let store = catalog();
    set(&store, "one", &only("A"));
    let key = store.key("partner", &[]);
    let server = store.serve();
    wait_to_see(&server, &key, Ok(&["A", "B", "C"]));
    let said = store.ok(&["keys", "set", "partner", "--assortment", "one"]);
    assert_eq!(
        said,
        format!("{}: assortment none → one\n", prefix_of(&key))
    );
    wait_to_see(&server, &key, Ok(&["A"]));
    set(&store, "one", &only("B"));
    wait_to_see(&server, &key, Ok(&["B"]));
    set(&store, "two", &only("C"));
    store.ok(&["keys", "set", "partner", "--assortment", "two"]);
    wait_to_see(&server, &key, Ok(&["C"]));
    // A name that could be taken for none.
    set(&store, "none", &only("A"));
    store.ok(&["keys", "set", "partner", "--everything", "--yes"]);
    store.ok(&["keys", "set", "partner", "--assortment", "none"]);
    wait_to_see(&server, &key, Ok(&["A"]));
    let refused = store.run(&["keys", "set", "partner", "--everything"]);
    assert_eq!(refused.status.code(), Some(2), "without --yes");
    store.ok(&["keys", "set", "partner", "--everything", "--yes"]);
    wait_to_see(&server, &key, Ok(&["A", "B", "C"]));
    let successor = store.json(&["keys", "rotate", "partner", "--json"]);
    assert!(successor["key"].is_string());
}

#[test]
fn successor_of_a_key_has_its_assortment() {
    let store = catalog();
    set(&store, "one", &only("A"));
    store.key("partner", &["--assortment", "one"]);
    let successor = store.json(&["keys", "rotate", "partner", "--json"]);
    let server = store.serve();
    let key = successor["key"].as_str().expect("a key");
    wait_to_see(&server, key, Ok(&["A"]));
}

#[test]
fn token_ends_when_its_key_gets_another_assortment() {
    let store = catalog();
    for name in ["one", "two"] {
        set(&store, name, &only("A"));
    }
    let key = store.key("partner", &["--assortment", "one"]);
    let server = store.serve();
    let token = |server: &Server| {
        let page = server.get(&key, "/v2/product/changes").json();
        page["next"].as_str().expect("a token").to_owned()
    };
    let before = token(&server);
    let ask = |token: &str| server.get(&key, &format!("/v2/product/changes?since={token}"));
    assert_eq!(ask(&before).status, 200);
    store.ok(&["keys", "set", "partner", "--assortment", "two"]);
    wait_for("the other assortment", || {
        let reply = ask(&before);
        (reply.status == 410).then(|| assert_eq!(reply.error(), "changes_gone"))
    });
    assert_eq!(ask(&token(&server)).status, 200);
}

#[test]
fn edits_are_told_across_a_restart() {
    let store = catalog();
    set(&store, "one", &only("A"));
    let key = store.key("partner", &["--assortment", "one"]);
    let public_url = ["--public-url", "https://catalog.example"];
    let server = store.serve_with(&public_url);
    let begun = server.get(&key, "/v2/product/changes").json();
    let token = begun["next"].as_str().expect("a token").to_owned();
    drop(server);
    set(&store, "one", &only("B"));
    let server = store.serve_with(&public_url);
    let changes = wait_for("the history of the rules", || {
        let reply = server.get(&key, &format!("/v2/product/changes?since={token}"));
        assert_ne!(reply.status, 410, "{}", text(&reply.body));
        (reply.status == 200).then(|| reply.json())
    });
    let codes: Vec<&Value> = changes["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .map(|one| &one["code"])
        .collect();
    assert_eq!(codes, ["A", "B"]);
    assert!(changes["changes"][0]["product"].is_null());
}

#[test]
fn restore_that_would_widen_names_the_keys() {
    if !are_files("restores that widen") {
        return;
    }
    let store = catalog();
    set(&store, "one", &json!({}));
    let [narrowed, assigned] = [
        store.key("narrowed", &["--assortment", "one"]),
        store.key("assigned", &[]),
    ];
    let unchanged = store.key("unchanged", &[]);
    let backup = store.path("backup.db").display().to_string();
    store.ok(&["backup", &backup]);
    set(&store, "one", &only("A"));
    store.ok(&["keys", "set", "assigned", "--assortment", "one"]);
    let server = store.serve();
    wait_to_see(&server, &assigned, Ok(&["A"]));
    let refused = store.run(&["restore", &backup, "--yes"]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    for key in [&narrowed, &assigned] {
        assert!(told.contains(prefix_of(key)), "{told}");
    }
    assert!(!told.contains(prefix_of(&unchanged)), "{told}");
    assert!(told.contains("--allow widen"), "{told}");
    wait_to_see(&server, &narrowed, Ok(&["A"]));
    store.ok(&["restore", &backup, "--yes", "--allow", "widen"]);
    wait_to_see(&server, &narrowed, Ok(&["A", "B", "C"]));
    wait_to_see(&server, &assigned, Ok(&["A", "B", "C"]));
    // A backup that narrows asks for nothing.
    set(&store, "one", &only("B"));
    store.ok(&["backup", &store.path("narrow.db").display().to_string()]);
    set(&store, "one", &json!({}));
    store.ok(&[
        "restore",
        &store.path("narrow.db").display().to_string(),
        "--yes",
    ]);
    wait_to_see(&server, &narrowed, Ok(&["B"]));
    // So does one whose selectors lie in those of now.
    let audited = store.json(&["audit", "--assortment", "one", "--json"]);
    assert_eq!(audited[0]["action"], "restore");
    let narrow = store.path("narrower.db").display().to_string();
    set(
        &store,
        "one",
        &json!({"allow": [{"codes": ["B"], "currencies": ["EUR"]}]}),
    );
    store.ok(&["backup", &narrow]);
    set(
        &store,
        "one",
        &json!({"allow": [{"codes": ["A", "B"]}, {"codes": ["C"]}]}),
    );
    store.ok(&["restore", &narrow, "--yes"]);
    wait_to_see(&server, &narrowed, Ok(&["B"]));
}

#[test]
fn keys_that_only_the_backup_has_come_back_if_allowed() {
    if !are_files("keys that a restore brings back") {
        return;
    }
    let other = catalog();
    set(&other, "one", &only("A"));
    let [few, all] = [
        other.key("few", &["--assortment", "one"]),
        other.key("all", &[]),
    ];
    let revoked = other.key("revoked", &[]);
    other.ok(&["keys", "revoke", "revoked", "--yes"]);
    let backup = other.path("backup.db").display().to_string();
    other.ok(&["backup", &backup]);
    let store = catalog();
    let server = store.serve();
    let refused = store.run(&["restore", &backup, "--yes"]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    for (key, then) in [(&few, "the assortment one"), (&all, "everything")] {
        let line = format!("{} (", prefix_of(key));
        let line = told.lines().find(|told| told.contains(&line));
        let expected = format!("might see more: nothing now, {then} then");
        assert!(line.is_some_and(|line| line.ends_with(&expected)), "{told}");
    }
    assert!(!told.contains(prefix_of(&revoked)), "{told}");
    assert_eq!(server.get(&all, "/v2/product").status, 401);
    store.ok(&["restore", &backup, "--yes", "--allow", "widen"]);
    wait_to_see(&server, &few, Ok(&["A"]));
    wait_to_see(&server, &all, Ok(&["A", "B", "C"]));
    // Again, they are there already.
    store.ok(&["restore", &backup, "--yes"]);
}

/// Asks for changes; returns the codes and the next token.
fn changes(server: &Server, key: &str, query: &str) -> (Vec<String>, String) {
    let page = Changes::of(&server.get(key, &format!("/v2/product/changes?{query}")));
    (page.named(), page.next)
}

/// Returns how a token is refused: a young one, and an old one.
fn refusals(server: &Server, key: &str, token: &str) -> [Option<Refusal>; 2] {
    let ask = |token: &str| server.get(key, &format!("/v2/product/changes?since={token}"));
    [fresh(token), aged(token, 60)].map(|token| refusal(&ask(&token)))
}

#[test]
fn restore_ends_tokens_of_rules_that_it_throws_away() {
    if !are_files("restore ends tokens of rules that it throws away") {
        return;
    }
    let store = catalog();
    set(&store, "one", &codes(&["A", "C"]));
    let key = store.key("partner", &["--assortment", "one"]);
    let server = store.serve();
    let backup = store.path("backup.db").display().to_string();
    store.ok(&["backup", &backup]);
    let (first, kept) = changes(&server, &key, "limit=1");
    assert_eq!(first, ["A"]);
    set(&store, "one", &codes(&["A", "B", "C"]));
    wait_to_see(&server, &key, Ok(&["A", "B", "C"]));
    let (second, lost) = changes(&server, &key, &format!("limit=1&since={kept}"));
    assert_eq!(second, ["B"]);
    store.ok(&["restore", &backup, "--yes"]);
    wait_to_see(&server, &key, Ok(&["A", "C"]));
    // Went on, its walk would never tell that B isn't visible any more.
    assert_eq!(refusals(&server, &key, &lost), LOST);
    assert_eq!(changes(&server, &key, &format!("since={kept}")).0, ["C"]);
    // The next version has the number of the one that was thrown away.
    set(&store, "one", &codes(&["A"]));
    wait_to_see(&server, &key, Ok(&["A"]));
    assert_eq!(refusals(&server, &key, &lost), LOST);
    assert_eq!(changes(&server, &key, &format!("since={kept}")).0, ["-C"]);
}

#[test]
fn rules_that_were_lost_before_a_start_are_gone() {
    if !are_files("rules that were lost before a start are gone") {
        return;
    }
    let store = catalog();
    set(&store, "one", &codes(&["A", "C"]));
    let key = store.key("partner", &["--assortment", "one"]);
    let state = store.path("state").display().to_string();
    let options = ["--public-url", "https://c.example", "--state-dir", &state];
    let server = store.serve_with(&options);
    let backup = store.path("backup.db").display().to_string();
    store.ok(&["backup", &backup]);
    let (_, kept) = changes(&server, &key, "limit=1");
    set(&store, "one", &codes(&["A", "B", "C"]));
    wait_to_see(&server, &key, Ok(&["A", "B", "C"]));
    let (_, lost) = changes(&server, &key, &format!("limit=1&since={kept}"));
    wait_for("the keys file", || {
        let file = std::fs::read(store.path("state/keys")).unwrap_or_default();
        String::from_utf8_lossy(&file)
            .contains(r#"\"B\""#)
            .then_some(())
    });
    drop(server);
    store.ok(&["restore", &backup, "--yes"]);
    // By their numbers, these follow the version that is lost.
    for code in ["A", "C"] {
        set(&store, "one", &only(code));
    }
    let server = store.serve_with(&options);
    wait_to_see(&server, &key, Ok(&["C"]));
    wait_for("the history of the rules", || {
        (refusals(&server, &key, &kept) == KNOWN).then_some(())
    });
    assert_eq!(refusals(&server, &key, &lost), LOST);
    let (rest, next) = changes(&server, &key, &format!("since={kept}"));
    assert_eq!(rest, ["C"]);
    // C wasn't visible in between, which may be told.
    let (named, _) = changes(&server, &key, &format!("since={next}"));
    assert_eq!(named, ["-A", "C"]);
}

#[test]
fn token_of_an_assignment_that_is_not_here_yet_is_not_gone() {
    if !are_files("an assignment that a server doesn't know; it takes a store that is a file") {
        return;
    }
    let store = catalog();
    set(&store, "one", &only("A"));
    set(&store, "two", &only("B"));
    let key = store.key("partner", &["--assortment", "one"]);
    let state = store.path("state").display().to_string();
    let public_url = ["--public-url", "https://catalog.example"];
    let options = [&public_url[..], &["--state-dir", &state]].concat();
    let server = store.serve_with(&options);
    wait_for("the files", || {
        let written = server.stderr().contains("the snapshot file is written");
        (written && store.path("state/keys").exists()).then_some(())
    });
    drop(server);
    store.ok(&["keys", "set", "partner", "--assortment", "two"]);
    let (_, token) = changes(&store.serve_with(&public_url), &key, "");
    let away = store.path("away.db");
    std::fs::rename(store.path("vitrine.db"), &away).expect("renamed");
    let server = store.serve_with(&options);
    wait_to_see(&server, &key, Ok(&["A"]));
    assert_eq!(refusals(&server, &key, &token), [Some(Refusal::Unknown); 2]);
    std::fs::rename(&away, store.path("vitrine.db")).expect("renamed");
    wait_for("the assignment", || {
        (refusals(&server, &key, &token) == KNOWN).then_some(())
    });
}
