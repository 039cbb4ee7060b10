//! Copies kept by the changes feed while a server is killed, or its disk fails: no token that is known is called gone, and
//! the file of changes is whole.

use std::time::SystemTime;

use crate::disk::{BROKEN, Calls, Disk, FULL, is_thorough, wait_for_write};
use crate::harness::feed::{CatalogCopy, FeedServer, Refusal, StoppedFeed, aged, refusal};
use crate::harness::{Server, Store, gift_card, wait_for};
use crate::random::Random;

const PUBLIC: [&str; 2] = ["--public-url", "https://catalog.example"];

fn stopped() -> StoppedFeed {
    let store = Store::of(&["A", "B"].map(gift_card));
    let key = store.key("reader", &[]);
    StoppedFeed { store, key }
}

/// Serves a store with a state directory on a disk that fails once it is told to.
fn start(stopped: StoppedFeed, disk: &Disk) -> FeedServer {
    let StoppedFeed { store, key } = stopped;
    let mut command = store.command(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .args(PUBLIC)
        .arg("--state-dir")
        .arg(store.path("state"));
    disk.carry(&mut command);
    FeedServer {
        server: Server::start(command),
        store,
        key,
    }
}

/// Time at which the file of changes was last written.
fn written(store: &Store) -> Option<SystemTime> {
    let file = std::fs::metadata(store.path("state/changes")).ok()?;
    Some(file.modified().expect("a time"))
}

/// Returns true if the file of changes is just being written.
fn is_writing(store: &Store) -> bool {
    let names = std::fs::read_dir(store.path("state")).into_iter().flatten();
    names.flatten().any(|entry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(b".changes.")
    })
}

/// Asserts that all copies' tokens are known, however old.
fn assert_known(served: &FeedServer, copies: &[CatalogCopy]) {
    for copy in copies {
        wait_for("the history", || {
            let refusals = served.refusals(copy);
            assert!(!refusals.contains(&Some(Refusal::Gone)));
            (refusals == [None; 2]).then_some(())
        });
    }
}

#[test]
fn file_of_changes_of_a_killed_server_is_whole() {
    let rounds = if is_thorough() { 60 } else { 6 };
    let mut stopped = stopped();
    let mut copies = Vec::new();
    let mut during = 0;
    for round in 0..rounds {
        let state = stopped.store.path("state").display().to_string();
        let mut served = stopped.start(&["--state-dir", &state]);
        assert!(!is_writing(&served.store), "what was left is gone");
        let said = served.server.stderr();
        assert!(!said.contains("the file of changes isn't used"), "{said}");
        assert_known(&served, &copies);
        copies.push(served.copy(""));
        let before = written(&served.store);
        served.load(&[gift_card("A"), gift_card(&format!("N{round}"))]);
        wait_for_write("the file of changes", || {
            let is_writing = is_writing(&served.store);
            during += usize::from(is_writing);
            is_writing || written(&served.store) != before
        });
        served.server.signal("KILL");
        served.server.wait();
        stopped = served.stop();
    }
    println!("{during} of {rounds} servers were killed while they wrote the file");
    let served = stopped.start(&[]);
    for copy in &mut copies {
        served.settle(copy);
    }
}

#[test]
fn full_disk_costs_the_file_of_changes_and_nothing_else() {
    let stopped = stopped();
    let state = stopped.store.path("state");
    let disk = Disk::new(&state, &stopped.store.path(""), Calls::Writes);
    let served = start(stopped, &disk);
    wait_for_write("the file of changes", || written(&served.store).is_some());
    let mut copy = served.copy("");
    disk.fail("from 1", FULL);
    served.load(&[gift_card("A"), gift_card("C")]);
    wait_for_write("a warning", || {
        let said = served.server.stderr();
        said.contains("the file of changes can't be written")
    });
    assert_eq!(served.walk(&mut copy), ["-B", "C"]);
    disk.mend();
    let before = written(&served.store);
    served.load(&[gift_card("A"), gift_card("D")]);
    wait_for_write("the file of changes", || written(&served.store) != before);
    wait_for("nothing half-written to be left", || {
        (!is_writing(&served.store)).then_some(())
    });
    assert_eq!(served.walk(&mut copy), ["-C", "D"]);
    served.settle(&mut copy);
}

/// Some calls on the store fail while loads come, and a client asks with a token that is old enough to be called gone.
#[test]
fn failing_store_never_makes_a_token_gone() {
    let mut random = Random::seeded("calls on a store that fail under the changes feed");
    let stopped = stopped();
    let under = stopped.store.path("vitrine.db");
    let disk = Disk::new(&under, &stopped.store.path(""), Calls::All);
    let mut served = start(stopped, &disk);
    let mut copies = vec![CatalogCopy::of("")];
    let (mut unavailable, rounds) = (0, if is_thorough() { 100 } else { 6 });
    for round in 0..rounds {
        disk.fail(&format!("percent 20 {}", random.next() % 1000), BROKEN);
        served
            .store
            .load_products(&[gift_card("A"), gift_card(&format!("N{round}"))]);
        // An answer with 503 takes a second.
        for copy in copies.iter_mut().rev().take(3) {
            unavailable += usize::from(!ask(&served, copy));
        }
        disk.mend();
        copies.push(CatalogCopy::of(""));
        if round % 3 == 2 {
            served = restart(served, &disk);
        }
    }
    println!(
        "{rounds} loads, {} calls failed, {unavailable} answers with 503",
        disk.failed().lines().count()
    );
    assert!(!disk.failed().is_empty(), "no call failed");
    for copy in &mut copies {
        wait_for("the last product", || {
            ask(&served, copy);
            let last = format!("N{}", rounds - 1);
            copy.products.contains_key(&last).then_some(())
        });
        served.settle(copy);
    }
}

fn restart(served: FeedServer, disk: &Disk) -> FeedServer {
    start(served.stop(), disk)
}

/// Asks with the token as if it were a minute old. Returns false if the server says that it doesn't know it yet.
fn ask(served: &FeedServer, copy: &mut CatalogCopy) -> bool {
    copy.token = copy.token.take().map(|token| aged(&token, 60));
    let reply = served.ask(copy, "");
    match refusal(&reply) {
        None => drop(copy.apply(&reply)),
        Some(refused) => assert_eq!(refused, Refusal::Unknown),
    }
    reply.status == 200
}
