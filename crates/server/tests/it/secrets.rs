//! Keys are nowhere but with their holders: not in a log, a metric, an error, a list, a file, or what the system shows of
//! the process, wherever clients put them.

use std::path::Path;

use crate::harness::{Server, Store, are_files, gift_card, text};

/// All bytes of all files below a directory.
fn files(directory: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => bytes.extend(files(&path)),
            false => bytes.extend(std::fs::read(&path).expect("a file")),
        }
    }
    bytes
}

/// Fails where a secret stands in what somebody may see.
fn assert_none(secrets: &[String], place: &str, bytes: &[u8]) {
    for secret in secrets {
        let found = memchr::memmem::find(bytes, secret.as_bytes());
        if let Some(at) = found {
            let around = &bytes[at.saturating_sub(200)..at];
            panic!("{place} shows a secret after {}", text(around));
        }
    }
}

/// Sends a key in every way that a client may think of.
fn send_everywhere(server: &Server, key: &str) {
    let (prefix, secret) = key.split_once('.').expect("two parts");
    let wrong = format!("{prefix}.{}", secret.chars().rev().collect::<String>());
    for target in [
        "/v2/product".to_owned(),
        format!("/v2/product?api_key={key}"),
        format!("/v2/product?X-Api-Key={key}&limit=1"),
        format!("/v2/product/{key}"),
        format!("/v2/{key}/product"),
        format!("/{}/{key}", "long/".repeat(30)),
        format!("/v2/x/{}", key.replace('.', "%2E")),
        format!("/v2/x/{}", key.replace('.', "%252e")),
        format!("/v2/x/{}", key.replace('_', "%5F")),
        format!("/v2/product?after={secret}"),
        format!("http://user:{key}@localhost/v2/product"),
    ] {
        for headers in [
            &[("X-Api-Key", key)][..],
            &[("X-Api-Key", &wrong)],
            &[("X-Api-Key", key), ("X-Api-Key", key)],
            &[("X-Api-Key", secret)],
            &[("Authorization", key)],
            &[("Cookie", key)],
            &[("X-Api-Key", key), ("X-Api-Version", key)],
            &[("X-Api-Key", key), ("X-Simulate", key)],
            &[("X-Api-Key", key), ("X-Simulate", "internal_server_error")],
            &[
                ("X-Api-Key", key),
                ("traceparent", key),
                ("User-Agent", key),
                ("Referer", key),
            ],
            &[
                ("X-Api-Key", key),
                ("X-Forwarded-For", key),
                ("Forwarded", key),
            ],
        ] {
            let reply = server.send("GET", &target, headers);
            assert!(reply.status < 600);
        }
    }
    // Heads that break off or can't be read.
    server.raw(format!("GET /v2/ping HTTP/1.1\r\nX-Api-Key {key}\r\n\r\n").as_bytes());
    let close = "Host: x\r\nConnection: close\r\n\r\n";
    server.raw(format!("{key} /v2/ping HTTP/1.1\r\n{close}").as_bytes());
}

#[test]
fn no_key_is_anywhere_but_with_its_holder() {
    let store = Store::of(&[gift_card("A-1")]);
    let keys = [
        store.key("live", &[]),
        store.key("test", &["--test"]),
        store.key("limited", &["--quota", "5/60"]),
        store.key("to be revoked", &[]),
    ];
    let secrets = keys.each_ref().map(|key| {
        let (_, secret) = key.split_once('.').expect("two parts");
        secret.to_owned()
    });
    let state = store.path("state");
    let state_text = state.display().to_string();
    let options = [
        "--admin-listen",
        "127.0.0.1:0",
        "--state-dir",
        &state_text,
        "--log-level",
        "trace",
        "--failed-keys",
        "off",
    ];
    let mut server = store.serve_with(&options);
    for key in &keys {
        send_everywhere(&server, key);
    }
    let (prefix, _) = keys[3].split_once('.').expect("two parts");
    let revoked = store.ok(&["keys", "revoke", prefix]);
    send_everywhere(&server, &keys[3]);
    for page in ["/metrics", "/readyz", "/livez"] {
        let shown = server.ask_admin("GET", page);
        assert_none(&secrets, page, &shown.body);
    }
    let process = Path::new("/proc").join(server.id().to_string());
    for name in ["cmdline", "environ"] {
        let shown = std::fs::read(process.join(name)).expect("a process");
        assert_none(&secrets, name, &shown);
    }
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let log = server.stdout();
    assert!(log.lines().count() > 5 * 11 * 11, "all of it is in the log");
    assert_none(&secrets, "the access log", log.as_bytes());
    assert_none(&secrets, "standard error", server.stderr().as_bytes());
    assert_none(&secrets, "the state directory", &files(&state));
    for command in [
        &["keys", "list"][..],
        &["keys", "list", "--json"],
        &["keys", "usage"],
        &["audit"],
        &["audit", "--json"],
        &["history"],
        &["check"],
    ] {
        assert_none(&secrets, command[0], store.ok(command).as_bytes());
    }
    assert_none(&secrets, "a revocation", revoked.as_bytes());
    if are_files("what the store's file holds of keys") {
        assert_none(
            &secrets,
            "the store",
            &files(store.path("vitrine.db").parent().expect("a folder")),
        );
    }
}
