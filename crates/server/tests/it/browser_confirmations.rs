//! Confirmations of acts that are sent again: at the same server, at another one, and while the act is being done.

use std::thread;
use std::time::Duration;

use serde_json::json;
use vitrine_store::{IfMissing, open};

use crate::assortments::set;
use crate::browser_acts::{audit, catalog, console};
use crate::harness::console::{Console, Session, hidden};
use crate::harness::{Reply, gift_card, text};

const DISABLE: &str = "/acts/disable";

/// Returns a form with all that its plan adds, as the page sends it.
fn planned<'f>(
    console: &Console,
    session: &Session,
    path: &str,
    fields: &[(&'f str, &'f str)],
) -> Vec<(&'f str, String)> {
    let plan = text(&console.post_form(path, session, fields).body);
    assert!(plan.contains("What it will do"), "{path}: {plan}");
    let sent = fields.iter().map(|(name, _)| *name);
    let sent = sent.chain(["confirm", "once", "plan", "base"]);
    sent.filter_map(|name| Some((name, hidden(&plan, name)?)))
        .collect()
}

fn confirm(
    console: &Console,
    session: &Session,
    path: &str,
    confirmed: &[(&str, String)],
) -> Reply {
    let confirmed: Vec<(&str, &str)> = confirmed
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    console.post_form(path, session, &confirmed)
}

#[test]
fn confirmation_sent_to_two_servers_is_done_once() {
    let mut console = console();
    let mut products = catalog();
    products[3] = gift_card("C-1");
    console.store.load_products(&products);
    let owner = console.sign_in("owner");
    let mut other = console.store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    let key = console.store.key("reader", &[]);
    set(&console.store, "few", &json!({"allow": []}));
    let prefix = key.split('.').next().expect("a prefix");
    for (path, fields) in [
        ("/acts/create-key", &[("label", "partner")][..]),
        (
            "/acts/set-key",
            &[("key", prefix), ("label", "reader, renamed")],
        ),
        ("/acts/revoke-key", &[("key", prefix)]),
        (DISABLE, &[("code", "B-1"), ("from", "2h")]),
        (DISABLE, &[("code", "A-1"), ("until", "2h")]),
        ("/acts/enable", &[("code", "A-1")]),
        ("/acts/make-override-again", &[("number", "2")]),
        ("/acts/end-override", &[("number", "3 1")]),
        ("/acts/hide", &[("code", "B-1"), ("allow", "retire=30%")]),
        (
            "/acts/set",
            &[("code", "A-1"), ("value", "discount_multiplier=0.01")],
        ),
        ("/acts/roll-back", &[("revision", "1")]),
        ("/acts/remove-assortment", &[("assortment", "few")]),
        (
            "/acts/roll-back-assortment",
            &[("assortment", "few"), ("version", "1")],
        ),
        (
            "/acts/set-operator",
            &[("name", "viewer"), ("role", "editor")],
        ),
        ("/acts/remove-operator", &[("name", "viewer")]),
    ] {
        let confirmed = planned(&console, &owner, path, fields);
        let done = confirm(&console, &owner, path, &confirmed);
        let shown = text(&done.body);
        assert!(shown.contains("<h2>Done</h2>"), "{path}: {shown}");
        let entries = console.store.json(&["audit", "--json"]);
        for server in ["same", "other"] {
            let again = confirm(&console, &owner, path, &confirmed);
            let shown = text(&again.body);
            assert_eq!(again.status, 409, "{path} {server}: {shown}");
            for part in ["This was done already", "href=\"/audit\""] {
                assert!(shown.contains(part), "{path} {server}: {part}: {shown}");
            }
            std::mem::swap(&mut console.server, &mut other);
        }
        let after = console.store.json(&["audit", "--json"]);
        assert_eq!(entries, after, "{path}");
    }
    let overrides = console
        .store
        .json(&["overrides", "list", "--all", "--json"]);
    assert_eq!(overrides.as_array().map(Vec::len), Some(5), "{overrides}");
    assert_eq!(console.store.json(&["check", "--json"])["clean"], true);
}

#[test]
fn second_click_during_an_act_gets_no_other_plan() {
    let console = &console();
    let editor = &console.sign_in("editor");
    let fields = [("code", "A-1"), ("note", "twice")];
    let confirmed = &planned(console, editor, DISABLE, &fields);
    // The act waits for another writer.
    let held = open(&console.store.url(), IfMissing::Refuse).expect("the store");
    let publication = held.publish().expect("a publish");
    thread::scope(|scope| {
        let click = || scope.spawn(move || confirm(console, editor, DISABLE, confirmed));
        let clicks = [click(), click()];
        thread::sleep(Duration::from_millis(500));
        drop(publication);
        for click in clicks {
            let shown = text(&click.join().expect("an answer").body);
            assert!(shown.contains("Undo: end the override"), "{shown}");
        }
    });
    assert_eq!(audit(console).len(), 1);
}
