//! `vitrine operators`: those who sign in to the console.

use std::process::Stdio;

use crate::harness::{Store, gift_card, text};

#[test]
fn operators_are_added_listed_and_removed() {
    let store = Store::of(&[gift_card("A-1")]);
    let add = |password: &str| {
        let mut command = store.command(&[
            "operators",
            "add",
            "ines",
            "--role",
            "editor",
            "--password-stdin",
            "--json",
        ]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("vitrine runs");
        let mut input = child.stdin.take().expect("piped");
        std::io::Write::write_all(&mut input, password.as_bytes()).expect("written");
        drop(input);
        child.wait_with_output().expect("it ends")
    };
    let short = add("short\n");
    assert!(!short.status.success());
    assert!(text(&short.stderr).contains("shorter than 12"), "{short:?}");
    let made = add("correct horse battery\n");
    assert!(made.status.success(), "{made:?}");
    assert!(!text(&made.stdout).contains("correct"), "{made:?}");
    assert!(!add("correct horse battery\n").status.success());
    let generated = store.json(&[
        "operators",
        "add",
        "olga",
        "--role=owner",
        "--generate",
        "--json",
    ]);
    assert_eq!(generated["password"].as_str().map(str::len), Some(22));
    store.ok(&[
        "operators",
        "set",
        "olga",
        "--proxy-only",
        "--note",
        "ticket 7",
    ]);
    let all = store.json(&["operators", "list", "--json"]);
    let listed: Vec<_> = all.as_array().expect("a list").iter().collect();
    let words = |at: usize| {
        ["name", "role", "sign_in"].map(|name| listed[at][name].as_str().unwrap_or("-"))
    };
    assert_eq!(words(0), ["ines", "editor", "password"]);
    assert_eq!(words(1), ["olga", "owner", "proxy"]);
    assert!(!store.run(&["operators", "remove", "vera"]).status.success());
    let removed = store.ok(&["operators", "remove", "ines"]);
    assert_eq!(removed, "ines removed\n");
    let audit = store.ok(&["audit"]);
    for part in [
        "operator ines",
        "role editor",
        "sign_in password → proxy",
        "ticket 7",
        "remove",
    ] {
        assert!(audit.contains(part), "{part}: {audit}");
    }
    assert!(!audit.contains("argon2"), "{audit}");
}

#[test]
fn last_owner_is_not_removed_or_demoted_by_commands() {
    let store = Store::of(&[gift_card("A-1")]);
    let add = |name: &str, role: &str| {
        store.ok(&["operators", "add", name, "--role", role, "--proxy-only"]);
    };
    add("olga", "owner");
    add("ines", "editor");
    for refused in [
        &["operators", "remove", "olga"][..],
        &["operators", "set", "olga", "--role", "editor"],
    ] {
        let output = store.run(refused);
        assert!(!output.status.success(), "{output:?}");
        let message = text(&output.stderr);
        assert!(message.contains("olga is the last owner"), "{message}");
        assert!(message.contains("operators add NAME --role owner"));
    }
    store.ok(&["operators", "set", "olga", "--sign-out"]);
    store.ok(&["operators", "set", "ines", "--role", "owner"]);
    store.ok(&["operators", "remove", "olga"]);
}

#[test]
fn two_owners_removed_at_once_leave_one() {
    let store = Store::of(&[gift_card("A-1")]);
    for name in ["ines", "olga"] {
        store.ok(&["operators", "add", name, "--role", "owner", "--proxy-only"]);
    }
    let removals = ["ines", "olga"].map(|name| {
        let mut command = store.command(&["operators", "remove", name]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("vitrine runs")
    });
    let removed = removals.map(|mut child| child.wait().expect("it ends").success());
    assert_eq!(removed.iter().filter(|done| **done).count(), 1);
    let left = store.json(&["operators", "list", "--json"]);
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
}
