//! Addresses that give no text, and those that aren't asked.

use serde_json::{Value, json};

use crate::harness::{Page, Store, Web, text};
use crate::texts_fetch::{card, counts, fetch, fetch_public};

/// Paths, and the reason why each gives no text.
const CASES: [(&str, Option<&str>); 15] = [
    ("/fine", None),
    ("/moved", None),
    ("/busy", None),
    ("/gone", Some("status")),
    ("/html", None),
    ("/page", Some("text_renders_empty")),
    ("/json", Some("json")),
    ("/latin", Some("utf8")),
    ("/nul", Some("nul_character")),
    ("/blank", Some("text_blank")),
    ("/endless", Some("text_too_long")),
    ("/cut", Some("no_answer")),
    ("/round", Some("no_answer")),
    ("/elsewhere", Some("no_answer")),
    ("/unasked", Some("status")),
];

/// A server with good pages and bad ones.
fn web() -> Web {
    let page = |body: &[u8]| Page::ok(body);
    let web = Web::of(&[
        ("/fine", page(b"Fine")),
        ("/moved", Page::redirect("/fine")),
        ("/gone", Page::status("404 Not Found")),
        (
            "/html",
            page(b"<p>Terms").with("Content-Type", "text/html; charset=utf-8"),
        ),
        ("/page", page(b"<!DOCTYPE html><script>login()</script>")),
        (
            "/json",
            page(b"{}").with("Content-Type", "application/json"),
        ),
        ("/latin", page(b"caf\xe9")),
        ("/nul", page(b"a\0b")),
        ("/blank", page(b" \n")),
        ("/endless", page(&[b'x'; 1000]).endlessly()),
        ("/cut", page(b"Half of it").cut()),
        ("/round", Page::redirect("/round")),
        ("/elsewhere", Page::redirect("ftp://a.example/")),
        ("/unasked", Page::status("304 Not Modified")),
    ]);
    web.set("/busy", &[Page::status("503 Busy"), page(b"Busy no more")]);
    web
}

#[test]
fn failing_address_delays_no_other() {
    let web = web();
    let nobody = "http://127.0.0.1:1/".to_owned();
    let mut products = vec![card("nobody", &[("description", nobody.clone())])];
    for (path, _) in CASES {
        let code = path.trim_start_matches('/');
        products.push(card(code, &[("description", web.url(path))]));
    }
    let store = Store::of(&products);
    let (exit, report) = fetch(&store, &[]);
    assert_eq!((exit, counts(&report)), (4, [16, 4, 0, 12]), "{report}");
    assert_eq!(report["counts"]["changed"], 4, "{report}");
    let failures = report["failures"].as_array().expect("failures");
    let failure = |url: &str| failures.iter().find(|failure| failure["url"] == url);
    for (path, rule) in CASES {
        let failure = failure(&web.url(path));
        let found = failure.map(|failure| &failure["rule"]);
        assert_eq!(found, rule.map(Value::from).as_ref(), "{path}: {failure:?}");
        if let Some(failure) = failure {
            let code = path.trim_start_matches('/');
            assert_eq!(
                (&failure["products"], &failure["codes"]),
                (&json!(1), &json!([code]))
            );
        }
    }
    assert_eq!(failure(&nobody).expect("a failure")["rule"], "no_answer");
    let shown = store.json(&["show", "moved"]);
    let content = &shown["gift_card"]["content_resources"];
    assert_eq!(content["description_md"], "Fine");
    assert_eq!(
        content["description_markdown_url"],
        web.url("/moved").as_str()
    );
    // For people: grouped by reason, with the address and who names it.
    let output = store
        .command(&["texts", "fetch", "--allow-private"])
        .env("NO_PROXY", "*")
        .output();
    let output = output.expect("vitrine runs");
    assert_eq!(output.status.code(), Some(4));
    let said = text(&output.stdout);
    let expected = format!(
        "failed: json, 1 times\n  {}  expected Markdown or HTML; the response is application/json\n      named by json\n",
        web.url("/json")
    );
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn silent_address_times_out() {
    let web = Web::of(&[("/slow", Page::ok("").never()), ("/fine", Page::ok("Fine"))]);
    let addresses = [
        ("description", web.url("/slow")),
        ("disclaimer", web.url("/fine")),
    ];
    let store = Store::of(&[card("A", &addresses)]);
    let (exit, report) = fetch(&store, &["--timeout", "1"]);
    assert_eq!((exit, counts(&report)), (4, [2, 1, 0, 1]), "{report}");
    assert_eq!(report["failures"][0]["rule"], "timeout");
}

#[test]
fn host_that_never_answers_is_given_up_after_three_addresses() {
    let web = Web::of(&[("/fine", Page::ok("Fine"))]);
    let mut products = vec![card("Z", &[("description", web.url("/fine"))])];
    for number in 0..20 {
        let address = format!("http://127.0.0.1:1/{number}");
        products.push(card(&format!("D{number}"), &[("description", address)]));
    }
    let store = Store::of(&products);
    let mut command = store.command(&["texts", "fetch", "--allow-private", "--json"]);
    let output = command.env("NO_PROXY", "*").output().expect("vitrine runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let [asked, fetched, _, failed] = counts(&report);
    // Two of a host are asked at once, so one more may be on its way.
    assert!((3..=4).contains(&failed), "{report}");
    assert_eq!((fetched, asked), (1, failed + 1), "{report}");
    let given_up = json!([{"host": "127.0.0.1:1", "addresses": 20 - failed}]);
    assert_eq!(report["given_up"], given_up);
    let said = text(&output.stderr);
    assert!(said.contains("gave up 127.0.0.1:1, "), "{said}");
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn fetch_with_all_addresses_failing_changes_nothing() {
    let web = Web::of(&[]);
    let store = Store::of(&[card("A", &[("description", web.url("/none"))])]);
    let (exit, report) = fetch(&store, &[]);
    assert_eq!((exit, counts(&report)), (1, [1, 0, 0, 1]));
    assert_eq!(
        (&report["applied"], &report["revision"]),
        (&json!(false), &Value::Null)
    );
}

#[test]
fn private_addresses_are_asked_only_if_allowed() {
    let web = Web::of(&[("/", Page::ok("Secret"))]);
    let port = web.address.port();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
    ];
    let products: Vec<Value> = hosts
        .iter()
        .enumerate()
        .map(|(number, host)| {
            card(
                &format!("P{number}"),
                &[("description", format!("http://{host}:{port}/"))],
            )
        })
        .collect();
    let store = Store::of(&products);
    let (exit, report) = fetch_public(&store, &[]);
    assert_eq!((exit, counts(&report)), (1, [5, 0, 0, 5]), "{report}");
    let failures = report["failures"].as_array().expect("failures");
    assert!(
        failures
            .iter()
            .all(|failure| failure["rule"] == "address_refused"),
        "{report}"
    );
    assert_eq!(web.take_requests(), [""; 0]);
    let (_, report) = fetch(&store, &[]);
    assert_eq!(report["addresses"]["fetched"], 5, "{report}");
}

#[test]
fn host_gets_at_most_two_requests_at_once() {
    let paths: Vec<String> = (0..12).map(|number| format!("/{number}.md")).collect();
    let web = Web::of(&[]);
    for path in &paths {
        web.set(path, &[Page::ok(path.as_bytes()).together(2)]);
    }
    let products: Vec<Value> = paths
        .iter()
        .enumerate()
        .map(|(number, path)| card(&format!("P{number}"), &[("description", web.url(path))]))
        .collect();
    let store = Store::of(&products);
    let (exit, report) = fetch(&store, &["--concurrency", "12"]);
    assert_eq!((exit, counts(&report)), (0, [12, 12, 0, 0]), "{report}");
    assert_eq!(web.max_concurrent(), 2);
}
