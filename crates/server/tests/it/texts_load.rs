//! Texts loaded by themselves: Markdown files put on live products.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Server, Store, gift_card, text, wait_for};

const OUTSIDE: &str = "https://brand.example/terms.md";

/// A gift card with a description, terms by address, and a discount with more digits than are shown.
fn card(code: &str) -> Value {
    let mut product = gift_card(code);
    product["discount_multiplier"] = json!("0.0525");
    let content = &mut product["gift_card"]["content_resources"];
    content["description_md"] = json!("Old description");
    content["terms_buyer_md"] = Value::Null;
    content["terms_buyer_markdown_url"] = json!(OUTSIDE);
    product
}

/// A product that keeps no texts: of a later payout type, without content resources.
fn without_content(code: &str) -> Value {
    let mut product = gift_card(code);
    product["payout_type"] = json!("bank_transfer");
    let object = product.as_object_mut().expect("an object");
    object.remove("gift_card");
    object.insert("bank_transfer".to_owned(), json!({"minimum": 1.50}));
    product
}

/// Writes files below a directory of texts; returns the directory.
fn texts(store: &Store, files: &[(&str, &[u8])]) -> PathBuf {
    let directory = store.path("texts");
    for (name, bytes) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, bytes).expect("a file");
    }
    directory
}

/// Loads a directory of texts; returns the exit code and the report.
fn load(store: &Store, directory: &Path, options: &[&str]) -> (i32, Value) {
    let directory = directory.display().to_string();
    let output = store.run(&[&["texts", "load", "--json"], options, &[&directory]].concat());
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", text(&output.stderr)));
    (output.status.code().expect("an exit code"), report)
}

#[test]
fn texts_with_html_or_hidden_characters_are_warned_of() {
    let store = Store::of(&["A", "B", "C"].map(card));
    let directory = texts(
        &store,
        &[
            ("A/description.md", b"<p>Terms</p>"),
            ("B/description.md", "a\u{202e}b <b>c</b>".as_bytes()),
            ("C/description.md", b"fine\n\tlines"),
        ],
    );
    let (exit, report) = load(&store, &directory, &["--dry-run"]);
    let warned = |rule: &str| report["warnings"][rule]["by_field"].clone();
    assert_eq!(
        (
            exit,
            warned("html_in_text"),
            warned("suspicious_characters")
        ),
        (
            0,
            json!({"description_md": 2}),
            json!({"description_md": 1})
        ),
        "{report}"
    );
    let directory = directory.display().to_string();
    let run = store.run(&["texts", "load", "--dry-run", &directory]);
    let said = text(&run.stdout) + &text(&run.stderr);
    for warning in [
        "warning: 2 products: html in text description_md (",
        "warning: 1 product: suspicious characters description_md (U+202E",
    ] {
        assert!(said.contains(warning), "{said}");
    }
}

fn content(server: &Server, key: &str, code: &str, form: &str) -> Value {
    let reply = server.get(key, &format!("/v2/product/{code}?content={form}"));
    reply.json()["gift_card"]["content_resources"].clone()
}

fn exported(store: &Store) -> Vec<Value> {
    let lines = store.ok(&["export"]);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn files_become_texts_of_live_products() {
    let store = Store::of(&[card("A"), card("B"), card("C")]);
    let key = store.key("reader", &[]);
    let server = store.serve();
    let before = exported(&store);
    let directory = texts(
        &store,
        &[
            ("A/description.md", "\u{feff}# Grüße\r\n".as_bytes()),
            ("A/terms_buyer.md", b"Terms"),
            ("B/refund_policy.md", b"Refunds"),
            (".git/HEAD", b"hidden"),
            ("A/.description.md.swp", b"hidden"),
        ],
    );

    let (exit, planned) = load(&store, &directory, &["--dry-run"]);
    assert_eq!((exit, &planned["applied"]), (0, &json!(false)), "{planned}");
    let changed = planned["plan"]["changed"].as_array().expect("changes");
    let pointers = |product: &Value| -> Vec<String> {
        let fields = product["fields"].as_array().expect("fields");
        let pointer = |field: &Value| field["pointer"].as_str().expect("a pointer").to_owned();
        fields.iter().map(pointer).collect()
    };
    let at = |name: &str| format!("/gift_card/content_resources/{name}_markdown_url");
    assert_eq!(
        pointers(&changed[0]),
        [at("description"), at("terms_buyer")]
    );
    assert_eq!(pointers(&changed[1]), [at("refund_policy")]);
    assert_eq!(exported(&store), before, "a dry run changes nothing");

    let (exit, report) = load(&store, &directory, &["--note", "new terms"]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(
        (&report["applied"], &report["records"]),
        (&json!(true), &json!(3))
    );
    assert_eq!(report["counts"]["changed"], 2, "{report}");
    server.wait_for_loaded(&report);
    let md = content(&server, &key, "A", "md");
    assert_eq!(md["description_md"], "# Grüße\r\n");
    assert_eq!(md["terms_buyer_md"], "Terms");
    let html = content(&server, &key, "A", "html");
    assert_eq!(html["terms_buyer_html"], "<p>Terms</p>\n");
    let history = store.ok(&["history", "--json", "--limit", "1"]);
    assert!(history.contains("new terms"), "{history}");

    // All that wasn't named is as it was, and so is the discount with its hidden digits.
    let mut expected = before;
    let resources = |product: &mut Value, key: &str, value: &str| {
        product["gift_card"]["content_resources"][key] = json!(value);
    };
    resources(&mut expected[0], "description_md", "# Grüße\r\n");
    resources(&mut expected[0], "terms_buyer_md", "Terms");
    resources(&mut expected[1], "refund_policy_md", "Refunds");
    let object = expected[1]["gift_card"]["content_resources"].as_object_mut();
    object
        .expect("an object")
        .remove("refund_policy_markdown_url");
    assert_eq!(exported(&store), expected);

    let (exit, again) = load(&store, &directory, &[]);
    assert_eq!((exit, &again["revision"]), (0, &Value::Null), "{again}");
    store.ok(&["check"]);
}

#[test]
fn later_payout_type_stays_to_the_letter_around_its_texts() {
    let mut product = without_content("LATER");
    product["bank_transfer"] = json!({"content_resources": {"locale": "de_DE"}});
    let record = product.to_string();
    // As no JSON library would write it again.
    let record = record
        .replace(
            "\"content_resources\"",
            "\"minimum\":1.50,\"content_resources\"",
        )
        .replace("\"de_DE\"}", "\"de_DE\"},\"most\":1E3");
    let store = Store::new();
    assert_eq!(store.try_load(&record).0, 0);
    let key = store.key("reader", &[]);
    let served = || {
        let reply = store.serve().get(&key, "/v2/product/LATER");
        text(&reply.body)
    };
    let before = served();
    assert!(
        before.contains("\"minimum\":1.50,") && before.contains("\"most\":1E3"),
        "{before}"
    );
    let directory = texts(&store, &[("LATER/disclaimer.md", b"Slow")]);
    assert_eq!(load(&store, &directory, &[]).0, 0);
    let without_addresses = |body: &str| -> String {
        let parts: Vec<&str> = body.split("\"disclaimer_markdown_url\":").collect();
        let (_, rest) = parts[1].split_once(',').expect("more fields");
        format!("{}{rest}", parts[0])
    };
    let after = served();
    assert_ne!(after, before);
    assert_eq!(without_addresses(&after), without_addresses(&before));
    store.ok(&["check"]);
}

#[test]
fn feed_of_addresses_keeps_loaded_texts() {
    let store = Store::of(&[card("A")]);
    let directory = texts(&store, &[("A/terms_buyer.md", b"Terms")]);
    assert_eq!(load(&store, &directory, &[]).0, 0);
    let again = store.load_products(&[card("A")]);
    assert_eq!(again["revision"], Value::Null, "{again}");
    let mut elsewhere = card("A");
    elsewhere["gift_card"]["content_resources"]["terms_buyer_markdown_url"] =
        json!("https://brand.example/other.md");
    let report = store.load_products(&[elsewhere]);
    assert_eq!(report["counts"]["changed"], 1, "{report}");
}

#[test]
fn every_text_fault_is_reported_and_changes_nothing() {
    let store = Store::of(&[card("A"), without_content("LATER")]);
    let before = exported(&store);
    let directory = texts(
        &store,
        &[
            ("README.md", b"About these texts"),
            ("A/sub/description.md", b"Too deep"),
            ("A/terms.md", b"No such text"),
            ("A/description.txt", b"No Markdown"),
            ("A/description.md", b"Fine"),
            ("A/disclaimer.md", b"caf\xe9"),
            ("A/refund_policy.md", &vec![b'x'; (1 << 20) + 1]),
            ("A/reissuance_policy.md", b"a\0b"),
            ("A/terms_buyer.md", b""),
            ("A/terms_consumer.md", b" \n"),
            ("categories/description.md", b"A reserved word"),
            ("no code/description.md", b"A blank"),
            ("GONE/description.md", b"No such product"),
            ("GONE/disclaimer.md", b"\xff"),
            ("LATER/description.md", b"It keeps no texts"),
        ],
    );
    std::os::unix::fs::symlink(
        "/etc/hostname",
        directory.join("A/redemption_instructions.md"),
    )
    .expect("a link");
    let (exit, report) = load(&store, &directory, &[]);
    assert_eq!((exit, &report["applied"]), (3, &json!(false)));
    let faults = report["faults"].as_array().expect("faults");
    let root = format!("{}/", directory.display());
    let mut found: Vec<(&str, &str)> = faults
        .iter()
        .map(|fault| {
            let file = fault["file"].as_str().expect("a file");
            let rule = fault["rule"].as_str().expect("a rule");
            (file.strip_prefix(&root).expect("below the directory"), rule)
        })
        .collect();
    found.sort_unstable();
    let expected = [
        ("A/description.txt", "text_file"),
        ("A/disclaimer.md", "utf8"),
        ("A/redemption_instructions.md", "text_link"),
        ("A/refund_policy.md", "text_too_long"),
        ("A/reissuance_policy.md", "nul_character"),
        ("A/sub/description.md", "text_path"),
        ("A/terms.md", "text_file"),
        ("A/terms_buyer.md", "text_blank"),
        ("A/terms_consumer.md", "text_blank"),
        ("GONE", "product_not_live"),
        ("GONE/disclaimer.md", "utf8"),
        ("LATER", "texts_not_kept"),
        ("README.md", "text_path"),
        ("categories/description.md", "code_reserved"),
        ("no code/description.md", "code_pattern"),
    ];
    assert_eq!(found, expected);
    assert_eq!(exported(&store), before);
    let (exit, report) = load(&store, &store.path("texts/A/sub/"), &[]);
    assert_eq!(
        (exit, &report["faults"][0]["rule"]),
        (3, &json!("text_path"))
    );
}

#[test]
fn empty_or_missing_text_directory_is_refused() {
    let store = Store::of(&[card("A")]);
    let directory = texts(&store, &[("A/.hidden.md", b"hidden")]);
    let (exit, report) = load(&store, &directory, &[]);
    assert_eq!((exit, &report["faults"][0]["rule"]), (3, &json!("empty")));
    let output = store.run(&["texts", "load", "no/such/directory"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no/such/directory"));
}

#[test]
fn linked_file_is_shared_by_products() {
    let store = Store::of(&[card("A"), card("B")]);
    let directory = texts(
        &store,
        &[("A/disclaimer.md", b"Shared"), ("B/description.md", b"B")],
    );
    let link = directory.join("B/disclaimer.md");
    std::os::unix::fs::symlink("../A/disclaimer.md", link).expect("a link");
    let (exit, report) = load(&store, &directory, &[]);
    assert_eq!(
        (exit, &report["counts"]["changed"]),
        (0, &json!(2)),
        "{report}"
    );
    for product in exported(&store) {
        let content = &product["gift_card"]["content_resources"];
        assert_eq!(content["disclaimer_md"], "Shared", "{product}");
    }
}

#[test]
fn text_taken_down_stays_down_when_its_file_is_loaded_again() {
    let store = Store::of(&[card("A")]);
    let directory = texts(&store, &[("A/disclaimer.md", b"Forbidden words")]);
    assert_eq!(load(&store, &directory, &[]).0, 0);
    let key = store.key("reader", &[]);
    let server = store.serve();
    let url = content(&server, &key, "A", "url")["disclaimer_markdown_url"].clone();
    store.ok(&["texts", "take-down", url.as_str().expect("an address")]);
    let is_down = || content(&server, &key, "A", "md")["disclaimer_md"].is_null();
    wait_for("the text to go", || is_down().then_some(()));
    std::fs::write(directory.join("A/description.md"), "New").expect("a file");
    let (_, report) = load(&store, &directory, &[]);
    server.wait_for_loaded(&report);
    let md = content(&server, &key, "A", "md");
    assert_eq!(
        (&md["description_md"], &md["disclaimer_md"]),
        (&json!("New"), &Value::Null)
    );
}
