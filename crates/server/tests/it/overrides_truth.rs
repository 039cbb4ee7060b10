//! Messages about overrides: they name those that make what clients see, and say so if clients see no change.

use serde_json::{Value, json};

use crate::browser_acts::console;
use crate::harness::{Store, gift_card, text, wait_for};
use crate::overrides_commands::refused;

/// Sets values of a product whatever the guard says; returns what the command says.
fn set(store: &Store, code: &str, values: &[&str]) -> String {
    let allowed = ["--allow", "not-orderable=100%", "--allow", "states=100%"];
    store.ok(&[&["set", code], values, &allowed[..]].concat())
}

/// Returns the overrides that a product's page names on standard error.
fn named(store: &Store, code: &str) -> String {
    text(&store.run(&["show", code]).stderr)
}

/// A gift card with these amounts.
fn with_amounts(code: &str, amounts: &[&str]) -> Value {
    let mut product = gift_card(code);
    product["gift_card"]["denominations"] = json!({
        "type": "fixed",
        "minimum_value": amounts.first(),
        "maximum_value": amounts.last(),
        "available_list": amounts,
    });
    product
}

/// Returns the numbers of changed products and of the override that hides changes, of a load of one product.
fn ineffective(store: &Store, product: Value) -> Value {
    store.load_products(&[product])["ineffective_changes"].take()
}

#[test]
fn override_that_narrows_nothing_is_not_named() {
    let store = Store::of(&[gift_card("A")]);
    set(&store, "A", &["maximum_value=25"]);
    set(&store, "A", &["maximum_value=100", "minimum_value=1"]);
    assert_eq!(
        named(&store, "A"),
        "vitrine: override 1 sets denominations\n"
    );
    let changes = |number: &str| store.ok(&["overrides", "show", number]);
    assert!(changes("1").contains("of which it changes 1\n~ A\n"));
    assert!(changes("2").contains("of which it changes 0\n"));
    let more = with_amounts("A", &["10.00", "25.00", "50.00", "75.00"]);
    let file = store.write("more.ndjson", more.to_string());
    let file = file.display().to_string();
    let planned = store.ok(&["load", &file, "--dry-run"]);
    let expected = "1 change has no effect until override 1 ends\n";
    assert!(planned.contains(expected), "{planned}");
    assert_eq!(
        ineffective(&store, more),
        json!([{"override": 1, "changes": 1}])
    );
    // Of two that leave the same, the first one does it, until it ends.
    set(&store, "*", &["maximum_value=25"]);
    assert_eq!(
        named(&store, "A"),
        "vitrine: override 1 sets denominations\n"
    );
    store.ok(&["overrides", "end", "1"]);
    assert_eq!(
        named(&store, "A"),
        "vitrine: override 3 sets denominations\n"
    );
}

#[test]
fn load_names_the_latest_override_that_makes_the_value() {
    let store = Store::of(&[with_amounts("A", &["10.00", "25.00", "50.00"])]);
    set(&store, "A", &["available_list=10,25,60"]);
    set(&store, "A", &["maximum_value=50"]);
    // 30 isn't in the list, whatever the maximum is.
    let with_30 = with_amounts("A", &["10.00", "25.00", "30.00", "50.00"]);
    assert_eq!(
        ineffective(&store, with_30),
        json!([{"override": 1, "changes": 1}])
    );
    // 60 is, but it is above the maximum.
    let with_60 = with_amounts("A", &["10.00", "25.00", "30.00", "50.00", "60.00"]);
    assert_eq!(
        ineffective(&store, with_60),
        json!([{"override": 2, "changes": 1}])
    );
    // Both hide 70; clients see the value of either.
    let amounts = ["10.00", "25.00", "30.00", "50.00", "60.00", "70.00"];
    let with_70 = with_amounts("A", &amounts);
    assert_eq!(
        ineffective(&store, with_70),
        json!([{"override": 2, "changes": 1}])
    );
}

#[test]
fn new_product_names_the_override_that_matters() {
    let store = Store::of(&[gift_card("OTHER")]);
    set(&store, "A*", &["maximum_value=25"]);
    set(&store, "A*", &["maximum_value=40"]);
    let report = store.load_products(&[gift_card("OTHER"), gift_card("A")]);
    assert_eq!(
        report["ineffective_changes"],
        json!([{"override": 1, "changes": 1}])
    );
}

#[test]
fn lists_and_states_name_who_made_them() {
    let store = Store::of(&["A", "B"].map(gift_card));
    set(&store, "A", &["categories+=sale"]);
    set(&store, "A", &["categories-=sale"]);
    set(&store, "A", &["categories+=new"]);
    assert_eq!(
        named(&store, "A"),
        "vitrine: override 1 sets categories\nvitrine: override 2 sets categories\n\
         vitrine: override 3 sets categories\n"
    );
    // Without amounts the product couldn't be ordered either, but it was disabled anyway.
    set(&store, "B", &["is_orderable=false"]);
    set(&store, "B", &["maximum_value=1"]);
    assert_eq!(
        named(&store, "B"),
        "vitrine: override 4 sets is_orderable\n"
    );
}

#[test]
fn hidden_products_are_known_in_older_revisions() {
    let store = Store::of(&["A", "B"].map(gift_card));
    store.ok(&["hide", "B", "--allow", "retire=100%"]);
    store.ok(&["overrides", "end", "1"]);
    let listed = |arguments: &[&str]| {
        let listed = store.run(arguments);
        assert_eq!(listed.status.code(), Some(0));
        text(&listed.stderr)
    };
    let told = listed(&["products", "B", "NONE", "--at", "2", "--format", "ndjson"]);
    assert_eq!(
        told,
        "vitrine: B was hidden by override 1 in revision 2; --base shows it\n\
         vitrine: there was no product NONE in revision 2\n"
    );
    assert_eq!(listed(&["products", "B", "--at", "2", "--base"]), "");
    let told = listed(&["diff", "2", "2", "--code", "B", "--code", "NONE"]);
    assert_eq!(
        told,
        "vitrine: B was hidden by override 1 in revision 2; --base compares it\n\
         vitrine: there is no product NONE\n"
    );
    let told = refused(&store, 1, &["show", "B", "--at", "2"]);
    let expected =
        "`B` was hidden by override 1 in revision 2; `vitrine show B --at 2 --base` shows";
    assert!(told.contains(expected), "{told}");
    store.sql("update catalog_override set definition = 'damaged'");
    let told = listed(&["products", "B", "--at", "2", "--format", "ndjson"]);
    assert!(
        told.contains("B was hidden by an override in revision 2"),
        "{told}"
    );
}

#[test]
fn overrides_without_effect_are_told_and_kept() {
    let store = Store::of(&["A", "B"].map(gift_card));
    let same = "discount_multiplier=0.05";
    let planned = store.ok(&["set", "A", same, "--dry-run"]);
    assert!(
        planned.contains("nothing was changed; clients would see no change"),
        "{planned}"
    );
    let made = set(&store, "A", &[same]);
    assert!(
        made.contains("clients see no change now; products selected: 1\n"),
        "{made}"
    );
    let timed = store.json(&["set", "B", same, "--until", "1s", "--json"]);
    assert_eq!(timed["revision"], Value::Null);
    let due: jiff::Timestamp = timed["made"]["until"].as_str().unwrap().parse().unwrap();
    wait_for("its time", || (jiff::Timestamp::now() > due).then_some(()));
    let ended = store.ok(&["overrides", "end", "1", "--note", "over"]);
    assert!(
        ended.contains("override 2 ended before this, since it was due at"),
        "{ended}"
    );
    assert_eq!(ended.matches("clients see no change\n").count(), 2);
    assert_eq!(store.revisions(), 1);
    let history = store.json(&["overrides", "list", "--all", "--json"]);
    let ends = |number: usize| {
        (
            history[number]["status"].clone(),
            &history[number]["end_note"],
        )
    };
    assert_eq!(ends(0), (json!("ended"), &Value::Null));
    assert_eq!(ends(1), (json!("ended"), &json!("over")));
    let audit = store.json(&["audit", "--json"]);
    let entries = audit.as_array().unwrap().iter().rev();
    let entries: Vec<String> = entries
        .map(|entry| format!("{} {}", entry["action"], entry["subject"]))
        .collect();
    assert_eq!(
        entries,
        [r#""create" "1""#, r#""create" "2""#, r#""end" "1""#]
    );
}

#[test]
fn respelt_discount_of_an_override_is_no_change() {
    let store = Store::of(&[gift_card("A")]);
    set(&store, "A", &["discount_multiplier=0.06"]);
    assert_eq!(store.revisions(), 2);
    let said = set(&store, "A", &["discount_multiplier=0.0600"]);
    assert!(said.contains("clients see no change now"), "{said}");
    store.ok(&["overrides", "end", "1"]);
    assert_eq!(store.revisions(), 2);
    assert_eq!(
        named(&store, "A"),
        "vitrine: override 2 sets discount_multiplier\n"
    );
    // More digits are another discount, with which a client's own share is computed.
    set(&store, "A", &["discount_multiplier=0.06000001"]);
    assert_eq!(store.revisions(), 3);
    store.ok(&["overrides", "end", "2", "3"]);
    assert_eq!(store.ok(&["export"]), store.ok(&["export", "--effective"]));
}

#[test]
fn plans_of_overrides_say_what_would_be() {
    let store = Store::of(&["A", "B"].map(gift_card));
    let said = refused(&store, 3, &["hide", "A"]);
    assert!(
        said.contains("this would hide 1 of 2 live products"),
        "{said}"
    );
    let hide = ["hide", "A", "--allow", "retire=100%"];
    let planned = store.ok(&[&hide[..], &["--from", "2h", "--dry-run"]].concat());
    assert!(
        planned.contains("nothing was changed; if it began now, this would be: 0 shown again, 0 changed, 1 hidden"),
        "{planned}"
    );
    let hidden = store.ok(&hide);
    for line in [
        " until an operator ends it (`vitrine overrides end 1`)\n",
        "revision 2: 0 shown again, 0 changed, 1 hidden, 0 unchanged\n",
    ] {
        assert!(hidden.contains(line), "{line}: {hidden}");
    }
    let said = set(&store, "A", &["discount_multiplier=0.01"]);
    assert!(
        said.contains("warning: override 1 hides 1 of these products"),
        "{said}"
    );
    let planned = store.ok(&["overrides", "end", "1", "--dry-run"]);
    assert!(
        planned.contains("override 1 would end: visible=false of A\n"),
        "{planned}"
    );
    let said = refused(&store, 2, &["hide", "B", "--until", "9999-12-31T00:00:00Z"]);
    assert!(
        said.contains("is too late; the latest time is 9999-12-30T22:00:00Z"),
        "{said}"
    );
}

#[test]
fn console_says_what_overrides_do() {
    let console = console();
    let editor = console.sign_in("editor");
    let store = &console.store;
    let plan = |path: &str, fields: &[(&str, &str)]| {
        let page = console.post_form(path, &editor, fields);
        text(&page.body).replace("&#39;", "'")
    };
    set(store, "A-1", &["state=TEMPORARILY_DISABLED"]);
    let told = plan("/acts/enable", &[("code", "A-1")]);
    let expected = "no active override by <code>vitrine disable</code>";
    assert!(told.contains(expected), "{told}");
    let same = [("code", "B-1"), ("value", "discount_multiplier=0.050")];
    let told = plan("/acts/set", &same);
    assert!(told.contains("Clients would see no change now."), "{told}");
    store.ok(&["hide", "B-1"]);
    let told = plan("/acts/set", &same);
    assert!(
        told.contains("Override 2 hides 1 product of these"),
        "{told}"
    );
    let told = plan("/acts/end-override", &[("number", "2")]);
    assert!(
        told.contains("Override 2 ends: visible=false of B-1."),
        "{told}"
    );
    // Whichever override it is: the page needn't know.
    store.sql("update catalog_override set definition = 'damaged' where number = 2");
    wait_for("the page of a hidden product", || {
        let page = text(&console.get("/catalog/B-1", &editor.cookie()).body);
        let is_hidden = page.contains("An override hides it from clients.");
        is_hidden.then_some(())
    });
}
