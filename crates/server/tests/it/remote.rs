//! `vitrine get` and `vitrine list`: what a server of the contract serves, on a command line.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::harness::{Page, Server, Store, Web, gift_card, text};

const KEY: &str = "partner.s3cret-part";

/// Runs a command against a server; the key is in the environment.
fn run(base: &str, key: &str, arguments: &[&str]) -> Output {
    command(base, key, arguments)
        .output()
        .expect("vitrine runs")
}

fn command(base: &str, key: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vitrine"));
    command
        .args(arguments)
        .env("VITRINE_URL", base)
        .env("VITRINE_KEY", key);
    command
}

/// Runs a command that must succeed; returns what it prints.
fn ok(base: &str, key: &str, arguments: &[&str]) -> String {
    let output = run(base, key, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout)
}

/// Runs a command that must fail with exit code 1 and print nothing; returns what it says.
fn fails(base: &str, key: &str, arguments: &[&str]) -> String {
    let output = run(base, key, arguments);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    let said = text(&output.stderr);
    assert!(!said.contains("s3cret"), "{said}");
    said
}

fn base(server: &Server) -> String {
    format!("http://{}", server.address)
}

fn sample() -> (Store, String, Server) {
    let store = Store::sample();
    let key = store.key("remote", &[]);
    let server = store.serve();
    (store, key, server)
}

#[test]
fn get_prints_what_the_server_sent() {
    let (_store, key, server) = sample();
    let served = |target: &str| format!("{}\n", text(&server.get(&key, target).body));
    for code in ["BRIARWICK-GB", "OPENFARER-US", "FABELZWEIG-DE"] {
        for form in ["url", "md", "html"] {
            let printed = ok(&base(&server), &key, &["get", code, "--content", form]);
            assert_eq!(
                printed,
                served(&format!("/v2/product/{code}?content={form}"))
            );
        }
    }
    // The address may have the version in it.
    let with_version = format!("{}/v2/", base(&server));
    let printed = ok(&with_version, &key, &["get", "OPENFARER-US", "--json"]);
    assert_eq!(printed, served("/v2/product/OPENFARER-US"));
}

#[test]
fn get_shows_every_field_to_people() {
    let (_store, key, server) = sample();
    let table = ok(
        &base(&server),
        &key,
        &[
            "get",
            "BRIARWICK-GB",
            "--format",
            "table",
            "--content",
            "md",
        ],
    );
    let value = |name: &str| {
        let row = table
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(name));
        row.unwrap_or_else(|| panic!("{name} in {table}"))
            .trim()
            .to_owned()
    };
    assert_eq!(value("code "), "BRIARWICK-GB");
    assert_eq!(value("gift_card.content_resources.locale "), "en_GB");
    assert!(value("gift_card.denominations.available_list ").contains(", "));
    let table = ok(
        &base(&server),
        &key,
        &["get", "OPENFARER-US", "--format", "table"],
    );
    assert!(
        table.contains("prepaid_card.limits.balance_maximum") && table.contains("2.5E+3"),
        "{table}"
    );
}

#[test]
fn list_filters_and_ends_where_it_should() {
    let (_store, key, server) = sample();
    let codes = |arguments: &[&str]| -> Vec<String> {
        let printed = ok(&base(&server), &key, &[&["list"], arguments].concat());
        let code = |line: &str| {
            let product: Value = serde_json::from_str(line).expect("a product");
            product["code"].as_str().expect("a code").to_owned()
        };
        printed.lines().map(code).collect()
    };
    let served = |query: &str| server.get(&key, &format!("/v2/product{query}")).codes();
    assert_eq!(codes(&[]), served(""));
    assert_eq!(
        codes(&[
            "--country",
            "US",
            "--country",
            "CA",
            "--orderable",
            "--category",
            "travel"
        ]),
        served(
            "?countries_redeemable_in=US&countries_redeemable_in=CA&is_orderable=true&categories=travel"
        )
    );
    assert_eq!(
        codes(&["--category", "café & bistro"]),
        served("?categories=caf%C3%A9%20%26%20bistro")
    );
    assert_eq!(codes(&["--limit", "7"]), served("?limit=7"));
    assert_eq!(
        codes(&["--limit", "2", "--after", "M"]),
        served("?limit=2&after=M")
    );
    assert!(codes(&["--category", "none"]).is_empty());
}

#[test]
fn list_prints_the_same_products_in_every_format() {
    let (store, key, server) = sample();
    let list = |format: &str| ok(&base(&server), &key, &["list", "--format", format]);
    let served = text(&server.get(&key, "/v2/product").body);
    let lines = list("ndjson");
    assert!(lines.lines().all(|line| served.contains(line)));
    let array: Vec<Value> = serde_json::from_str(&list("json")).expect("an array");
    assert_eq!(
        array,
        serde_json::from_str::<Value>(&served).expect("JSON")["catalog"]
            .as_array()
            .expect("one")
            .clone()
    );
    let table = list("table");
    assert!(table.trim_start().starts_with("CODE"), "{table}");
    assert_eq!(table.lines().count(), array.len() + 1);
    // What is printed as CSV loads again: the texts are there by their addresses.
    let file = store.write("list.csv", list("csv"));
    let copy = Store::new();
    copy.load(file);
    let copied = copy.ok(&["export"]);
    assert_eq!(copied.lines().count(), array.len());
    let none = |format: &str| {
        ok(
            &base(&server),
            &key,
            &["list", "--category", "none", "--format", format],
        )
    };
    assert_eq!(
        (none("json"), none("ndjson")),
        ("[\n]\n".to_owned(), String::new())
    );
    assert_eq!(none("csv").lines().count(), 1);
}

#[test]
fn list_follows_pages_until_the_reader_leaves() {
    let store = Store::new();
    let products: Vec<Value> = (0..1_101)
        .map(|number| gift_card(&format!("P{number:05}")))
        .collect();
    store.load_products(&products);
    let key = store.key("remote", &[]);
    let server = store.serve();
    assert_eq!(ok(&base(&server), &key, &["list"]).lines().count(), 1_101);
    assert_eq!(
        ok(&base(&server), &key, &["list", "--limit", "1001"])
            .lines()
            .count(),
        1_001
    );
    let mut child = command(&base(&server), &key, &["list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("vitrine runs");
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut first).expect("a line");
    assert!(first.contains("P00000"), "{first}");
    drop(stdout);
    let output = child.wait_with_output().expect("an end");
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), String::new())
    );
}

#[test]
fn server_errors_are_printed_whole() {
    let (_store, key, server) = sample();
    let said = fails(&base(&server), &key, &["get", "NONE"]);
    for part in ["not_found", "404", "NONE", "[request "] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let said = fails(&base(&server), KEY, &["list"]);
    assert!(
        said.contains("invalid_api_key") && said.contains("help: "),
        "{said}"
    );
    let said = fails(&base(&server), &key, &["get", "categories"]);
    assert!(said.contains("can't be the code"), "{said}");
    let said = fails("http://catalog.example", KEY, &["list"]);
    assert!(said.contains("--allow-insecure"), "{said}");
    let said = fails("catalog.example", KEY, &["list"]);
    assert!(said.contains("https://catalog.example"), "{said}");
}

#[test]
fn key_is_read_from_a_file_or_the_environment() {
    let (store, key, server) = sample();
    let said = fails(&base(&server), "", &["list"]);
    assert!(
        said.contains("VITRINE_KEY") && said.contains("--key-file"),
        "{said}"
    );
    let file = store
        .write("key.txt", format!("{key}\n"))
        .display()
        .to_string();
    // The file is meant where both are there.
    ok(
        &base(&server),
        "wrong.key-part",
        &["list", "--limit", "1", "--key-file", &file],
    );
    let said = fails(
        &base(&server),
        &key,
        &["list", "--key-file", "/nowhere/key"],
    );
    assert!(said.contains("/nowhere/key"), "{said}");
    // A file that is no key's may have no end.
    let said = fails(&base(&server), &key, &["list", "--key-file", "/dev/zero"]);
    assert!(said.contains("/dev/zero: it holds more than"), "{said}");
    let output = run(&base(&server), &key, &["list", "--key", &key]);
    assert_eq!(output.status.code(), Some(2));
}

/// A server of one page, whose products are what a test says.
fn web(products: &[Value]) -> Web {
    let page = |products: &[Value]| {
        let cursor = products.last().map(|product| product["code"].clone());
        let cursors = json!({"before": cursor, "after": cursor});
        json!({"catalog": products, "pagination": {"cursors": cursors}}).to_string()
    };
    let json = |body: String| Page::ok(body).with("Content-Type", "application/json");
    Web::of(&[
        ("/v2/product", json(page(products))),
        ("/v2/product?after=X", json(page(&[]))),
        ("/v2/product/X", json(products[0].to_string())),
    ])
}

#[test]
fn catalog_text_does_not_steer_a_terminal() {
    let mut product = gift_card("X");
    product["name"] = json!("\u{1b}[31mred\u{7}\u{202e}\nnext");
    product["categories"] = json!(["\u{1b}]0;title\u{7}"]);
    product["\u{1b}[2J"] = json!({"\u{9b}1m": "\u{1b}c"});
    let web = web(&[product.clone()]);
    for arguments in [
        ["list", "--format", "table"].as_slice(),
        &["get", "X", "--format", "table"],
    ] {
        let printed = ok(&web.url(""), KEY, arguments);
        let is_steering = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!printed.contains(is_steering), "{printed:?}");
        assert!(printed.contains("red"), "{printed}");
    }
    // Programs get what was sent, fields that nobody knows too.
    let printed = ok(&web.url(""), KEY, &["list"]);
    assert_eq!(printed, format!("{product}\n"));
    let said = fails(&web.url(""), KEY, &["list", "--format", "csv"]);
    assert!(
        said.contains("no column holds") && !said.contains('\u{1b}'),
        "{said}"
    );
}

#[test]
fn broken_list_prints_how_to_continue() {
    let web = web(&[gift_card("X")]);
    web.set("/v2/product?after=X", &[Page::status("404 Not Found")]);
    let output = run(&web.url(""), KEY, &["list"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout).lines().count(), 1);
    let said = text(&output.stderr);
    assert!(said.contains("--after X"), "{said}");
    assert_eq!(web.take_requests().len(), 2);
}
