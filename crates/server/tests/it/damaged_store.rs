//! A store whose bytes changed on the disk: what is served is what was loaded, or isn't served at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vitrine_model::content::TextDigest;

use crate::harness::{
    Server, Store, are_files, gift_card, overwrite_documents, random_letters, scrape, wait_for,
};

const PUBLIC: [&str; 4] = [
    "--public-url",
    "https://catalog.example",
    "--admin-listen",
    "127.0.0.1:0",
];

/// Products, of which every seventh has a text.
fn products(count: usize) -> Vec<Value> {
    let product = |number: usize| {
        let mut product = gift_card(&format!("P{number:04}"));
        // Documents are most of the file, however well they are packed.
        product["gift_card"]["expiry"]["date_policy"] = json!(random_letters(2_000, number as u64));
        if number.is_multiple_of(7) {
            let resources = &mut product["gift_card"]["content_resources"];
            resources["description_md"] = json!(format!("# Number {number}\n\nA text."));
        }
        product
    };
    (0..count).map(product).collect()
}

/// A copy of the store in one file.
fn copy(store: &Store) -> PathBuf {
    let copy = store.path("copy.db");
    let _ = std::fs::remove_file(&copy);
    store.ok(&["backup", &copy.display().to_string()]);
    copy
}

/// Tries to serve a store's copy.
fn serve(store: &Store, copy: &Path, options: &[&str]) -> Result<Server, String> {
    let mut command = store.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.args(PUBLIC).args(options);
    command.env("VITRINE_STORE", format!("sqlite:{}", copy.display()));
    Server::try_start(command).map_err(|(status, said)| {
        assert_eq!(status.code(), Some(1), "{said}");
        said
    })
}

/// All products as lists give them. Each page must be good JSON.
fn listed(server: &Server, key: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut after = String::new();
    loop {
        let reply = server.get(key, &format!("/v2/product?limit=100{after}"));
        assert_eq!(reply.status, 200);
        let page = reply.json();
        let products = page["catalog"].as_array().expect("a page").clone();
        let Some(last) = products.last() else {
            return found;
        };
        after = format!("&after={}", last["code"].as_str().expect("a code"));
        for product in products {
            let code = product["code"].as_str().expect("a code").to_owned();
            found.insert(code, product);
        }
    }
}

#[test]
fn flipped_bits_in_a_store_are_never_served() {
    if !are_files("flipped bits in a store are never served") {
        return;
    }
    let store = Store::of(&products(200));
    let key = store.key("reader", &[]);
    let copy = copy(&store);
    let whole = std::fs::read(&copy).expect("the file");
    let with_text = |code: &str| format!("/v2/product/{code}?content=md");
    let (expected, texts) = {
        let server = serve(&store, &copy, &[]).expect("a sound store");
        let expected = listed(&server, &key);
        let codes = expected.keys().step_by(7);
        let texts: BTreeMap<String, Value> = codes
            .map(|code| (code.clone(), server.get(&key, &with_text(code)).json()))
            .collect();
        (expected, texts)
    };
    assert_eq!(expected.len(), 200);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).expect("small")
    };
    let (mut served, mut left_out) = (0, 0);
    for round in 0..40 {
        let mut bytes = whole.clone();
        for _ in 0..4 {
            // Behind the first page, without which no file is a store.
            let at = 4096 + random(bytes.len() - 4096);
            bytes[at] ^= 1 << random(8);
        }
        for beside in ["copy.db-wal", "copy.db-shm"] {
            let _ = std::fs::remove_file(store.path(beside));
        }
        std::fs::write(&copy, bytes).expect("the file");
        let Ok(server) = serve(&store, &copy, &[]) else {
            continue;
        };
        // The key's own row may be the damaged one.
        if server.get(&key, "/v2/ping").status != 200 {
            continue;
        }
        served += 1;
        let found = listed(&server, &key);
        for (code, product) in &found {
            assert_eq!(Some(product), expected.get(code), "round {round}, {code}");
        }
        left_out += expected.len() - found.len();
        for (code, product) in &texts {
            let reply = server.get(&key, &with_text(code));
            match reply.status {
                200 => assert_eq!(reply.json(), *product, "round {round}, {code}"),
                status => assert!(
                    [404, 500].contains(&status),
                    "round {round}, {code}: {status}"
                ),
            }
        }
    }
    assert!(
        served > 20 && left_out > 10,
        "{served} served, {left_out} left out"
    );
}

#[test]
fn damaged_product_is_left_out_and_told() {
    if !are_files("damaged product is left out and told") {
        return;
    }
    let mut products = products(300);
    products[123]["name"] = json!("Unmistakable");
    let store = Store::of(&products);
    let key = store.key("reader", &[]);
    let copy = copy(&store);
    overwrite_documents(&copy, "Unmistakable", "Unmistakab\"e");
    let server = serve(&store, &copy, &[]).expect("a server");
    assert_eq!(listed(&server, &key).len(), 299);
    assert_eq!(server.get(&key, "/v2/product/P0123").status, 404);
    let metrics = scrape(&server);
    assert_eq!(
        metrics.value("vitrine_catalog_damaged{of=\"products\"}"),
        1.0
    );
    assert_eq!(metrics.value("vitrine_catalog_damaged{of=\"texts\"}"), 0.0);
    let said = server.stderr();
    assert!(said.contains("the store is damaged"), "{said}");
    assert!(said.contains("\"codes\":\"P0123\""), "{said}");
}

#[test]
fn damaged_store_keeps_what_was_last_good() {
    if !are_files("damaged store keeps what was last good") {
        return;
    }
    let mut products = products(300);
    products[123]["name"] = json!("Unmistakable");
    products[123]["categories"] = json!(["seldom"]);
    let store = Store::of(&products);
    let key = store.key("reader", &[]);
    let copy = copy(&store);
    let state = store.path("state").display().to_string();
    let options = ["--state-dir", &state];
    let expected = {
        let server = serve(&store, &copy, &options).expect("a server");
        wait_for("the snapshot file", || {
            let said = server.stderr();
            said.contains("the snapshot file is written").then_some(())
        });
        listed(&server, &key)
    };
    overwrite_documents(&copy, "Unmistakable", "Unmistakab\"e");
    let server = serve(&store, &copy, &options).expect("a server");
    // All is read again after that.
    let digest = TextDigest::of("# Number 7\n\nA text.").to_string();
    let address = format!("sqlite:{}", copy.display());
    store.ok(&["texts", "take-down", &digest, "--store", &address]);
    wait_for("the damage to be told", || {
        server
            .stderr()
            .contains("the store is damaged")
            .then_some(())
    });
    wait_for("the text to be taken down", || {
        let product = server.get(&key, "/v2/product/P0007?content=md").json();
        product["gift_card"]["content_resources"]["description_md"]
            .is_null()
            .then_some(())
    });
    let found = listed(&server, &key);
    assert_eq!(found.len(), 300);
    assert_eq!(found["P0123"], expected["P0123"]);
    let filtered = server.get(&key, "/v2/product?categories=seldom").json();
    assert_eq!(filtered["catalog"], json!([expected["P0123"]]));
}

#[test]
fn many_changes_keep_what_was_last_good() {
    if !are_files("many changes keep what was last good") {
        return;
    }
    let product = |number| gift_card(&format!("P{number:04}"));
    let mut products: Vec<Value> = (0..5_000).map(product).collect();
    let store = Store::of(&products);
    let key = store.key("reader", &[]);
    let state = store.path("state").display().to_string();
    let options = ["--state-dir", &state];
    let before = {
        let server = serve(&store, &copy(&store), &options).expect("a server");
        wait_for("the snapshot file", || {
            let said = server.stderr();
            said.contains("the snapshot file is written").then_some(())
        });
        listed(&server, &key)
    };
    // The thread that reads renders the first thousand, others the rest.
    for product in &mut products[100..1_300] {
        product["name"] = json!("Changed");
    }
    for damaged in [150, 1_250] {
        products[damaged]["name"] = json!("Unmistakable");
    }
    products.truncate(4_990);
    store.load_products(&products);
    let copy = copy(&store);
    overwrite_documents(&copy, "Unmistakable", "Unmistakab\"e");
    let server = serve(&store, &copy, &options).expect("a server");
    wait_for("the changes", || {
        let said = server.stderr();
        said.contains("\"made_from\":\"changes\"").then_some(())
    });
    let found = listed(&server, &key);
    assert_eq!(found.len(), 4_990);
    for (number, product) in (0..).zip(found.values()) {
        let mut expected = before[&format!("P{number:04}")].clone();
        if (100..1_300).contains(&number) && ![150, 1_250].contains(&number) {
            expected["name"] = json!("Changed");
        }
        assert_eq!(*product, expected);
    }
    let said = server.stderr();
    assert!(said.contains("\"codes\":\"P0150, P1250\""), "{said}");
}

#[test]
fn store_with_nothing_but_damage_ends_the_start() {
    if !are_files("store with nothing but damage ends the start") {
        return;
    }
    let store = Store::of(&products(3));
    let copy = copy(&store);
    overwrite_documents(&copy, "\"state\":", "\"stAte\":");
    let Err(said) = serve(&store, &copy, &[]) else {
        panic!("it serves");
    };
    assert!(said.contains("all of its products are damaged"), "{said}");
    assert!(said.contains("vitrine check"), "{said}");
}
