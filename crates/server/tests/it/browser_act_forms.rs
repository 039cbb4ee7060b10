//! Forms of acts in the console: what fits into them, how they are changed, and where their faults stand; and the page of all acts.

use jiff::Timestamp;

use crate::browser_acts::{catalog, console};
use crate::harness::console::{Console, hidden};
use crate::harness::{Store, text, wait_for};

/// Maximum length of what is filled in, as docs/operate/console.md says.
const MAX_BYTES: usize = 256 << 10;

/// Returns codes and patterns, one a line as browsers send them, and a note beside which the form has so many bytes.
fn codes_and_note(bytes: usize) -> (String, String) {
    let used = "&code=&note=".len();
    let line = "%0D%0ACODE-00000000".len();
    let lines = (bytes - used - "A-1".len() - 1) / line;
    let codes = (0..lines).map(|number| format!("CODE-{number:08}"));
    let codes: Vec<String> = ["A-1".to_owned()].into_iter().chain(codes).collect();
    let rest = bytes - used - "A-1".len() - lines * line;
    (codes.join("\r\n"), "n".repeat(rest))
}

#[test]
fn longest_form_can_be_confirmed_and_changed() {
    let console = console();
    let editor = console.sign_in("editor");
    let (codes, note) = codes_and_note(MAX_BYTES);
    let fields = [("code", codes.as_str()), ("note", note.as_str())];
    let timed = [&fields[..], &[("until", "2h")]].concat();
    let plan = console.post_form("/acts/disable", &editor, &timed);
    let shown = text(&plan.body);
    assert_eq!(plan.status, 200, "{}", &shown[..200]);
    // The page posts what it was given, whichever of its buttons is pressed.
    let carried = hidden(&shown, "code").expect("codes");
    assert_eq!(carried, codes);
    assert!(!shown.contains("method=\"get\" action=\"/acts/disable\""));
    let change = [&fields[..], &[("change", "yes")]].concat();
    let form = console.post_form("/acts/disable", &editor, &change);
    let form_shown = text(&form.body);
    assert_eq!(form.status, 200);
    assert!(form_shown.contains("CODE-00000000") && form_shown.contains("</textarea>"));
    assert!(form_shown.contains("Show what it will do"));
    let added = ["confirm", "once", "plan", "until"];
    let added = added.map(|name| (name, hidden(&shown, name).expect("a field")));
    let added = added.each_ref().map(|(name, value)| (*name, &**value));
    let confirmed = [&fields[..], &added].concat();
    let done = console.post_form("/acts/disable", &editor, &confirmed);
    assert_eq!(done.status, 200);
    assert!(text(&done.body).contains("Undo: end the override"));
}

#[test]
fn form_too_long_to_be_confirmed_is_refused_at_once() {
    let console = console();
    let editor = console.sign_in("editor");
    let (codes, note) = codes_and_note(MAX_BYTES + 1);
    let fields = [("code", codes.as_str()), ("note", note.as_str())];
    let refused = console.post_form("/acts/disable", &editor, &fields);
    let shown = text(&refused.body);
    assert_eq!(refused.status, 413, "{shown}");
    assert!(shown.contains("This form is too long"), "{shown}");
    // Browsers would encode the commas.
    let raw = format!(
        "form_token={}&code=A-1{}",
        editor.token(),
        ",B".repeat(80_000)
    );
    let refused = console.post("/acts/disable", &editor.cookie(), &raw);
    assert_eq!(refused.status, 413);
    // So would be the rules of an assortment.
    let rules = format!("\"{}\"", "a".repeat((2 << 20) - 20));
    let fields = [("name", "long"), ("rules", rules.as_str())];
    let refused = console.post_form("/acts/set-assortment", &editor, &fields);
    assert_eq!(refused.status, 413);
}

#[test]
fn forms_are_changed_by_those_who_may_only() {
    let console = console();
    let editor = console.sign_in("editor");
    let viewer = console.sign_in("viewer");
    let change = [("code", "A-1"), ("change", "yes")];
    assert_eq!(
        console.post_form("/acts/hide", &viewer, &change).status,
        403
    );
    let forged = console.post("/acts/hide", &editor.cookie(), "code=A-1&change=yes");
    assert_eq!(forged.status, 403);
    // A change is never a confirmation.
    let both = [&change[..], &[("confirm", "yes")]].concat();
    let form = console.post_form("/acts/hide", &editor, &both);
    assert!(text(&form.body).contains("Show what it will do"));
    assert_eq!(
        console.store.json(&["overrides", "list", "--json"]),
        serde_json::json!([])
    );
}

#[test]
fn categories_with_commas_are_selected() {
    let mut products = catalog();
    products[0]["categories"] = serde_json::json!(["food, drink & more", "cards"]);
    let console = Console::open(Store::of(&products), &[]);
    console.add("editor", "editor");
    let editor = console.sign_in("editor");
    let query = "category=food%2C+drink+%26+more";
    let page = text(
        &console
            .get(&format!("/catalog?{query}"), &editor.cookie())
            .body,
    );
    assert!(page.contains("A-1") && !page.contains("B-1"), "{page}");
    assert!(page.contains("\"/acts/disable?category=food"), "{page}");
    let form = text(
        &console
            .get(&format!("/acts/disable?{query}"), &editor.cookie())
            .body,
    );
    assert!(form.contains("food, drink &#38; more</textarea>"), "{form}");
    let fields = [("category", "food, drink & more\r\nnone of these")];
    let plan = text(&console.post_form("/acts/disable", &editor, &fields).body);
    assert!(plan.contains("It selects 1 product now."), "{plan}");
    let [once, plan] = ["once", "plan"].map(|name| hidden(&plan, name).expect("a field"));
    let confirmed = [("confirm", "yes"), ("once", &*once), ("plan", &*plan)];
    let confirmed = [&fields[..], &confirmed].concat();
    let done = console.post_form("/acts/disable", &editor, &confirmed);
    assert_eq!(done.status, 200, "{}", text(&done.body));
    for (code, state) in [("A-1", "TEMPORARILY_DISABLED"), ("B-1", "LIVE")] {
        assert_eq!(console.store.json(&["show", code])["state"], state);
    }
}

#[test]
fn spans_are_confirmed_as_the_times_that_were_shown() {
    let console = console();
    let editor = console.sign_in("editor");
    let path = "/acts/disable";
    for (from, until) in [("2h", "4h"), ("", "1s")] {
        let fields = [("code", "A-1"), ("from", from), ("until", until)];
        let shown = text(&console.post_form(path, &editor, &fields).body);
        // The form that is changed has what was typed.
        let typed = format!("name=\"until\" value=\"{until}\"");
        assert_eq!(shown.matches(&typed).count(), 1, "{shown}");
        let added = ["code", "confirm", "from", "once", "plan", "until"];
        let added = added.map(|name| (name, hidden(&shown, name).unwrap_or_default()));
        let confirmed = added.each_ref().map(|(name, value)| (*name, &**value));
        let time = |name: &str| -> Timestamp {
            let time = hidden(&shown, name).expect("a time");
            time.parse().expect("a time")
        };
        let until = time("until");
        let is_short = from.is_empty();
        wait_for("the end of the short one", || {
            (!is_short || Timestamp::now() > until).then_some(())
        });
        let done = console.post_form(path, &editor, &confirmed);
        let page = text(&done.body);
        let all = console
            .store
            .json(&["overrides", "list", "--all", "--json"]);
        let all = all.as_array().expect("a list");
        assert_eq!(all.len(), 1, "{page}");
        if is_short {
            assert_eq!(done.status, 400, "{page}");
            assert!(page.contains("is over; the store’s clock says"), "{page}");
            continue;
        }
        let stored = |name: &str| -> Timestamp {
            let time = all[0][name].as_str().expect("a time");
            time.parse().expect("a time")
        };
        for name in ["from", "until"] {
            let shown = time(name).as_millisecond();
            assert_eq!(stored(name).as_millisecond(), shown, "{name}: {page}");
        }
    }
}

#[test]
fn faults_stand_beside_their_fields() {
    let console = console();
    let owner = console.sign_in("owner");
    for (path, fields, field) in [
        ("disable", &[][..], "code"),
        ("disable", &[("code", "A-1"), ("until", "soon")], "until"),
        ("hide", &[("country", "XX")], "country"),
        ("set", &[("code", "A-1"), ("value", "price=1")], "value"),
        ("end-override", &[("number", "x")], "number"),
        ("create-key", &[("label", "a"), ("quota", "x")], "quota"),
        ("revoke-key", &[("key", "vitrine_none")], "key"),
        ("roll-back", &[("revision", "99")], "revision"),
        (
            "add-operator",
            &[("name", "ines"), ("role", "chief"), ("sign_in", "proxy")],
            "role",
        ),
        (
            "set-operator",
            &[("name", "nobody"), ("role", "owner")],
            "name",
        ),
        ("remove-operator", &[("name", "")], "name"),
        ("test-webhook", &[("endpoint", "wh_none")], "endpoint"),
    ] {
        let reply = console.post_form(&format!("/acts/{path}"), &owner, fields);
        let shown = text(&reply.body);
        assert_eq!(reply.status, 400, "{path}: {shown}");
        let marked =
            format!("aria-describedby=\"{field}-help {field}-fault\" aria-invalid=\"true\"");
        assert!(shown.contains(&marked), "{path} {field}: {shown}");
        assert!(shown.contains(&format!("id=\"{field}-fault\"")), "{shown}");
        assert_eq!(shown.matches("role=\"alert\"").count(), 1, "{shown}");
    }
    // This one is about no field.
    let fields = [("number", "7")];
    let shown = text(
        &console
            .post_form("/acts/end-override", &owner, &fields)
            .body,
    );
    assert!(shown.contains("there is no override 7"), "{shown}");
    assert!(!shown.contains("aria-invalid"), "{shown}");
}

#[test]
fn all_faults_of_a_form_are_reported() {
    let console = console();
    let owner = console.sign_in("owner");
    for (path, fields, faulty) in [
        (
            "create-key",
            &[("quota", "x"), ("expires", "soon")][..],
            &["label", "expires", "quota"][..],
        ),
        (
            "set-key",
            &[("key", "vitrine_none"), ("label", "a"), ("quota", "x")],
            &["key", "quota"],
        ),
        (
            "rotate-key",
            &[("key", "vitrine_none"), ("overlap", "x")],
            &["key", "overlap"],
        ),
        (
            "set",
            &[
                ("country", "XX"),
                ("currency", "EURO"),
                ("value", "price=1"),
                ("until", "soon"),
            ],
            &["country", "currency", "value", "until"],
        ),
        (
            "enable",
            &[("country", "XX"), ("state", "OLD")],
            &["country", "state"],
        ),
        (
            "add-operator",
            &[("name", ""), ("role", "chief"), ("sign_in", "proxy")],
            &["name", "role"],
        ),
        (
            "set-operator",
            &[("name", "nobody"), ("role", "chief")],
            &["name", "role"],
        ),
        (
            "replay-webhook",
            &[("endpoint", "wh_none"), ("since", "x")],
            &["endpoint", "since"],
        ),
        (
            "roll-back-assortment",
            &[("assortment", "A B"), ("version", "x")],
            &["assortment", "version"],
        ),
    ] {
        let reply = console.post_form(&format!("/acts/{path}"), &owner, fields);
        let shown = text(&reply.body);
        assert_eq!(reply.status, 400, "{path}: {shown}");
        for field in faulty {
            assert!(
                shown.contains(&format!("id=\"{field}-fault\"")),
                "{path} {field}: {shown}"
            );
        }
        let alerts = shown.matches("role=\"alert\"").count();
        assert_eq!(alerts, faulty.len(), "{path}: {shown}");
        assert_eq!(shown.matches(" autofocus").count(), 1, "{path}: {shown}");
    }
}

#[test]
fn plan_of_a_new_key_has_its_quota_and_expiry() {
    let console = console();
    let owner = console.sign_in("owner");
    let fields = [
        ("label", "partner"),
        ("quota", "600/60"),
        ("expires", "2099-01-31"),
        ("api_version", "2026-12-01"),
        ("test", "yes"),
    ];
    let plan = text(&console.post_form("/acts/create-key", &owner, &fields).body);
    for part in ["A test key", "600/60", "2099", "2026-12-01."] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    let plan = console.post_form("/acts/create-key", &owner, &[("label", "partner")]);
    let plan = text(&plan.body);
    for part in ["No quota.", "It doesn’t expire."] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
}

#[test]
fn rollback_is_offered_where_it_can_be_done() {
    let console = console();
    for number in 1..=2 {
        console
            .store
            .load_products(&[crate::harness::gift_card(&format!("NEW-{number}"))]);
    }
    let owner = console.sign_in("owner");
    let is_offered = |number: u64| {
        let page = console.get(&format!("/revisions/{number}"), &owner.cookie());
        assert_eq!(page.status, 200, "{number}");
        text(&page.body).contains("/acts/roll-back?")
    };
    assert_eq!([1, 2, 3].map(is_offered), [true, true, false]);
    console.store.ok(&["prune", "--keep", "2", "--yes"]);
    assert_eq!([1, 2, 3].map(is_offered), [false, true, false]);
}

#[test]
fn selection_has_a_bounded_number_of_patterns() {
    let console = console();
    let editor = console.sign_in("editor");
    let patterns = |count: usize| (0..count).map(|number| format!("{number}-* "));
    for (codes, status, words) in [
        (
            patterns(10_000).collect::<String>(),
            400,
            "10000 patterns, and the limit is 100",
        ),
        (patterns(99).chain(["A-*".to_owned()]).collect(), 200, "A-1"),
        (
            (0..9_000).map(|number| format!("A-{number} ")).collect(),
            200,
            "A-1",
        ),
    ] {
        let reply = console.post_form("/acts/disable", &editor, &[("code", &codes)]);
        let shown = text(&reply.body);
        assert_eq!(reply.status, status, "{shown}");
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let many: Vec<String> = (0..101).map(|number| format!("{number}-*")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let output = console
        .store
        .run(&[&["disable", "--dry-run"], &many[..]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("101 patterns, and the limit is 100"));
}

#[test]
fn acts_are_listed_by_their_subjects() {
    let console = console();
    for (role, subjects) in [
        ("viewer", &["Nothing to do for you"][..]),
        ("editor", &["Products", "Overrides", "Assortments"]),
        (
            "owner",
            &[
                "Products",
                "Overrides",
                "Assortments",
                "Keys",
                "Catalog",
                "Webhooks",
                "Operators",
            ],
        ),
    ] {
        let session = console.sign_in(role);
        let shown = text(&console.get("/acts", &session.cookie()).body);
        let heads = shown.split("<h2>").skip(1);
        let heads: Vec<_> = heads.filter_map(|rest| rest.split('<').next()).collect();
        assert_eq!(heads, subjects, "{role}");
        assert!(!shown.contains("href=\"/sign-out"), "{shown}");
    }
}
