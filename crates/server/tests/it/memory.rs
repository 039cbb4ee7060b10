//! What a server holds.

use crate::harness::{Store, scrape, wait_for};

/// Where all products change, nothing of the snapshot before is shared: once nobody reads that, it is gone.
#[test]
fn a_catalog_that_is_replaced_again_and_again_takes_no_more_memory() {
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
