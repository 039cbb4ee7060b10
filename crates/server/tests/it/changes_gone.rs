//! Tokens of the changes feed that can't be continued, and those that still can: after a prune, at a start, behind.

use std::fs;
use std::path::PathBuf;

use crate::changes::named;
use crate::harness::feed::{
    CHANGES, CatalogCopy, FeedServer, Refusal, aged, list, of_unknown_revision, refusal,
};
use crate::harness::{Server, Store, are_files, gift_card, wait_for};

/// A token that isn't known is refused softly while it is young.
pub const LOST: [Option<Refusal>; 2] = [Some(Refusal::Unknown), Some(Refusal::Gone)];
pub const KNOWN: [Option<Refusal>; 2] = [None, None];

/// Serves a catalog of `P1` that is named after each revision, and returns a copy of each.
pub fn revisions(count: usize, options: &[&str]) -> (FeedServer, Vec<CatalogCopy>) {
    let revision = |number: usize| named("P1", &format!("Revision {number}"));
    let served = FeedServer::of(&[revision(1)], options);
    let mut copies = vec![served.copy("")];
    for number in 2..=count {
        served.load(&[revision(number), gift_card(&format!("Q{number}"))]);
        copies.push(served.copy(""));
    }
    (served, copies)
}

#[test]
fn token_of_another_public_url_is_gone() {
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("reader", &[]);
    let [here, there] = ["https://a.example", "https://b.example"].map(|url| store.serve_as(url));
    let mut copy = CatalogCopy::of("");
    copy.walk(&here, &key, "");
    let ask = |server: &Server| refusal(&server.get(&key, &copy.target("")));
    assert_eq!(ask(&there), Some(Refusal::Gone), "however young it is");
    assert_eq!(ask(&here), None);
    drop(here);
    let path = store.serve_as("https://a.example/shop");
    assert_eq!(ask(&path), Some(Refusal::Gone));
    assert_eq!(ask(&store.serve_as("https://a.example")), None);
}

#[test]
fn unknown_position_is_gone_only_once_it_is_old() {
    let served = FeedServer::of(&["A", "B"].map(gift_card), &[]);
    let mut walking = CatalogCopy::of("");
    walking.ask(&served.server, &served.key, "limit=1");
    for copy in [&walking, &served.copy("")] {
        // Before: in the future, as another server's clock may be.
        for (age, expected) in [
            (-3600, Refusal::Unknown),
            (0, Refusal::Unknown),
            (20, Refusal::Unknown),
            (31, Refusal::Gone),
            (1 << 40, Refusal::Gone),
        ] {
            assert_eq!(
                served.refusal(copy, |token| of_unknown_revision(&aged(token, age))),
                Some(expected),
                "{age}"
            );
            assert_eq!(
                served.refusal(copy, |token| aged(token, age)),
                None,
                "{age}"
            );
        }
    }
}

#[test]
fn token_is_gone_once_its_state_was_replaced_too_long_ago() {
    let served = FeedServer::of(&["A", "B"].map(gift_card), &["--changes-keep", "1s"]);
    let mut walking = CatalogCopy::of("");
    walking.ask(&served.server, &served.key, "limit=1");
    let copy = served.copy("");
    served.load(&["A", "C"].map(gift_card));
    let current = served.copy("");
    for replaced in [walking, copy] {
        wait_for("the token to end", || {
            (served.refusals(&replaced) == LOST).then_some(())
        });
    }
    // What is live is never too old.
    assert_eq!(served.refusals(&current), KNOWN);
    let mut anew = served.copy("");
    served.settle(&mut anew);
}

#[test]
fn unreadable_store_never_makes_a_token_gone() {
    if !are_files("unreadable store never makes a token gone") {
        return;
    }
    let (served, copies) = revisions(2, &[]);
    let bring_back = take_away(&served.store);
    served.store.write("vitrine.db", "no store at all");
    wait_for("the store to be missed", || {
        let said = served.server.stderr();
        said.contains("the store can't be read; serving from memory")
            .then_some(())
    });
    let unknown = || served.refusal(&copies[0], |token| of_unknown_revision(&aged(token, 3600)));
    assert_eq!(unknown(), Some(Refusal::Unknown));
    for copy in &copies {
        assert_eq!(served.refusals(copy), KNOWN);
    }
    fs::remove_file(served.store.path("vitrine.db")).expect("removed");
    bring_back();
    wait_for("the store to be read again", || {
        (unknown() == Some(Refusal::Gone)).then_some(())
    });
}

/// The second server has a copy of the store, which never catches up.
#[test]
fn server_that_is_behind_answers_503_before_410() {
    if !are_files("server that is behind answers 503 before 410") {
        return;
    }
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let behind = served.store.path("behind.db");
    served.store.ok(&["backup", &behind.display().to_string()]);
    let behind = Store::at(format!("sqlite:{}", behind.display()));
    let behind = behind.serve_as("https://catalog.example");
    let common = served.copy("");
    served.load(&["A", "B"].map(gift_card));
    let mut walking = common.clone();
    served.load(&["A", "B", "C"].map(gift_card));
    walking.ask(&served.server, &served.key, "limit=1");
    for copy in [&served.copy(""), &walking] {
        let token = copy.token.as_ref().expect("a token");
        let ask = |token: &str| {
            let target = format!("{CHANGES}?since={token}");
            refusal(&behind.get(&served.key, &target))
        };
        assert_eq!([ask(token), ask(&aged(token, 60))], LOST);
        // A wait doesn't begin with it either.
        assert_eq!(ask(&format!("{token}&wait=50")), Some(Refusal::Unknown));
    }
    let reply = behind.get(&served.key, &common.target(""));
    assert_eq!(refusal(&reply), None, "what both know goes on");
}

#[test]
fn token_of_a_newer_server_is_followed_at_once() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let other = served.store.serve_as("https://catalog.example");
    let mut copy = CatalogCopy::of("");
    let (rounds, mut unavailable) = (10, 0);
    for round in 0..rounds {
        served.load(&[named("A", &format!("Round {round}"))]);
        copy.walk(&served.server, &served.key, "");
        wait_for("the other server", || {
            let reply = other.get(&served.key, &copy.target(""));
            match refusal(&reply) {
                None => Some(copy.apply(&reply)),
                Some(refusal) => {
                    assert_eq!(refusal, Refusal::Unknown);
                    unavailable += 1;
                    None
                }
            }
        });
        copy.settle(&other, &served.key);
    }
    println!("{rounds} tokens from a newer server: {unavailable} answers with 503");
    assert!(
        unavailable < rounds,
        "it looks at its store within a second"
    );
}

/// Serves the store with a state directory until all of its files are written.
pub fn write_file(served: FeedServer) -> (FeedServer, String) {
    let state = served.store.path("state").display().to_string();
    let served = served.restart(&["--state-dir", &state]);
    wait_for("the files of the state directory", || {
        let is_there = |name: &&str| served.store.path(&format!("state/{name}")).exists();
        ["catalog.snapshot", "keys", "changes"]
            .iter()
            .all(is_there)
            .then_some(())
    });
    (served, state)
}

#[test]
fn prune_spares_tokens_of_servers_that_know_them() {
    let (served, copies) = revisions(5, &[]);
    let (served, state) = write_file(served);
    served.store.ok(&["prune", "--keep", "2", "--yes"]);
    let assert_known = |served: &FeedServer, expected: [[Option<Refusal>; 2]; 5]| {
        for (copy, expected) in copies.iter().zip(expected) {
            assert_eq!(served.refusals(copy), expected);
            if expected == KNOWN {
                served.settle(&mut copy.clone());
            }
        }
    };
    assert_known(&served, [KNOWN; 5]);
    served.load(&[gift_card("P1"), gift_card("Z")]);
    assert_known(&served, [KNOWN; 5]);
    let served = served.restart(&["--state-dir", &state]);
    wait_for("the file of changes to be read", || {
        (served.refusals(&copies[0]) == KNOWN).then_some(())
    });
    assert_known(&served, [KNOWN; 5]);
    let served = served.restart(&[]);
    wait_for("the store's history to be read", || {
        (served.refusals(&copies[4]) == KNOWN).then_some(())
    });
    assert_known(&served, [LOST, LOST, LOST, KNOWN, KNOWN]);
}

#[test]
fn damaged_file_of_changes_is_not_used() {
    let (served, copies) = revisions(3, &[]);
    let (served, state) = write_file(served);
    let file = served.store.path("state/changes");
    let mut served = served.stop();
    let whole = fs::read(&file).expect("the file");
    let stranger = write_file(revisions(2, &[]).0).0;
    let other = fs::read(stranger.store.path("state/changes")).expect("the file");
    let damaged = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let half = whole.len() / 2;
    let cases = [
        (Vec::new(), "damaged"),
        (whole[..half].to_vec(), "damaged"),
        (damaged(0), "damaged"),
        (damaged(16), "another format"),
        (damaged(60), "damaged"),
        (damaged(half), "damaged"),
        (damaged(whole.len() - 1), "damaged"),
        (other, "another store"),
    ];
    for (bytes, reason) in cases {
        fs::write(&file, bytes).expect("the file");
        let started = served.start(&["--state-dir", &state]);
        for copy in &copies {
            let mut copy = copy.clone();
            wait_for("the store's history", || {
                (started.refusals(&copy) == KNOWN).then_some(())
            });
            started.settle(&mut copy);
        }
        let said = started.server.stderr();
        let said = said
            .lines()
            .find(|line| line.contains("the file of changes isn't used"));
        assert!(said.is_some_and(|line| line.contains(reason)), "{said:?}");
        served = started.stop();
    }
}

#[test]
fn start_without_the_store_goes_on_from_the_file() {
    if !are_files("start without the store goes on from the file") {
        return;
    }
    let (served, copies) = revisions(3, &[]);
    let (served, state) = write_file(served);
    let listed = list(&served.server, &served.key, "");
    let served = served.stop();
    let _bring_back = take_away(&served.store);
    let served = served.start(&["--state-dir", &state]);
    for copy in &copies {
        let mut copy = copy.clone();
        served.settle(&mut copy);
        assert_eq!(copy.products, listed);
    }
    let unknown = || served.refusal(&copies[0], |token| of_unknown_revision(&aged(token, 3600)));
    assert_eq!(unknown(), Some(Refusal::Unknown));
}

/// The journal knows the products that name a text as of its own state, not as of an earlier one.
#[test]
fn file_of_changes_newer_than_the_snapshot_waits_for_the_store() {
    if !are_files("file of changes newer than the snapshot waits for the store") {
        return;
    }
    let (served, copies) = revisions(2, &[]);
    let (served, state) = write_file(served);
    let files = ["state/changes", "state/catalog.snapshot"].map(|name| served.store.path(name));
    let older = files
        .each_ref()
        .map(|file| fs::read(file).expect("the file"));
    served.load(&[gift_card("NEW")]);
    wait_for("the file of changes", || {
        let changes = fs::read(&files[0]).expect("the file");
        (changes != older[0]).then_some(())
    });
    let stopped = served.stop();
    fs::write(&files[1], &older[1]).expect("written");
    let bring_back = take_away(&stopped.store);
    let served = stopped.start(&["--state-dir", &state]);
    assert_eq!(served.refusals(&copies[0]), [Some(Refusal::Unknown); 2]);
    assert_eq!(served.refusals(&copies[1]), KNOWN, "of the snapshot itself");
    bring_back();
    wait_for("the store to be read", || {
        (served.refusals(&copies[0]) == KNOWN).then_some(())
    });
    for mut copy in copies {
        served.settle(&mut copy);
    }
}

/// Takes the store away; returns what brings it back.
fn take_away(store: &Store) -> impl FnOnce() + use<> {
    let files = ["vitrine.db", "vitrine.db-wal", "vitrine.db-shm"].map(|name| store.path(name));
    let away = |file: &PathBuf| PathBuf::from(format!("{}.away", file.display()));
    let files: Vec<_> = files.into_iter().filter(|file| file.exists()).collect();
    for file in &files {
        fs::rename(file, away(file)).expect("renamed");
    }
    move || {
        for file in &files {
            fs::rename(away(file), file).expect("renamed");
        }
    }
}

/// Once the store is back, there is a moment at which the server has read it and answers from its files still.
#[test]
fn token_newer_than_the_files_of_a_start_is_never_gone() {
    if !are_files("token newer than the files of a start is never gone") {
        return;
    }
    let (served, _) = revisions(2, &[]);
    let (served, state) = write_file(served);
    let served = served.restart(&[]);
    served.load(&[gift_card("NEW")]);
    let mut newest = served.copy("");
    let stopped = served.stop();
    let bring_back = take_away(&stopped.store);
    let served = stopped.start(&["--state-dir", &state]);
    let refusal = || served.refusal(&newest, |token| aged(token, 60));
    assert_eq!(refusal(), Some(Refusal::Unknown));
    bring_back();
    wait_for("the store to be read", || match refusal() {
        None => Some(()),
        Some(refused) => {
            assert_eq!(refused, Refusal::Unknown);
            None
        }
    });
    served.settle(&mut newest);
}
