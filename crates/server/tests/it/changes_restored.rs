//! Tokens of the changes feed after a restore, a move to another store, or damage: what was thrown away is gone.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use vitrine_model::content::TextDigest;

use crate::changes::named;
use crate::changes_gone::{KNOWN, LOST, revisions, write_file};
use crate::harness::feed::{
    CatalogCopy, FeedServer, Refusal, StoppedFeed, aged, of_unknown_revision,
};
use crate::harness::{Store, are_databases, are_files, gift_card, overwrite_documents, wait_for};

/// Backs the store up to a file.
fn backup(store: &Store) -> String {
    let file = store.path("backup.db").display().to_string();
    store.ok(&["backup", &file]);
    file
}

#[test]
fn restore_ends_tokens_of_what_was_thrown_away() {
    if !are_files("restore ends tokens of what was thrown away") {
        return;
    }
    let (served, copies) = revisions(2, &[]);
    let backup = backup(&served.store);
    let load = |number: usize| served.load(&[named("P1", &format!("Lost {number}"))]);
    load(3);
    let lost = served.copy("");
    load(4);
    let newest = served.copy("");
    served.store.ok(&["restore", "--yes", &backup]);
    wait_for("the restored catalog", || {
        (served.copy("").products == copies[1].products).then_some(())
    });
    let assert_all = |served: &FeedServer, what: &str| {
        assert_eq!(served.refusals(&copies[0]), KNOWN, "{what}");
        assert_eq!(served.refusals(&copies[1]), KNOWN, "{what}");
        assert_eq!(served.refusals(&lost), LOST, "{what}");
        assert_eq!(served.refusals(&newest), LOST, "{what}");
    };
    assert_all(&served, "restored");
    // Numbers repeat: the thrown-away revisions had the same.
    for number in [3, 4, 5] {
        served.load(&[named("P1", &format!("Again {number}")), gift_card("R")]);
        assert_all(&served, "loaded again");
    }
    let served = served.restart(&[]);
    assert_all(&served, "started again");
    for mut copy in copies.clone() {
        served.settle(&mut copy);
    }
}

#[test]
fn file_of_changes_from_before_a_restore_is_not_believed() {
    if !are_files("file of changes from before a restore is not believed") {
        return;
    }
    let (served, copies) = revisions(2, &[]);
    let backup = backup(&served.store);
    served.load(&[named("P1", "Lost")]);
    let lost = served.copy("");
    let (served, state) = write_file(served);
    let served = served.stop();
    served.store.ok(&["restore", "--yes", &backup]);
    served
        .store
        .load_products(&[named("P1", "Again"), gift_card("S")]);
    let served = served.start(&["--state-dir", &state]);
    assert_eq!(served.refusals(&lost), LOST);
    for mut copy in copies {
        assert_eq!(served.refusals(&copy), KNOWN);
        served.settle(&mut copy);
    }
}

/// As an operator might do it who doesn't know `vitrine restore`: ids and numbers are those of before.
#[test]
fn older_file_in_the_place_of_the_store_is_noticed() {
    if !are_files("older file in the place of the store is noticed") {
        return;
    }
    let (served, copies) = revisions(2, &[]);
    let backup = backup(&served.store);
    served.load(&[named("P1", "Lost")]);
    let lost = served.copy("");
    let (served, state) = write_file(served);
    let served = served.stop();
    for left in ["vitrine.db-wal", "vitrine.db-shm"] {
        let _ = fs::remove_file(served.store.path(left));
    }
    fs::copy(&backup, served.store.path("vitrine.db")).expect("a copy");
    let served = served.start(&["--state-dir", &state]);
    for number in [3, 4] {
        assert_eq!(served.refusals(&lost), LOST);
        for copy in &copies {
            assert_eq!(served.refusals(copy), KNOWN);
            served.settle(&mut copy.clone());
        }
        served.load(&[named("P1", &format!("Again {number}")), gift_card("S")]);
    }
}

#[test]
fn restore_keeps_takedowns_and_tells_them() {
    if !are_files("restore keeps takedowns and tells them") {
        return;
    }
    let described = |code: &str| {
        let mut product = gift_card(code);
        let markdown = format!("# {code}");
        product["gift_card"]["content_resources"]["description_md"] = json!(markdown);
        product
    };
    let served = FeedServer::of(&["A", "B"].map(described), &[]);
    let take_down = |code: &str| {
        let digest = TextDigest::of(&format!("# {code}")).to_string();
        served.change(|store| drop(store.ok(&["texts", "take-down", &digest])));
    };
    take_down("A");
    let mut kept = served.copy("");
    let backup = backup(&served.store);
    take_down("B");
    let lost = served.copy("");
    served.store.ok(&["restore", "--yes", &backup]);
    wait_for("the state of before to be lost", || {
        (served.refusals(&lost) == LOST).then_some(())
    });
    // What was taken down since stays so, which is a change for those who saw it before.
    assert_eq!(served.walk(&mut kept), ["B"]);
    served.settle(&mut kept);
    assert_eq!(kept.products, lost.products);
    let mut again = served.copy("");
    take_down_again(&served);
    assert_eq!(served.walk(&mut again), ["A"]);
    served.settle(&mut again);
}

fn take_down_again(served: &FeedServer) {
    let digest = TextDigest::of("# A").to_string();
    served.change(|store| drop(store.ok(&["texts", "put-back", &digest])));
}

#[test]
fn tokens_go_on_after_a_move_to_postgresql() {
    if !are_databases() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("vitrine.db");
    let products = |number: usize| [named("A", &format!("Revision {number}")), gift_card("B")];
    let old = Store::at(format!("sqlite:{}", file.display()));
    old.load_products(&products(1));
    let old = FeedServer::over(old, &[]);
    let mut copies = vec![old.copy("")];
    for number in [2, 3] {
        old.load(&products(number));
        copies.push(old.copy(""));
    }
    let backup = backup(&old.store);
    let StoppedFeed { store: _old, key } = old.stop();
    let store = Store::new();
    store.ok(&["restore", "--yes", &backup]);
    let new = StoppedFeed { store, key }.start(&[]);
    new.load(&[gift_card("A"), gift_card("C")]);
    for mut copy in copies {
        assert_eq!(new.refusals(&copy), KNOWN);
        assert_eq!(new.walk(&mut copy), ["A", "-B", "C"]);
        new.settle(&mut copy);
    }
}

#[test]
fn restore_into_postgresql_ends_what_it_throws_away() {
    if !are_databases() {
        return;
    }
    let other = FeedServer::of(&[gift_card("A")], &[]);
    let token = other.copy("");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("vitrine.db");
    let backup = Store::at(format!("sqlite:{}", file.display()));
    backup.load_products(&[gift_card("X")]);
    let key = backup.key("kept", &[]);
    other.store.ok(&[
        "restore",
        "--yes",
        "--allow",
        "widen",
        &file.display().to_string(),
    ]);
    let served = StoppedFeed {
        store: Store::at(other.store.url()),
        key,
    };
    let served = served.start(&[]);
    assert_eq!(served.refusals(&token), LOST);
    let mut anew = CatalogCopy::of("");
    assert_eq!(served.walk(&mut anew), ["X"]);
    served.settle(&mut anew);
}

#[test]
fn damaged_product_is_a_gap_and_no_removal() {
    if !are_files("damaged product is a gap and no removal") {
        return;
    }
    let served = FeedServer::of(&[gift_card("A"), named("B", "Unmistakable")], &[]);
    let sound = served.copy("");
    let file = PathBuf::from(backup(&served.store));
    overwrite_documents(&file, "Unmistakable", "Unmistakab\"e");
    let stopped = StoppedFeed {
        store: Store::at(format!("sqlite:{}", file.display())),
        key: served.key.clone(),
    };
    let served = stopped.start(&[]);
    let mut damaged = served.copy("");
    assert_eq!(damaged.products.keys().collect::<Vec<_>>(), ["A"]);
    served.settle(&mut damaged);
    // However young the token is: the product isn't told as removed, and the copy is replaced.
    assert_eq!(served.refusals(&sound), [Some(Refusal::Gone); 2]);
    let stopped = served.stop();
    overwrite_documents(&file, "Unmistakab\"e", "Unmistakable");
    let served = stopped.start(&[]);
    assert_eq!(served.refusals(&damaged), [Some(Refusal::Gone); 2]);
    assert_eq!(served.refusals(&sound), KNOWN);
}

#[test]
fn product_shown_as_it_was_last_good_is_a_gap() {
    let mut described = gift_card("A");
    described["gift_card"]["content_resources"]["description_md"] = "# One".into();
    let served = FeedServer::of(&[described, gift_card("B")], &[]);
    let sound = served.copy("");
    let digest = TextDigest::of("# One").to_string();
    let assert_ended = |copy: &CatalogCopy| {
        wait_for("the token to end", || {
            (served.refusals(copy) == [Some(Refusal::Gone); 2]).then_some(())
        });
    };
    let changed = |document: &str| format!("{document} || ' '");
    served.store.set_document(changed, "code = 'B'");
    // The server reads all products again.
    served.store.ok(&["texts", "take-down", &digest]);
    assert_ended(&sound);
    let mut damaged = served.copy("");
    assert_eq!(damaged.products.keys().collect::<Vec<_>>(), ["A", "B"]);
    served.settle(&mut damaged);
    let restored = |document: &str| format!("rtrim({document})");
    served.store.set_document(restored, "code = 'B'");
    served.store.ok(&["texts", "put-back", &digest]);
    assert_ended(&damaged);
}

#[test]
fn history_that_does_not_match_its_digest_is_a_gap() {
    let served = FeedServer::of(&[named("A", "First")], &[]);
    let first = served.copy("");
    served.load(&[named("A", "Second")]);
    let second = served.copy("");
    served.load(&[named("A", "Third")]);
    served
        .store
        .sql("update product_version set countries = '[]' where from_revision = 1");
    let served = served.restart(&[]);
    wait_for("the history to be read", || {
        (served.refusals(&second) == KNOWN).then_some(())
    });
    assert_eq!(served.refusals(&first), LOST);
}

#[test]
fn damaged_history_is_a_gap() {
    let served = FeedServer::of(&[named("A", "First")], &[]);
    let first = served.copy("");
    served.load(&[named("A", "Second")]);
    let second = served.copy("");
    served.load(&[named("A", "Third")]);
    let third = served.copy("");
    // The version of the first revision, which ended with the second one: what that changed is unknown.
    served
        .store
        .sql("update product_version set countries = 'nonsense' where from_revision = 1");
    assert_eq!(served.refusals(&first), KNOWN, "it was read before");
    let served = served.restart(&[]);
    wait_for("the history to be read", || {
        (served.refusals(&second) == KNOWN).then_some(())
    });
    assert_eq!(served.refusals(&first), LOST);
    for mut copy in [second, third] {
        served.settle(&mut copy);
    }
}

#[test]
fn emptied_store_ends_no_token() {
    if !are_files("emptied store ends no token") {
        return;
    }
    let (served, copies) = revisions(2, &[]);
    for name in ["vitrine.db", "vitrine.db-wal", "vitrine.db-shm"] {
        let _ = fs::remove_file(served.store.path(name));
    }
    // As an operator might make a new one by mistake.
    served.store.key("of the new store", &[]);
    wait_for("the empty store to be refused", || {
        let said = served.server.stderr();
        said.contains("the store is empty now").then_some(())
    });
    for copy in &copies {
        assert_eq!(served.refusals(copy), KNOWN);
        let unknown = |token: &str| of_unknown_revision(&aged(token, 60));
        assert_eq!(served.refusal(copy, unknown), Some(Refusal::Unknown));
    }
    // Another catalog in its place is another history.
    served.store.load_products(&[gift_card("X")]);
    let key = served.store.key("reader of it", &[]);
    let served = FeedServer { key, ..served };
    for copy in &copies {
        wait_for("the new catalog", || {
            let reply = served.ask(copy, "");
            (reply.status == 503).then_some(())
        });
        assert_eq!(served.refusals(copy), LOST);
    }
    served.settle(&mut CatalogCopy::of(""));
}
