//! The catalog as it was: plans, merges, history, differences, rollbacks.

use serde_json::{Value, json};

use crate::answers;
use crate::harness::{ALLOW_ALL, Store, gift_card, text};

fn named(code: &str, name: &str) -> Value {
    let mut product = gift_card(code);
    product["name"] = name.into();
    product
}

#[test]
fn dry_run_shows_changes_and_changes_nothing() {
    let store = Store::of(&[named("A", "one"), named("B", "one"), named("C", "one")]);
    let mut changed = named("B", "two");
    changed["gift_card"]["denominations"]["maximum_value"] = "60.00".into();
    let lines = [named("A", "one"), changed, named("D", "one")].map(|line| line.to_string());
    let file = store.write("next.ndjson", lines.join("\n"));
    let file = file.display().to_string();
    let loading =
        |arguments: &[&str]| store.ok(&[&["load", &file], &ALLOW_ALL[..], arguments].concat());
    let loaded =
        |arguments: &[&str]| -> Value { serde_json::from_str(&loading(arguments)).expect("JSON") };
    let report = loaded(&["--json", "--dry-run"]);
    assert_eq!(
        (&report["applied"], &report["revision"]),
        (&json!(false), &Value::Null)
    );
    let plan = &report["plan"];
    assert_eq!(plan["created"], json!(["D"]));
    assert_eq!(plan["retired"], json!(["C"]));
    assert_eq!(plan["unchanged"], 1);
    let fields = json!([
        {"pointer": "/name", "old": "\"one\"", "new": "\"two\""},
        {"pointer": "/gift_card/denominations/maximum_value", "old": "\"50.00\"", "new": "\"60.00\""},
    ]);
    assert_eq!(plan["changed"], json!([{"code": "B", "fields": fields}]));
    let said = loading(&["--dry-run"]);
    for part in [
        "+ D\n",
        "~ B\n",
        "/name: \"one\" → \"two\"",
        "- C\n",
        "dry run, nothing was changed",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(
        store
            .json(&["history", "--json"])
            .as_array()
            .expect("a list")
            .len(),
        1
    );
    // What was planned is what is done.
    let done = loaded(&["--json"]);
    assert_eq!(
        (&done["applied"], &done["counts"]),
        (&json!(true), &report["counts"])
    );
    let difference = store.json(&["diff", "1", "2", "--json"]);
    assert_eq!(&difference, plan);
}

#[test]
fn merge_changes_and_retires_only_named_products() {
    let store = Store::of(&[named("A", "one"), named("B", "one"), named("C", "one")]);
    let file = store.write("more.json", named("B", "two").to_string());
    let file = file.display().to_string();
    let merge = [
        "load", "--json", "--mode", "merge", "--retire", "C", "--retire", "NONE", &file,
    ];
    let report = store.json(&[&merge, &ALLOW_ALL[..]].concat());
    assert_eq!(
        report["warnings"]["retired_already"]["examples"][0]["code"],
        "NONE"
    );
    let counts = json!({"created": 0, "changed": 1, "retired": 1, "unchanged": 0});
    assert_eq!(report["counts"], counts);
    let key = store.key("reader", &[]);
    assert_eq!(store.serve().get(&key, "/v2/product").codes(), ["A", "B"]);
    let refused = store.run(&["load", "--retire", "A", &file]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--mode merge"));
}

#[test]
fn history_shows_author_counts_and_note() {
    let store = Store::new();
    let file = store.write("a.json", gift_card("A").to_string());
    let file = file.display().to_string();
    let mut command = store.command(&["load", "--note", "first light", &file]);
    command.env("SUDO_USER", "").env("USER", "olga");
    assert!(command.status().expect("vitrine runs").success());
    store.load_products(&[gift_card("A"), gift_card("B")]);
    let history = store.json(&["history", "--json"]);
    assert_eq!(
        (&history[0]["number"], &history[1]["number"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(history[1]["by"], "olga");
    assert_eq!(history[1]["note"], "first light");
    assert_eq!(history[1]["source_digest"].as_str().map(str::len), Some(64));
    let counts = json!({"created": 1, "changed": 0, "retired": 0, "unchanged": 1});
    assert_eq!(history[0]["counts"], counts);
    let table = store.ok(&["history"]);
    assert!(
        table.contains("first light") && table.contains("olga"),
        "{table}"
    );
    assert_eq!(
        store.json(&["diff", "1", "--json"])["created"],
        json!(["B"])
    );
    assert_eq!(
        store.json(&["diff", "2", "1", "--json"])["retired"],
        json!(["B"])
    );
    let missing = store.run(&["diff", "9"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("there is no revision 9"));
}

#[test]
fn revision_that_does_not_exist_is_an_error() {
    let empty = Store::of(&[gift_card("A")]);
    let store = Store::of(&[named("A", "one")]);
    store.load_products(&[named("A", "two")]);
    for arguments in [
        &["show", "A", "--at", "99"][..],
        &["show", "A", "--at", "0"],
        &["show", "A", "--at", "18446744073709551615"],
        &["export", "--at", "99"],
        &["diff", "99"],
        &["diff", "1", "99", "--json"],
        &["rollback", "99"],
    ] {
        let output = store.run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        assert!(said.contains("the newest is 2"), "{arguments:?}: {said}");
    }
    let said = empty.run(&["show", "A", "--at", "2"]);
    assert!(text(&said.stderr).contains("there is no revision 2; the newest is 1"));
}

#[test]
fn plans_in_a_pipe_name_every_product() {
    let products = |name: &str| -> Vec<Value> {
        (0..50)
            .map(|number| named(&format!("P{number:02}"), name))
            .collect()
    };
    let store = Store::of(&products("one"));
    let mut next = products("two");
    next.extend((50..100).map(|number| named(&format!("P{number}"), "new")));
    let lines: Vec<String> = next.iter().map(ToString::to_string).collect();
    let file = store
        .write("next.ndjson", lines.join("\n"))
        .display()
        .to_string();
    let dry = store.ok(&[&["load", "--dry-run", &file], &ALLOW_ALL[..]].concat());
    store.load_products(&next);
    for said in [
        dry,
        store.ok(&["diff", "1", "2"]),
        store.ok(&["diff", "2", "1"]),
    ] {
        for number in 0..100 {
            let code = format!(" P{number:02}\n");
            assert!(said.contains(&code), "{code} in {said}");
        }
        assert!(!said.contains('…'), "{said}");
        assert!(said.contains("50 products\n"), "identical changes: {said}");
    }
}

#[test]
fn product_is_shown_at_any_revision() {
    let store = Store::of(&[named("A", "one")]);
    store.load_products(&[named("A", "two")]);
    assert_eq!(store.json(&["show", "A"])["name"], "two");
    assert_eq!(store.json(&["show", "A", "--at", "1"])["name"], "one");
    let missing = store.run(&["show", "B"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("no product with the code `B` is live"));
}

#[test]
fn empty_catalog_is_exported_as_an_empty_array() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let codes = store.write("codes", "\u{feff}A\r\n\n");
    let codes = codes.display().to_string();
    let merge = [
        "load",
        "--mode",
        "merge",
        "--retire",
        "B",
        "--retire-file",
        &codes,
    ];
    store.ok(&[&merge, &ALLOW_ALL[..]].concat());
    assert_eq!(store.json(&["export", "--format", "json"]), json!([]));
}

#[test]
fn rollback_is_planned_as_a_load_is() {
    let store = Store::of(&[gift_card("A"), gift_card("B"), gift_card("C")]);
    let mut changed = gift_card("B");
    changed["name"] = json!("Another");
    store.load_products(&[gift_card("A"), changed, gift_card("D")]);
    let first = store.write(
        "first.ndjson",
        format!("{}\n{}\n{}", gift_card("A"), gift_card("B"), gift_card("C")),
    );
    let first = first.display().to_string();
    for format in [&[][..], &["--json"]] {
        let load = store.ok(&[&["load", "--dry-run", &first], format, &ALLOW_ALL[..]].concat());
        let rollback = store.ok(&[&["rollback", "1", "--dry-run"], format].concat());
        assert_eq!(rollback, load.replace("\"records\":3", "\"records\":0"));
    }
    assert_eq!(store.json(&["history", "--json"])[0]["number"], 2);
    assert_eq!(
        store.run(&["rollback", "9", "--dry-run"]).status.code(),
        Some(1)
    );
    // Under overrides, it is about what clients will see.
    store.ok(&["hide", "C"]);
    let planned = store.ok(&["rollback", "1", "--dry-run"]);
    assert!(
        planned.contains("0 created, 1 changed, 1 retired, 1 unchanged"),
        "{planned}"
    );
}

#[test]
fn rollback_restores_answers_byte_for_byte() {
    let store = Store::new();
    let mut then = Vec::new();
    for number in 1..=20 {
        let products: Vec<Value> = (0..10)
            .filter(|n| (n + number) % 3 != 0)
            .map(|n| {
                let mut product = named(&format!("P{n}"), &format!("revision {number}"));
                let text = format!("# Revision {}", number / 4);
                product["gift_card"]["content_resources"]["description_md"] = text.into();
                product
            })
            .collect();
        assert_eq!(store.load_products(&products)["revision"]["number"], number);
        then.push(answers::of(&store));
    }
    // Every revision, now a later one and now an earlier one; 7 and 20 have no common divisor.
    for step in 1..=20 {
        let number = step * 7 % 20 + 1;
        let said = store.ok(&["rollback", "--yes", &number.to_string()]);
        assert!(said.contains("created"), "{said}");
        let found = answers::of(&store);
        answers::assert_same(&found, &then[number - 1], &format!("revision {number}"));
    }
    let history = store.json(&["history", "--json"]);
    assert_eq!(history[0]["note"], "rollback to revision 1");
    let again = store.ok(&["rollback", "--yes", "1"]);
    assert!(again.contains("nothing to do"), "{again}");
    assert_eq!(
        store.run(&["rollback", "--yes", "99"]).status.code(),
        Some(1)
    );
}
