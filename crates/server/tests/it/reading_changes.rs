//! Changes as operators read them: counts by field, differences of a field, a product or a text, and moments by time.

use serde_json::{Value, json};

use crate::harness::{ALLOW_ALL, Store, gift_card, text};
use crate::overrides_commands::refused;

/// Ten products; `change` makes each of them what it is.
fn ten(change: impl Fn(usize, &mut Value)) -> Vec<Value> {
    let product = |number| {
        let mut product = gift_card(&format!("P{number}"));
        change(number, &mut product);
        product
    };
    (0..10).map(product).collect()
}

/// A store whose second revision disables P0 to P5, renames P6 and P7, creates NEW and retires P9.
fn changed() -> Store {
    let store = Store::of(&ten(|_, _| {}));
    let mut next = ten(|number, product| match number {
        0..6 => product["is_orderable"] = false.into(),
        6 | 7 => product["name"] = format!("Name {number}").into(),
        _ => {}
    });
    next.pop();
    next.push(gift_card("NEW"));
    store.load_products(&next);
    store
}

/// Returns the time at which a revision was published, a little later than it.
fn time_of(store: &Store, number: u64) -> String {
    let revisions = store.json(&["history", "--json"]);
    let mut revisions = revisions.as_array().expect("a list").iter();
    let found = revisions.find(|revision| revision["number"] == number);
    let time = found.expect("the revision")["created_at"].as_str();
    time.expect("a time").to_owned()
}

const BY_FIELD: &str = "~ /is_orderable: true → false: 6 products\n\
                        ~ /name: 2 products, each another change\n";

#[test]
fn plans_and_diffs_begin_with_counts_by_field() {
    let store = changed();
    let shown = store.ok(&["diff", "1", "2"]);
    let products = shown.strip_prefix("+ NEW\n").expect("what was created");
    let products = products.strip_prefix(BY_FIELD).expect("counts by field");
    assert!(products.starts_with("~ P0\n    /is_orderable: true → false\n"));
    let counts = "1 created, 8 changed, 1 retired, 1 unchanged\n";
    assert!(shown.ends_with(&format!("- P9\n{counts}")), "{shown}");
    // A load's plan is the same.
    let file = store.write("again.ndjson", lines(&ten(|_, _| {})));
    let file = file.display().to_string();
    let plan = store.ok(&[&["load", "--dry-run", &file][..], &ALLOW_ALL].concat());
    let first = "~ /is_orderable: false → true: 6 products\n";
    assert!(plan.contains(&format!("+ P9\n{first}")), "{plan}");
    // Counts alone.
    assert_eq!(
        store.ok(&["diff", "1", "2", "--stat"]),
        format!("{BY_FIELD}{counts}")
    );
    let stat = store.json(&["diff", "1", "2", "--stat", "--json"]);
    assert_eq!(
        stat,
        json!({
            "by_field": [
                {"pointer": "/is_orderable", "products": 6,
                 "shared_changes": [{"old": "true", "new": "false", "products": 6}],
                 "other_changes": 0},
                {"pointer": "/name", "products": 2, "shared_changes": [], "other_changes": 2},
            ],
            "counts": {"created": 1, "changed": 8, "retired": 1, "unchanged": 1},
        })
    );
}

fn lines(products: &[Value]) -> String {
    let lines: Vec<String> = products.iter().map(Value::to_string).collect();
    lines.join("\n")
}

#[test]
fn field_with_several_shared_changes_lists_each() {
    let discounts = |of: fn(usize) -> &'static str| {
        let product = |number| {
            let mut product = gift_card(&format!("P{number:02}"));
            product["discount_multiplier"] = of(number).into();
            product
        };
        (0..14).map(product).collect::<Vec<_>>()
    };
    let store = Store::of(&discounts(|_| "0.05"));
    store.load_products(&discounts(|number| match number {
        0..7 => "0.04",
        7..12 => "0.03",
        12 => "0.02",
        _ => "0.01",
    }));
    let shown = store.ok(&["diff", "1", "--stat"]);
    let expected = "~ /discount_multiplier: 14 products\n\
                    \x20   \"0.05\" → \"0.04\": 7\n\
                    \x20   \"0.05\" → \"0.03\": 5\n\
                    \x20   other changes: 2\n\
                    0 created, 14 changed, 0 retired, 0 unchanged\n";
    assert_eq!(shown, expected);
}

#[test]
fn diff_is_narrowed_by_codes_and_fields() {
    let store = changed();
    let changed = |options: &[&str]| {
        let diff = store.json(&[&["diff", "1", "2", "--json"], options].concat());
        let changed = diff["changed"].as_array().expect("a list").iter();
        let codes = changed.map(|product| product["code"].as_str().expect("a code").to_owned());
        (codes.collect::<Vec<_>>().join(" "), diff)
    };
    let (codes, diff) = changed(&["--code", "Q*"]);
    assert_eq!((codes.as_str(), &diff["created"]), ("", &json!([])));
    let (codes, diff) = changed(&["--code", "P1", "--code", "N*", "--code", "?7"]);
    assert_eq!(codes, "P1 P7");
    assert_eq!(
        (&diff["created"], &diff["unchanged"]),
        (&json!(["NEW"]), &json!(0))
    );
    assert_eq!(changed(&["--field", "name"]).0, "P6 P7");
    assert_eq!(changed(&["--field", "/name"]).0, "P6 P7");
    for (field, options) in [("/nam", &[][..]), ("nosuch", &["--stat"])] {
        let command = [&["diff", "1", "2", "--field", field], options].concat();
        let told = refused(&store, 1, &command);
        assert!(
            told.contains(&format!("no product has a field `{field}`")),
            "{told}"
        );
    }
    assert_eq!(changed(&["--field", "currency"]).0, "");
    let unknown = store.run(&["diff", "1", "2", "--code", "NONE"]);
    assert!(text(&unknown.stderr).contains("there is no product NONE"));
    let (codes, diff) = changed(&["--field", "name", "--field", "is_orderable", "--code", "P?"]);
    assert_eq!(codes, "P0 P1 P2 P3 P4 P5 P6 P7");
    assert_eq!(diff["created"], json!([]));
    let (_, diff) = changed(&["--field", "name"]);
    assert_eq!(
        (&diff["created"], &diff["counts"]["created"]),
        (&json!([]), &json!(1))
    );
    // What isn't shown is said.
    let shown = store.ok(&["diff", "1", "2", "--field", "name"]);
    let said = "--field: 2 of 8 changed products; created and retired ones aren't shown\n";
    assert!(shown.ends_with(said), "{shown}");
}

#[test]
fn moments_are_named_by_time() {
    let store = changed();
    let (first, second) = (time_of(&store, 1), time_of(&store, 2));
    let show = |at: &str| -> Value {
        serde_json::from_str(&store.ok(&["show", "P0", "--at", at])).expect("JSON")
    };
    assert_eq!(show(&first)["is_orderable"], true);
    assert_eq!(show(&second)["is_orderable"], false);
    assert_eq!(show("0s")["is_orderable"], false);
    assert!(store.ok(&["export", "--at", &first]).contains("\"P9\""));
    assert!(!store.ok(&["export", "--at", &second]).contains("\"P9\""));
    let by_number = store.json(&["diff", "1", "2", "--json"]);
    for diff in [
        &["diff", &first, &second, "--json"][..],
        &["diff", "--at", &first, "--json"],
        &["diff", &first, "--json"],
    ] {
        assert_eq!(store.json(diff), by_number, "{diff:?}");
    }
    for (arguments, fault) in [
        (
            &["show", "P0", "--at", "2020-01-01"][..],
            "nothing was live at 2020-01-01T00:00:00Z",
        ),
        (&["diff", "2020-01-01"], "nothing was live at"),
        (
            &["export", "--at", "yesterday"],
            "`yesterday` is no revision",
        ),
        (&["diff", "2026-12-01T09:00:00"], "is no revision"),
        (&["diff"], "required arguments were not provided"),
    ] {
        let output = store.run(arguments);
        let told = text(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(told.contains(fault), "{arguments:?}: {told}");
    }
}

fn with_text(code: &str, description: &str) -> Value {
    let mut product = gift_card(code);
    product["gift_card"]["content_resources"]["description_md"] = description.into();
    product
}

#[test]
fn texts_differ_line_by_line() {
    let store = Store::of(&[
        with_text("A", "# One\n\nfirst\nsecond\nthird\n"),
        gift_card("B"),
    ]);
    store.load_products(&[
        with_text("A", "# One\n\nfirst\n2nd \u{1b}[2J\nthird\n"),
        with_text("B", "new\n"),
    ]);
    let expected = "    description\n      @@ -3,3 +3,3 @@\n       first\n      -second\n      +2nd \\u001b[2J\n       third\n";
    let shown = store.ok(&["diff", "1", "2", "--texts"]);
    assert!(shown.contains(expected), "{shown}");
    assert!(shown.contains("      +new\n"), "{shown}");
    assert!(!store.ok(&["diff", "1", "2"]).contains("@@"));
    let history = store.ok(&["history", "A", "--texts"]);
    assert!(history.contains(expected), "{history}");
    let json = store.json(&["diff", "1", "2", "--texts", "--json", "--code", "B"]);
    let texts = &json["changed"][0]["texts"];
    assert_eq!(
        *texts,
        json!([{"name": "description", "lines": "@@ -0,0 +1 @@\n+new\n"}])
    );
}

#[test]
fn history_of_a_product_says_what_each_revision_did() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let mut renamed = gift_card("A");
    renamed["name"] = "Another".into();
    store.load_products(&[renamed, gift_card("B")]);
    store.load_products(&[gift_card("B")]);
    let mut other = gift_card("B");
    other["name"] = "Other".into();
    store.load_products(std::slice::from_ref(&other));
    store.load_products(&[gift_card("A"), other]);
    let history = store.json(&["history", "A", "--json"]);
    let told: Vec<String> = (history.as_array().expect("a list").iter())
        .map(|change| format!("{} {}", change["revision"]["number"], change["change"]))
        .collect();
    assert_eq!(
        told.join(", "),
        "5 \"created\", 3 \"retired\", 2 \"changed\", 1 \"created\""
    );
    let fields = json!([{"pointer": "/name", "old": "\"Product A\"", "new": "\"Another\""}]);
    assert_eq!(history[2]["fields"], fields);
    let shown = store.ok(&["history", "A"]);
    assert!(
        shown.contains("\n    /name: \"Product A\" → \"Another\"\ncreated in revision 1, "),
        "{shown}"
    );
    let cut = store.ok(&["history", "A", "--limit", "1"]);
    assert!(
        cut.contains("older versions than these 1; --limit shows more"),
        "{cut}"
    );
    assert!(!cut.contains("revision 2"), "{cut}");
    let cut = store.ok(&["history", "--limit", "2"]);
    assert!(
        cut.contains("older revisions than these 2; --limit shows more"),
        "{cut}"
    );
    let cut = store.run(&["history", "--limit", "2", "--json"]);
    assert!(text(&cut.stderr).contains("older revisions than these 2"));
    let missing = store.run(&["history", "NONE"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("no kept revision has a product with the code `NONE`"));
}

#[test]
fn diff_reads_only_products_that_revisions_changed() {
    let store = Store::of(&["A", "B", "C"].map(gift_card));
    let changed = |code: &str, discount: &str| {
        let mut product = gift_card(code);
        product["discount_multiplier"] = json!(discount);
        product
    };
    store.load_products(&[changed("A", "0.01"), gift_card("B"), gift_card("C")]);
    store.load_products(&[
        gift_card("A"),
        gift_card("B"),
        changed("C", "0.02"),
        gift_card("D"),
    ]);
    let expected = json!({"created": 1, "changed": 1, "retired": 0, "unchanged": 2});
    let counts = |from: &str, to: &str| {
        let diff = store.json(&["diff", from, to, "--stat", "--json"]);
        diff["counts"].clone()
    };
    assert_eq!(counts("1", "3"), expected);
    let shown = store.ok(&["diff", "2", "--code", "A", "--code", "D"]);
    assert_eq!(shown.lines().next(), Some("+ D"), "{shown}");
    // No other product can be read.
    store.sql("update product_version set countries = '{' where code = 'B'");
    assert_eq!(counts("1", "3"), expected);
    let back = json!({"created": 0, "changed": 1, "retired": 1, "unchanged": 2});
    assert_eq!(counts("3", "1"), back);
    assert!(store.ok(&["diff", "3", "3"]).ends_with(" 4 unchanged\n"));
}
