//! `vitrine mirror` where something goes wrong: it says what, changes nothing, and keeps the key to itself.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::harness::{SAMPLE, Store, gift_card, text};
use crate::mirror_source::{
    Cutter, Fake, TLS_FILES, answer, base, json, mirror, mirrored, page, without_feed,
};

const KEY: &str = "partner.S3CRETs3cretS3CRETs3cret";

/// Mirrors a source in vain; returns the exit code and what was said.
fn refused(store: &Store, base: &str, options: &[&str]) -> (Option<i32>, String) {
    let before = store.ok(&["export"]);
    let output = mirror(store, base, KEY, &[&["--retries", "1"], options].concat());
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(!said.contains("S3CRET"), "{said}");
    assert_eq!(store.ok(&["export"]), before, "nothing was changed");
    (output.status.code(), said)
}

#[test]
fn sources_that_break_the_contract_are_refused() {
    let store = Store::of(&[gift_card("OLD")]);
    let a = gift_card("A");
    let cases: [(&str, Vec<u8>); 11] = [
        (
            "it isn't application/json; is a server of this contract at that address?",
            answer("200 OK\r\nContent-Type: text/html", "<html>"),
        ),
        (
            "the answer can't be read",
            json("200 OK", "{\"catalog\": 1}"),
        ),
        ("the answer can't be read", json("200 OK", "[]")),
        (
            "the answer can't be read",
            json("200 OK", "{\"catalog\": ["),
        ),
        (
            "a product without a code",
            page(&[json!({"name": "A"})], Some("A")),
        ),
        (
            "has no cursor `after`",
            page(std::slice::from_ref(&a), None),
        ),
        (
            "the product \"A\" was on an earlier page; cursors must not lead back",
            page(&[a.clone(), a.clone()], Some("A")),
        ),
        // Each page is the same one: the cursor leads back.
        (
            "the product \"A\" was on an earlier page; cursors must not lead back",
            page(&[a], Some("A")),
        ),
        (
            "is the key in VITRINE_MIRROR_KEY one of that server?): invalid_api_key (401): [key]",
            json(
                "401 No",
                &format!("{{\"type\":\"invalid_api_key\",\"message\":\"{KEY}\"}}"),
            ),
        ),
        (
            "status 404: no error as the contract has it",
            answer("404 No", KEY),
        ),
        (
            "tried 2 times: unavailable (503)",
            json("503 No\r\nRetry-After: 0", "{\"type\":\"unavailable\"}"),
        ),
    ];
    for (expected, answer) in cases {
        let fake = Fake::start(without_feed(move |_| answer.clone()));
        let (code, said) = refused(&store, &fake.base(), &[]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        let request = format!("GET {}/v2/product?limit=500", fake.base());
        assert!(said.contains(&request), "{request}: {said}");
        let head = fake.heads().remove(0).to_ascii_lowercase();
        assert!(
            head.contains(&format!("x-api-key: {}", KEY.to_ascii_lowercase())),
            "{head}"
        );
        assert!(
            head.contains("x-api-version: 2026-12-01") && head.contains("user-agent: vitrine/")
        );
    }
}

#[test]
fn absent_source_and_unknown_key_are_reported() {
    let original = Store::sample();
    let server = original.serve();
    let store = Store::of(&[gift_card("OLD")]);
    let (code, said) = refused(&store, &base(&server), &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(
            "is the key in VITRINE_MIRROR_KEY one of that server?): invalid_api_key (401)"
        ),
        "{said}"
    );
    let gone = base(&server);
    drop(server);
    let (code, said) = refused(&store, &gone, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("can't connect") && said.contains(&gone),
        "{said}"
    );
}

#[test]
fn key_goes_to_the_source_alone() {
    let store = Store::of(&[gift_card("OLD")]);
    let there = Fake::start(|_| page(&[gift_card("A")], Some("A")));
    let location = format!("{}/v2/product?limit=500", there.base());
    let away = Fake::start(move |_| answer(&format!("307 Away\r\nLocation: {location}"), ""));
    let (code, said) = refused(&store, &away.base(), &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("leads to another origin"), "{said}");
    assert_eq!(there.heads().len(), 0, "the other origin was asked");
    assert_eq!(away.heads().len(), 1, "a redirect stays what it is");
    for (base, hint) in [
        ("http://catalog.example", "--allow-insecure"),
        ("https://catalog.example/v2/product", "before `/v2`"),
        ("catalog.example", "https://catalog.example"),
    ] {
        let (code, said) = refused(&store, base, &[]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(hint), "{said}");
    }
    let output = store.run(&["mirror", "--from", &there.base()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("VITRINE_MIRROR_KEY isn't set"));
    let output = mirror(&store, &there.base(), KEY, &["--every", "0s"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn faults_of_the_source_are_reported_by_its_address() {
    let store = Store::of(&[gift_card("OLD")]);
    let mut wrong = gift_card("B");
    wrong["currency"] = json!("EURO");
    let products = [gift_card("A"), wrong];
    let fake = Fake::start(without_feed(move |target| {
        match target.contains("after=") {
            true => page(&[], None),
            false => page(&products, Some("B")),
        }
    }));
    let (code, said) = refused(&store, &fake.base(), &[]);
    assert_eq!(code, Some(3), "{said}");
    let place = format!("{}/v2/product:2  B  /currency", fake.base());
    assert!(said.contains(&place), "{place}: {said}");
    let empty = Fake::start(without_feed(|_| page(&[], None)));
    let (code, said) = refused(&store, &empty.base(), &["--json"]);
    assert_eq!(code, Some(3), "{said}");
    let report: Value = serde_json::from_str(&said).expect("a report");
    assert_eq!(report["faults"][0]["rule"], "empty");
}

#[test]
fn missing_texts_fail_the_mirror() {
    let store = Store::of(&[gift_card("OLD")]);
    let digest = "0".repeat(64);
    for (prefix, text_answer, expected) in [
        (
            "",
            json("404 No", "{\"type\":\"not_found\"}"),
            "status 404 for a text that its catalog names",
        ),
        (
            "https://a.example",
            answer("404 No", "gone"),
            "status 404: no error",
        ),
        (
            "",
            answer("200 OK\r\nContent-Type: text/markdown", "# Another"),
            "isn't the one of this digest",
        ),
        (
            "",
            json("500 No", "{\"type\":\"internal_server_error\"}"),
            "tried 2 times: internal_server_error (500)",
        ),
    ] {
        let address = format!("/v2/texts/{digest}.md");
        let own = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
        let (late, sent) = (own.clone(), address.clone());
        let fake = Fake::start(without_feed(move |target| {
            if target.starts_with("/v2/texts/") {
                return text_answer.clone();
            }
            let mut product = gift_card("A");
            let prefix = late.get().expect("set before the first request");
            product["gift_card"]["content_resources"] =
                json!({"disclaimer_markdown_url": format!("{prefix}{sent}"), "locale": "en_GB"});
            match target.contains("after=") {
                true => page(&[], None),
                false => page(&[product], Some("A")),
            }
        }));
        let prefix = if prefix.is_empty() {
            fake.base()
        } else {
            prefix.to_owned()
        };
        own.set(prefix).expect("set once");
        let (code, said) = refused(&store, &fake.base(), &["--texts"]);
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains(expected) && said.contains(&address),
            "{expected}: {said}"
        );
        let keyed = fake
            .heads()
            .into_iter()
            .filter(|head| head.contains("/v2/texts/"));
        assert!(
            keyed.into_iter().all(|head| !head.contains(KEY)),
            "texts need no key"
        );
    }
}

#[test]
fn text_of_a_third_server_keeps_its_address() {
    let address = format!("https://third.example/v2/texts/{}.md", "0".repeat(64));
    let mut product = gift_card("A");
    let content = &mut product["gift_card"]["content_resources"];
    *content = json!({"disclaimer_markdown_url": address, "locale": "en_GB"});
    let original = Store::of(&[product]);
    let (key, server) = (original.key("mirror", &[]), original.serve());
    let copy = Store::new();
    mirrored(&copy, &base(&server), &key, &["--texts"]);
    assert!(copy.ok(&["export"]).contains(&address));
}

#[test]
fn catalog_over_cut_connections_is_whole_or_absent() {
    let original = Store::new();
    let products = original.ok(&["generate", "--products", "5000", "--seed", "7"]);
    let products = original.write("products.ndjson", products);
    original.load(&products);
    let (key, server) = (original.key("mirror", &[]), original.serve());
    let expected = original.ok(&["export"]);
    let copy = Store::of(&[gift_card("OLD")]);
    let old = copy.ok(&["export"]);
    let mut failed = 0;
    // A walk takes about 650 kB, compressed: most connections are cut within one, each at another place.
    for seed in 1..=4 {
        let cutter = Cutter::start(server.address, seed, 750_000);
        let output = mirror(&copy, &cutter.base(), &key, &["--retries", "0"]);
        if output.status.success() {
            assert_eq!(copy.ok(&["export"]), expected);
            copy.load_products(&[gift_card("OLD")]);
        } else {
            failed += 1;
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            assert_eq!(copy.ok(&["export"]), old, "nothing was changed");
        }
        assert!(!text(&output.stderr).contains(&key));
    }
    assert!(
        failed > 0,
        "{failed} connections were cut in the midst of a catalog"
    );
    let cutter = Cutter::start(server.address, 7, 160_000);
    mirrored(&copy, &cutter.base(), &key, &["--retries", "20"]);
    assert!(cutter.cuts() > 3, "{}", cutter.cuts());
    assert_eq!(copy.ok(&["export"]), expected);
}

#[test]
fn certificates_are_those_of_the_system() {
    let store = Store::new();
    let products = [gift_card("A")];
    let fake = Fake::start_tls(without_feed(move |target| {
        match target.contains("after=") {
            true => page(&[], None),
            false => page(&products, Some("A")),
        }
    }));
    let run = |authorities: &str| {
        let mut command = store.command(&["mirror", "--from", &fake.tls_base()]);
        command
            .env("VITRINE_MIRROR_KEY", KEY)
            .env_remove("SSL_CERT_DIR");
        command
            .env("NO_PROXY", "localhost")
            .env("SSL_CERT_FILE", authorities);
        command.output().expect("vitrine runs")
    };
    let output = run("/dev/null");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the server's certificate isn't trusted"),
        "{said}"
    );
    assert_eq!(fake.connections(), 1, "another try wouldn't mend it");
    assert_eq!(fake.heads().len(), 0, "the key was sent");
    let output = run(&format!("{TLS_FILES}/authority.pem"));
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn foreign_metrics_file_is_not_replaced() {
    let original = Store::of(&[gift_card("A")]);
    let (key, server) = (original.key("mirror", &[]), original.serve());
    let copy = Store::new();
    for (content, line) in [
        ("listen = \"0.0.0.0:8080\"\n", 1),
        ("# HELP node_load1 The load.\nnode_load1 0.5\n", 1),
        (
            "\nvitrine_mirror_products 2\nvitrine_mirror_products many\n",
            3,
        ),
    ] {
        let file = copy.write("file", content).display().to_string();
        let output = mirror(&copy, &base(&server), &key, &["--metrics-file", &file]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("{file}:{line} isn't")), "{said}");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), content);
    }
    let file = copy.write("file", "\n").display().to_string();
    mirrored(&copy, &base(&server), &key, &["--metrics-file", &file]);
}

#[test]
fn metrics_continue_over_runs() {
    let original = Store::new();
    original.load(SAMPLE);
    let (key, server) = (original.key("mirror", &[]), original.serve());
    let copy = Store::new();
    let file = copy.path("vitrine.prom");
    let options = [
        "--metrics-file",
        &file.display().to_string(),
        "--retries",
        "0",
    ];
    let read = || std::fs::read_to_string(&file).expect("metrics");
    let value = |text: &str, name: &str| -> f64 {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("{name} in {text}"))
    };
    mirrored(&copy, &base(&server), &key, &options);
    mirrored(&copy, &base(&server), &key, &options);
    let success = value(&read(), "vitrine_mirror_last_success_timestamp_seconds");
    assert!(success > 1_700_000_000.0);
    let output = mirror(&copy, &base(&server), KEY, &options);
    assert_eq!(output.status.code(), Some(1));
    let nowhere = copy.path("nowhere/vitrine.prom").display().to_string();
    let output = mirror(&copy, &base(&server), &key, &["--metrics-file", &nowhere]);
    assert!(
        text(&output.stderr).contains("nowhere/vitrine.prom"),
        "{output:?}"
    );
    let text = read();
    for (outcome, count) in [
        ("published", 1.0),
        ("unchanged", 1.0),
        ("refused", 0.0),
        ("failed", 1.0),
    ] {
        let name = format!("vitrine_mirror_rounds_total{{outcome=\"{outcome}\"}}");
        assert_eq!(value(&text, &name), count, "{text}");
    }
    assert_eq!(value(&text, "vitrine_mirror_products"), 72.0);
    assert_eq!(
        value(&text, "vitrine_mirror_last_success_timestamp_seconds"),
        success
    );
    assert!(value(&text, "vitrine_mirror_last_attempt_timestamp_seconds") > success);
    assert!(value(&text, "vitrine_mirror_duration_seconds") > 0.0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("a name");
        for head in ["HELP", "TYPE"] {
            assert_eq!(
                text.matches(&format!("# {head} {name} ")).count(),
                1,
                "{text}"
            );
        }
    }
    let mode = std::fs::metadata(&file)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o044, 0o044, "the collector is another user");
}
