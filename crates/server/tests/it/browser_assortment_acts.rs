//! Acts on assortments in the console: the editor with its faults and its guard, stale edits and rollbacks.

use serde_json::{Value, json};

use crate::assortments::set;
use crate::browser_acts::{audit, console, perform};
use crate::harness::console::{Console, Session, hidden};
use crate::harness::{Store, text};

const EDITOR: &str = "/acts/set-assortment";
const EVIL: &str = "\"></textarea><script>alert(1)</script>";

/// Returns the page after a form was sent, and its status.
pub fn send(
    console: &Console,
    session: &Session,
    path: &str,
    fields: &[(&str, &str)],
) -> (u16, String) {
    let reply = console.post_form(path, session, fields);
    (reply.status, text(&reply.body))
}

/// Returns the live rules of an assortment.
pub fn live(store: &Store, name: &str) -> Value {
    store.json(&["assortments", "show", name])
}

/// Returns the id of the version that the editor opens.
fn opened(console: &Console, session: &Session, name: &str) -> String {
    let page = console.get(&format!("{EDITOR}?name={name}"), &session.cookie());
    hidden(&text(&page.body), "base").expect("a base")
}

/// Asserts that a page has all of these parts.
pub fn assert_holds(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn assortment_is_created_and_edited() {
    let console = console();
    let editor = console.sign_in("editor");
    let rules = r#"{"allow": [{"codes": ["A-1", "B-1"]}]}"#;
    let fields = [
        ("name", "nordic"),
        ("rules", rules),
        ("note", "the contract"),
    ];
    let (status, plan) = send(&console, &editor, EDITOR, &fields);
    assert_eq!(status, 200, "{plan}");
    let counts = "2 products gained, 0 lost, 0 with another discount: 2 products shown, 0 before.";
    assert_holds(
        &plan,
        &[counts, "+ A-1 Product A-1", "Save what was checked"],
    );
    assert!(audit(&console).is_empty(), "a check changes nothing");
    let done = text(&perform(&console, &editor, EDITOR, &fields).body);
    assert_holds(
        &done,
        &["Version 1 of nordic is live", "Undo: remove the assortment"],
    );
    let form = console.get(&format!("{EDITOR}?name=nordic"), &editor.cookie());
    let form = text(&form.body);
    assert_holds(
        &form,
        &["    {&#34;codes&#34;: [&#34;A-1&#34;, &#34;B-1&#34;]}\n"],
    );
    let base = hidden(&form, "base").expect("a base");
    let rules = r#"{"allow": [{"codes": ["A-1"]}], "discounts": [{"set": "0.01"}]}"#;
    let fields = [
        ("name", "nordic"),
        ("rules", rules),
        ("base", &base),
        ("allow", "retire=50%"),
    ];
    let done = text(&perform(&console, &editor, EDITOR, &fields).body);
    let parts = [
        "Version 2 of nordic is live",
        "~ A-1 Product A-1: 0.05 → 0.01",
        "− B-1 Product B-1",
        "Undo: roll back to the version before",
    ];
    assert_holds(&done, &parts);
    let expected = json!({"allow": [{"codes": ["A-1"]}], "discounts": [{"set": "0.01"}]});
    assert_eq!(live(&console.store, "nordic"), expected);
}

#[test]
fn undo_of_an_edit_rolls_back_and_all_is_audited() {
    let console = console();
    let editor = console.sign_in("editor");
    let rules = r#"{"allow":[{"codes":["A-1","B-1"]}]}"#;
    let fields = [
        ("name", "nordic"),
        ("rules", rules),
        ("note", "the contract"),
    ];
    perform(&console, &editor, EDITOR, &fields);
    let base = opened(&console, &editor, "nordic");
    let fields = [
        ("name", "nordic"),
        ("rules", r#"{"allow": [{"codes": ["A-1"]}]}"#),
        ("base", &base),
        ("allow", "retire=50%"),
    ];
    let done = text(&perform(&console, &editor, EDITOR, &fields).body);
    // As the button of the undo sends it.
    let version = hidden(&done, "version").expect("an undo");
    let fields = [("assortment", "nordic"), ("version", &*version)];
    let done = text(&perform(&console, &editor, "/acts/roll-back-assortment", &fields).body);
    assert_holds(&done, &["Version 3 of nordic is live", "1 product gained"]);
    assert_eq!(
        hidden(&done, "version").as_deref(),
        Some("2"),
        "the undo's undo"
    );
    assert_eq!(
        live(&console.store, "nordic"),
        json!({"allow": [{"codes": ["A-1", "B-1"]}]})
    );
    let told = audit(&console);
    let told = told.iter().map(|entry| {
        ["by", "action", "subject", "note"].map(|name| entry[name].as_str().unwrap_or("-"))
    });
    let expected = [
        ["editor", "set", "nordic", "rollback to version 1"],
        ["editor", "set", "nordic", "-"],
        ["editor", "set", "nordic", "the contract"],
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let same = [("assortment", "nordic"), ("version", "3")];
    let (status, page) = send(&console, &editor, "/acts/roll-back-assortment", &same);
    assert_eq!(status, 200);
    assert_holds(&page, &["has these rules; nothing was changed"]);
}

#[test]
fn edit_of_an_older_version_replaces_no_newer_one() {
    let console = console();
    let editor = console.sign_in("editor");
    set(&console.store, "nordic", &json!({}));
    let base = opened(&console, &editor, "nordic");
    let other = json!({"deny": [{"codes": ["D-8"]}]});
    set(&console.store, "nordic", &other);
    let mine = r#"{"deny":[{"codes":["D-1"]}]}"#;
    let fields = [("name", "nordic"), ("rules", mine), ("base", &*base)];
    let confirmed = [&fields[..], &[("confirm", "yes")]].concat();
    for (fields, expected) in [(&fields[..], 200), (&confirmed, 409)] {
        let (status, page) = send(&console, &editor, EDITOR, fields);
        assert_eq!(status, expected, "{page}");
        assert_holds(
            &page,
            &["It was changed since you opened it: version 2 is live"],
        );
        assert_holds(&page, &["Check against version 2", "&#34;D-1&#34;"]);
    }
    assert_eq!(live(&console.store, "nordic"), other);
    // As the button sends it, after somebody has looked at the other version.
    let (_, page) = send(&console, &editor, EDITOR, &fields);
    let (_, button) = page
        .split_once("Somebody else was faster")
        .expect("an answer");
    let base = hidden(button, "base").expect("the live version");
    let fields = [("name", "nordic"), ("rules", mine), ("base", &*base)];
    perform(&console, &editor, EDITOR, &fields);
    assert_eq!(live(&console.store, "nordic").to_string(), mine);
    // A new one of a name that there is; a rollback and a removal that were planned before an edit.
    let (_, page) = send(&console, &editor, EDITOR, &fields[..2]);
    assert_holds(&page, &["There is an assortment of this name: version 3"]);
    for path in ["/acts/roll-back-assortment", "/acts/remove-assortment"] {
        let stale = [
            ("assortment", "nordic"),
            ("version", "1"),
            ("base", &*base),
            ("confirm", "yes"),
        ];
        let (status, page) = send(&console, &editor, path, &stale);
        assert_eq!(status, 409, "{path}: {page}");
        assert_holds(&page, &["changed meanwhile: version 3 is live"]);
    }
    assert_eq!(live(&console.store, "nordic").to_string(), mine);
}

#[test]
fn faults_of_rules_have_lines_places_and_suggestions() {
    let console = console();
    let editor = console.sign_in("editor");
    let json = "{\"allow\": [\n  {\"countries\": [\"DE\",\n    \"SEE\"]},\n  {\"codez\": []}],\r\n \"deny\": 1}";
    for (rules, parts) in [
        (
            json,
            &[
                "3 faults",
                "Line 3</a> <code>allow[0].countries[1]</code>",
                "Line 4</a> <code>allow[1].codez</code> unknown member; did you mean <code>codes</code>?",
                "Line 5</a> <code>deny</code>",
            ][..],
        ),
        (
            "{\n\"allow\": [}",
            &["1 fault<", "Line 2</a> expected JSON"],
        ),
        ("allow = [\n", &["1 fault<", "expected JSON"]),
        (
            "{\n\"discounts\": [{\"share\": \"30\"}]}",
            &[
                "1 fault<",
                "Line 2</a> <code>discounts[0].share</code>",
                "above 1",
            ],
        ),
        ("", &["1 fault<", "expected JSON"]),
    ] {
        let fields = [("name", "nordic"), ("rules", rules)];
        let (status, page) = send(&console, &editor, EDITOR, &fields);
        assert_eq!(status, 200, "{page}");
        assert_holds(&page, parts);
        let confirmed = [&fields[..], &[("confirm", "yes")]].concat();
        let (status, page) = send(&console, &editor, EDITOR, &confirmed);
        assert_eq!(status, 400, "{page}");
        assert_holds(&page, parts);
    }
    assert!(audit(&console).is_empty());
}

#[test]
fn wrong_names_and_unknown_codes_are_told_by_a_check() {
    let console = console();
    let editor = console.sign_in("editor");
    for (name, allow, part) in [
        ("", "", "Name: expected"),
        ("a/b", "", "Name: expected"),
        ("nordic", "retire", "Raised limit of the guard"),
    ] {
        let fields = [("name", name), ("rules", "{}"), ("allow", allow)];
        let (status, page) = send(&console, &editor, EDITOR, &fields);
        assert_eq!(status, 200, "{page}");
        assert_holds(&page, &[part]);
    }
    assert!(audit(&console).is_empty());
    let unknown = "{\"allow\": [\n {\"codes\": [\"A-1\", \"a-1\"]}]}";
    let (_, page) = send(
        &console,
        &editor,
        EDITOR,
        &[("name", "nordic"), ("rules", unknown)],
    );
    let warning = "Line 2</a> <code>allow[0].codes</code> no product has the code <code>a-1</code>; did you mean <code>A-1</code>?";
    assert_holds(
        &page,
        &[
            "Names that no product has",
            warning,
            "Save what was checked",
        ],
    );
}

#[test]
fn guard_refuses_an_edit_until_it_is_allowed() {
    let console = console();
    let editor = console.sign_in("editor");
    set(&console.store, "nordic", &json!({}));
    let base = opened(&console, &editor, "nordic");
    let rules = r#"{"allow":[{"codes":["A-1"]}]}"#;
    let fields = [("name", "nordic"), ("rules", rules), ("base", &*base)];
    let confirmed = [&fields[..], &[("confirm", "yes")]].concat();
    for (fields, expected) in [(&fields[..], 200), (&confirmed, 409)] {
        let (status, page) = send(&console, &editor, EDITOR, fields);
        assert_eq!(status, expected, "{page}");
        let refusal = "it would take away 9 of the 10 products shown, 90%, more than 20%.";
        assert_holds(
            &page,
            &[refusal, "Allow retire=90% and check again", "− B-1"],
        );
        assert_eq!(hidden(&page, "allow").as_deref(), Some("retire=90%"));
    }
    assert_eq!(live(&console.store, "nordic"), json!({}));
    let allowed = [&fields[..], &[("allow", "retire=90%")]].concat();
    perform(&console, &editor, EDITOR, &allowed);
    assert_eq!(live(&console.store, "nordic").to_string(), rules);
    // The guard holds for rollbacks, too.
    set(&console.store, "nordic", &json!({}));
    let back = [("assortment", "nordic"), ("version", "2")];
    let (status, page) = send(&console, &editor, "/acts/roll-back-assortment", &back);
    assert_eq!(status, 409, "{page}");
    assert_eq!(hidden(&page, "allow").as_deref(), Some("retire=90%"));
    let allowed = [&back[..], &[("allow", "retire=90%")]].concat();
    perform(&console, &editor, "/acts/roll-back-assortment", &allowed);
    assert_eq!(live(&console.store, "nordic").to_string(), rules);
}

#[test]
fn hostile_rules_and_notes_run_no_script_in_the_editor() {
    let console = console();
    let editor = console.sign_in("editor");
    let file = console.store.write("evil.json", "{}").display().to_string();
    console
        .store
        .ok(&["assortments", "set", "evil", &file, "--note", EVIL]);
    let base = "another one";
    let rules = json!({"allow": [{"categories": [EVIL]}], EVIL: 1}).to_string();
    let warned = json!({"deny": [{"categories": [EVIL]}]}).to_string();
    let live = opened(&console, &editor, "evil");
    for fields in [
        &[
            ("name", EVIL),
            ("rules", EVIL),
            ("note", EVIL),
            ("allow", EVIL),
        ][..],
        &[("name", "evil"), ("rules", &rules), ("note", EVIL)],
        &[
            ("name", "evil"),
            ("rules", &warned),
            ("note", EVIL),
            ("base", base),
        ],
        &[
            ("name", "evil"),
            ("rules", &warned),
            ("note", EVIL),
            ("base", &live),
        ],
        &[
            ("name", "evil"),
            ("rules", "{}"),
            ("base", EVIL),
            ("allow", "retire=1%"),
        ],
    ] {
        let (_, page) = send(&console, &editor, EDITOR, fields);
        assert!(!page.contains("<script>"), "{page}");
        let areas = page.matches("</textarea>").count();
        assert_eq!(areas, 1, "{page}");
    }
    for target in ["/assortments", "/assortments/evil"] {
        let page = text(&console.get(target, &editor.cookie()).body);
        assert!(
            !page.contains("<script>") && page.contains("&#60;script"),
            "{page}"
        );
    }
    let query = "name=%22%3E%3Cscript%3E&rules=%3C/textarea%3E%3Cscript%3E&base=%22%3E%3Cscript%3E";
    let page = text(
        &console
            .get(&format!("{EDITOR}?{query}"), &editor.cookie())
            .body,
    );
    assert!(!page.contains("<script>"), "{page}");
}

#[test]
fn long_rules_fit_the_editor() {
    let console = console();
    let editor = console.sign_in("editor");
    let codes: Vec<String> = (0..40_000).map(|code| format!("CODE-{code}")).collect();
    let rules = json!({"allow": [{"codes": codes}]}).to_string();
    let (status, page) = send(
        &console,
        &editor,
        EDITOR,
        &[("name", "long"), ("rules", &rules)],
    );
    assert_eq!(status, 200, "{}", &page[..200]);
    assert_holds(&page, &["0 products gained", "These are the first 25."]);
    let too_long = "a".repeat(2 << 20);
    let (status, _) = send(&console, &editor, EDITOR, &[("rules", &too_long)]);
    assert_eq!(status, 413);
}
