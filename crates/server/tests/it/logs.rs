//! The log on standard error: one JSON object a line if nobody reads along, with causes.

use std::net::TcpListener;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Server, Store, gift_card, text, wait_for};

/// Returns the messages of a log; panics at a line that is no JSON object.
fn messages(log: &str) -> Vec<Value> {
    let message = |line: &str| -> Value {
        let message = serde_json::from_str(line);
        let message: Value = message.unwrap_or_else(|error| panic!("`{line}`: {error}"));
        assert!(message["level"].is_string(), "{message}");
        message["fields"].clone()
    };
    log.lines().map(message).collect()
}

fn says(messages: &[Value], words: &str) -> bool {
    let message = |fields: &Value| fields["message"].as_str().unwrap_or_default().to_owned();
    messages
        .iter()
        .any(|fields| message(fields).contains(words))
}

#[test]
fn serve_without_terminal_logs_only_json() {
    let store = Store::of(&[gift_card("A")]);
    let mut server = store.serve_with(&["--admin-listen", "127.0.0.1:0", "--log-level", "error"]);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let said = messages(&server.stderr());
    assert!(says(&said, "listening on 127.0.0.1:"), "{said:?}");
    assert!(says(&said, "admin port on 127.0.0.1:"), "{said:?}");
}

#[test]
fn serve_that_fails_to_start_logs_its_error_as_json() {
    let store = Store::of(&[gift_card("A")]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = store.run(&["serve", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    let said = messages(&text(&output.stderr));
    assert!(says(&said, &address), "{said:?}");
    let plain = store.run(&["serve", "--listen", &address, "--log-format", "text"]);
    let plain = text(&plain.stderr);
    assert!(plain.starts_with("vitrine: "), "{plain}");
}

#[test]
fn mirror_rounds_without_terminal_log_only_json() {
    let store = Store::new();
    let mut command = store.command(&["mirror", "--from", "http://127.0.0.1:1", "--every", "1h"]);
    command
        .args(["--retries", "0"])
        .env("VITRINE_MIRROR_KEY", "a.b");
    let log = store.path("log");
    let file = std::fs::File::create(&log).expect("a file");
    let mut mirror = command.stderr(file).spawn().expect("vitrine runs");
    wait_for("the first round", || {
        let log = std::fs::read_to_string(&log).expect("a file");
        log.contains("failed: ").then_some(())
    });
    let id = mirror.id().to_string();
    let ended = Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(ended.expect("kill runs").success());
    assert_eq!(mirror.wait().expect("an end").code(), Some(0));
    let said = messages(&std::fs::read_to_string(&log).expect("a file"));
    assert!(says(&said, "failed: GET http://127.0.0.1:1/"), "{said:?}");
}

#[test]
fn unreachable_database_is_logged_with_its_cause() {
    let store = Store::at("postgres://vitrine@127.0.0.1:1/catalog".to_owned());
    let server: Server = store.serve();
    let said = messages(&server.stderr());
    let errors = said.iter().filter_map(|fields| fields["error"].as_str());
    let errors: Vec<&str> = errors.collect();
    assert!(!errors.is_empty(), "{said:?}");
    for error in errors {
        assert!(error.contains("Connection refused"), "{error}");
        assert!(!error.contains("nothing was changed"), "{error}");
    }
}

#[test]
fn failed_read_does_not_mention_changes() {
    let store = Store::at("postgres://vitrine@127.0.0.1:1/catalog".to_owned());
    let file = store.write("products.ndjson", gift_card("A").to_string());
    let file = file.display().to_string();
    for (command, writes) in [
        (&["history"][..], false),
        (&["keys", "list"], false),
        (&["export"], false),
        (&["load", &file], true),
        (&["keys", "create", "--label", "a"], true),
    ] {
        let output = store.run(command);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("can't reach the database"), "{said}");
        assert_eq!(said.contains("nothing was changed"), writes, "{said}");
    }
}
