//! Acts of owners in the console: keys and rollbacks; and what a role of the database may not do.

use crate::browser_acts::{audit, catalog, console, perform};
use crate::harness::console::{Console, Session, hidden};
use crate::harness::{Store, gift_card, skipped, text, wait_for};

#[test]
fn keys_are_made_changed_rotated_and_revoked_by_owners() {
    let console = console();
    let owner = console.sign_in("owner");
    let fields = [
        ("label", "partner"),
        ("quota", "600/60"),
        ("expires", "90d"),
    ];
    let done = perform(&console, &owner, "/acts/create-key", &fields);
    let shown = text(&done.body);
    assert_eq!(done.header("cache-control"), Some("no-store"));
    let secret = |shown: &str| {
        let rest = shown
            .split_once("<p class=\"secret\"><code>")
            .expect("a key")
            .1;
        rest.split('<').next().unwrap_or_default().to_owned()
    };
    let key = secret(&shown);
    let answers = |key: &str, status: u16| {
        wait_for("the keys to be followed", || {
            let reply = console.server.get(key, "/v2/product?limit=1");
            (reply.status == status).then_some(())
        });
    };
    answers(&key, 200);
    let prefix = key.split('.').next().expect("a prefix");
    let form = text(
        &console
            .get(&format!("/acts/set-key?key={prefix}"), &owner.cookie())
            .body,
    );
    assert!(form.contains("value=\"600/60\""), "{form}");
    let fields = [("key", prefix), ("label", "partner, renamed")];
    let done = perform(&console, &owner, "/acts/set-key", &fields);
    assert!(
        text(&done.body).contains("quota 600/60 → none"),
        "{}",
        text(&done.body)
    );
    let fields = [("key", prefix), ("overlap", "7d")];
    let rotated = secret(&text(
        &perform(&console, &owner, "/acts/rotate-key", &fields).body,
    ));
    answers(&rotated, 200);
    let done = perform(&console, &owner, "/acts/revoke-key", &[("key", prefix)]);
    assert_eq!(done.status, 200);
    answers(&key, 401);
    let page = text(&console.get("/keys", &owner.cookie()).body);
    for secret in [&key, &rotated] {
        assert!(!page.contains(secret.as_str()));
        assert!(!console.server.stderr().contains(secret.as_str()));
    }
    let by: Vec<_> = audit(&console)
        .iter()
        .map(|entry| entry["by"].clone())
        .collect();
    assert!(by.len() >= 5 && by.iter().all(|by| by == "owner"), "{by:?}");
}

#[test]
fn catalog_is_rolled_back_with_its_plan() {
    let console = console();
    let owner = console.sign_in("owner");
    let mut products = catalog();
    products[0]["name"] = "Changed".into();
    products[1] = gift_card("C-1");
    console.store.load_products(&products);
    let plan = console.post_form("/acts/roll-back", &owner, &[("revision", "1")]);
    let shown = text(&plan.body);
    for part in [
        "are changed: 1 (A-1)",
        "come back: 1 (B-1)",
        "are retired: 1 (C-1)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let done = perform(&console, &owner, "/acts/roll-back", &[("revision", "1")]);
    let shown = text(&done.body);
    assert!(shown.contains("Revision 3 is live"), "{shown}");
    assert_eq!(console.store.json(&["show", "A-1"])["name"], "Product A-1");
    let undo = hidden(&shown, "revision").expect("an undo");
    assert_eq!(undo, "2");
    let entry = audit(&console).into_iter().next().expect("an entry");
    assert_eq!(entry["action"], "roll-back");
    assert_eq!(entry["by"], "owner");
    let missing = console.post_form("/acts/roll-back", &owner, &[("revision", "99")]);
    assert_eq!(missing.status, 400);
}

#[test]
fn rollback_plan_is_about_what_clients_will_see() {
    let console = console();
    let store = &console.store;
    let owner = console.sign_in("owner");
    let plan = |number: &str| {
        let fields = [("revision", number)];
        text(&console.post_form("/acts/roll-back", &owner, &fields).body)
    };
    let roll_back = |number: &str| {
        let fields = [("revision", number)];
        text(&perform(&console, &owner, "/acts/roll-back", &fields).body)
    };
    store.ok(&["disable", "A-1"]);
    // The override stays, so that clients see nothing of the base of then.
    let shown = plan("1");
    assert!(shown.contains("Clients would see no change"), "{shown}");
    let done = roll_back("1");
    assert!(done.contains("nothing was changed"), "{done}");
    // Then clients saw it disabled, as now; but loads had brought another state.
    let mut products = catalog();
    products[0]["state"] = "TEMPORARILY_DISABLED".into();
    products[0]["is_orderable"] = false.into();
    store.load_products(&products);
    store.ok(&["overrides", "end", "1"]);
    let shown = plan("2");
    assert!(shown.contains("are changed: 1 (A-1)"), "{shown}");
    let done = roll_back("2");
    assert!(done.contains("1 changed"), "{done}");
    assert_eq!(store.json(&["show", "A-1"])["state"], "LIVE");
    // One that an override hides by now isn't there then, either.
    let others: Vec<_> = catalog().into_iter().skip(1).collect();
    store.ok(&["hide", "A-*", "--allow", "retire=30%"]);
    store.load_products(&others);
    let shown = plan("1");
    assert!(shown.contains("Clients would see no change"), "{shown}");
    let done = roll_back("1");
    assert!(done.contains("is live, with the products"), "{done}");
}

/// Returns the grants that docs/operate/console.md prints after some words, for a role.
fn printed_grants(words: &str, role: &str) -> String {
    let document = include_str!("../../../../docs/operate/console.md");
    let (_, rest) = document.split_once(words).expect("the words");
    let block = rest.split("\n\n").nth(1).expect("a block");
    let is_grant = |line: &str| line.starts_with("    grant ") && line.ends_with(';');
    assert!(block.lines().all(is_grant), "{block}");
    block.replace("catalog_serve", role)
}

/// Serves the console's store as a new role, which has the printed rights for signing in and for `acts`; returns it with an
/// owner who is signed in. `None` on SQLite.
fn served_as(console: &Console, name: &str, acts: Option<&str>) -> Option<(Console, Session)> {
    let Some(database) = console.store.database() else {
        skipped("rights of roles: files have none");
        return None;
    };
    let role = format!("{name}_{}", std::process::id());
    database.run(&format!(
        "create role {role} login; grant usage on schema vitrine to {role}; \
         grant select on all tables in schema vitrine to {role};"
    ));
    for words in ["Signing in needs"].into_iter().chain(acts) {
        database.run(&printed_grants(words, &role));
    }
    let (port, name) = (database.port(), &database.name);
    let limited = Store::at(format!("postgres://{role}@127.0.0.1:{port}/{name}"));
    let served = Console::open(limited, &[]);
    let owner = served.sign_in("owner");
    Some((served, owner))
}

#[test]
fn role_without_rights_in_the_database_gets_the_command() {
    let console = console();
    let Some((served, owner)) = served_as(&console, "serve", None) else {
        return;
    };
    for (path, fields, command) in [
        (
            "/acts/disable",
            &[("code", "A-1"), ("confirm", "yes")][..],
            "vitrine disable",
        ),
        (
            "/acts/create-key",
            &[("label", "x"), ("confirm", "yes")],
            "vitrine keys create",
        ),
        (
            "/acts/set-assortment",
            &[("name", "x"), ("rules", "{}"), ("confirm", "yes")],
            "vitrine assortments set",
        ),
    ] {
        let reply = served.post_form(path, &owner, fields);
        let shown = text(&reply.body);
        assert_eq!(reply.status, 403, "{shown}");
        assert!(
            shown.contains(&format!("<code>{command}</code>")),
            "{shown}"
        );
    }
}

#[test]
fn printed_grants_suffice_for_the_acts_that_they_are_for() {
    let console = console();
    let key = console.store.key("partner", &[]);
    let prefix = key.split('.').next().expect("a prefix");
    let key_file = console.store.path("webhooks.key").display().to_string();
    let url = "https://partner.example/hook";
    let create = [
        "webhooks", "create", "--json", "--key", prefix, "--url", url,
    ];
    let created = [&create[..], &["--webhook-key-file", &key_file]].concat();
    let endpoint = console.store.json(&created)["id"].clone();
    let endpoint = endpoint.as_str().expect("an id");
    let listed = || console.store.json(&["webhooks", "list", "--json"])[0].clone();

    let done = |role, words, path, fields: &[(&str, &str)]| {
        let (served, owner) = served_as(&console, role, Some(words))?;
        let reply = perform(&served, &owner, path, fields);
        let shown = text(&reply.body);
        assert_eq!(reply.status, 200, "{path}: {shown}");
        Some(shown)
    };
    let fields = [("endpoint", endpoint)];
    let words = "To let owners change webhooks:";
    if done("hooks", words, "/acts/pause-webhook", &fields).is_none() {
        return;
    }
    assert_eq!(listed()["state"], "paused");
    let fields = [("key", prefix), ("overlap", "7d")];
    let words = "To let owners change keys";
    let rotated = done("keys", words, "/acts/rotate-key", &fields).expect("a page");
    assert!(!rotated.contains("are still its own"), "{rotated}");
    assert_ne!(listed()["key"], prefix, "{rotated}");
    let fields = [("name", "new"), ("role", "viewer"), ("sign_in", "password")];
    let words = "To let owners change operators";
    done("people", words, "/acts/add-operator", &fields);
    let fields = [("name", "x"), ("rules", "{}")];
    let words = "To let editors change assortments:";
    let edited = done("rules", words, "/acts/set-assortment", &fields).expect("a page");
    assert!(edited.contains("Version 1 of x is live"), "{edited}");
}
