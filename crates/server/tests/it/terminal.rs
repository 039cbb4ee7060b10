//! Questions and progress at a terminal; a program sees neither.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{SAMPLE, Store, gift_card, skipped, text, wait_for};

/// Runs a command on a terminal on which somebody types `answer`; returns the exit code and what is seen.
/// `None` where there is no program that makes terminals.
pub fn at_terminal(store: &Store, arguments: &str, answer: &str) -> Option<(i32, String)> {
    let program = env!("CARGO_BIN_EXE_vitrine");
    at_terminal_of(store, &format!("{program} {arguments}"), answer)
}

fn at_terminal_of(store: &Store, commands: &str, answer: &str) -> Option<(i32, String)> {
    let mut script = Command::new("script");
    script
        .args(["-qec", commands, "/dev/null"])
        .env("VITRINE_STORE", store.url())
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let Ok(mut child) = script.spawn() else {
        skipped("what is seen on a terminal: there is no `script`");
        return None;
    };
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(answer.as_bytes()).expect("typed");
    // The end of what is typed only comes with the end of the program.
    let output = child.wait_with_output().expect("an end");
    drop(stdin);
    Some((output.status.code().expect("a code"), text(&output.stdout)))
}

/// Sixty products of one name.
fn sixty(name: &str) -> Vec<Value> {
    let product = |number| {
        let mut product = gift_card(&format!("P{number:02}"));
        product["name"] = name.into();
        if number == 7 {
            product["gift_card"]["redeemable_at"] = "online".into();
        }
        product
    };
    (0..60).map(product).collect()
}

#[test]
fn plan_on_a_terminal_is_summed_up_unless_all_is_given() {
    let store = Store::of(&sixty("one"));
    let mut next = sixty("two");
    next[7]["gift_card"]["redeemable_at"] = "all".into();
    store.load_products(&next);
    store.load_products(&[gift_card("OTHER")]);
    let Some((code, seen)) = at_terminal(&store, "diff 1 2", "") else {
        return;
    };
    assert_eq!(code, 0, "{seen}");
    let lines: Vec<&str> = seen.lines().map(str::trim_end).collect();
    let expected = [
        "~ /name: \"one\" → \"two\": 60 products",
        "~ /gift_card/redeemable_at: \"online\" → \"all\": 1 product",
        "~ P07",
        "    /gift_card/redeemable_at: \"online\" → \"all\"",
    ];
    assert_eq!(lines[..4], expected, "{seen}");
    assert_eq!(lines.len(), 5, "{seen}");
    let (_, seen) = at_terminal(&store, "diff 2 3", "").expect("as before");
    assert!(
        seen.contains("- … and 40 more products; --all lists them"),
        "{seen}"
    );
    assert!(!seen.contains("P20"), "{seen}");
    let (_, seen) = at_terminal(&store, "diff 2 3 --all", "").expect("as before");
    assert!(seen.contains("- P59") && !seen.contains('…'), "{seen}");
}

#[test]
fn table_fits_the_terminal_and_has_all_of_it_elsewhere() {
    let mut product = gift_card("A-RATHER-LONG-CODE-OF-A-PRODUCT");
    product["name"] = "Words that go on and on, as names of products often do".into();
    product["countries_redeemable_in"] = serde_json::json!(["CH"]);
    let store = Store::of(&[product]);
    let program = env!("CARGO_BIN_EXE_vitrine");
    for columns in [70, 120] {
        let command = format!("stty cols {columns}; {program} products");
        let Some((code, seen)) = at_terminal_of(&store, &command, "") else {
            return;
        };
        assert_eq!(code, 0, "{seen}");
        let rows = seen.lines().filter(|line| !line.starts_with("not shown"));
        let widths = rows.map(|line| line.trim_end().chars().count());
        assert!(widths.max() <= Some(columns), "{columns}: {seen}");
        assert!(seen.contains("A-RATHER-LONG-CODE-OF-A-PRODUCT"), "{seen}");
        let told = "not shown, as the terminal is too narrow: STATE, ORDERABLE";
        assert_eq!(seen.contains(told), columns < 80, "{seen}");
    }
    let piped = store.ok(&["products", "--format", "table"]);
    assert!(piped.contains("Words that go on and on, as names of products often do"));
    assert!(
        piped
            .lines()
            .next()
            .expect("a header")
            .contains("COUNTRIES")
    );
}

#[test]
fn show_is_indented_on_a_terminal_only() {
    let store = Store::of(&[gift_card("A")]);
    let Some((_, seen)) = at_terminal(&store, "show A", "") else {
        return;
    };
    assert!(seen.contains("\n  \"code\": \"A\","), "{seen}");
    let piped = store.ok(&["show", "A"]);
    assert_eq!(piped.lines().count(), 1);
    let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert_eq!(read(&seen), read(&piped));
}

fn active(store: &Store) -> usize {
    let keys = store.json(&["keys", "list", "--json"]);
    let keys = keys.as_array().expect("a list").iter();
    keys.filter(|key| key["state"] == "active").count()
}

#[test]
fn revoking_asks_only_at_a_terminal() {
    let store = Store::new();
    for label in ["partner", "partner", "other", "third"] {
        store.key(label, &[]);
    }
    let Some((code, seen)) = at_terminal(&store, "keys revoke partner", "no\n") else {
        return;
    };
    assert_eq!((code, active(&store)), (1, 4), "{seen}");
    assert!(
        seen.contains("partner") && seen.contains("nothing was changed"),
        "{seen}"
    );
    let (code, seen) = at_terminal(&store, "keys revoke partner", "yes\n").expect("as before");
    assert_eq!((code, active(&store)), (0, 2), "{seen}");
    let (code, seen) = at_terminal(&store, "keys revoke --yes other", "").expect("as before");
    assert_eq!((code, active(&store)), (0, 1), "{seen}");
    store.ok(&["keys", "revoke", "third"]);
    assert_eq!(active(&store), 0);
}

#[test]
fn load_on_a_terminal_shows_its_phases_and_speed() {
    let store = Store::new();
    let Some((code, seen)) = at_terminal(&store, &format!("load {SAMPLE}"), "") else {
        return;
    };
    assert_eq!(code, 0, "{seen}");
    for shown in [
        "reading and checking",
        "writing",
        "committing",
        "products/s",
    ] {
        assert!(seen.contains(shown), "{shown}: {seen}");
    }
    let next = format!("load --json {SAMPLE}");
    let (code, seen) = at_terminal(&store, &next, "").expect("as before");
    assert_eq!(code, 0, "{seen}");
    assert!(serde_json::from_str::<Value>(&seen).is_ok(), "{seen}");
}

#[test]
fn progress_is_quiet_without_a_terminal() {
    let output = Store::new().run(&["load", SAMPLE]);
    assert_eq!(text(&output.stderr), "");
    assert!(!text(&output.stdout).contains('\u{1b}'));
}

#[test]
fn server_ends_with_its_terminal() {
    let store = Store::sample();
    let program = env!("CARGO_BIN_EXE_vitrine");
    // The shell becomes the server, so the id that it says is the server's.
    let line = format!("echo id $$; exec {program} serve --listen 127.0.0.1:0");
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env("VITRINE_STORE", store.url())
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let Ok(mut terminal) = script.spawn() else {
        skipped("a server whose terminal is closed: there is no `script`");
        return;
    };
    let seen = BufReader::new(terminal.stdout.take().expect("piped"));
    let (mut id, mut address) = (None, None);
    for line in seen.lines().map_while(Result::ok) {
        if let Some(said) = line.trim().strip_prefix("id ") {
            id = Some(said.to_owned());
        }
        if let Some((_, said)) = line.split_once("listening on ") {
            address = said.split(',').next().map(str::to_owned);
            break;
        }
    }
    terminal.kill().expect("the terminal is closed");
    terminal.wait().expect("an end");
    let (id, address) = (id.expect("an id"), address.expect("an address"));
    let process = format!("/proc/{id}");
    let ended = std::panic::catch_unwind(|| {
        wait_for("the server's end", || {
            let is_over = !Path::new(&process).exists() || TcpStream::connect(&address).is_err();
            is_over.then_some(())
        });
    });
    // It is a child of nobody here, so nobody else ends it where it goes on.
    if ended.is_err() {
        let _ = Command::new("kill").args(["-s", "KILL", &id]).status();
    }
    assert!(ended.is_ok(), "the server outlived its terminal");
}
