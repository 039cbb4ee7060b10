//! Acts of operators in the console: who may do what, what they do, and the audit log.

use serde_json::Value;
use vitrine::browser::acts::ACTS;
use vitrine_store::operators::Role;

use crate::harness::console::{Console, Session, hidden};
use crate::harness::{Reply, Store, gift_card, text};

/// Ten products, so that the guard lets an act on one pass.
pub fn catalog() -> Vec<Value> {
    let others = (1..=8).map(|number| gift_card(&format!("D-{number}")));
    let own = ["A-1", "B-1"].map(gift_card);
    own.into_iter().chain(others).collect()
}

pub fn console() -> Console {
    let console = Console::open(Store::of(&catalog()), &[]);
    for role in Role::ALL {
        console.add(role.as_str(), role.as_str());
    }
    console
}

/// Returns a value as it stands in a page.
fn escaped(value: &str) -> String {
    let escape = |character: char| match character {
        '<' | '>' | '"' | '\'' | '&' => format!("&#{};", u32::from(character)),
        _ => character.to_string(),
    };
    value.chars().map(escape).collect()
}

/// Fills a form in, looks at the plan, and confirms it.
pub fn perform(console: &Console, session: &Session, path: &str, fields: &[(&str, &str)]) -> Reply {
    let plan = console.post_form(path, session, fields);
    let shown = text(&plan.body);
    assert_eq!(plan.status, 200, "{path}: {shown}");
    assert!(shown.contains("What it will do"), "{path}: {shown}");
    let kept = |name: &str| hidden(&shown, name).unwrap_or_default();
    // The plan has all fields of the form, times as they were counted.
    let is_time = |name: &str| ["from", "until"].contains(&name);
    for (name, value) in fields.iter().filter(|(name, _)| !is_time(name)) {
        assert_eq!(kept(name), escaped(value), "{path}: {name}");
    }
    let sent = |name: &str| fields.iter().any(|(own, _)| *own == name);
    // The version of an assortment that was looked at, and the plan, too.
    let added = ["base", "confirm", "from", "once", "plan", "until"];
    let added = added.map(|name| (name, kept(name)));
    let added = (added.iter()).filter(|(name, _)| is_time(name) || !sent(name));
    let own = (fields.iter().copied()).filter(|(name, _)| !is_time(name));
    let confirmed: Vec<(&str, &str)> = own
        .chain(added.map(|(name, value)| (*name, value.as_str())))
        .collect();
    let done = console.post_form(path, session, &confirmed);
    // The page is loaded again.
    let again = console.post_form(path, session, &confirmed);
    assert_eq!(again.status, 409, "{path}");
    done
}

pub fn audit(console: &Console) -> Vec<Value> {
    let entries = console.store.json(&["audit", "--json"]);
    let is_act = |entry: &Value| entry["subject_kind"] != "operator";
    let entries = entries.as_array().expect("a list").iter();
    entries.filter(|entry| is_act(entry)).cloned().collect()
}

fn state_of(console: &Console, code: &str) -> String {
    let product = console.store.json(&["show", code]);
    product["state"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn every_act_is_for_its_roles_and_never_forged() {
    let console = console();
    let audited = audit(&console).len();
    for act in ACTS {
        let path = act.path;
        let is_form = path.starts_with("/acts/");
        assert_eq!(console.get(path, &[]).status, 303, "{path}");
        assert_eq!(console.post(path, &[], "confirm=yes").status, 401, "{path}");
        for role in Role::ALL {
            let what = format!("{path} {role}");
            let session = console.sign_in(role.as_str());
            let may = role >= act.role;
            let page = console.get(path, &session.cookie());
            let expected = match (is_form, may) {
                (true, true) => 200,
                (true, false) => 403,
                (false, _) => 404,
            };
            assert_eq!(page.status, expected, "{what}");
            // Forged: without a token, with another one's, from elsewhere, from nowhere.
            let other = console.sign_in(role.as_str());
            let (own, foreign) = (session.token(), other.token());
            let same = ("Sec-Fetch-Site", "same-origin");
            let [cookie] = session.cookie();
            for (headers, token) in [
                (&[cookie, same][..], ""),
                (&[cookie, same], foreign),
                (&[cookie, ("Sec-Fetch-Site", "cross-site")], own),
                (&[cookie, ("Sec-Fetch-Site", "same-site")], own),
                (&[cookie, same, ("Origin", "https://evil.example")], own),
                (&[cookie, ("Origin", "null")], own),
                (&[cookie], own),
                (&[same], own),
            ] {
                let body = format!("form_token={token}&confirm=yes");
                let reply = console.send_as("127.0.0.1", "POST", path, headers, &body);
                let expected = if headers.len() == 1 && headers[0] == same {
                    401
                } else {
                    403
                };
                assert_eq!(reply.status, expected, "{what} {headers:?} {token}");
            }
            // An empty form does nothing, but is read from those who may.
            let sent = console.post_form(path, &session, &[("confirm", "yes")]);
            let expected = match (is_form, may) {
                (true, true) => 400,
                (_, false) => 403,
                (false, true) => 303,
            };
            assert_eq!(sent.status, expected, "{what}: {}", text(&sent.body));
        }
    }
    assert_eq!(audit(&console).len(), audited);
}

#[test]
fn products_are_disabled_shown_first_and_enabled_again() {
    let console = console();
    let editor = console.sign_in("editor");
    let fields = [
        ("code", "A-*"),
        ("until", "2h"),
        ("note", "the issuer is down"),
    ];
    let revisions = console.store.revisions();
    let plan = console.post_form("/acts/disable", &editor, &fields);
    let shown = text(&plan.body);
    for part in ["It selects 1 product now.", "A-1", "TEMPORARILY_DISABLED"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(
        console.store.revisions(),
        revisions,
        "a plan changes nothing"
    );
    let done = perform(&console, &editor, "/acts/disable", &fields);
    let shown = text(&done.body);
    assert!(shown.contains("Undo: end the override"), "{shown}");
    assert_eq!(state_of(&console, "A-1"), "TEMPORARILY_DISABLED");
    assert_eq!(state_of(&console, "B-1"), "LIVE");
    let list = text(&console.get("/overrides", &editor.cookie()).body);
    for part in [
        "the issuer is down",
        "/acts/end-override?number=1",
        "editor",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let number = hidden(&shown, "number").expect("the override");
    perform(
        &console,
        &editor,
        "/acts/end-override",
        &[("number", &number)],
    );
    assert_eq!(state_of(&console, "A-1"), "LIVE");
    perform(&console, &editor, "/acts/disable", &[("code", "B-1")]);
    perform(&console, &editor, "/acts/enable", &[("code", "B-1")]);
    assert_eq!(state_of(&console, "B-1"), "LIVE");
    let told: Vec<String> = audit(&console)
        .iter()
        .rev()
        .map(|entry| {
            let names = ["by", "action", "subject_kind", "subject"];
            names
                .map(|name| entry[name].as_str().unwrap_or("-"))
                .join(" ")
        })
        .collect();
    assert_eq!(
        told,
        [
            "editor create override 1",
            "editor end override 1",
            "editor create override 2",
            "editor end override 2"
        ]
    );
    let page = text(&console.get("/audit", &editor.cookie()).body);
    assert!(page.contains("the issuer is down"), "{page}");
    let history = console.store.json(&["history", "--json"]);
    assert_eq!(history[0]["by"], "editor");
}

#[test]
fn fields_are_set_for_a_selection_by_filters() {
    let console = console();
    let editor = console.sign_in("editor");
    let fields = [
        ("code", "B-*"),
        ("country", "DE"),
        ("currency", "EUR"),
        ("category", "fashion"),
        ("state", "LIVE"),
        ("orderable", "yes"),
        ("value", "discount_multiplier=0.02\ncategories+=sale"),
        ("frozen", "yes"),
    ];
    let done = perform(&console, &editor, "/acts/set", &fields);
    assert_eq!(done.status, 200);
    let product = console.store.json(&["show", "B-1"]);
    assert_eq!(product["discount_multiplier"], "0.02");
    let hidden = perform(
        &console,
        &editor,
        "/acts/hide",
        &[("code", "B-1"), ("allow", "retire=30%")],
    );
    assert_eq!(hidden.status, 200);
    for (wrong, fields) in [
        ("no products are selected", &[][..]),
        ("isn&#39;t", &[("code", "A B/C")]),
        ("has no zone", &[("code", "A-1"), ("until", "2026-12-01")]),
        (
            "is over",
            &[("code", "A-1"), ("until", "2020-01-01T00:00:00Z")],
        ),
        ("Countries", &[("country", "XX")]),
        ("Raised limits", &[("code", "A-1"), ("allow", "all=1")]),
    ] {
        let reply = console.post_form("/acts/hide", &editor, fields);
        let shown = text(&reply.body);
        assert_eq!(reply.status, 400, "{wrong}: {shown}");
        assert!(shown.contains(wrong), "{wrong}: {shown}");
    }
}

#[test]
fn guard_refuses_an_act_until_its_limit_is_raised() {
    let console = console();
    let editor = console.sign_in("editor");
    let all = [("code", "*"), ("confirm", "yes")];
    let refused = console.post_form("/acts/hide", &editor, &all);
    let shown = text(&refused.body);
    assert_eq!(refused.status, 409, "{shown}");
    assert!(shown.contains("Nothing was changed"), "{shown}");
    assert!(shown.contains("The guard refuses it"), "{shown}");
    assert_eq!(state_of(&console, "A-1"), "LIVE");
    let allowed = [("code", "*"), ("allow", "retire=100%")];
    let done = perform(&console, &editor, "/acts/hide", &allowed);
    assert_eq!(done.status, 200, "{}", text(&done.body));
}

#[test]
fn texts_of_operators_and_catalog_run_no_script() {
    let console = console();
    let hostile = "<script>alert(1)</script>\"'&";
    console.add(hostile, "owner");
    let mut products = catalog();
    products[0]["name"] = hostile.into();
    console.store.load_products(&products);
    let session = console.sign_in(hostile);
    let disable = [("code", "A-1"), ("note", hostile)];
    let mut pages = vec![console.post_form("/acts/disable", &session, &disable)];
    pages.push(perform(&console, &session, "/acts/disable", &disable));
    let key = [("label", hostile), ("note", hostile)];
    pages.push(perform(&console, &session, "/acts/create-key", &key));
    pages.push(console.post_form(
        "/acts/hide",
        &session,
        &[("name", hostile), ("until", hostile)],
    ));
    pages.push(console.sign_in_with(hostile, "a wrong password", hostile));
    for path in [
        "/overrides",
        "/audit",
        "/keys",
        "/acts",
        "/revisions",
        "/catalog",
        "/catalog/A-1",
    ] {
        pages.push(console.get(path, &session.cookie()));
    }
    let query = "code=%3Cscript%3Ealert(1)%3C/script%3E%22%27&note=%22%3E%3Cscript%3E";
    pages.push(console.get(&format!("/acts/disable?{query}"), &session.cookie()));
    let policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
                  form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    for page in pages {
        let shown = text(&page.body);
        assert!(!shown.contains("<script>"), "{shown}");
        assert_eq!(page.header("content-security-policy"), Some(policy));
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    }
}

#[test]
fn products_are_selected_in_the_table_by_editors() {
    let console = console();
    for role in Role::ALL {
        let session = console.sign_in(role.as_str());
        let page = text(&console.get("/catalog", &session.cookie()).body);
        assert!(page.contains("A-1") && page.contains("B-1"), "{role}");
        for part in [
            "<input type=\"checkbox\" name=\"code\" value=\"B-1\"",
            "action=\"/acts/disable\"",
            "formaction=\"/acts/set\"",
        ] {
            assert_eq!(page.contains(part), role >= Role::Editor, "{role}: {part}");
        }
    }
    // As the form of the table is sent.
    let editor = console.sign_in("editor");
    let form = console.get("/acts/disable?code=A-1&code=B-1", &editor.cookie());
    let form = text(&form.body);
    assert!(form.contains("\nA-1\nB-1</textarea>"), "{form}");
}

#[test]
fn plan_that_no_longer_holds_is_shown_again() {
    let console = console();
    let editor = console.sign_in("editor");
    let fields = [("code", "A-*"), ("allow", "retire=30%")];
    let shown = text(&console.post_form("/acts/hide", &editor, &fields).body);
    let [once, plan] = ["once", "plan"].map(|name| hidden(&shown, name).expect("a field"));
    let catalog = [catalog(), vec![gift_card("A-2")]].concat();
    console.store.load_products(&catalog);
    let confirmed = [("confirm", "yes"), ("once", &once), ("plan", &plan)];
    let confirmed = [&fields[..], &confirmed].concat();
    let again = text(&console.post_form("/acts/hide", &editor, &confirmed).body);
    assert!(again.contains("has changed since it was shown"), "{again}");
    assert!(again.contains("A-2"), "{again}");
    assert_eq!(
        console.store.ok(&["overrides", "list", "--json"]).trim(),
        "[]"
    );
    let plan = hidden(&again, "plan").expect("a plan");
    let confirmed = [("confirm", "yes"), ("once", &once), ("plan", &plan)];
    let done = [&fields[..], &confirmed].concat();
    let done = text(&console.post_form("/acts/hide", &editor, &done).body);
    assert!(done.contains("Done"), "{done}");
}

#[test]
fn forms_with_two_values_of_one_or_with_keys_are_refused() {
    let console = console();
    let editor = console.sign_in("editor");
    let twice = [("code", "A-1"), ("note", "a"), ("note", "b")];
    let reply = console.post_form("/acts/disable", &editor, &twice);
    assert_eq!(reply.status, 400);
    let key = console.store.key("reader", &[]);
    let reply = console.post_form("/acts/disable", &editor, &[("code", "A-1"), ("note", &key)]);
    assert_eq!(reply.status, 400);
    assert!(!text(&reply.body).contains(&key));
}
