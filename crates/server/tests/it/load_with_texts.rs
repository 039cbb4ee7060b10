//! Texts loaded with products, in one transaction.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{ALLOW_ALL, Store, gift_card, text};

/// Loads products with the texts of `files`; returns the exit code and the report.
fn load(
    store: &Store,
    products: &[Value],
    files: &[(&str, &str)],
    options: &[&str],
) -> (i32, Value) {
    let directory = store.path("texts");
    // Where there is none yet, there is nothing to remove.
    let _ = std::fs::remove_dir_all(&directory);
    for (name, markdown) in files {
        let path: PathBuf = directory.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, markdown).expect("a file");
    }
    let lines: Vec<String> = products.iter().map(ToString::to_string).collect();
    let file = store.write("products.ndjson", lines.join("\n"));
    let (file, directory) = (file.display().to_string(), directory.display().to_string());
    let command = ["load", "--json", "--texts", &directory, &file];
    let output = store.run(&[&command, &ALLOW_ALL[..], options].concat());
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", text(&output.stderr)));
    (output.status.code().expect("an end"), report)
}

/// A text of a live product, as the API shows it.
fn shown(store: &Store, code: &str, key: &str) -> Value {
    let reader = store.key("reader", &[]);
    let reply = store
        .serve()
        .get(&reader, &format!("/v2/product/{code}?content=md"));
    reply.json()["gift_card"]["content_resources"][key].clone()
}

#[test]
fn products_and_their_texts_are_one_revision() {
    let store = Store::new();
    let products = [gift_card("A"), gift_card("B")];
    let files = [
        ("A/description.md", "# of A"),
        ("B/terms_consumer.md", "# of B"),
    ];
    let (exit, report) = load(&store, &products, &files, &[]);
    assert_eq!(
        (exit, &report["counts"]["created"]),
        (0, &json!(2)),
        "{report}"
    );
    assert_eq!(store.revisions(), 1);
    assert_eq!(shown(&store, "A", "description_md"), "# of A");
    assert_eq!(shown(&store, "B", "terms_consumer_md"), "# of B");
    // Again, it changes nothing; another text is a change of its product.
    let (_, report) = load(&store, &products, &files, &[]);
    assert_eq!(report["revision"], Value::Null);
    let files = [("A/description.md", "# new"), files[1]];
    let (_, report) = load(&store, &products, &files, &["--dry-run"]);
    assert_eq!(report["plan"]["changed"][0]["code"], "A");
    let (_, report) = load(&store, &products, &files, &[]);
    assert_eq!(report["counts"]["changed"], 1);
    let digest = |at: usize| {
        let history = store.json(&["history", "--json"]);
        history[at]["source_digest"].clone()
    };
    assert_ne!(digest(0), digest(1), "texts are a part of what was loaded");
}

#[test]
fn merge_may_bring_texts_of_other_products() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let files = [("A/description.md", "# a"), ("B/description.md", "# b")];
    let (exit, report) = load(&store, &[gift_card("B")], &files, &["--mode", "merge"]);
    assert_eq!(
        (exit, &report["counts"]["changed"]),
        (0, &json!(2)),
        "{report}"
    );
    assert_eq!(shown(&store, "A", "description_md"), "# a");
}

#[test]
fn unassignable_text_refuses_the_load() {
    let mut later = gift_card("LATER");
    later["payout_type"] = json!("bank_transfer");
    let members = later.as_object_mut().expect("an object");
    members.remove("gift_card");
    members.insert("bank_transfer".to_owned(), json!({"minimum": 1}));
    let store = Store::of(&[gift_card("A")]);
    let before = store.ok(&["export"]);
    let loaded = [gift_card("A"), later];
    for (files, mode, rule) in [
        (
            ("NONE/description.md", "# n"),
            "replace",
            "product_not_loaded",
        ),
        (("NONE/description.md", "# n"), "merge", "product_not_live"),
        (("LATER/description.md", "# n"), "replace", "texts_not_kept"),
        (("A/description.md", " "), "replace", "text_blank"),
        (("A/summary.md", "# s"), "merge", "text_file"),
    ] {
        for on_error in ["reject", "skip"] {
            let options = ["--mode", mode, "--on-error", on_error];
            let (exit, report) = load(&store, &loaded, &[files], &options);
            assert_eq!(
                (exit, &report["applied"]),
                (3, &json!(false)),
                "{files:?}: {report}"
            );
            assert_eq!(report["faults"][0]["rule"], rule, "{files:?}: {report}");
            assert_eq!(store.ok(&["export"]), before, "{files:?}");
        }
    }
}

#[test]
fn texts_of_a_rejected_record_are_not_loaded() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let mut bad = gift_card("A");
    bad["currency"] = json!("EURO");
    let files = [("A/description.md", "# a"), ("B/description.md", "# b")];
    let options = ["--on-error", "skip"];
    let (exit, report) = load(&store, &[bad, gift_card("B")], &files, &options);
    assert_eq!(
        (exit, &report["counts"]["changed"]),
        (4, &json!(1)),
        "{report}"
    );
    assert_eq!(shown(&store, "A", "description_md"), Value::Null);
    assert_eq!(shown(&store, "B", "description_md"), "# b");
}
