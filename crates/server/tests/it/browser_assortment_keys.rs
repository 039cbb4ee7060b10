//! Keys and assortments in the console: a key that gets another assortment, removals of assortments, and those that were put back.

use std::thread;
use std::time::Duration;

use serde_json::json;
use vitrine_store::audit::{AuditAction, AuditContext};
use vitrine_store::{IfMissing, open};

use crate::assortments::set;
use crate::browser_acts::{audit, console, perform};
use crate::browser_assortment_acts::{assert_holds, live, send};
use crate::harness::console::{Console, hidden};
use crate::harness::{text, wait_for};

const PATH: &str = "/acts/set-key";

/// A console with two assortments, and a key that has the first of them.
struct Partner {
    console: Console,
    key: String,
}

impl Partner {
    fn new() -> Self {
        let console = console();
        let few = json!({"allow": [{"codes": ["A-1", "B-1"]}]});
        let other = json!({"allow": [{"codes": ["B-1", "D-1"]}], "discounts": [{"set": "0.01"}]});
        set(&console.store, "few", &few);
        set(&console.store, "other", &other);
        let options = ["--assortment", "few", "--quota", "100/60"];
        let key = console.store.key("partner", &options);
        Self { console, key }
    }

    fn prefix(&self) -> &str {
        self.key.split('.').next().expect("a prefix")
    }

    /// Waits until the key sees these products.
    fn sees(&self, expected: &[&str]) {
        wait_for("the key", || {
            let reply = self.console.server.get(&self.key, "/v2/product");
            let page = (reply.status == 200).then(|| reply.json())?;
            let products = page["catalog"].as_array()?.iter();
            let codes = products.filter_map(|one| one["code"].as_str());
            codes.eq(expected.iter().copied()).then_some(())
        });
    }
}

#[test]
fn key_gets_another_assortment_and_its_former_one_back() {
    let partner = Partner::new();
    let console = &partner.console;
    let owner = console.sign_in("owner");
    partner.sees(&["A-1", "B-1"]);
    let fields = [
        ("key", partner.prefix()),
        ("label", "partner"),
        ("quota", "100/60"),
        ("assortment", "other"),
        ("note", "the new contract"),
    ];
    let (_, plan) = send(console, &owner, PATH, &fields);
    let counts = "1 product gained, 1 lost, 1 with another discount: 2 products shown, 2 before.";
    let words = "assortment few → other";
    assert_holds(&plan, &[words, counts, "+ D-1", "− A-1", "~ B-1"]);
    let done = text(&perform(console, &owner, PATH, &fields).body);
    assert_holds(&done, &["Undo: give it its former values"]);
    partner.sees(&["B-1", "D-1"]);
    // As the button of the undo sends it.
    let names = ["key", "label", "quota", "assortment"];
    let former = names.map(|name| (name, hidden(&done, name).unwrap_or_default()));
    let former = former.each_ref();
    let former = former.map(|(name, value)| (*name, value.as_str()));
    assert_eq!(former[3].1, "few");
    let plan = perform(console, &owner, PATH, &former);
    assert_holds(&text(&plan.body), &["assortment other → few"]);
    partner.sees(&["A-1", "B-1"]);
    let entry = audit(console).into_iter().nth(1).expect("an entry");
    assert_eq!(entry["note"], "the new contract");
}

#[test]
fn form_of_a_key_suggests_assortments_and_keeps_values() {
    let partner = Partner::new();
    let console = &partner.console;
    let owner = console.sign_in("owner");
    let page = console.get("/assortments/few", &owner.cookie());
    let target = format!("{PATH}?key={}", partner.prefix());
    assert_holds(&text(&page.body), &["partner", &target]);
    let whole = [("key", partner.prefix()), ("label", "partner")];
    let (_, plan) = send(console, &owner, PATH, &whole);
    let counts = "8 products gained, 0 lost, 0 with another discount: 10 products shown, 2 before.";
    assert_holds(&plan, &["assortment few → none", counts]);
    // The form that is changed keeps what was filled in.
    let target = format!("{target}&label=renamed&assortment=other");
    let form = text(&console.get(&target, &owner.cookie()).body);
    let option = "<option value=\"few\">";
    assert_holds(&form, &["value=\"renamed\"", "value=\"other\"", option]);
    let wrong = [whole[0], whole[1], ("assortment", "none")];
    let (status, page) = send(console, &owner, PATH, &wrong);
    assert_eq!(status, 400, "{page}");
}

#[test]
fn key_changed_since_its_plan_keeps_its_new_values() {
    let partner = Partner::new();
    let console = &partner.console;
    let owner = console.sign_in("owner");
    let key = console.store.key("open", &[]);
    let prefix = key.split('.').next().expect("a prefix");
    let fields = [("key", prefix), ("label", "renamed")];
    let confirm = |plan: &str| {
        let [once, plan] = ["once", "plan"].map(|name| hidden(plan, name).unwrap_or_default());
        let confirmed = [("confirm", "yes"), ("once", &*once), ("plan", &*plan)];
        send(console, &owner, PATH, &[&fields[..], &confirmed].concat()).1
    };
    let (_, plan) = send(console, &owner, PATH, &fields);
    assert_holds(&plan, &["label open → renamed"]);
    // Another owner is faster.
    let set = ["keys", "set", prefix, "--assortment", "few"];
    console.store.ok(&set);
    let again = confirm(&plan);
    let counts = "8 products gained, 0 lost, 0 with another discount: 10 products shown, 2 before.";
    let changes = "label open → renamed, assortment few → none";
    assert_holds(&again, &["has changed since it was shown", changes, counts]);
    let keys = console.store.json(&["keys", "list", "--json"]);
    let mut keys = keys.as_array().expect("a list").iter();
    let stored = keys.find(|one| one["prefix"] == prefix).expect("the key");
    assert_eq!(
        (&stored["label"], &stored["assortment"]),
        (&json!("open"), &json!("few"))
    );
    assert_holds(&confirm(&again), &["<h2>Done</h2>", changes]);
}

#[test]
fn key_changed_while_its_confirmation_waits_keeps_its_values() {
    let partner = Partner::new();
    let console = &partner.console;
    let owner = &console.sign_in("owner");
    let fields = [("key", partner.prefix()), ("label", "renamed")];
    let confirmed = |plan: &str| {
        let names = ["once", "plan"];
        names.map(|name| (name, hidden(plan, name).unwrap_or_default()))
    };
    let confirm = |[once, plan]: &[(&str, String); 2]| {
        let confirmed = [("confirm", "yes"), (once.0, &once.1), (plan.0, &plan.1)];
        send(console, owner, PATH, &[&fields[..], &confirmed].concat()).1
    };
    let first = &confirmed(&send(console, owner, PATH, &fields).1);
    let held = open(&console.store.url(), IfMissing::Refuse).expect("the store");
    let context = AuditContext {
        by: "another owner".to_owned(),
        note: None,
        action: AuditAction::SetKey,
        confirmation: None,
    };
    let again = thread::scope(|scope| {
        let mut click = None;
        let changed = held.change_keys(&context, None, &mut |records| {
            // It compares what was shown, and then waits for this change.
            click = Some(scope.spawn(|| confirm(first)));
            thread::sleep(Duration::from_millis(700));
            let own = records.iter().find(|one| one.prefix == partner.prefix());
            let mut own = own.expect("the key").clone();
            own.label = "faster".to_owned();
            vec![own]
        });
        changed.expect("a change");
        click.expect("a click").join().expect("an answer")
    });
    let changes = "label faster → renamed";
    assert_holds(&again, &["has changed since it was shown", changes]);
    let label = || {
        let keys = console.store.json(&["keys", "list", "--json"]);
        let mut keys = keys.as_array().expect("a list").iter();
        let stored = keys.find(|one| one["prefix"] == partner.prefix());
        stored.expect("the key")["label"].clone()
    };
    assert_eq!(label(), "faster");
    assert_holds(&confirm(&confirmed(&again)), &["<h2>Done</h2>", changes]);
    assert_eq!(label(), "renamed");
}

#[test]
fn assortment_is_removed_only_without_keys_and_comes_back() {
    let console = console();
    let editor = console.sign_in("editor");
    let path = "/acts/remove-assortment";
    set(
        &console.store,
        "few",
        &json!({"allow": [{"codes": ["A-1"]}]}),
    );
    let key = console.store.key("partner", &["--assortment", "few"]);
    let prefix = key.split('.').next().expect("a prefix");
    let fields = [("assortment", "few")];
    for fields in [&fields[..], &[fields[0], ("confirm", "yes")]] {
        let (status, page) = send(&console, &editor, path, fields);
        assert_eq!(status, 400, "{page}");
        assert_holds(&page, &["a key uses it", prefix]);
    }
    console.store.ok(&["keys", "revoke", prefix]);
    let done = text(&perform(&console, &editor, path, &fields).body);
    assert_holds(
        &done,
        &["The assortment few was removed.", "Undo: bring it back"],
    );
    let page = text(&console.get("/assortments/few", &editor.cookie()).body);
    assert_holds(&page, &["removed", "Create it again"]);
    let version = hidden(&done, "version").expect("an undo");
    let back = [("assortment", "few"), ("version", &*version)];
    perform(&console, &editor, "/acts/roll-back-assortment", &back);
    assert_eq!(
        live(&console.store, "few"),
        json!({"allow": [{"codes": ["A-1"]}]})
    );
    let (status, _) = send(&console, &editor, path, &[("assortment", "none")]);
    assert_eq!(status, 400);
}

#[test]
fn assortments_are_accepted_by_owners_who_compared_them() {
    let console = console();
    let owner = console.sign_in("owner");
    let path = "/acts/accept-assortments";
    assert_eq!(send(&console, &owner, path, &[]).0, 400);
    let fields = [("compared", "yes"), ("note", "restored")];
    perform(&console, &owner, path, &fields);
    let entry = audit(&console).into_iter().next().expect("an entry");
    let told = ["by", "action", "note"].map(|name| entry[name].as_str().unwrap_or_default());
    assert_eq!(told, ["owner", "accept", "restored"]);
}
