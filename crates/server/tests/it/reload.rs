//! SIGHUP: the settings file is read again while the server runs; and how a server tells what it tells.

use serde_json::Value;

use crate::harness::{SAMPLE, Server, Store, are_files, gift_card, wait_for};

/// A server with a settings file, whose content is `more` beside what a test needs.
fn serve(store: &Store, more: &str, options: &[&str]) -> Server {
    let file = settings(store, more);
    let mut command = store.command(&["serve", "--config", &file, "--listen", "127.0.0.1:0"]);
    command.args(options);
    Server::start(command)
}

fn settings(store: &Store, content: &str) -> String {
    store.write("vitrine.toml", content).display().to_string()
}

/// The messages so far, as JSON.
fn messages(server: &Server) -> Vec<Value> {
    let lines = server.stderr();
    let lines = lines.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Sends SIGHUP and waits for the message that it leads to: the number-th of its kind.
fn hang_up(server: &Server, message: &str, number: usize) -> Value {
    server.signal("HUP");
    wait_for(message, || {
        let mut found = messages(server).into_iter();
        found
            .by_ref()
            .filter(|found| found["fields"]["message"] == message)
            .nth(number)
    })
}

/// Has the server cut a connection before a request, of which it tells on the level `debug` only.
fn provoke_a_detail(server: &Server) {
    let _ = server.raw(b"\x16\x03\x01 nonsense\r\n\r\n");
}

fn details(server: &Server) -> usize {
    let is_detail = |message: &&Value| message["level"] == "DEBUG";
    messages(server).iter().filter(is_detail).count()
}

#[test]
fn reload_changes_the_level_and_names_the_rest() {
    let store = Store::sample();
    let server = serve(&store, "log_level = 'info'\ncache_mib = 1\n", &[]);
    provoke_a_detail(&server);
    let read = "settings reloaded";
    // Nothing has changed.
    let message = hang_up(&server, read, 0);
    assert_eq!(message["fields"]["changed"], "", "{message}");
    assert_eq!(details(&server), 0);
    let file = settings(
        &store,
        "log_level = 'debug'\ncache_mib = 2\nstate_dir = 'x'\n",
    );
    let message = hang_up(&server, read, 1);
    assert_eq!(message["fields"]["changed"], "log_level", "{message}");
    assert_eq!(message["fields"]["file"], file);
    let waiting = wait_for("what waits", || {
        let mut messages = messages(&server).into_iter();
        messages.find(|message| message["fields"]["message"] == "changed settings need a restart")
    });
    assert_eq!(
        waiting["fields"]["settings"], "state_dir, cache_mib",
        "{waiting}"
    );
    provoke_a_detail(&server);
    wait_for("a detail", || (details(&server) > 0).then_some(()));
    // Less is told than before, too.
    settings(&store, "log_level = 'error'\ncache_mib = 1\n");
    server.signal("HUP");
    wait_for("silence", || {
        let before = details(&server);
        provoke_a_detail(&server);
        provoke_a_detail(&server);
        (details(&server) == before).then_some(())
    });
    let key = store.key("partner", &[]);
    wait_for("the key", || {
        (server.get(&key, "/v2/ping").status == 200).then_some(())
    });
}

#[test]
fn faulty_file_changes_nothing_and_is_reported() {
    let store = Store::sample();
    let server = serve(&store, "log_level = 'info'\n", &[]);
    let refused = "the settings are refused: nothing was changed";
    let file = settings(
        &store,
        "log_level = 'debug'\nlistn = 1\nstore = 'postgres://a:hunter2@b/c'\ncache_mib = 'hunter2'\n",
    );
    let first = hang_up(&server, refused, 0);
    let second = wait_for("the second fault", || {
        let mut messages = messages(&server).into_iter();
        messages.find(|message| message["fields"]["line"] == 4)
    });
    assert_eq!(first["fields"]["file"], file);
    assert_eq!(first["fields"]["line"], 2);
    assert_eq!(first["fields"]["setting"], "listn");
    assert_eq!(first["fields"]["advice"], "did you mean `listen`?");
    assert_eq!(second["fields"]["setting"], "cache_mib");
    assert_eq!(first["level"], "ERROR");
    // What parsers take and the server doesn't, and no file at all.
    settings(&store, "log_level = 'debug'\nadmin_listen = '0.0.0.0:0'\n");
    let message = hang_up(&server, refused, 2);
    assert_eq!(message["fields"]["setting"], "admin_listen", "{message}");
    settings(
        &store,
        "log_level = 'debug'\nlimits = 'redis://:hunter2@b'\nadmin_listen = '0.0.0.0:0'\n",
    );
    let message = hang_up(&server, refused, 4);
    assert_eq!(message["fields"]["setting"], "admin_listen", "{message}");
    let limits = messages(&server)
        .into_iter()
        .find(|message| message["fields"]["setting"] == "limits");
    assert!(limits.is_some(), "each fault is told");
    std::fs::remove_file(&file).expect("removed");
    let message = hang_up(&server, refused, 5);
    let fault = message["fields"]["fault"].as_str().expect("a fault");
    assert!(fault.contains("can't read the settings file"), "{message}");
    provoke_a_detail(&server);
    let key = store.key("partner", &[]);
    wait_for("the key", || {
        (server.get(&key, "/v2/ping").status == 200).then_some(())
    });
    assert_eq!(details(&server), 0);
    assert!(!server.stderr().contains("hunter2"));
    // A good file is taken again.
    settings(&store, "log_level = 'debug'\n");
    let message = hang_up(&server, "settings reloaded", 0);
    assert_eq!(message["fields"]["changed"], "log_level", "{message}");
}

#[test]
fn reload_keeps_flags_before_the_file() {
    let store = Store::sample();
    let server = serve(&store, "", &["--log-level", "info"]);
    settings(&store, "log_level = 'debug'\n");
    let message = hang_up(&server, "settings reloaded", 0);
    assert_eq!(message["fields"]["changed"], "", "{message}");
    let server = store.serve();
    let message = hang_up(&server, "settings reloaded", 0);
    assert_eq!(message["fields"].get("file"), None, "{message}");
    let mut server = server;
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn messages_are_written_as_asked() {
    let store = Store::sample();
    for (options, is_json) in [
        (&[][..], true),
        (&["--log-format", "json"], true),
        (&["--log-format", "text"], false),
    ] {
        let server = store.serve_with(options);
        let line = wait_for("a message", || {
            let told = server.stderr();
            let mut lines = told.lines().map(str::to_owned);
            lines.find(|line| line.contains("catalog is live"))
        });
        let read: Result<Value, _> = serde_json::from_str(&line);
        assert_eq!(read.is_ok(), is_json, "{options:?}: {line}");
        assert!(!line.contains('\u{1b}'), "{line}");
        if let Ok(message) = read {
            assert_eq!(message["level"], "INFO");
            assert!(message["timestamp"].is_string() && message["fields"].is_object());
        }
    }
    // Silent but for where it listens.
    let server = store.serve_with(&["--log-level", "error"]);
    let key = store.key("partner", &[]);
    wait_for("the key", || {
        (server.get(&key, "/v2/ping").status == 200).then_some(())
    });
    store.load(SAMPLE);
    let mut said = messages(&server);
    said.retain(|message| {
        let words = message["fields"]["message"].as_str();
        !words.is_some_and(|words| words.starts_with("listening on "))
    });
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn messages_of_a_request_have_its_id() {
    if !are_files("a message of a request bears its id") {
        return;
    }
    let store = Store::new();
    let mut card = gift_card("A");
    card["gift_card"]["content_resources"]["description_md"] = "A description".into();
    store.load_products(&[card]);
    let key = store.key("partner", &[]);
    let server = store.serve_with_damaged_texts();
    let headers = [
        ("X-Api-Key", key.as_str()),
        ("X-Request-Id", "of-a-damaged-text"),
    ];
    let reply = server.send("GET", "/v2/product/A?content=html", &headers);
    assert_eq!(reply.status, 500);
    let message = wait_for("the message", || {
        let mut messages = messages(&server).into_iter();
        messages.find(|message| message["fields"]["message"] == "a text is damaged")
    });
    assert_eq!(
        message["fields"]["request_id"], "of-a-damaged-text",
        "{message}"
    );
}
