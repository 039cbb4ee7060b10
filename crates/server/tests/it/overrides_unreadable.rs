//! Overrides whose definition can't be read: they are told of, refuse what needs them, and can be ended.

use serde_json::{Value, json};

use crate::harness::{Store, gift_card, text, wait_for};
use crate::overrides_commands::refused;

/// A definition that a later release might write.
const LATER: &str = r#"{"kind":"set","selection":{},"values":[],"mood":"cheerful"}"#;

fn damage(store: &Store, number: u64, definition: &str) {
    store.sql(&format!(
        "update catalog_override set definition = '{definition}' where number = {number}"
    ));
}

/// Returns the discounts that clients see, by code.
fn seen(store: &Store) -> Value {
    let exported = store.ok(&["export", "--effective"]);
    let products = exported.lines().map(|line| {
        let product: Value = serde_json::from_str(line).expect("JSON");
        let code = product["code"].as_str().expect("a code").to_owned();
        (code, product["discount_multiplier"].clone())
    });
    Value::Object(products.collect())
}

/// A store with four overrides, of which the second can't be read. It makes A what loads brought, so that there is no base beside
/// it.
fn damaged(definition: &str) -> Store {
    let store = Store::of(&["A", "B", "C"].map(gift_card));
    store.ok(&["set", "A", "discount_multiplier=0.02"]);
    store.ok(&["set", "A", "B", "discount_multiplier=0.05"]);
    store.ok(&["hide", "C", "--allow", "retire=100%"]);
    store.ok(&[
        "set",
        "B",
        "is_orderable=false",
        "--from",
        "2h",
        "--allow",
        "not-orderable=100%",
    ]);
    assert_eq!(seen(&store), json!({"A": "0.05", "B": "0.05"}));
    damage(&store, 2, definition);
    store
}

#[test]
fn unreadable_override_is_told_of_beside_the_others() {
    for definition in [LATER, "damaged"] {
        let store = damaged(definition);
        let listed = store.run(&["overrides", "list"]);
        assert_eq!(listed.status.code(), Some(0));
        let (table, told) = (text(&listed.stdout), text(&listed.stderr));
        for line in [
            "discount_multiplier=0.02",
            "visible=false",
            "is_orderable=false",
            "can't be read",
        ] {
            assert!(table.contains(line), "{line}: {table}");
        }
        assert!(
            told.contains("the definition of override 2 can't be read"),
            "{told}"
        );
        assert!(told.contains("`vitrine overrides end 2`"), "{told}");
        let listed = store.json(&["overrides", "list", "--json"]);
        let unreadable = listed.as_array().expect("a list").iter();
        let unreadable: Vec<&Value> = unreadable
            .filter(|one| one["definition"].is_null())
            .collect();
        assert_eq!(unreadable.len(), 1, "{listed}");
        assert_eq!(unreadable[0]["number"], 2);
        assert!(unreadable[0]["unreadable"].is_string(), "{listed}");
        let shown = store.ok(&["overrides", "show", "2"]);
        assert!(
            shown.contains("override 2: active") && shown.contains(definition),
            "{shown}"
        );
        let checked = store.run(&["check"]);
        assert_eq!(checked.status.code(), Some(1));
        let found = text(&checked.stdout);
        assert!(
            found.contains("fault override: override 2: its definition can't be read"),
            "{found}"
        );
        assert!(found.contains("faults: 1, warnings: 0"), "{found}");
        let product = store.run(&["show", "A"]);
        assert_eq!(product.status.code(), Some(0));
        assert!(text(&product.stderr).contains("which overrides set values can't be told"));
        store.ok(&["diff", "1"]);
    }
}

#[test]
fn other_overrides_are_shown_as_far_as_known() {
    let store = damaged(LATER);
    let shown = |number: &str| {
        let shown = store.run(&["overrides", "show", number]);
        assert_eq!(shown.status.code(), Some(0));
        let told = text(&shown.stderr);
        assert!(
            told.contains("definition of override 2 can't be read"),
            "{told}"
        );
        text(&shown.stdout)
    };
    let hides = shown("3");
    for line in [
        "override 3: active\nproducts: C\nvalues: visible=false\n",
        "live products selected: 1, of which it changes 1\n~ C\n",
    ] {
        assert!(hides.contains(line), "{line}: {hides}");
    }
    assert!(!hides.contains("unknown, because"), "{hides}");
    let sets = shown("1");
    let unknown = "unknown, because override 2 can't be read: whether it changes 1 more\n";
    assert!(sets.contains(unknown), "{sets}");
    let json = store.json(&["overrides", "show", "1", "--json"]);
    assert_eq!(json["products"], json!([]));
    assert_eq!(json["products_unknown"], 1);
    store.ok(&["overrides", "end", "2"]);
    let json = store.json(&["overrides", "show", "1", "--json"]);
    assert_eq!(json["products"], json!(["A"]));
    assert_eq!(json["products_unknown"], Value::Null);
}

#[test]
fn commands_that_need_an_unreadable_override_are_refused() {
    let store = damaged(LATER);
    let file = store.write("all.json", json!([gift_card("A")]).to_string());
    let load = ["load", "--mode", "merge", &file.display().to_string()];
    let before = seen(&store);
    for arguments in [
        &load[..],
        &["disable", "B", "--allow", "not-orderable=100%"],
        &["overrides", "end", "1"],
        &["overrides", "end", "--codes", "B"],
    ] {
        let told = refused(&store, 1, arguments);
        let what = "override 2 can't be read";
        assert!(told.contains(what), "{arguments:?}: {told}");
        let remedy = "vitrine overrides end 2";
        assert!(told.contains(remedy), "{arguments:?}: {told}");
    }
    assert_eq!(seen(&store), before);
}

#[test]
fn unreadable_override_can_be_ended() {
    let store = damaged(LATER);
    let before = seen(&store);
    let plan = store.json(&["overrides", "end", "2", "--dry-run", "--json"]);
    assert_eq!(plan["counts"]["changed"], 1, "{plan}");
    assert_eq!(seen(&store), before);
    let ended = store.ok(&["overrides", "end", "2", "--note", "damaged"]);
    assert!(
        ended.contains("override 2 ended; its definition can't be read"),
        "{ended}"
    );
    // What another override says of A comes back, and C stays hidden.
    assert_eq!(seen(&store), json!({"A": "0.02", "B": "0.05"}));
    let report = store.load_products(&["A", "B", "C"].map(gift_card));
    assert_eq!(report["counts"]["unchanged"], 3, "{report}");
    let found = text(&store.run(&["check"]).stdout);
    assert!(
        found.contains("warning override_ended: override 2"),
        "{found}"
    );
    assert!(
        found.contains("the store has no faults; warnings: 1"),
        "{found}"
    );
    let history = store.json(&["overrides", "list", "--all", "--json"]);
    assert_eq!(history.as_array().map(Vec::len), Some(4));
    assert_eq!(history[2]["end_note"], "damaged");
    // Several at once, readable ones among them.
    damage(&store, 3, LATER);
    damage(&store, 4, LATER);
    store.ok(&["overrides", "end", "1", "3", "4"]);
    assert_eq!(seen(&store), json!({"A": "0.05", "B": "0.05", "C": "0.05"}));
    assert_eq!(store.ok(&["export"]), store.ok(&["export", "--effective"]));
    assert_eq!(store.json(&["check", "--json"])["clean"], true);
}

#[test]
fn one_unreadable_override_does_not_hide_another() {
    let store = Store::of(&["A", "B"].map(gift_card));
    store.ok(&["set", "A", "discount_multiplier=0.02"]);
    store.ok(&["set", "B", "discount_multiplier=0.03"]);
    damage(&store, 1, LATER);
    damage(&store, 2, LATER);
    let told = refused(&store, 1, &["overrides", "end", "1"]);
    assert!(told.contains("override 2 can't be read"), "{told}");
    assert_eq!(seen(&store), json!({"A": "0.02", "B": "0.03"}));
    store.ok(&["overrides", "end", "1", "2"]);
    assert_eq!(seen(&store), json!({"A": "0.05", "B": "0.05"}));
    let told = refused(&store, 1, &["overrides", "end", "1"]);
    assert!(
        told.contains("override 1 has ended already, at 20"),
        "{told}"
    );
}

#[test]
fn scheduled_unreadable_override_holds_up_nothing_else() {
    let store = Store::of(&["A", "B"].map(gift_card));
    store.ok(&["set", "A", "discount_multiplier=0.02", "--from", "7d"]);
    damage(&store, 1, LATER);
    store.load_products(&["A", "B"].map(gift_card));
    store.ok(&["set", "B", "discount_multiplier=0.03", "--until", "2s"]);
    assert_eq!(seen(&store), json!({"A": "0.05", "B": "0.03"}));
    wait_for("the end of the other", || {
        store.ok(&["tick"]);
        (seen(&store) == json!({"A": "0.05", "B": "0.05"})).then_some(())
    });
    // When its time comes, it can't begin, and whoever waits for it is told.
    store.sql("update catalog_override set from_at = 1000 where number = 1");
    let told = || {
        let told = refused(&store, 1, &["tick"]);
        assert!(told.contains("override 1 can't be read"), "{told}");
    };
    told();
    store.load_products(&["A", "B"].map(gift_card));
    store.ok(&[
        "set",
        "B",
        "discount_multiplier=0.03",
        "--from",
        "1s",
        "--until",
        "3s",
    ]);
    for discount in ["0.03", "0.05"] {
        wait_for("the other", || {
            told();
            (seen(&store) == json!({"A": "0.05", "B": discount})).then_some(())
        });
    }
    store.ok(&["set", "A", "discount_multiplier=0.04"]);
    store.ok(&["overrides", "end", "4"]);
    store.ok(&["overrides", "end", "1"]);
    store.ok(&["tick"]);
    assert_eq!(seen(&store), json!({"A": "0.05", "B": "0.05"}));
}

#[test]
fn unreadable_override_ends_when_its_time_is_over() {
    let store = Store::of(&["A", "B"].map(gift_card));
    store.ok(&["set", "A", "discount_multiplier=0.02", "--until", "7d"]);
    store.ok(&["set", "B", "discount_multiplier=0.03"]);
    damage(&store, 1, LATER);
    store.sql("update catalog_override set until_at = from_at + 1 where number = 1");
    store.ok(&["tick"]);
    assert_eq!(seen(&store), json!({"A": "0.05", "B": "0.03"}));
    assert_eq!(store.json(&["check", "--json"])["clean"], true);
    let history = store.ok(&["history"]);
    assert!(
        history.contains("override 1 ends (its definition can't be read)"),
        "{history}"
    );
}
