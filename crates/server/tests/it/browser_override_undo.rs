//! Overrides that were ended in the console, and made again.

use crate::browser_acts::{audit, console, perform};
use crate::harness::console::{Console, Session, hidden};
use crate::harness::text;

const AGAIN: &str = "/acts/make-override-again";

fn product(console: &Console, code: &str) -> serde_json::Value {
    console.store.json(&["show", code])
}

/// Returns an override of the store, by its number.
fn stored(console: &Console, number: u64) -> serde_json::Value {
    let all = console
        .store
        .json(&["overrides", "list", "--all", "--json"]);
    let mut all = all.as_array().expect("a list").iter();
    let found = all.find(|one| one["number"] == number);
    found.cloned().expect("the override")
}

/// Ends overrides, and returns the page.
fn end(console: &Console, session: &Session, numbers: &str) -> String {
    let fields = [("number", numbers), ("note", "by mistake")];
    let done = perform(console, session, "/acts/end-override", &fields);
    text(&done.body)
}

#[test]
fn ended_override_is_made_again_as_it_was() {
    let console = console();
    let editor = console.sign_in("editor");
    let fields = [
        ("code", "A-*"),
        ("value", "discount_multiplier=0.02"),
        ("until", "2h"),
        ("note", "a promotion"),
    ];
    perform(&console, &editor, "/acts/set", &fields);
    let ended = end(&console, &editor, "1");
    assert!(ended.contains("Undo: make the override again"), "{ended}");
    assert_ne!(product(&console, "A-1")["discount_multiplier"], "0.02");
    let number = hidden(&ended, "number").expect("the override");
    let again = [("number", number.as_str())];
    let plan = text(&console.post_form(AGAIN, &editor, &again).body);
    for part in [
        "What it will do",
        "It selects 1 product now.",
        "A-1",
        "0.02",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert_ne!(product(&console, "A-1")["discount_multiplier"], "0.02");
    let done = text(&perform(&console, &editor, AGAIN, &again).body);
    assert!(done.contains("Undo: end the override"), "{done}");
    assert_eq!(product(&console, "A-1")["discount_multiplier"], "0.02");
    let (old, new) = (stored(&console, 1), stored(&console, 2));
    for member in ["definition", "until", "note"] {
        assert_eq!(old[member], new[member], "{member}: {old} {new}");
    }
    assert_eq!(new["note"], "a promotion");
    assert_eq!(new["status"], "active");
    let newest = audit(&console).into_iter().next().expect("an entry");
    assert_eq!(
        (&newest["action"], &newest["subject"]),
        (&"create".into(), &"2".into())
    );
    // This undo can be undone, too.
    let number = hidden(&done, "number").expect("the override");
    let ended = end(&console, &editor, &number);
    assert!(ended.contains("Undo: make the override again"), "{ended}");
}

#[test]
fn ended_overrides_are_made_again_in_one_revision() {
    let console = console();
    let editor = console.sign_in("editor");
    for (code, multiplier) in [("A-1", "0.02"), ("*", "0.03")] {
        let value = format!("discount_multiplier={multiplier}");
        let fields = [("code", code), ("value", &*value)];
        perform(&console, &editor, "/acts/set", &fields);
    }
    let later = [("code", "B-1"), ("from", "2h"), ("until", "4h")];
    perform(&console, &editor, "/acts/disable", &later);
    let before = ["A-1", "B-1"].map(|code| product(&console, code));
    let begins = stored(&console, 3)["from"].clone();
    let ended = end(&console, &editor, "3 2 1");
    assert!(ended.contains("Undo: make the overrides again"), "{ended}");
    let number = hidden(&ended, "number").expect("the overrides");
    let revisions = console.store.revisions();
    perform(&console, &editor, AGAIN, &[("number", &number)]);
    let after = ["A-1", "B-1"].map(|code| product(&console, code));
    assert_eq!(before, after, "the newer one takes precedence again");
    assert_eq!(console.store.revisions(), revisions + 1);
    let new = stored(&console, 6);
    assert_eq!(
        (&new["from"], &new["status"]),
        (&begins, &"scheduled".into())
    );
}

#[test]
fn only_ended_overrides_with_time_left_are_made_again() {
    let console = console();
    let editor = console.sign_in("editor");
    perform(&console, &editor, "/acts/disable", &[("code", "A-1")]);
    for (numbers, fault) in [
        ("1", "override 1 hasn&#39;t ended"),
        ("7", "there is no override 7"),
        ("x", "expected numbers, such as"),
    ] {
        let reply = console.post_form(AGAIN, &editor, &[("number", numbers)]);
        let shown = text(&reply.body);
        assert_eq!(reply.status, 400, "{shown}");
        assert!(shown.contains(fault), "{fault}: {shown}");
    }
}
