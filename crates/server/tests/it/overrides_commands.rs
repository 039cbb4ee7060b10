//! Commands that make and end overrides: what they refuse, warn of and ask.

use serde_json::{Value, json};

use crate::harness::{Store, gift_card, text, wait_for};
use crate::terminal::at_terminal;

const SHOE: &str = "BRIARWICK-GB";

/// A command that must be refused with this exit code; returns what it says.
pub fn refused(store: &Store, code: i32, arguments: &[&str]) -> String {
    let output = store.run(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

#[test]
fn guard_holds_for_overrides() {
    let store = Store::sample();
    let said = refused(&store, 3, &["disable", "*"]);
    assert!(said.contains("not-orderable"), "{said}");
    assert!(
        said.contains("refused by the guard, nothing was changed"),
        "{said}"
    );
    assert_eq!(store.json(&["overrides", "list", "--json"]), json!([]));
    assert_eq!(store.revisions(), 1);
    let said = refused(&store, 3, &["hide", "*", "--from", "2h"]);
    assert!(said.contains("retire"), "{said}");
    store.ok(&["hide", "*", "--allow", "retire=100%"]);
    assert_eq!(store.ok(&["export", "--effective"]), "");
    store.ok(&["overrides", "end", "1"]);
    assert_eq!(store.json(&["diff", "1", "--json"])["unchanged"], 72);
}

#[test]
fn wrong_overrides_are_refused_with_the_remedy() {
    let store = Store::sample();
    for (code, arguments, expected) in [
        (2, &["disable"][..], "no products are selected"),
        (2, &["set", SHOE], "there is no FIELD=VALUE to set"),
        (2, &["set", SHOE, "state=DEAD"], "TEMPORARILY_DISABLED"),
        (2, &["set", SHOE, "visible=true"], "vitrine overrides end"),
        (2, &["set", SHOE, "categories=food"], "`+=`"),
        (
            2,
            &["hide", SHOE, "--until", "2026-12-01 09:00"],
            "has no zone",
        ),
        (
            2,
            &["hide", SHOE, "--until", "2020-01-01T00:00:00Z"],
            "is over",
        ),
        (
            2,
            &["hide", SHOE, "--until", "2027-03-28 02:30 Europe/Berlin"],
            "2027-03-28T00:30:00Z or 2027-03-28T01:30:00Z",
        ),
        (
            2,
            &["hide", SHOE, "--from", "3h", "--until", "2h"],
            "--until is not after the beginning",
        ),
        (
            1,
            &["overrides", "end", "7"],
            "there is no override 7 that could be ended",
        ),
        (1, &["overrides", "show", "7"], "there is no override 7"),
        (
            1,
            &["overrides", "end", "--codes", SHOE],
            "no active override by `vitrine disable` is about these products",
        ),
        (
            1,
            &["overrides", "end", "--codes", "NONE"],
            "no live product is selected",
        ),
        (
            2,
            &["overrides", "end", "7", "--codes", SHOE],
            "cannot be used with",
        ),
        (2, &["overrides", "end"], "required"),
    ] {
        let said = refused(&store, code, arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    assert_eq!(store.revisions(), 1);
    let warned = store.ok(&["disable", "NONE", SHOE]);
    assert!(
        warned.contains(
            "warning: there is no product NONE; the override holds if a load brings it\n"
        ),
        "{warned}"
    );
    store.ok(&["overrides", "end", "1"]);
    store.ok(&["disable", "BRIARWICK-*"]);
    let said = refused(&store, 1, &["overrides", "end", "--codes", SHOE]);
    assert!(
        said.contains("override 2 disables 1 other products as well, such as BRIARWICK-IE"),
        "{said}"
    );
}

#[test]
fn selections_and_values_that_nobody_means_are_refused() {
    let store = Store::sample();
    for (code, arguments, expected) in [
        // An unset variable would select all products.
        (2, &["hide", "--name", " "][..], "not an empty one"),
        (2, &["hide", "--category", ""], "not an empty one"),
        (2, &["hide", "--country", "ZZ"], "ISO 3166-1"),
        (
            2,
            &["set", SHOE, "countries_redeemable_in+=ZZ"],
            "ISO 3166-1",
        ),
        (
            2,
            &["set", SHOE, "minimum_value=100", "maximum_value=10"],
            "no amount would be left",
        ),
        (
            1,
            &["hide", "NONE-*", "--frozen"],
            "no live product matches",
        ),
    ] {
        let said = refused(&store, code, arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let warned = store.ok(&["hide", "NONE-*", "--dry-run"]);
    assert!(
        warned.contains("warning: no live product matches now; the override holds for those"),
        "{warned}"
    );
    assert_eq!(store.revisions(), 1);
}

#[test]
fn later_override_takes_precedence_and_is_warned_of() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    store.ok(&["set", "A", "discount_multiplier=0.01"]);
    let second = store.ok(&["set", "*", "discount_multiplier=0.02"]);
    assert!(
        second.contains("warning: override 1 sets the same fields of 1 of these products"),
        "{second}"
    );
    let discount = |code| {
        let product: Value = serde_json::from_str(&store.ok(&["show", code])).unwrap();
        product["discount_multiplier"].clone()
    };
    assert_eq!(
        (discount("A"), discount("B")),
        (json!("0.02"), json!("0.02"))
    );
    store.ok(&["overrides", "end", "2"]);
    assert_eq!(
        (discount("A"), discount("B")),
        (json!("0.01"), json!("0.05"))
    );
    let shown = store.ok(&["overrides", "show", "1"]);
    assert!(
        shown.contains("live products selected: 1, of which it changes 1\n~ A\n"),
        "{shown}"
    );
    let history = store.json(&["overrides", "list", "--all", "--json"]);
    assert_eq!(history[0]["status"], "ended");
    assert_eq!(history[1]["status"], "active");
}

#[test]
fn overrides_are_shown_and_confirmed_on_a_terminal() {
    let store = Store::sample();
    let disable = format!("disable {SHOE} --until 2h");
    let Some((code, seen)) = at_terminal(&store, &disable, "no\n") else {
        return;
    };
    assert_eq!(code, 1, "{seen}");
    for expected in [
        "/state: \"LIVE\" → \"TEMPORARILY_DISABLED\"",
        "this goes live. Type `yes` to continue",
        "not confirmed; nothing was changed",
    ] {
        assert!(seen.contains(expected), "{seen}");
    }
    assert_eq!(
        store.json(&["overrides", "list", "--all", "--json"]),
        json!([])
    );
    let (code, seen) = at_terminal(&store, &disable, "yes\n").expect("as before");
    assert_eq!(code, 0, "{seen}");
    assert!(
        seen.contains("revision 2: 0 shown again, 1 changed, 0 hidden"),
        "{seen}"
    );
    let (code, _) = at_terminal(&store, &format!("enable {SHOE} --yes"), "").expect("as before");
    assert_eq!((code, store.revisions()), (0, 3));
}

/// Nobody applied it meanwhile: there is no server, and no `tick`.
#[test]
fn what_was_due_comes_before_a_change_by_an_operator() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let made = store.json(&["set", "A", "categories+=due", "--from", "1s", "--json"]);
    let due: jiff::Timestamp = made["made"]["from"].as_str().unwrap().parse().unwrap();
    wait_for("its time", || (jiff::Timestamp::now() > due).then_some(()));
    let changed = store.json(&["set", "B", "categories+=now", "--json"]);
    let instants = changed["instants"].as_array().unwrap();
    assert_eq!(instants.len(), 1);
    let instant = &instants[0];
    assert_eq!(
        (&instant["begun"], &instant["ended"], &instant["revision"]),
        (&json!([1]), &json!([]), &json!(2))
    );
    assert_eq!(changed["revision"]["number"], 3);
    let ended = store.ok(&["overrides", "end", "1", "2"]);
    assert!(!ended.contains("before this"), "{ended}");
}

#[test]
fn guard_judges_hidden_products_as_they_will_be_seen() {
    let store = Store::sample();
    store.ok(&["hide", "*", "--allow", "retire=100%"]);
    let said = refused(&store, 3, &["disable", "*"]);
    assert!(
        said.contains("not-orderable") && said.contains("of 72 live products"),
        "{said}"
    );
    store.ok(&["set", "*", "categories+=sale"]);
    let ended = store.ok(&["overrides", "end", "1", "1"]);
    assert!(
        ended.contains("override 1 ended: visible=false of *\n"),
        "{ended}"
    );
    assert!(!ended.contains("warning"), "{ended}");
}

#[test]
fn end_by_codes_leaves_what_begins_later() {
    let store = Store::sample();
    store.ok(&["disable", SHOE, "--from", "2h"]);
    let by_codes = ["overrides", "end", "--codes", SHOE, "NONE"];
    let said = refused(&store, 1, &by_codes);
    assert!(said.contains("see `vitrine overrides list`"), "{said}");
    store.ok(&["disable", SHOE]);
    let enabled = store.run(&by_codes);
    let (told, noted) = (text(&enabled.stdout), text(&enabled.stderr));
    assert!(told.contains("override 2 ended"), "{told}");
    assert!(
        noted.contains("note: override 1 disables selected products from"),
        "{noted}"
    );
    let listed = store.json(&["overrides", "list", "--json"]);
    assert_eq!(listed[0]["number"], 1);
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    // The same command by another name, which the help doesn't have.
    store.ok(&["disable", SHOE]);
    assert!(store.ok(&["enable", SHOE]).contains("override 3 ended"));
    let help = store.ok(&["help"]);
    let is_shown = |line: &str| line.trim_start().starts_with("enable");
    assert!(!help.lines().any(is_shown), "{help}");
}

#[test]
fn scheduled_overrides_and_lists_are_compared() {
    let store = Store::of(&[gift_card("A")]);
    let set = |values: &[&str]| store.ok(&[&["set", "A"], values].concat());
    let soon = ["discount_multiplier=0.01", "--from", "1h", "--until", "2h"];
    assert!(!set(&soon).contains("warning"));
    let warned = set(&["discount_multiplier=0.02", "--from", "90m"]);
    assert!(
        warned.contains("override 1 sets the same fields"),
        "{warned}"
    );
    let apart = set(&["discount_multiplier=0.03", "--until", "30m"]);
    assert!(!apart.contains("warning"), "{apart}");
    // Both hold.
    assert!(!set(&["categories+=sale"]).contains("warning"));
    assert!(!set(&["categories+=new"]).contains("warning"));
    assert!(set(&["categories-=new"]).contains("override 5 sets"));
    let narrowed = set(&["maximum_value=1", "--allow", "not-orderable=100%"]);
    assert!(!narrowed.contains("takes precedence"), "{narrowed}");
    let shown = store.ok(&["overrides", "show", "4"]);
    assert!(shown.contains("of which it changes 1"), "{shown}");
    let ended = store.ok(&["overrides", "end", "4", "--note", "no longer on sale"]);
    assert!(ended.contains("override 4 ended"), "{ended}");
    let shown = store.ok(&["overrides", "show", "4"]);
    assert!(shown.contains("no longer on sale"), "{shown}");
}

#[test]
fn plan_comes_after_instants_that_are_overdue() {
    let store = Store::of(&[gift_card("A"), gift_card("B")]);
    let made = store.json(&[
        "hide",
        "A",
        "--until",
        "1s",
        "--json",
        "--allow",
        "retire=100%",
    ]);
    let due: jiff::Timestamp = made["made"]["until"].as_str().unwrap().parse().unwrap();
    wait_for("its time", || (jiff::Timestamp::now() > due).then_some(()));
    let planned = store.json(&["set", "A", "categories+=new", "--dry-run", "--json"]);
    assert_eq!(planned["counts"]["changed"], 1);
}

#[test]
fn hidden_product_is_told_from_one_that_never_was() {
    let store = Store::of(&[gift_card("A")]);
    store.ok(&["hide", "--category", "fashion", "--allow", "retire=100%"]);
    store.load_products(&[gift_card("A"), gift_card("NEW")]);
    let told = refused(&store, 1, &["history", "NEW"]);
    assert!(told.contains("hidden by override 1"), "{told}");
    let listed = store.run(&["products", "NEW", "NONE", "--format", "ndjson"]);
    let told = text(&listed.stderr);
    assert!(
        told.contains("NEW is hidden by override 1; --base shows it"),
        "{told}"
    );
    assert!(told.contains("there is no product NONE"), "{told}");
}

#[test]
fn guard_counts_only_products_that_clients_see() {
    let products: Vec<_> = (0..10)
        .map(|number| gift_card(&format!("P-{number}")))
        .collect();
    let store = Store::of(&products);
    store.ok(&["hide", "P-0", "P-1", "--yes"]);
    let said = refused(&store, 3, &["hide", "P-2", "P-3", "--yes"]);
    assert!(said.contains("2 of 8"), "{said}");
    store.ok(&["hide", "P-2", "--yes"]);
    store.ok(&["hide", "P-3", "P-4", "--yes", "--allow", "retire=30%"]);
}
