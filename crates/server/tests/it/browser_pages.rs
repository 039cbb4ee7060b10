//! The catalog browser's other pages, and what holds of all: whom they answer, what headers they have, and that outside
//! text stays text.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer,
};
use serde_json::Value;
use std::cell::RefCell;

use crate::harness::{KeepAlive, Reply, Server, Store, gift_card, text, wait_for};

/// A server whose browser is looked at.
pub struct Browsed {
    pub store: Store,
    pub server: Server,
}

/// A page: its tags in order, and its text between them.
pub struct Seen {
    pub status: u16,
    pub reply: Reply,
    tags: Vec<Tag>,
    words: String,
}

/// Serves a store with a browser that fetches no images.
pub fn open(store: Store, options: &[&str]) -> Browsed {
    let usual = [
        "--admin-listen",
        "127.0.0.1:0",
        "--browser-images",
        "placeholder",
    ];
    let server = store.serve_with(&[&usual, options].concat());
    Browsed { store, server }
}

impl Browsed {
    /// What a request of a `Host` is answered.
    pub fn ask_as(&self, host: Option<&str>, method: &str, target: &str) -> Reply {
        let host = host
            .map(|host| format!("Host: {host}\r\n"))
            .unwrap_or_default();
        let mut connection: KeepAlive = self.server.keep_alive_admin();
        connection.write(&format!("{method} {target} HTTP/1.1\r\n{host}\r\n"));
        connection.read(method).expect("an answer")
    }

    /// What an address gives.
    pub fn ask(&self, target: &str) -> Seen {
        Seen::of(self.ask_as(Some("127.0.0.1"), "GET", target))
    }

    /// The page at an address, which must be there.
    pub fn page(&self, target: &str) -> Seen {
        let seen = self.ask(target);
        assert_eq!(seen.status, 200, "{target}: {}", seen.text());
        seen
    }
}

#[derive(Default)]
struct Sink(RefCell<(Vec<Tag>, String)>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let (tags, words) = &mut *self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => tags.push(tag),
            Token::CharacterTokens(text) => words.push_str(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Seen {
    fn of(reply: Reply) -> Self {
        let queue = BufferQueue::default();
        queue.push_back(StrTendril::from(text(&reply.body)));
        let tokenizer = Tokenizer::new(Sink::default(), Default::default());
        let _ = tokenizer.feed(&queue);
        tokenizer.end();
        let (tags, words) = tokenizer.sink.0.into_inner();
        Self {
            status: reply.status,
            reply,
            tags,
            words,
        }
    }

    /// What is read.
    pub fn text(&self) -> &str {
        &self.words
    }

    /// The opening tags of a name, each as its attributes.
    pub fn tags(&self, name: &str) -> Vec<Vec<(String, String)>> {
        let opening = self
            .tags
            .iter()
            .filter(|tag| tag.kind == TagKind::StartTag && &*tag.name == name);
        let attributes = |tag: &Tag| {
            let pairs = tag
                .attrs
                .iter()
                .map(|one| (one.name.local.to_string(), one.value.to_string()));
            pairs.collect()
        };
        opening.map(attributes).collect()
    }

    /// Where the link of a relation leads.
    pub fn link(&self, relation: &str) -> Option<String> {
        let links = self.tags("a");
        let mut links = links
            .iter()
            .filter(|link| attribute(link, "rel") == Some(relation));
        links
            .next()
            .and_then(|link| attribute(link, "href"))
            .map(str::to_owned)
    }
}

/// An attribute.
pub fn attribute<'a>(tag: &'a [(String, String)], name: &str) -> Option<&'a str> {
    tag.iter()
        .find(|(own, _)| own == name)
        .map(|(_, value)| value.as_str())
}

/// The codes of the cards, in order.
pub fn codes(page: &Seen) -> Vec<String> {
    let images = page.tags("img");
    let sources = images.iter().filter_map(|image| attribute(image, "src"));
    let codes =
        sources.filter_map(|source| source.strip_prefix("/catalog/")?.strip_suffix("/image"));
    codes.map(str::to_owned).collect()
}

/// Each filter value: its group, itself, its count, and whether it is picked.
pub fn counts(page: &Seen) -> Vec<(String, String, usize, bool)> {
    let body = text(&page.reply.body);
    let inputs = page.tags("input").into_iter();
    let boxes = inputs.filter(|input| attribute(input, "type") == Some("checkbox"));
    let counts = body.split("<span class=\"count\">").skip(1).map(|rest| {
        let digits = rest.split('<').next().unwrap_or_default().replace(',', "");
        digits.parse::<usize>().expect("a count")
    });
    let view = |(input, count): (Vec<(String, String)>, usize)| {
        let own = |name| attribute(&input, name).unwrap_or_default().to_owned();
        (
            own("name"),
            own("value"),
            count,
            attribute(&input, "checked").is_some(),
        )
    };
    boxes.zip(counts).map(view).collect()
}

#[test]
fn pages_answer_only_by_addresses_and_names_that_are_theirs() {
    let browsed = open(
        Store::sample(),
        &["--admin-host", "admin.example,other.example"],
    );
    for target in [
        "/",
        "/catalog",
        "/catalog/PANDANLANE-SG/image",
        "/revisions",
        "/keys",
        "/assets/base.css",
    ] {
        for host in [Some("evil.example"), Some("127.0.0.1.evil.example"), None] {
            // HTTP/1.1 asks for a Host; hyper lets it be missing.
            let reply = browsed.ask_as(host, "GET", target);
            assert_eq!(reply.status, 421, "{target} {host:?}");
            assert!(
                text(&reply.body).contains("--admin-host"),
                "{}",
                text(&reply.body)
            );
            assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        }
        for host in [
            "127.0.0.1:1",
            "[::1]:80",
            "localhost",
            "admin.example:9090",
            "OTHER.example",
        ] {
            let reply = browsed.ask_as(Some(host), "GET", target);
            assert!(
                [200, 302].contains(&reply.status),
                "{target} {host}: {}",
                reply.status
            );
        }
    }
    assert_eq!(
        browsed.ask_as(Some("evil.example"), "GET", "/livez").status,
        200
    );
    let home = browsed.ask_as(Some("127.0.0.1"), "GET", "/");
    assert_eq!(
        (home.status, home.header("location")),
        (302, Some("/catalog"))
    );
}

#[test]
fn every_answer_has_the_headers_that_keep_it_harmless() {
    let browsed = open(Store::sample(), &[]);
    for (target, status) in [
        ("/catalog", 200),
        ("/catalog/PANDANLANE-SG", 200),
        ("/catalog/NONE", 404),
        ("/catalog/%2F", 404),
        ("/catalog/A/B/C", 404),
        ("/revisions", 200),
        ("/revisions/1", 200),
        ("/revisions/99", 404),
        ("/revisions/x", 404),
        ("/keys", 200),
        ("/assets/browser.css", 200),
        ("/assets/none", 404),
        ("/catalog/PANDANLANE-SG/image", 200),
        ("/catalog/NONE/image", 200),
    ] {
        let reply = browsed.ask_as(Some("127.0.0.1"), "GET", target);
        assert_eq!(reply.status, status, "{target}");
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{target}: {policy}"
        );
        assert_eq!(
            reply.header("x-content-type-options"),
            Some("nosniff"),
            "{target}"
        );
        assert_eq!(
            reply.header("referrer-policy"),
            Some("no-referrer"),
            "{target}"
        );
        assert!(reply.header("cache-control").is_some(), "{target}");
        let head = browsed.ask_as(Some("127.0.0.1"), "HEAD", target);
        assert_eq!((head.status, head.body.len()), (status, 0), "{target}");
        for method in ["POST", "DELETE", "PUT"] {
            let refused = browsed.ask_as(Some("127.0.0.1"), method, target);
            assert_eq!(refused.status, 405, "{method} {target}");
        }
    }
    let image = browsed.ask_as(Some("127.0.0.1"), "GET", "/catalog/PANDANLANE-SG/image");
    assert_eq!(image.header("content-type"), Some("image/svg+xml"));
    assert!(
        image
            .header("content-security-policy")
            .is_some_and(|policy| policy.contains("sandbox"))
    );
    assert!(
        text(&image.body).contains("#3a7d44") && text(&image.body).contains(">PH<"),
        "{}",
        text(&image.body)
    );
}

#[test]
fn outside_text_stays_text() {
    let mut hostile = gift_card("HOSTILE");
    let evil = "\"><script>alert(1)</script><img src=x onerror=alert(1)>";
    hostile["name"] = evil.into();
    hostile["categories"] = serde_json::json!([evil, "a&amp;b"]);
    hostile["gift_card"]["expiry"]["date_policy"] = evil.into();
    hostile["gift_card"]["website_url"] = "https://shop.example/?a=1&b='c'".into();
    let markdown = "<script>alert(1)</script>\n\n![a picture](https://far.example/x.png)\n\n[go](javascript:alert(1)) [out](https://far.example/)";
    hostile["gift_card"]["content_resources"]["description_md"] = markdown.into();
    let browsed = open(Store::of(&[hostile]), &[]);
    browsed.store.key(evil, &[]);
    for target in [
        "/catalog",
        "/catalog?q=%22%3E%3Cscript%3E",
        "/catalog/HOSTILE",
        "/revisions/1",
        "/keys",
    ] {
        let page = browsed.page(target);
        assert!(page.tags("script").is_empty(), "{target}");
        for image in page.tags("img") {
            assert!(
                attribute(&image, "onerror").is_none(),
                "{target}: {image:?}"
            );
            let source = attribute(&image, "src").expect("a source");
            assert!(
                source.starts_with('/') && !source.starts_with("//"),
                "{target}: {source}"
            );
        }
        for link in page.tags("a") {
            let href = attribute(&link, "href").unwrap_or_default();
            assert!(
                !href.to_lowercase().starts_with("javascript"),
                "{target}: {href}"
            );
            if href.starts_with("http") {
                let relation = attribute(&link, "rel").unwrap_or_default();
                assert!(
                    relation.contains("noopener") && relation.contains("noreferrer"),
                    "{target}: {link:?}"
                );
            }
        }
        for tag in ["style", "iframe", "base", "object"] {
            assert!(page.tags(tag).is_empty(), "{target}");
        }
        assert!(!text(&page.reply.body).contains(" style="), "{target}");
    }
    let page = browsed.page("/catalog/HOSTILE");
    assert!(
        page.text().contains(evil) && page.text().contains("Picture: a picture"),
        "{}",
        page.text()
    );
}

#[test]
fn a_product_shows_its_json_texts_and_later_kinds() {
    let mut product = gift_card("A");
    product["gift_card"]["content_resources"]["description_md"] =
        "# Hello\n\nSome **bold** words.".into();
    let later: Value = serde_json::json!({
        "name": "Later", "code": "LATER", "currency": "EUR", "state": "LIVE", "is_orderable": true,
        "payout_type": "hologram", "categories": [], "countries_redeemable_in": ["SE"],
        "customer_service": {"phone_number": null, "website_url": null}, "discount_multiplier": "0.01",
        "hologram": {"shine_level": "very", "assets": {"primary_color": "#112233"}},
    });
    let browsed = open(Store::of(&[product, later]), &[]);
    let key = browsed.store.key("client", &[]);
    let page = browsed.page("/catalog/A");
    assert!(text(&page.reply.body).contains("<strong>bold</strong>"));
    let json = text(&page.reply.body);
    let json = json
        .split("<pre")
        .nth(1)
        .and_then(|rest| rest.split("</code>").next())
        .expect("JSON");
    let json = json.split_once("<code>").expect("code").1;
    let json = json
        .replace("&#34;", "\"")
        .replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#39;", "'")
        .replace("&#38;", "&");
    let served = wait_for("the key to be known", || {
        let reply = browsed.server.get(&key, "/v2/product/A");
        (reply.status == 200).then_some(reply)
    });
    assert_eq!(
        serde_json::from_str::<Value>(&json).expect("JSON"),
        served.json()
    );
    let page = browsed.page("/catalog/LATER");
    for shown in ["Hologram", "Shine level", "very", "#112233"] {
        assert!(page.text().contains(shown), "{shown}: {}", page.text());
    }
}

#[test]
fn history_shows_what_each_load_changed() {
    let mut product = gift_card("A");
    let browsed = open(Store::of(&[product.clone(), gift_card("GONE")]), &[]);
    product["name"] = "Renamed <b>".into();
    product["countries_redeemable_in"] = serde_json::json!(["DE", "SE"]);
    let report = browsed.store.load_products(&[product, gift_card("NEW")]);
    browsed.server.wait_for_loaded(&report);
    let page = browsed.page("/catalog/A");
    let (del, ins) = (page.tags("del").len(), page.tags("ins").len());
    assert_eq!((del, ins), (1, 2), "{}", page.text());
    for shown in [
        "Product A",
        "Renamed <b>",
        "Countries redeemable in",
        "SE",
        "Created",
        "Changed",
    ] {
        assert!(page.text().contains(shown), "{shown}: {}", page.text());
    }
    let gone = browsed.ask("/catalog/GONE");
    assert_eq!(gone.status, 404);
    assert!(
        gone.text().contains("Retired") && gone.text().contains("Created"),
        "{}",
        gone.text()
    );
    let revision = browsed.page("/revisions/2");
    for shown in [
        "1 created",
        "1 changed",
        "1 retired",
        "GONE",
        "NEW",
        "Renamed <b>",
    ] {
        assert!(
            revision.text().contains(shown),
            "{shown}: {}",
            revision.text()
        );
    }
    let list = browsed.page("/revisions");
    assert!(
        list.text().contains("live") && list.link("next").is_none(),
        "{}",
        list.text()
    );
}

#[test]
fn a_revision_is_paged_by_product() {
    let products: Vec<Value> = (0..60)
        .map(|number| gift_card(&format!("P-{number:02}")))
        .collect();
    let browsed = open(Store::of(&products), &[]);
    let mut target = Some("/revisions/1".to_owned());
    let mut seen = Vec::new();
    while let Some(next) = target {
        let page = browsed.page(&next);
        let links = page.tags("a");
        let links = links.iter().filter_map(|link| attribute(link, "href"));
        let named = links.filter_map(|href| {
            href.strip_prefix("/catalog/")?
                .strip_suffix("#history")
                .map(str::to_owned)
        });
        seen.extend(named);
        target = page.link("next");
    }
    let codes: Vec<&str> = products
        .iter()
        .filter_map(|product| product["code"].as_str())
        .collect();
    assert_eq!(seen, codes);
}

#[test]
fn keys_are_shown_without_their_secrets() {
    let store = Store::sample();
    let live = store.key("a partner", &["--quota", "100/60"]);
    let test = store.key("tests", &["--test"]);
    store.key("old", &[]);
    store.ok(&["keys", "revoke", "old"]);
    let browsed = open(store, &[]);
    let page = browsed.page("/keys");
    let body = text(&page.reply.body);
    for key in [&live, &test] {
        let (prefix, secret) = key.split_once('.').expect("a key");
        assert!(body.contains(prefix) && !body.contains(secret), "{body}");
    }
    for shown in ["a partner", "100/60", "Test", "Revoked", "Active", "never"] {
        assert!(page.text().contains(shown), "{shown}: {}", page.text());
    }
    // No long stretch of hexadecimal digits, as hashes are.
    let longest = body
        .split(|letter: char| !letter.is_ascii_hexdigit())
        .map(str::len)
        .max();
    assert!(longest < Some(32), "{body}");
}

#[test]
fn beyond_loopback_the_browser_is_shown_where_that_is_said() {
    let store = Store::sample();
    let usual = ["--admin-listen", "0.0.0.0:0", "--admin-beyond-loopback"];
    let browsed = Browsed {
        server: store.serve_with(&usual),
        store,
    };
    let reply = browsed.ask_as(Some("127.0.0.1"), "GET", "/catalog");
    assert_eq!(reply.status, 404);
    assert!(text(&reply.body).contains("--browser-beyond-loopback"));
    assert_eq!(
        browsed.ask_as(Some("127.0.0.1"), "GET", "/livez").status,
        200
    );
    let server = browsed
        .store
        .serve_with(&[&usual[..], &["--browser-beyond-loopback"]].concat());
    let browsed = Browsed { server, ..browsed };
    assert_eq!(
        browsed.ask_as(Some("127.0.0.1"), "GET", "/catalog").status,
        200
    );
}

#[test]
fn while_nothing_is_loaded_or_the_store_is_away_pages_say_so() {
    let browsed = open(Store::new(), &[]);
    let page = browsed.ask("/catalog");
    assert_eq!(page.status, 503);
    assert!(
        page.text().contains("There is no catalog yet"),
        "{}",
        page.text()
    );
    assert!(
        browsed
            .page("/revisions")
            .text()
            .contains("Nothing was loaded yet")
    );
    assert!(
        browsed
            .page("/keys")
            .text()
            .contains("There are no keys yet")
    );
    if !crate::harness::are_files("a store that is away") {
        return;
    }
    let browsed = open(Store::sample(), &[]);
    assert_eq!(browsed.page("/catalog").status, 200);
    std::fs::rename(
        browsed.store.path("vitrine.db"),
        browsed.store.path("away.db"),
    )
    .expect("moved");
    assert_eq!(browsed.page("/catalog").status, 200);
    let page = browsed.page("/catalog/PANDANLANE-SG");
    assert!(page.text().contains("can’t be read now"), "{}", page.text());
    for target in ["/revisions", "/revisions/1", "/keys"] {
        let page = browsed.ask(target);
        assert_eq!(page.status, 503, "{target}");
        assert!(
            page.text().contains("The store can't be read"),
            "{}",
            page.text()
        );
    }
}
