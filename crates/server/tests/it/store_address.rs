//! The store's address: which one is taken, and that a password in it is never shown.

use crate::harness::{Store, text};

#[test]
fn a_password_in_the_address_is_never_shown() {
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
fn a_password_may_lie_in_a_file() {
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
