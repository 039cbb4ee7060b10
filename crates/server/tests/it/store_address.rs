//! The store's address: which one is taken, that a password in it is never shown, and that a wrong one makes no store.

use crate::harness::{Server, Store, are_files, gift_card, text};

#[test]
fn password_in_the_address_is_never_shown() {
    let store = Store::new();
    let said = |arguments: &[&str], url: &str| {
        let output = store.command(arguments).env("VITRINE_STORE", url).output();
        let output = output.expect("vitrine runs");
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.contains("hunter2"), "{arguments:?} of {url}: {said}");
        (output.status.code(), said)
    };
    // Port 1: nobody listens there.
    for url in [
        "postgres://vitrine:hunter2@127.0.0.1:1/catalog",
        "postgres://127.0.0.1:1/catalog?user=vitrine&password=hunter2",
        "postgres://vitrine:hunter2@127.0.0.1:1/catalog?sslmode=verify-ca",
        "postgres://vitrine:hunter2@/catalog",
        "postgre://vitrine:hunter2@127.0.0.1/catalog",
        "vitrine:hunter2@127.0.0.1",
    ] {
        for arguments in [
            &["history"][..],
            &["keys", "list"],
            &["check"],
            &["restore", "--yes", "no.db"],
        ] {
            let (code, said) = said(arguments, url);
            assert_eq!(code, Some(1), "{said}");
            assert!(said.starts_with("vitrine: "), "{said}");
        }
        for help in [&["--help"][..], &["load", "--help"]] {
            assert_eq!(said(help, url).0, Some(0));
        }
    }
    let url = "postgres://vitrine@127.0.0.1:1/catalog";
    let (_, away) = said(&["history"], url);
    assert!(
        away.contains("can't reach the database at postgres://vitrine@127.0.0.1:1/catalog"),
        "{away}"
    );
}

#[test]
fn password_may_lie_in_a_file() {
    let store = Store::new();
    let url = "postgres://vitrine@127.0.0.1:1/catalog";
    let file = store.write("password", "hunter2\n").display().to_string();
    let missing = store.path("none").display().to_string();
    for (file, told) in [
        (&file, "can't reach the database"),
        (&missing, "can't open"),
    ] {
        let arguments = ["history", "--store", url, "--store-password-file", file];
        let output = store.run(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(told) && !said.contains("hunter2"), "{said}");
    }
}

const SERVE: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];

/// A mistyped path became an empty store, and the server answered 503.
#[test]
fn serve_without_a_store_ends_and_makes_none() {
    let store = Store::new();
    for _ in 0..2 {
        let output = store.run(&SERVE);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("there is no store at") && said.contains("--create"),
            "{said}"
        );
        assert!(!store.path("vitrine.db").exists());
    }
    // One that was asked for stays, and is served.
    let mut create = store.command(&SERVE);
    create.env("VITRINE_CREATE", "true");
    drop(Server::start(create));
    let server = Server::start(store.command(&SERVE));
    let key = store.key("reader", &[]);
    assert_eq!(server.get(&key, "/v2/product").status, 503, "it is empty");
    let report = store.load_products(&[gift_card("A")]);
    server.wait_for_loaded(&report);
    assert_eq!(server.get(&key, "/v2/product/A").status, 200);
}

#[test]
fn serve_takes_the_store_that_a_key_made() {
    let store = Store::new();
    let key = store.key("reader", &[]);
    let server = Server::start(store.command(&SERVE));
    assert_eq!(server.get(&key, "/v2/product").status, 503);
}

/// Two servers overwrote each other's snapshot and keys.
#[test]
fn state_directory_in_use_is_refused_with_its_owner() {
    if !are_files("state directory in use is refused with its owner") {
        return;
    }
    let store = Store::of(&[gift_card("A")]);
    let state = store.path("state").display().to_string();
    let serve = [&SERVE[..], &["--state-dir", &state]].concat();
    let first = Server::start(store.command(&serve));
    let refused = store.run(&serve);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let owner = format!("PID {}, listening on {}", first.id(), first.address);
    assert!(said.contains(&owner) && said.contains(&state), "{said}");
    // By SIGKILL: nothing is left that locks.
    drop(first);
    let second = Server::start(store.command(&serve));
    let said = text(&store.run(&serve).stderr);
    let owner = format!("PID {}, listening on {}", second.id(), second.address);
    assert!(said.contains(&owner), "{said}");
}

/// SQLite takes a relative name that begins with `file:` for a URI, and `:memory:` for no file.
#[test]
fn names_that_sqlite_reads_otherwise_are_those_of_files() {
    let store = Store::new();
    let products = store.write("products.ndjson", gift_card("A").to_string());
    let products = products.display().to_string();
    let folder = store.path("folder");
    std::fs::create_dir(&folder).expect("a directory");
    for name in ["file:odd.db", ":memory:"] {
        let ok = |arguments: &[&str]| {
            let mut command = store.command(arguments);
            command.env("VITRINE_STORE", format!("sqlite:{name}"));
            let output = command.current_dir(&folder).output();
            let output = output.expect("vitrine runs");
            let said = text(&output.stderr);
            assert!(output.status.success(), "{name} {arguments:?}: {said}");
            text(&output.stdout)
        };
        ok(&["load", &products]);
        ok(&["keys", "create", "--label", "partner"]);
        assert!(ok(&["history"]).contains("live"));
        ok(&["check"]);
        let backup = format!("{name}-backup");
        ok(&["backup", &backup]);
        ok(&["restore", "--yes", &backup]);
        assert!(ok(&["keys", "list"]).contains("partner"));
        assert!(folder.join(name).metadata().expect("a file").len() > 0);
    }
    assert!(!folder.join("odd.db").exists());
}
