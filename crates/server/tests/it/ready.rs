//! `vitrine ready`, which probes run: what it says of a server, and of what isn't one.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::Output;

use crate::harness::{SAMPLE, Store, text, wait_for};

const FREE_PORT: [&str; 2] = ["--admin-listen", "127.0.0.1:0"];

fn ask(store: &Store, admin: SocketAddr, options: &[&str]) -> Output {
    let admin = admin.to_string();
    store.run(&[&["ready", "--admin", &admin], options].concat())
}

fn assert_said(output: &Output, code: i32, said: &str) {
    let told = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert!(told.contains(said), "{told}");
}

#[test]
fn ready_reports_as_the_admin_port() {
    let store = Store::new();
    let mut server = store.serve_with(&FREE_PORT);
    assert_said(
        &ask(&store, server.admin(), &[]),
        1,
        "not ready: no_catalog",
    );
    assert_said(&ask(&store, server.admin(), &["--live"]), 0, "it lives");
    let report = store.load(SAMPLE);
    server.wait_for_loaded(&report);
    assert_said(&ask(&store, server.admin(), &[]), 0, "ready: revision 1,");
    let told = ask(&store, server.admin(), &["--json"]);
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!(told["revision"]["id"], report["revision"]["id"]);
    // An open connection keeps the server from ending at once.
    let key = store.key("client", &[]);
    let mut connection = server.keep_alive();
    wait_for("the key", || {
        (connection.get(&key, "/v2/ping")?.status == 200).then_some(())
    });
    server.signal("TERM");
    wait_for("readiness to fail", || {
        let output = ask(&store, server.admin(), &[]);
        text(&output.stdout)
            .contains("not ready: draining")
            .then(|| {
                assert_eq!(output.status.code(), Some(1));
            })
    });
    drop(connection);
    assert_eq!(server.wait(), Some(0));
    let gone = server.admin().to_string();
    assert_said(&ask(&store, server.admin(), &[]), 1, &gone);
}

#[test]
fn ready_takes_the_servers_address() {
    let store = Store::sample();
    let server = store.serve_with(&["--admin-listen", "0.0.0.0:0", "--admin-beyond-loopback"]);
    let mut command = store.command(&["ready"]);
    command.env("VITRINE_ADMIN_LISTEN", server.admin().to_string());
    assert_said(
        &command.output().expect("vitrine runs"),
        0,
        "ready: revision 1,",
    );
}

/// Answers one connection with these bytes, so many times.
fn impostor(answer: &'static [u8], times: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        let mut head = [0; 1024];
        let _ = socket.read(&mut head);
        let mut rounds = 0..times;
        while rounds.next().is_some() && socket.write_all(answer).is_ok() {}
    });
    address
}

#[test]
fn ready_fails_at_another_port() {
    let store = Store::new();
    for (answer, times, said) in [
        (&b""[..], 1, "isn't HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", 1, "isn't HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", 1, "isn't an admin port"),
        (b"HTTP/1.1 200 OK\r\n\r\n", usize::MAX, "too long"),
        (
            b"HTTP/1.1 503 No\r\n\r\n{\"reason\": \"\\u001b[31mred\"}",
            1,
            "not ready: ",
        ),
    ] {
        let output = ask(&store, impostor(answer, times), &[]);
        assert_said(&output, 1, said);
        let printed = text(&output.stdout) + &text(&output.stderr);
        assert!(!printed.contains('\u{1b}'), "{printed:?}");
    }
}

#[test]
fn admin_port_is_taken_from_the_settings_file() {
    let store = Store::sample();
    let server = store.serve_with(&FREE_PORT);
    // The file's store is for other commands.
    let content = format!(
        "admin_listen = \"{}\"\nstore = \"sqlite:of-others.db\"\n",
        server.admin()
    );
    let file = store.write("vitrine.toml", content).display().to_string();
    let mut command = store.command(&["ready", "--config", &file]);
    let output = command.env_remove("VITRINE_STORE").output();
    assert_said(&output.expect("vitrine runs"), 0, "ready: revision 1,");
    // A flag goes before it.
    let output = store.run(&["ready", "--config", &file, "--admin", "127.0.0.1:1"]);
    assert_said(&output, 1, "127.0.0.1:1 doesn't answer");
}
