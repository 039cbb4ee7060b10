//! Files of the state directory whose writes fail: they are written again, counted, and reported.

use std::fs;

use crate::harness::{Server, Store, gift_card, scrape, wait_for};

#[test]
fn failed_writes_are_retried_counted_and_reported() {
    let store = Store::of(&[gift_card("OLD")]);
    let directory = store.path("state");
    let serve = || {
        let options = [
            "--state-dir",
            &directory.display().to_string(),
            "--public-url",
            "https://catalog.example",
            "--admin-listen",
            "127.0.0.1:0",
        ];
        store.serve_with(&options)
    };
    let server = serve();
    let files = ["catalog.snapshot", "changes", "keys"].map(|name| directory.join(name));
    wait_for("all files", || {
        files.iter().all(|file| file.is_file()).then_some(())
    });
    // A directory in a file's place can't be replaced by a file.
    for file in &files {
        fs::remove_file(file).expect("the file");
        fs::create_dir_all(file.join("in the way")).expect("directories");
    }
    let report = store.load_products(&[gift_card("NEW")]);
    server.wait_for_loaded(&report);
    store.key("later", &[]);
    let names = ["snapshot", "changes", "keys"];
    wait_for("each write to fail", || {
        let scrape = scrape(&server);
        let failures = |name| {
            let series = format!("vitrine_state_file_write_failures_total{{file=\"{name}\"}}");
            scrape.value(&series)
        };
        names.iter().all(|name| failures(name) > 0.0).then_some(())
    });
    let reported =
        |server: &Server| server.ask_admin("GET", "/readyz").json()["state_files"].take();
    assert_eq!(reported(&server)["changes"]["failing"], true);
    for file in &files {
        fs::remove_dir_all(file).expect("a directory");
    }
    // Nothing else is published.
    wait_for("all files again", || {
        files.iter().all(|file| file.is_file()).then_some(())
    });
    wait_for("no failure", || {
        let reported = reported(&server);
        let is_well = |name: &&str| {
            let file = &reported[name];
            let age = file["age_seconds"].as_u64().expect("an age");
            file["failing"] == false && age < 60
        };
        names.iter().all(is_well).then_some(())
    });
    drop(server);
    let said = serve().stderr();
    assert!(said.contains("\"made_from\":\"snapshot file\""), "{said}");
}

#[test]
fn state_files_are_null_without_a_directory() {
    let store = Store::sample();
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    let reported = server.ask_admin("GET", "/readyz").json();
    assert!(reported["state_files"].is_null(), "{reported}");
}
