//! Signing in to the console: attempts, sessions, and their ends.

use vitrine::browser::acts::ACTS;

use crate::harness::console::{Console, PASSWORD};
use crate::harness::{Store, gift_card, skipped, text, wait_for};

fn console() -> Console {
    Console::open(Store::of(&[gift_card("A-1")]), &[])
}

#[test]
fn without_operators_pages_are_shown_and_nothing_is_done() {
    let console = console();
    for page in ["/catalog", "/catalog/A-1", "/keys", "/overrides", "/audit"] {
        let reply = console.get(page, &[]);
        assert_eq!(reply.status, 200, "{page}");
        let shown = text(&reply.body);
        assert!(shown.contains("These pages are read-only"), "{page}");
        assert!(!shown.contains("form_token"), "{page}");
        assert_eq!(reply.header("set-cookie"), None);
    }
    assert_eq!(console.get("/sign-in", &[]).header("location"), Some("/"));
    for act in ACTS {
        assert_eq!(console.get(act.path, &[]).status, 403, "{act:?}");
        assert_eq!(console.post(act.path, &[], "a=b").status, 403, "{act:?}");
    }
}

#[test]
fn with_operators_pages_ask_for_a_sign_in() {
    let console = console();
    console.add("ines", "viewer");
    let reply = console.get("/catalog?q=a%20b", &[]);
    assert_eq!(reply.status, 303);
    assert_eq!(
        reply.header("location"),
        Some("/sign-in?next=%2Fcatalog%3Fq%3Da%2520b")
    );
    assert_eq!(console.get("/catalog/A-1", &[]).status, 303);
    for open in [
        "/livez",
        "/readyz",
        "/metrics",
        "/sign-in",
        "/assets/base.css",
    ] {
        assert_eq!(console.get(open, &[]).status, 200, "{open}");
    }
    let reply = console.sign_in_with("ines", PASSWORD, "/catalog?q=a%20b");
    assert_eq!(reply.status, 303, "{}", text(&reply.body));
    assert_eq!(reply.header("location"), Some("/catalog?q=a%20b"));
    let unasked = console.sign_in_with("ines", PASSWORD, "");
    assert_eq!(unasked.header("location"), Some("/"));
    let cookie = reply.header("set-cookie").expect("a cookie");
    for part in ["Path=/", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    // On this machine there is no HTTPS.
    assert!(!cookie.contains("Secure"), "{cookie}");
    let session = console.sign_in("ines");
    let page = console.get("/catalog", &session.cookie());
    assert!(text(&page.body).contains("ines, viewer"));
}

#[test]
fn console_that_had_operators_stays_closed() {
    let console = console();
    assert_eq!(console.get("/catalog", &[]).status, 200);
    console.add("ines", "viewer");
    let command = "vitrine operators add NAME --role owner";
    let sign_in = || text(&console.get("/sign-in", &[]).body);
    assert!(sign_in().contains(command), "{}", sign_in());
    console.store.ok(&["operators", "remove", "ines"]);
    for page in ["/catalog", "/export", "/keys"] {
        assert_eq!(console.get(page, &[]).status, 303, "{page}");
    }
    assert!(sign_in().contains(command), "{}", sign_in());
    // A server that never saw the operator reads the audit log.
    let store = console.store;
    let console = Console::open(store, &[]);
    assert_eq!(console.get("/catalog", &[]).status, 303);
    console.add("olga", "owner");
    let shown = text(&console.get("/sign-in", &[]).body);
    assert!(!shown.contains(command), "{shown}");
}

#[test]
fn console_asks_for_the_operators_of_the_store_in_place() {
    let console = console();
    for label in ["one", "two", "three"] {
        console.store.key(label, &[]);
    }
    let status = || console.get("/catalog", &[]).status;
    let replaced = |id: &str| {
        let sql = format!("delete from audit_entry; update state set store_id = '{id}'");
        console.store.sql(&sql);
    };
    assert_eq!(status(), 200);
    // Its log is shorter than the one that was read.
    replaced("other");
    console.add("ines", "viewer");
    console.store.ok(&["operators", "remove", "ines"]);
    assert_eq!(status(), 303);
    console.store.sql("delete from audit_entry");
    assert_eq!(status(), 303, "the same store is known to have had one");
    replaced("another");
    assert_eq!(status(), 200);
}

#[test]
fn beyond_loopback_the_cookie_is_secure_and_for_this_host() {
    let console = Console::open(
        Store::of(&[gift_card("A-1")]),
        &["--admin-host", "console.example"],
    );
    console.add("ines", "viewer");
    let body = format!("name=ines&password={PASSWORD}");
    let headers = [("Sec-Fetch-Site", "same-origin")];
    let reply = console.send_as("console.example", "POST", "/sign-in", &headers, &body);
    let cookie = reply.header("set-cookie").expect("a cookie");
    assert!(cookie.starts_with("__Host-vitrine_session="), "{cookie}");
    assert!(cookie.contains("; Secure"), "{cookie}");
    let value = cookie.split(';').next().expect("a value");
    let with = [("Cookie", value)];
    let page = console.send_as("console.example", "GET", "/catalog", &with, "");
    assert_eq!(page.status, 200);
    // Without the prefix, another page of the domain could have set it.
    let bare = value.replace("__Host-", "");
    let with = [("Cookie", bare.as_str())];
    let page = console.send_as("console.example", "GET", "/catalog", &with, "");
    assert_eq!(page.status, 303);
}

#[test]
fn unknown_names_and_wrong_passwords_get_the_same_answer() {
    let console = console();
    console.add("ines", "viewer");
    let mut command = console.store.command(&[
        "operators",
        "add",
        "olga",
        "--role",
        "owner",
        "--proxy-only",
    ]);
    assert!(command.output().expect("vitrine runs").status.success());
    let wrong = |name: &str, password: &str| {
        let reply = console.sign_in_with(name, password, "");
        assert_eq!(reply.status, 401);
        assert_eq!(reply.header("set-cookie"), None);
        text(&reply.body).replace(name, "NAME")
    };
    let answer = wrong("ines", "wrong password");
    assert!(answer.contains("The name or the password is wrong."));
    assert_eq!(wrong("nobody", PASSWORD), answer);
    assert_eq!(wrong("olga", ""), answer);
    assert_eq!(wrong("olga", PASSWORD), answer);
    // The log is written by a thread of its own.
    let log = wait_for("the refusal in the log", || {
        let log = console.server.stderr();
        log.contains("refused an attempt to sign in").then_some(log)
    });
    assert!(!log.contains("wrong password"), "{log}");
}

#[test]
fn sign_in_gives_a_new_token_and_ends_the_old_one() {
    let console = console();
    console.add("ines", "viewer");
    // A token that somebody planted.
    let planted = format!("vitrine_session={}", "A".repeat(43));
    let body = format!("name=ines&password={PASSWORD}");
    let headers = [
        ("Cookie", planted.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    let reply = console.send_as("127.0.0.1", "POST", "/sign-in", &headers, &body);
    let first = Console::cookie_of(&reply);
    assert_ne!(first, planted);
    assert_eq!(console.get("/catalog", &[("Cookie", &planted)]).status, 303);
    let headers = [
        ("Cookie", first.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    let reply = console.send_as("127.0.0.1", "POST", "/sign-in", &headers, &body);
    let second = Console::cookie_of(&reply);
    assert_ne!(first, second);
    assert_eq!(console.get("/catalog", &[("Cookie", &first)]).status, 303);
    assert_eq!(console.get("/catalog", &[("Cookie", &second)]).status, 200);
    let both = format!("{first}; {second}");
    assert_eq!(console.get("/catalog", &[("Cookie", &both)]).status, 303);
}

#[test]
fn stolen_cookie_is_worthless_after_the_sign_out() {
    let console = console();
    console.add("ines", "viewer");
    let (one, other) = (console.sign_in("ines"), console.sign_in("ines"));
    let reply = console.post_form("/sign-out", &one, &[]);
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some("/sign-in"))
    );
    let cookie = reply.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("Max-Age=0"), "{cookie}");
    assert_eq!(console.get("/catalog", &one.cookie()).status, 303);
    assert_eq!(console.get("/catalog", &other.cookie()).status, 200);
    let third = console.sign_in("ines");
    console.post_form("/sign-out-everywhere", &third, &[]);
    for ended in [&other, &third] {
        assert_eq!(console.get("/catalog", &ended.cookie()).status, 303);
    }
}

#[test]
fn sessions_end_when_the_operator_changes() {
    let console = console();
    for change in [
        &["operators", "set", "ines", "--role", "owner"][..],
        &["operators", "set", "ines", "--sign-out"],
        &["operators", "set", "ines", "--generate"],
        &["operators", "remove", "ines"],
    ] {
        let _ = console.store.run(&["operators", "remove", "ines"]);
        console.add("ines", "viewer");
        console.add_if_missing("olga", "owner");
        let (session, other) = (console.sign_in("ines"), console.sign_in("olga"));
        console.store.ok(change);
        assert_eq!(
            console.get("/catalog", &session.cookie()).status,
            303,
            "{change:?}"
        );
        assert_eq!(
            console.get("/catalog", &other.cookie()).status,
            200,
            "{change:?}"
        );
    }
}

#[test]
fn restore_ends_all_sessions_and_keeps_the_operators() {
    let console = console();
    if console.store.database().is_some() {
        skipped("restore of a backup: databases have none");
        return;
    }
    console.add("ines", "viewer");
    let stolen = console.sign_in("ines");
    let backup = console.store.path("backup.db");
    let backup = backup.to_str().expect("a path");
    console.store.ok(&["backup", backup]);
    console.add("olga", "owner");
    console
        .store
        .ok(&["operators", "set", "ines", "--role", "editor"]);
    let (ines, olga) = (console.sign_in("ines"), console.sign_in("olga"));
    console.store.ok(&["restore", "--yes", backup]);
    for ended in [&stolen, &ines, &olga] {
        assert_eq!(console.get("/catalog", &ended.cookie()).status, 303);
    }
    let again = console.sign_in("ines");
    let page = text(&console.get("/catalog", &again.cookie()).body);
    assert!(page.contains("ines, editor"), "{page}");
    // Nor does a copy have any.
    let copy = Store::at(format!(
        "sqlite:{}",
        console.store.path("copy.db").display()
    ));
    copy.ok(&["restore", backup]);
    let copied = Console::open(copy, &[]);
    assert_eq!(copied.get("/catalog", &stolen.cookie()).status, 303);
    assert_eq!(copied.sign_in("ines").name, "ines");
}

#[test]
fn idle_and_old_sessions_end() {
    let console = console();
    console.add("ines", "viewer");
    for (column, hours) in [("used_at", 2), ("created_at", 13)] {
        let session = console.sign_in("ines");
        assert_eq!(console.get("/catalog", &session.cookie()).status, 200);
        let before = hours * 3_600_000;
        console.store.sql(&format!(
            "update operator_session set {column} = {column} - {before}"
        ));
        assert_eq!(
            console.get("/catalog", &session.cookie()).status,
            303,
            "{column}"
        );
    }
}

#[test]
fn session_from_the_future_is_over() {
    let console = console();
    console.add("ines", "viewer");
    // A server whose clock is two minutes ahead wrote it.
    for set in [
        "used_at = used_at + 120000",
        "created_at = created_at + 120000",
    ] {
        let session = console.sign_in("ines");
        let page = || console.get("/catalog", &session.cookie()).status;
        console.store.sql(&format!(
            "update operator_session set {}",
            set.replace("120000", "20000")
        ));
        assert_eq!(page(), 200, "clocks differ a little");
        console
            .store
            .sql(&format!("update operator_session set {set}"));
        assert_eq!(page(), 303, "{set}");
    }
    wait_for("a warning", || {
        let log = console.server.stderr();
        log.contains("set the clocks of the servers").then_some(())
    });
}

#[test]
fn attempts_are_limited_and_a_known_place_stays_open() {
    let console = Console::open(
        Store::of(&[gift_card("A-1")]),
        &["--operator-proxies", "127.0.0.1"],
    );
    console.add("ines", "viewer");
    let attempt = |client: &str, password: &str| {
        let headers = [
            ("X-Forwarded-For", client),
            ("Sec-Fetch-Site", "same-origin"),
        ];
        let body = format!("name=ines&password={password}");
        let reply = console.send_as("127.0.0.1", "POST", "/sign-in", &headers, &body);
        (reply.status, reply.header("retry-after").map(str::to_owned))
    };
    assert_eq!(attempt("192.0.2.1", PASSWORD).0, 303);
    let refused = (0..12).map(|last| attempt(&format!("198.51.100.{last}"), "a wrong password"));
    let refused: Vec<_> = refused.collect();
    assert!(
        refused.iter().take(10).all(|(status, _)| *status == 401),
        "{refused:?}"
    );
    assert_eq!(refused[11], (429, Some("60".to_owned())));
    // The right password from a new place has to wait, too; from the known one it hasn't.
    assert_eq!(attempt("198.51.100.200", PASSWORD).0, 429);
    assert_eq!(attempt("192.0.2.1", PASSWORD).0, 303);
    let of_address = (0..21).map(|_| attempt("203.0.113.7", "a wrong password").0);
    assert_eq!(of_address.collect::<Vec<_>>()[20], 429);
}

#[test]
fn attempts_at_once_are_limited_like_one_after_the_other() {
    let console = console();
    console.add("ines", "viewer");
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let attempt = |number| {
            let console = &console;
            scope.spawn(move || {
                let name = format!("operator{number}");
                console.sign_in_with(&name, "a wrong password", "").status
            })
        };
        let attempts: Vec<_> = (0..60).map(attempt).collect();
        let statuses = attempts
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join);
        statuses.map(|status| status.expect("a status")).collect()
    });
    let of = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    // Two are checked at the same time, so one more may pass.
    let wrong = of(401);
    assert!((1..=21).contains(&wrong), "{statuses:?}");
    // Some may have waited too long for the others.
    assert_eq!(wrong + of(429) + of(503), 60, "{statuses:?}");
}

#[test]
fn damaged_operator_signs_nobody_in() {
    let console = console();
    console.add("ines", "viewer");
    let session = console.sign_in("ines");
    console.store.sql("update operator set role = 'owner'");
    assert_eq!(console.get("/catalog", &session.cookie()).status, 503);
    let found = console.store.run(&["check"]);
    assert!(text(&found.stdout).contains("operator ines"), "{found:?}");
    console
        .store
        .ok(&["operators", "set", "ines", "--role", "editor"]);
    assert_eq!(
        console
            .get("/catalog", &console.sign_in("ines").cookie())
            .status,
        200
    );
}

#[test]
fn forms_that_are_none_are_refused() {
    let console = console();
    console.add("ines", "viewer");
    let session = console.sign_in("ines");
    let (_, cookie) = session.cookie()[0];
    let send = |kind: &str, body: &[u8]| {
        let head = format!(
            "POST /sign-out HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\n\
             Content-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        console.raw(&[head.as_bytes(), body].concat()).status
    };
    let form = "application/x-www-form-urlencoded";
    assert_eq!(send("text/plain", b"form_token=a"), 415);
    assert_eq!(send(form, b"\xff\xfe"), 400);
    assert_eq!(send(form, b"form_token=%zz"), 400);
    assert_eq!(send(form, &vec![b'a'; 300_000]), 413);
    assert_eq!(send(form, b"form_token=a"), 403);
    assert_eq!(console.get("/catalog", &session.cookie()).status, 200);
}
