//! Texts: their addresses, their forms in a product, and taking them down.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use vitrine_store::Publication as _;
use vitrine_store::record::RevisionNote;
use vitrine_store::{IfMissing, open};

use crate::harness::{Headers, Reply, Server, Store, TEXT_NAMES, are_files, gift_card, wait_for};

const FORMS: [(&str, &str); 3] = [("url", "_markdown_url"), ("md", "_md"), ("html", "_html")];

const OUTSIDE: &str = "https://brand.example/terms.md?v=1";

/// The path at which the service has a text.
fn own_path(markdown: &str) -> String {
    let digest = Sha256::digest(markdown);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("/v2/texts/{hex}.md")
}

/// A gift card with some of its texts set.
fn with_texts(code: &str, texts: &[(&str, Value)]) -> Value {
    let mut product = gift_card(code);
    for (name, value) in texts {
        product["gift_card"]["content_resources"][*name] = value.clone();
    }
    product
}

fn content(server: &Server, key: &str, code: &str, form: &str) -> Value {
    let reply = server.get(key, &format!("/v2/product/{code}?content={form}"));
    assert_eq!(reply.status, 200, "{code} {form}");
    reply.json()["gift_card"]["content_resources"].clone()
}

fn anonymous(server: &Server, path: &str) -> Reply {
    server.send("GET", path, &[])
}

#[test]
fn text_address_comes_from_the_public_url() {
    let markdown = "# Terms";
    let store = Store::of(&[with_texts("A", &[("terms_buyer_md", json!(markdown))])]);
    let key = store.key("partner", &[]);
    for (public_url, base) in [
        ("https://shop.example", "https://shop.example"),
        (
            "https://shop.example:8443/catalog/",
            "https://shop.example:8443/catalog",
        ),
    ] {
        let server = store.serve_as(public_url);
        let expected = format!("{base}{}", own_path(markdown));
        for headers in [
            &[("X-Api-Key", key.as_str())] as Headers<'_>,
            &[
                ("X-Api-Key", key.as_str()),
                ("X-Forwarded-Host", "evil.example"),
                ("X-Forwarded-Proto", "gopher"),
                ("Forwarded", "host=evil.example"),
            ],
        ] {
            let product = server.send("GET", "/v2/product/A", headers).json();
            let list = server.send("GET", "/v2/product", headers).json();
            for product in [&product, &list["catalog"][0]] {
                let url = &product["gift_card"]["content_resources"]["terms_buyer_markdown_url"];
                assert_eq!(*url, expected.as_str());
            }
        }
    }
    let server = store.serve();
    let url = content(&server, &key, "A", "url")["terms_buyer_markdown_url"].clone();
    let expected = format!("http://{}{}", server.address, own_path(markdown));
    assert_eq!(url, expected.as_str(), "by default where it listens");
}

#[test]
fn text_is_served_to_anybody_byte_for_byte() {
    let texts = [
        "# Terms\n\nPlain.",
        "Line ends\r\nof all\rkinds\n",
        "  blanks around \n\t",
        "Żółw 🎁 \u{202e} <script>alert(1)</script>",
        "\u{feff}a mark of byte order",
    ];
    let product = |(index, text): (usize, &&str)| {
        with_texts(&format!("P{index}"), &[("description_md", json!(text))])
    };
    let store = Store::of(&texts.iter().enumerate().map(product).collect::<Vec<_>>());
    let server = store.serve();
    for text in texts {
        let path = own_path(text);
        let reply = anonymous(&server, &path);
        assert_eq!(reply.status, 200, "{text:?}");
        assert_eq!(reply.body, text.as_bytes());
        let header = |name| reply.header(name).unwrap_or_default();
        assert_eq!(header("content-type"), "text/markdown; charset=utf-8");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let caching: Vec<&str> = header("cache-control").split(", ").collect();
        assert!(
            caching.contains(&"public") && caching.contains(&"immutable"),
            "{caching:?}"
        );
        assert!(!caching.contains(&"private") && !caching.contains(&"no-store"));
        let head = server.send("HEAD", &path, &[]);
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(
            head.header("content-length"),
            reply.header("content-length")
        );
        // A key does no harm, not even a wrong one.
        assert_eq!(server.get("wrong.key", &path).body, text.as_bytes());
    }
}

#[test]
fn replaced_text_is_not_served() {
    if !are_files("a text that became another is never served") {
        return;
    }
    // So short that it is packed as it is.
    let markdown = "Pays 10.";
    let store = Store::of(&[with_texts("A", &[("terms_buyer_md", json!(markdown))])]);
    let key = store.key("partner", &[]);
    let served = |server: &Server| {
        let targets = ["/v2/product/A?content=md", "/v2/product/A?content=html"];
        let [md, html] = targets.map(|target| server.get(&key, target).status);
        (anonymous(server, &own_path(markdown)).status, md, html)
    };
    assert_eq!(served(&store.serve()), (200, 200, 200));
    let server = store.serve_damaged(markdown.as_bytes(), b"Pays 99.");
    assert_eq!(served(&server), (500, 500, 500));
    wait_for("the damage to be logged", || {
        server.stderr().contains("a text is damaged").then_some(())
    });
    assert_eq!(server.get(&key, "/v2/product/A").status, 200);
}

#[test]
fn text_retired_by_a_clock_behind_is_served_on() {
    let markdown = "# Terms";
    let with_text = with_texts("A", &[("terms_buyer_md", json!(markdown))]);
    for days_behind in [30, -30] {
        let store = Store::of(&[with_text.clone(), gift_card("B")]);
        let key = store.key("partner", &[]);
        let server = store.serve();
        // What a load does on a machine whose clock is wrong.
        let opened = open(&store.url(), IfMissing::Refuse).expect("the store");
        let mut publication = opened.publish().expect("a publish");
        publication
            .retire(&"A".parse().expect("a code"))
            .expect("it is live");
        let then = Timestamp::now() - SignedDuration::from_hours(24 * days_behind);
        let note = RevisionNote::default();
        publication.commit(then, &note).expect("a commit");
        wait_for("the product to go", || {
            (server.get(&key, "/v2/product/A").status == 404).then_some(())
        });
        let text = anonymous(&server, &own_path(markdown));
        assert_eq!(text.status, 200, "{days_behind} days behind");
    }
}

#[test]
fn unknown_text_address_is_not_found() {
    let markdown = "Terms";
    let store = Store::of(&[with_texts("A", &[("description_md", json!(markdown))])]);
    let server = store.serve();
    let good = own_path(markdown);
    assert_eq!(anonymous(&server, &good).status, 200);
    for path in [
        own_path("Other terms"),
        good.trim_end_matches(".md").to_owned(),
        good.replace(".md", ".html"),
        good.replace(".md", ".md.md"),
        format!("{good}/"),
        good.replace("texts/", "texts//"),
        "/v2/texts/.md".to_owned(),
        "/v2/texts/..%2f..%2fetc%2fpasswd.md".to_owned(),
        format!("/v2/texts/{}.md", "g".repeat(64)),
    ] {
        let reply = anonymous(&server, &path);
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (404, "not_found"),
            "{path}"
        );
    }
    let reply = server.send("POST", &good, &[]);
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (405, "method_not_allowed")
    );
}

#[test]
fn each_form_has_its_own_names_for_every_payout_type() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let mut connection = server.keep_alive();
    let list = connection.get(&key, "/v2/product").expect("a list").json();
    let mut payout_types = Vec::new();
    for product in list["catalog"].as_array().expect("a list") {
        let payout_type = product["payout_type"].as_str().expect("a type");
        let code = product["code"].as_str().expect("a code");
        for (form, suffix) in FORMS {
            let target = format!("/v2/product/{code}?content={form}");
            let answer = connection.get(&key, &target).expect("an answer").json();
            let content = answer[payout_type]["content_resources"].as_object();
            let content = content.unwrap_or_else(|| panic!("{code} has texts"));
            let mut names: Vec<&str> = content.keys().map(String::as_str).collect();
            let mut expected = TEXT_NAMES.map(|name| format!("{name}{suffix}")).to_vec();
            expected.push("locale".to_owned());
            names.sort_unstable();
            expected.sort();
            assert_eq!(names, expected, "{code} {form}");
            assert!(content["locale"].is_string(), "{code} {form}");
            if form == "url" {
                assert_eq!(answer, *product, "the default is `url`, in lists too");
            }
            // Nothing beside the texts depends on their form.
            let without_texts = |mut product: Value| {
                product[payout_type]["content_resources"] = Value::Null;
                product
            };
            assert_eq!(
                without_texts(answer.clone()),
                without_texts(product.clone())
            );
        }
        payout_types.push(payout_type.to_owned());
    }
    for payout_type in ["gift_card", "subscription", "payment", "prepaid_card"] {
        assert!(
            payout_types.iter().any(|found| found == payout_type),
            "{payout_type}"
        );
    }
}

#[test]
fn each_form_shows_what_is_known_of_a_text() {
    let markdown = "**Bold** & [link](https://brand.example/)";
    let both = "Of *both*";
    let store = Store::of(&[with_texts(
        "A",
        &[
            ("description_md", json!(markdown)),
            ("terms_buyer_markdown_url", json!(OUTSIDE)),
            ("disclaimer_md", json!(both)),
            ("disclaimer_markdown_url", json!(OUTSIDE)),
            ("refund_policy_md", json!("")),
        ],
    )]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    let own = |markdown| json!(format!("http://{}{}", server.address, own_path(markdown)));
    let html = "<p><strong>Bold</strong> &amp; <a href=\"https://brand.example/\" \
                rel=\"nofollow noopener noreferrer\">link</a></p>\n";
    let texts = [
        ("description", own(markdown), json!(markdown), json!(html)),
        ("terms_buyer", json!(OUTSIDE), Value::Null, Value::Null),
        (
            "disclaimer",
            own(both),
            json!(both),
            json!("<p>Of <em>both</em></p>\n"),
        ),
        ("refund_policy", Value::Null, Value::Null, Value::Null),
        ("reissuance_policy", Value::Null, Value::Null, Value::Null),
    ];
    for (name, url, md, html) in texts {
        for ((form, suffix), expected) in FORMS.iter().zip([url, md, html]) {
            let content = content(&server, &key, "A", form);
            assert_eq!(
                content[format!("{name}{suffix}")],
                expected,
                "{name} {form}"
            );
        }
    }
}

#[test]
fn unnamed_text_is_served_a_day_longer() {
    let store = Store::of(&[with_texts("A", &[("description_md", json!("Old"))])]);
    let key = store.key("partner", &[]);
    let server = store.serve();
    assert_eq!(anonymous(&server, &own_path("Old")).status, 200);
    let report = store.load_products(&[with_texts("A", &[("description_md", json!("New"))])]);
    server.wait_for_loaded(&report);
    assert_eq!(content(&server, &key, "A", "md")["description_md"], "New");
    // Another process, started later, knows it too.
    for server in [server, store.serve()] {
        for text in ["Old", "New"] {
            assert_eq!(anonymous(&server, &own_path(text)).body, text.as_bytes());
        }
    }
}

/// Returns the status of a text's address and each form of its product's texts.
fn seen(server: &Server, key: &str, text: &str) -> (u16, [Value; 3]) {
    let forms = FORMS.map(|(form, suffix)| {
        content(server, key, "A", form)[format!("description{suffix}")].clone()
    });
    (anonymous(server, &own_path(text)).status, forms)
}

#[test]
fn text_taken_down_is_gone_until_it_is_put_back() {
    let text = "Forbidden words";
    let described = [
        ("description_md", json!(text)),
        ("disclaimer_md", json!("Fine")),
    ];
    let products = [with_texts("A", &described)];
    let store = Store::of(&products);
    let key = store.key("partner", &[]);
    let server = store.serve();
    let before = seen(&server, &key, text);
    assert_eq!(before.0, 200);
    assert!(before.1.iter().all(Value::is_string));
    let gone = (404, [Value::Null, Value::Null, Value::Null]);
    let digest = own_path(text)
        .trim_start_matches("/v2/texts/")
        .trim_end_matches(".md")
        .to_owned();
    let address = format!("https://shop.example{}", own_path(text));
    for name in [digest, address] {
        store.ok(&["texts", "take-down", &name]);
        wait_for("the text to go", || {
            (seen(&server, &key, text) == gone).then_some(())
        });
        let reply = anonymous(&server, &own_path(text));
        assert_eq!(reply.error(), "not_found");
        let list = server.get(&key, "/v2/product").json();
        let content = &list["catalog"][0]["gift_card"]["content_resources"];
        assert_eq!(content["description_markdown_url"], Value::Null);
        assert_eq!(anonymous(&server, &own_path("Fine")).status, 200);
        assert_eq!(seen(&store.serve(), &key, text), gone);

        store.ok(&["texts", "put-back", &name]);
        wait_for("the text to come back", || {
            (seen(&server, &key, text) == before).then_some(())
        });
    }
    assert!(
        !store
            .run(&["texts", "take-down", &"0".repeat(64)])
            .status
            .success()
    );
    assert!(
        !store
            .run(&["texts", "take-down", "nonsense"])
            .status
            .success()
    );
}
