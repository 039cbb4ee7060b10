//! Acts of owners on operators: adding, changing and removing them in the console.

use std::thread;

use serde_json::Value;

use crate::browser_acts::{console, perform};
use crate::harness::console::{Console, PASSWORD, Session, hidden};
use crate::harness::text;

const ADD: &str = "/acts/add-operator";
const SET: &str = "/acts/set-operator";
const REMOVE: &str = "/acts/remove-operator";

/// Returns the password that a page shows.
fn secret(page: &str) -> String {
    let start = "<p class=\"secret\"><code>";
    let (_, rest) = page.split_once(start).expect("a password");
    rest.split('<').next().unwrap_or_default().to_owned()
}

/// Does an act, and returns its page.
fn done(console: &Console, owner: &Session, act: &str, fields: &[(&str, &str)]) -> String {
    let reply = perform(console, owner, act, fields);
    assert_eq!(reply.status, 200, "{}", text(&reply.body));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    text(&reply.body)
}

fn listed(console: &Console, name: &str) -> Option<Value> {
    let all = console.store.json(&["operators", "list", "--json"]);
    let mut all = all.as_array().expect("a list").iter();
    all.find(|one| one["name"] == name).cloned()
}

#[test]
fn owners_add_change_and_remove_operators() {
    let console = console();
    let owner = console.sign_in("owner");
    let name = "Inês <b>";
    let fields = [("name", name), ("role", "viewer"), ("sign_in", "password")];
    let password = secret(&done(&console, &owner, ADD, &fields));
    let page = console.get("/operators", &owner.cookie());
    let shown = text(&page.body);
    assert!(shown.contains("Inês &#60;b&#62;"), "{shown}");
    assert!(!shown.contains(&password) && !shown.contains("argon2"));
    let change = "/acts/set-operator?name=In%C3%AAs%20%3Cb%3E";
    assert!(shown.contains(change), "{shown}");
    // The new operator signs in, and sees who the operators are.
    let signed_in = |password: &str| console.sign_in_with(name, password, "");
    let session = signed_in(&password);
    assert_eq!(session.status, 303);
    let cookie = Console::cookie_of(&session);
    let cookie = [("Cookie", &*cookie)];
    let own = text(&console.get("/operators", &cookie).body);
    assert!(own.contains(">You<") && !own.contains("/acts/set-operator"));
    // A change ends its sessions; the form has the role of now.
    let form = text(&console.get(change, &owner.cookie()).body);
    assert!(
        form.contains("<option value=\"viewer\" selected>"),
        "{form}"
    );
    let fields = [("name", name), ("role", "editor"), ("password", "new")];
    let changed = done(&console, &owner, SET, &fields);
    assert!(changed.contains("viewer → editor"), "{changed}");
    assert_eq!(hidden(&changed, "role").as_deref(), Some("viewer"));
    assert_eq!(console.get("/operators", &cookie).status, 303);
    assert_ne!(signed_in(&password).status, 303);
    let password = secret(&changed);
    assert_eq!(signed_in(&password).status, 303);
    let fields = [("name", name), ("role", "editor"), ("password", "none")];
    done(&console, &owner, SET, &fields);
    assert_ne!(signed_in(&password).status, 303);
    assert_eq!(
        listed(&console, name).expect("it is there")["sign_in"],
        "proxy"
    );
    done(
        &console,
        &owner,
        REMOVE,
        &[("name", name), ("note", "left")],
    );
    assert_eq!(listed(&console, name), None);
    let entries = console.store.json(&["audit", "--json"]);
    let entries = entries.as_array().expect("a list").iter();
    let entries = entries.filter(|entry| entry["subject"] == name);
    let entries: Vec<_> = entries
        .map(|entry| (&entry["action"], &entry["by"]))
        .collect();
    let actions: Vec<_> = entries
        .iter()
        .filter_map(|(action, _)| action.as_str())
        .collect();
    assert_eq!(actions, ["remove", "set", "set", "add"]);
    assert!(entries.iter().all(|(_, by)| *by == "owner"), "{entries:?}");
    assert!(!console.server.stderr().contains(&password));
}

#[test]
fn last_owner_stays_owner() {
    let console = console();
    let owner = console.sign_in("owner");
    for (act, fields) in [
        (SET, &[("name", "owner"), ("role", "viewer")][..]),
        (REMOVE, &[("name", "owner")]),
    ] {
        let refused = console.post_form(act, &owner, fields);
        let shown = text(&refused.body);
        assert_eq!(refused.status, 409, "{shown}");
        assert!(shown.contains("owner is the last owner"), "{shown}");
        let confirmed = [fields, &[("confirm", "yes"), ("once", "x")]].concat();
        assert_eq!(console.post_form(act, &owner, &confirmed).status, 409);
    }
    let fields = [("name", "olga"), ("role", "owner"), ("sign_in", "proxy")];
    done(&console, &owner, ADD, &fields);
    let fields = [("name", "owner"), ("role", "viewer")];
    let plan = text(&console.post_form(SET, &owner, &fields).body);
    assert!(plan.contains("This is you"), "{plan}");
    let confirmed = [&fields[..], &[("confirm", "yes"), ("once", "y")]].concat();
    assert_eq!(console.post_form(SET, &owner, &confirmed).status, 200);
    assert_eq!(console.get("/operators", &owner.cookie()).status, 303);
    assert_eq!(
        listed(&console, "owner").expect("it is there")["role"],
        "viewer"
    );
    assert_eq!(console.sign_in_with("owner", PASSWORD, "").status, 303);
}

#[test]
fn two_owners_confirmed_away_at_once_leave_one() {
    let console = console();
    let names = ["owner", "olga"];
    for fields in [&[][..], &[("role", "viewer")], &[]] {
        let act = if fields.is_empty() { REMOVE } else { SET };
        for name in names {
            let _ = console.store.run(&["operators", "remove", name]);
            console.add_if_missing(name, "owner");
            console
                .store
                .ok(&["operators", "set", name, "--role", "owner"]);
        }
        let sessions = names.map(|name| console.sign_in(name));
        // Each removes or demotes the other one.
        let confirmed = [0, 1].map(|at: usize| {
            let fields = [&[("name", names[1 - at])], fields].concat();
            let plan = text(&console.post_form(act, &sessions[at], &fields).body);
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, value.to_owned()));
            let kept = ["once", "plan"].map(|name| (name, hidden(&plan, name).expect(name)));
            let confirm = ("confirm", "yes".to_owned());
            let fields: Vec<_> = fields.chain(kept).chain([confirm]).collect();
            fields
        });
        thread::scope(|scope| {
            for (session, fields) in sessions.iter().zip(&confirmed) {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| (*name, &**value))
                    .collect();
                let console = &console;
                scope.spawn(move || console.post_form(act, session, &fields));
            }
        });
        let all = console.store.json(&["operators", "list", "--json"]);
        let all = all.as_array().expect("a list").iter();
        let owners = all.filter(|one| one["role"] == "owner").count();
        assert_eq!(owners, 1, "{act}");
    }
}

#[test]
fn operators_are_added_once() {
    let console = console();
    let owner = console.sign_in("owner");
    let fields = [("name", "ines"), ("role", "editor"), ("sign_in", "proxy")];
    let plan = text(&console.post_form(ADD, &owner, &fields).body);
    assert_eq!(listed(&console, "ines"), None);
    let once = hidden(&plan, "once").expect("its name");
    let confirmed = [&fields[..], &[("confirm", "yes"), ("once", &once)]].concat();
    assert_eq!(console.post_form(ADD, &owner, &confirmed).status, 200);
    assert_eq!(console.post_form(ADD, &owner, &confirmed).status, 409);
    let again = console.post_form(ADD, &owner, &fields);
    assert_eq!(again.status, 400);
    let shown = text(&again.body);
    assert!(
        shown.contains("there is an operator ines already"),
        "{shown}"
    );
}

#[test]
fn operator_changed_since_the_plan_is_shown_again() {
    let console = console();
    let owner = console.sign_in("owner");
    let set_role = |role: &str| {
        let set = ["operators", "set", "viewer", "--role", role];
        console.store.ok(&set);
    };
    for (act, fields, words) in [
        (
            SET,
            &[("name", "viewer"), ("role", "editor")][..],
            "viewer: owner → editor.",
        ),
        (REMOVE, &[("name", "viewer")], "viewer, owner, will be no"),
    ] {
        let plan = text(&console.post_form(act, &owner, fields).body);
        let [once, plan] = ["once", "plan"].map(|name| hidden(&plan, name).unwrap_or_default());
        // Another owner is faster.
        set_role("owner");
        let confirmed = [("confirm", "yes"), ("once", &*once), ("plan", &*plan)];
        let confirmed = [fields, &confirmed].concat();
        let again = text(&console.post_form(act, &owner, &confirmed).body);
        for part in ["has changed since it was shown", words] {
            assert!(again.contains(part), "{act}: {part}: {again}");
        }
        let viewer = listed(&console, "viewer").expect("it is there");
        assert_eq!(viewer["role"], "owner");
        set_role("viewer");
    }
}
