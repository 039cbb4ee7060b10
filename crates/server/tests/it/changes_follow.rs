//! Copies kept by the client crate, beside a true server: equal to its list.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use vitrine_client::{Change, Key, Product, SyncEvent, blocking};

use crate::harness::{Server, Store, gift_card};

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
