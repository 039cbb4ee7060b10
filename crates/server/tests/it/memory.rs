//! Memory of a server, and the size of its store's log.

use crate::harness::{Store, are_files, gift_card, random_letters, scrape, wait_for};

/// A revision that changes all products shares nothing with the snapshot before: once nobody reads that, it
/// is gone.
#[test]
fn replacing_the_catalog_keeps_memory_flat() {
    let store = Store::new();
    // So many that the megabytes that replacing needs once, for threads and the store's cache, are few beside them.
    let products = store.ok(&["generate", "--products", "20000"]);
    let others = products.replace("\"name\":\"", "\"name\":\"Another ");
    let files = [
        store.write("products.ndjson", &products),
        store.write("others.ndjson", &others),
    ];
    store.load(&files[0]);
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    let catalog = scrape(&server).value("vitrine_catalog_bytes");
    let resident = || scrape(&server).value("process_resident_memory_bytes");
    let before = resident();
    for number in 1..=3 {
        let report = store.load(&files[number % 2]);
        server.wait_for_loaded(&report);
    }
    // One old one would be the catalog once more.
    wait_for("the memory of old catalogs to be given back", || {
        let grown = resident() - before;
        eprintln!("{:.2} times the catalog more", grown / catalog);
        (grown < catalog * 0.7).then_some(())
    });
}

/// The log of changes beside an SQLite store had 5.7 GB after five replaces, as long as a server followed it.
#[test]
fn sqlite_log_is_small_again_after_replaces_beside_a_server() {
    if !are_files("SQLite log is small again after replaces beside a server") {
        return;
    }
    let store = Store::of(&[gift_card("A")]);
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    let log = store.path("vitrine.db-wal");
    let log_bytes = || std::fs::metadata(&log).map_or(0, |log| log.len());
    for round in 1..4_u64 {
        let product = |number: u64| {
            let mut product = gift_card(&format!("P{number}"));
            let policy = random_letters(250_000, 1_000 * round + number);
            product["gift_card"]["expiry"]["date_policy"] = policy.into();
            product
        };
        let report = store.load_products(&(0..200_u64).map(product).collect::<Vec<_>>());
        assert!(log_bytes() > 32 << 20, "too little to fill the log");
        server.wait_for_loaded(&report);
    }
    wait_for("the log to be small", || {
        (log_bytes() <= 32 << 20).then_some(())
    });
    wait_for("the metric", || {
        let told = scrape(&server).value("vitrine_sqlite_log_bytes");
        (told <= f64::from(32 << 20)).then_some(())
    });
    assert_eq!(server.ask_admin("GET", "/readyz").status, 200);
}
