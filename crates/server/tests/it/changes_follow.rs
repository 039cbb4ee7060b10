//! Copies kept by `vitrine changes` and the client crate, beside a true server: equal to its list.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use vitrine_client::{Change, Key, Product, SyncEvent, blocking};

use crate::harness::{Server, Store, gift_card, text, wait_for};

const PUBLIC_URL: &str = "http://catalog.example";

/// Products by code, to the letter.
type Catalog = BTreeMap<String, String>;

fn base(server: &Server) -> String {
    format!("http://{}", server.address)
}

/// Returns the list of a server.
fn list(server: &Server, key: &str, query: &str) -> Catalog {
    #[derive(Deserialize)]
    struct Page {
        catalog: Vec<Box<RawValue>>,
    }
    let reply = server.get(key, &format!("/v2/product{query}"));
    let page: Page = serde_json::from_slice(&reply.body).expect("a page");
    let code = |product: &RawValue| {
        let product: Value = serde_json::from_str(product.get()).expect("a product");
        product["code"].as_str().expect("a code").to_owned()
    };
    let products = page.catalog.into_iter();
    products
        .map(|product| (code(&product), product.get().to_owned()))
        .collect()
}

/// Returns products of which some come, change and go with each step.
fn products(step: usize) -> Vec<Value> {
    let product = |number: usize| {
        let mut product = gift_card(&format!("P{number:03}"));
        product["name"] = json!(format!("name {}", (number + step) / 7));
        product["is_orderable"] = json!(!(number + step).is_multiple_of(5));
        product
    };
    (step..step + 60).map(product).collect()
}

/// Lines and token of a copy, in files.
struct Files {
    lines: PathBuf,
    token: PathBuf,
}

impl Files {
    fn of(store: &Store, name: &str) -> Self {
        Self {
            lines: store.path(&format!("{name}.ndjson")),
            token: store.path(&format!("{name}.token")),
        }
    }

    /// Begins the command, which appends to the lines. Without a token the copy begins anew.
    fn spawn(&self, server: &Server, key: &str, arguments: &[&str]) -> Child {
        if !self.token.exists() {
            fs::write(&self.lines, "").expect("a file");
        }
        let lines = File::options().append(true).open(&self.lines);
        let lines = lines.expect("a file");
        // As the command's help says: a kill can cut the last line off.
        let whole = self.whole_lines().len() as u64;
        lines.set_len(whole).expect("a shorter file");
        Command::new(env!("CARGO_BIN_EXE_vitrine"))
            .args(["changes", "--token-file"])
            .arg(&self.token)
            .args(arguments)
            .env("VITRINE_URL", base(server))
            .env("VITRINE_KEY", key)
            .stdout(lines)
            .stderr(Stdio::piped())
            .spawn()
            .expect("vitrine runs")
    }

    /// Runs the command to its end; returns exit code and standard error.
    fn run(&self, server: &Server, key: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let child = self.spawn(server, key, arguments);
        let output = child.wait_with_output().expect("an end");
        (output.status.code(), text(&output.stderr))
    }

    /// Returns the lines without a last one that isn't whole: the command may be writing it, or have been killed meanwhile.
    fn whole_lines(&self) -> String {
        let bytes = fs::read(&self.lines).expect("lines");
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        text(&bytes[..end.map_or(0, |end| end + 1)])
    }

    /// Applies all lines.
    fn copy(&self) -> Catalog {
        let mut copy = Catalog::new();
        for line in self.whole_lines().lines() {
            let change: Change<Box<RawValue>> = serde_json::from_str(line).expect("a change");
            match change.product {
                Some(product) => copy.insert(change.code, product.get().to_owned()),
                None => copy.remove(&change.code),
            };
        }
        copy
    }
}

#[test]
fn followed_lines_stay_equal_to_the_list_through_kills() {
    let store = Store::of(&products(0));
    let key = store.key("copy", &[]);
    let server = store.serve();
    let files = Files::of(&store, "copy");
    for step in 1..10 {
        let mut child = files.spawn(&server, &key, &["--follow"]);
        // Each second one is killed at any moment, and the next one continues.
        store.load_products(&products(3 * step));
        if step % 2 == 0 {
            wait_for("a copy that is equal", || {
                (files.copy() == list(&server, &key, "")).then_some(())
            });
        }
        child.kill().expect("a child");
        child.wait().expect("an end");
    }
    // The last load is followed by one run without waiting.
    wait_for("the last load", || {
        assert_eq!(files.run(&server, &key, &[]), (Some(0), String::new()));
        let list = list(&server, &key, "");
        (list.contains_key("P086") && files.copy() == list).then_some(())
    });
}

#[test]
fn filtered_copy_loses_what_leaves_the_filter() {
    let store = Store::of(&products(0));
    let key = store.key("copy", &[]);
    let server = store.serve();
    let files = Files::of(&store, "copy");
    assert_eq!(files.run(&server, &key, &["--orderable"]).0, Some(0));
    for step in 1..4 {
        let held = files.spawn(&server, &key, &["--orderable", "--long-poll", "55"]);
        store.load_products(&products(step));
        let output = held.wait_with_output().expect("an end");
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(0), String::new())
        );
        assert_eq!(files.copy(), list(&server, &key, "?is_orderable=true"));
    }
    // The token is one for these filters.
    let (code, stderr) = files.run(&server, &key, &[]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("pagination_error"), "{stderr}");
}

#[test]
fn token_of_another_public_url_exits_with_3() {
    let store = Store::of(&products(0));
    let key = store.key("copy", &[]);
    let files = Files::of(&store, "copy");
    let server = store.serve_as(PUBLIC_URL);
    assert_eq!(files.run(&server, &key, &[]).0, Some(0));
    let before = fs::read(&files.lines).expect("lines");
    drop(server);
    let server = store.serve_as("http://moved.example");
    for more in [[].as_slice(), &["--follow"]] {
        let (code, stderr) = files.run(&server, &key, more);
        assert_eq!(code, Some(3), "{stderr}");
        assert!(stderr.contains("replace the copy"), "{stderr}");
    }
    assert_eq!(fs::read(&files.lines).expect("lines"), before);
    // The cure that it names.
    fs::remove_file(&files.token).expect("a token");
    assert_eq!(files.run(&server, &key, &[]).0, Some(0));
    assert_eq!(files.copy(), list(&server, &key, ""));
}

/// Follows events until the copy is at rest; returns true if it started over.
fn settle(
    events: &mut impl Iterator<Item = vitrine_client::Result<SyncEvent>>,
    copy: &mut BTreeMap<String, Product>,
) -> bool {
    let mut starts_over = false;
    loop {
        match events.next().expect("no end").expect("an event") {
            SyncEvent::StartOver => {
                starts_over = true;
                copy.clear();
            }
            SyncEvent::Changes {
                changes, at_rest, ..
            } => {
                for Change { code, product, .. } in changes {
                    match product {
                        Some(product) => copy.insert(code, product),
                        None => copy.remove(&code),
                    };
                }
                if at_rest {
                    return starts_over;
                }
            }
            _ => {}
        }
    }
}

fn written(copy: &BTreeMap<String, Product>) -> Catalog {
    let json = |product: &Product| serde_json::to_string(product).expect("JSON");
    copy.iter()
        .map(|(code, product)| (code.clone(), json(product)))
        .collect()
}

#[test]
fn client_syncs_through_restarts_of_its_server() {
    let store = Store::of(&products(0));
    let key = store.key("copy", &[]);
    let mut server = store.serve_as(PUBLIC_URL);
    let client = blocking::Client::new(&base(&server), Key::new(&key).expect("a key"));
    let client = client.expect("a client");
    let mut copy = BTreeMap::new();
    // Pages of few changes: walks have several.
    let mut events = client.iter(client.changes().limit(7).sync(None));
    assert!(settle(&mut events, &mut copy));
    assert_eq!(written(&copy), list(&server, &key, ""));
    for step in 1..5 {
        if step % 2 == 0 {
            let address = server.address.to_string();
            server.signal("KILL");
            server.wait();
            store.load_products(&products(2 * step));
            let serve = ["serve", "--listen", &address, "--public-url", PUBLIC_URL];
            server = Server::start(store.command(&serve));
        } else {
            store.load_products(&products(2 * step));
        }
        server.wait_for_revision(step as u64 + 1);
        assert!(!settle(&mut events, &mut copy), "step {step}");
        assert_eq!(written(&copy), list(&server, &key, ""));
    }
}
