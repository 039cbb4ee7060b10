//! Texts fetched from the outside addresses that products name.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::{Page, Server, Store, Web, gift_card, text, wait_for};

/// A gift card whose texts are known by these addresses.
pub fn card(code: &str, addresses: &[(&str, String)]) -> Value {
    let mut product = gift_card(code);
    let content = &mut product["gift_card"]["content_resources"];
    for (name, url) in addresses {
        let content = content.as_object_mut().expect("an object");
        content.remove(&format!("{name}_md"));
        content.insert(format!("{name}_markdown_url"), json!(url));
    }
    product
}

/// Fetches from servers on this machine; returns the exit code and the report.
pub fn fetch(store: &Store, options: &[&str]) -> (i32, Value) {
    fetch_public(store, &[&["--allow-private"], options].concat())
}

/// Fetches; returns the exit code and the report.
pub fn fetch_public(store: &Store, options: &[&str]) -> (i32, Value) {
    let mut command = store.command(&[&["texts", "fetch", "--json"], options].concat());
    // Whatever proxy the tests run behind is none of theirs.
    let output = command.env("NO_PROXY", "*").output().expect("vitrine runs");
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", text(&output.stderr)));
    (output.status.code().expect("an exit code"), report)
}

/// Of the addresses: how many were asked, brought a text, were unchanged, failed.
pub fn counts(report: &Value) -> [u64; 4] {
    ["asked", "fetched", "unchanged", "failed"]
        .map(|count| report["addresses"][count].as_u64().expect("a count"))
}

fn content(server: &Server, key: &str, code: &str, form: &str) -> Value {
    let reply = server.get(key, &format!("/v2/product/{code}?content={form}"));
    reply.json()["gift_card"]["content_resources"].clone()
}

fn own_path(markdown: &str) -> String {
    let digest = Sha256::digest(markdown);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("/v2/texts/{hex}.md")
}

const MODIFIED: &str = "Sat, 21 Nov 2026 10:00:00 GMT";

/// Three pages with different validators.
fn web() -> Web {
    Web::of(&[
        ("/d.md", Page::ok("**Bold**").with("ETag", "\"1\"")),
        ("/t.md", Page::ok("Terms").with("Last-Modified", MODIFIED)),
        ("/r.md", Page::ok("Refunds")),
    ])
}

/// Products that name these pages, one of them twice; and one that names none.
fn products(web: &Web) -> [Value; 3] {
    let url = |path| web.url(path);
    [
        card(
            "A",
            &[("description", url("/d.md")), ("terms_buyer", url("/t.md"))],
        ),
        card(
            "B",
            &[
                ("description", url("/d.md")),
                ("refund_policy", url("/r.md")),
            ],
        ),
        gift_card("C"),
    ]
}

#[test]
fn fetched_text_is_served_and_kept_by_the_feed() {
    let web = web();
    let products = products(&web);
    let store = Store::of(&products);
    let key = store.key("reader", &[]);
    let server = store.serve();
    assert_eq!(
        content(&server, &key, "A", "md")["description_md"],
        Value::Null
    );

    let (exit, report) = fetch(&store, &["--note", "the first"]);
    assert_eq!((exit, counts(&report)), (0, [3, 3, 0, 0]), "{report}");
    assert_eq!(
        (&report["revision"]["number"], &report["counts"]["changed"]),
        (&json!(2), &json!(2))
    );
    let requests = web.take_requests();
    assert_eq!(
        requests.len(),
        3,
        "each address is asked once: {requests:?}"
    );
    assert!(requests.iter().all(|head| !head.contains("if-")));
    assert!(store.ok(&["history"]).contains("the first"));
    server.wait_for_loaded(&report);
    for code in ["A", "B"] {
        let own = format!("http://{}{}", server.address, own_path("**Bold**"));
        assert_eq!(
            content(&server, &key, code, "url")["description_markdown_url"],
            own.as_str()
        );
        assert_eq!(
            content(&server, &key, code, "md")["description_md"],
            "**Bold**"
        );
        let html = "<p><strong>Bold</strong></p>\n";
        assert_eq!(
            content(&server, &key, code, "html")["description_html"],
            html
        );
    }
    assert_eq!(server.send("GET", &own_path("Terms"), &[]).body, b"Terms");
    assert_eq!(store.load_products(&products)["revision"], Value::Null);
    store.ok(&["check"]);
}

#[test]
fn refetch_sends_validators() {
    let web = web();
    let store = Store::of(&products(&web));
    fetch(&store, &[]);
    web.take_requests();
    let (exit, report) = fetch(&store, &[]);
    assert_eq!((exit, counts(&report)), (0, [3, 0, 3, 0]), "{report}");
    assert_eq!(
        (&report["revision"], &report["applied"]),
        (&Value::Null, &json!(true))
    );
    let requests = web.take_requests();
    let asked = |path: &str, condition: &str| {
        let head = requests.iter().find(|head| head.contains(path));
        assert!(head.expect("asked").contains(condition), "{requests:?}");
    };
    asked("/d.md", "if-none-match: \"1\"");
    asked(
        "/t.md",
        &format!("if-modified-since: {MODIFIED}").to_ascii_lowercase(),
    );
}

#[test]
fn changed_text_is_one_revision_of_that_field() {
    let web = web();
    let store = Store::of(&products(&web));
    fetch(&store, &[]);
    web.set("/t.md", &[Page::ok("New terms")]);
    let (exit, planned) = fetch(&store, &["--dry-run"]);
    assert_eq!((exit, counts(&planned)), (0, [3, 1, 2, 0]), "{planned}");
    let changed = planned["plan"]["changed"].as_array().expect("changes");
    assert_eq!(changed.len(), 1, "{planned}");
    assert_eq!(changed[0]["code"], "A");
    let fields = changed[0]["fields"].as_array().expect("fields");
    assert_eq!(fields.len(), 1, "{planned}");
    assert_eq!(
        fields[0]["pointer"],
        "/gift_card/content_resources/terms_buyer_markdown_url"
    );
    for revision in [json!(3), Value::Null] {
        let (_, report) = fetch(&store, &[]);
        assert_eq!(report["revision"]["number"], revision, "{report}");
    }
    let shown = store.json(&["show", "A"]);
    let content = &shown["gift_card"]["content_resources"];
    assert_eq!(
        (&content["terms_buyer_md"], &content["description_md"]),
        (&json!("New terms"), &json!("**Bold**"))
    );
}

#[test]
fn changed_validators_alone_make_no_revision() {
    let web = Web::of(&[("/d.md", Page::ok("D").with("ETag", "\"1\""))]);
    let store = Store::of(&[card("A", &[("description", web.url("/d.md"))])]);
    fetch(&store, &[]);
    web.set("/d.md", &[Page::ok("D").with("ETag", "\"2\"")]);
    for expected in ["\"1\"", "\"2\""] {
        web.take_requests();
        let (_, report) = fetch(&store, &[]);
        assert_eq!(
            (&report["revision"], counts(&report)),
            (&Value::Null, [1, 0, 1, 0])
        );
        let requests = web.take_requests();
        assert!(
            requests[0].contains(&format!("if-none-match: {expected}")),
            "{requests:?}"
        );
    }
}

#[test]
fn new_product_with_a_known_address_gets_its_text() {
    let web = Web::of(&[("/d.md", Page::ok("D").with("ETag", "\"1\""))]);
    let store = Store::of(&[card("A", &[("description", web.url("/d.md"))])]);
    fetch(&store, &[]);
    let both = ["A", "B"].map(|code| card(code, &[("description", web.url("/d.md"))]));
    store.load_products(&both);
    let (exit, report) = fetch(&store, &[]);
    assert_eq!((exit, counts(&report)), (0, [1, 0, 1, 0]), "{report}");
    assert_eq!(report["counts"]["changed"], 1, "{report}");
    let shown = store.json(&["show", "B"]);
    assert_eq!(
        shown["gift_card"]["content_resources"]["description_md"],
        "D"
    );
}

#[test]
fn catalog_without_addresses_asks_nobody() {
    let store = Store::of(&[gift_card("A")]);
    let (exit, report) = fetch_public(&store, &[]);
    assert_eq!((exit, counts(&report)), (0, [0, 0, 0, 0]), "{report}");
}

#[test]
fn text_that_was_loaded_is_left_alone() {
    let web = Web::of(&[("/d.md", Page::ok("Theirs"))]);
    let mut loaded = card("A", &[("description", web.url("/d.md"))]);
    loaded["gift_card"]["content_resources"]["description_md"] = json!("Ours");
    let store = Store::of(&[loaded, card("B", &[("description", web.url("/d.md"))])]);
    let (exit, report) = fetch(&store, &[]);
    assert_eq!(
        (exit, &report["counts"]["changed"]),
        (0, &json!(1)),
        "{report}"
    );
    let description = |code: &str| {
        let shown = store.json(&["show", code]);
        shown["gift_card"]["content_resources"]["description_md"].clone()
    };
    assert_eq!(
        (description("A"), description("B")),
        (json!("Ours"), json!("Theirs"))
    );
    // So is one that was loaded over what had been fetched.
    let file = store.path("texts/B/description.md");
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
    std::fs::write(&file, "Ours too").expect("a file");
    store.ok(&["texts", "load", &store.path("texts").display().to_string()]);
    web.take_requests();
    assert_eq!(counts(&fetch(&store, &[]).1), [0, 0, 0, 0]);
    assert_eq!(web.take_requests(), [""; 0]);
    assert_eq!(description("B"), "Ours too");
}

#[test]
fn taken_down_text_is_not_fetched_again() {
    let web = Web::of(&[("/d.md", Page::ok("Bad")), ("/t.md", Page::ok("Fine"))]);
    let addresses = [
        ("description", web.url("/d.md")),
        ("terms_buyer", web.url("/t.md")),
    ];
    let store = Store::of(&[card("A", &addresses)]);
    let key = store.key("reader", &[]);
    let server = store.serve();
    let (_, report) = fetch(&store, &[]);
    server.wait_for_loaded(&report);
    let description = || content(&server, &key, "A", "md")["description_md"].clone();
    assert_eq!(description(), "Bad");
    store.ok(&["texts", "take-down", &own_path("Bad")]);
    wait_for("the text to go", || description().is_null().then_some(()));

    // Neither by a word that changed over there, nor as a text of another address.
    web.set("/d.md", &[Page::ok("Bad, slightly changed")]);
    web.set("/t.md", &[Page::ok("Bad")]);
    let (exit, report) = fetch(&store, &[]);
    assert_eq!((exit, counts(&report)), (0, [1, 1, 0, 0]), "{report}");
    assert_eq!(report["addresses"]["taken_down"], 1, "{report}");
    server.wait_for_loaded(&report);
    let md = content(&server, &key, "A", "md");
    assert_eq!(
        (&md["description_md"], &md["terms_buyer_md"]),
        (&Value::Null, &Value::Null)
    );

    store.ok(&["texts", "put-back", &own_path("Bad")]);
    let (_, report) = fetch(&store, &[]);
    server.wait_for_loaded(&report);
    assert_eq!(description(), "Bad, slightly changed");
}

#[test]
fn product_changed_during_a_fetch_is_kept() {
    let web = Web::of(&[
        ("/old.md", Page::ok("Old").gated()),
        ("/b.md", Page::ok("B")),
    ]);
    let other = card("B", &[("description", web.url("/b.md"))]);
    let products = [
        card("A", &[("description", web.url("/old.md"))]),
        other.clone(),
    ];
    let store = Store::of(&products);
    let report = std::thread::scope(|scope| {
        let fetching = scope.spawn(|| fetch(&store, &[]).1);
        web.wait_for_request();
        // A load isn't held up by a fetch that waits.
        store.load_products(&[card("A", &[("description", web.url("/new.md"))]), other]);
        web.open_gate();
        fetching.join().expect("a report")
    });
    assert_eq!(
        (counts(&report), &report["counts"]["changed"]),
        ([2, 2, 0, 0], &json!(1))
    );
    let shown = store.json(&["show", "A"]);
    let content = &shown["gift_card"]["content_resources"];
    assert_eq!(
        content["description_markdown_url"],
        web.url("/new.md").as_str()
    );
    assert_eq!(content.get("description_md"), None);
}
