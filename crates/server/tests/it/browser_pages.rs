//! Rules for all pages of the catalog browser: the hosts they answer, their headers, and that outside text
//! stays text. And the contents of a product's page.

use serde_json::Value;

use crate::harness::browsed::{Browsed, attribute, open};
use crate::harness::{Store, gift_card, text};

#[test]
fn pages_answer_only_their_hosts() {
    let browsed = open(
        Store::sample(),
        &["--admin-host", "admin.example,other.example"],
    );
    for target in [
        "/",
        "/catalog",
        "/catalog/PANDANLANE-SG",
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
            assert!(reply.status == 200, "{target} {host}: {}", reply.status);
        }
    }
    assert_eq!(
        browsed.ask_as(Some("evil.example"), "GET", "/livez").status,
        200
    );
    let home = browsed.ask_as(Some("127.0.0.1"), "GET", "/");
    assert_eq!(home.status, 200);
}

#[test]
fn mistyped_addresses_lead_on() {
    let browsed = open(Store::sample(), &[]);
    for (accept, is_page) in [("text/html,*/*;q=0.8", true), ("*/*", false)] {
        let mut connection = browsed.server.keep_alive_admin();
        let head = "GET /nope HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: ";
        connection.write(&format!("{head}{accept}\r\n\r\n"));
        let reply = connection.read("GET").expect("an answer");
        assert_eq!(reply.status, 404, "{accept}");
        let body = text(&reply.body);
        assert_eq!(body.contains("<h1>Page not found</h1>"), is_page, "{body}");
        assert_eq!(body.contains("there are /livez"), !is_page, "{body}");
    }
}

#[test]
fn every_answer_has_security_headers() {
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
        ("/revisions/compare?from=1&to=2", 404),
        ("/", 200),
        ("/overrides", 200),
        ("/overrides?day=1", 400),
        ("/assortments", 200),
        ("/assortments/none", 404),
        ("/assortments/%3Cb%3E", 404),
        ("/audit", 200),
        ("/keys", 200),
        ("/assets/browser.css", 200),
        ("/assets/none", 404),
        ("/catalog/PANDANLANE-SG/image", 404),
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
    let icon = browsed.ask_as(Some("127.0.0.1"), "GET", "/assets/icon.svg");
    assert_eq!(icon.header("content-type"), Some("image/svg+xml"));
    let policy = icon.header("content-security-policy");
    assert!(policy.is_some_and(|policy| policy.contains("sandbox")));
}

#[test]
fn outside_text_stays_text() {
    let mut hostile = gift_card("HOSTILE");
    let evil = "\"><script>alert(1)</script><img src=x onerror=alert(1)>";
    hostile["name"] = evil.into();
    hostile["categories"] = serde_json::json!([evil, "a&amp;b"]);
    hostile["gift_card"]["expiry"]["date_policy"] = evil.into();
    hostile["gift_card"]["website_url"] = "https://shop.example/?a=1&b='c'".into();
    hostile["gift_card"]["assets"]["card_image_url"] = "https://far.example/card.png".into();
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
        for script in page.tags("script") {
            let source = attribute(&script, "src");
            assert_eq!(source, Some("/assets/browser.js"), "{target}");
        }
        for image in page.tags("img") {
            assert!(
                attribute(&image, "onerror").is_none(),
                "{target}: {image:?}"
            );
            let source = attribute(&image, "src").expect("a source");
            assert_eq!(source, "/assets/icon.svg", "{target}");
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
        page.text().contains(evil)
            && page.text().contains("Picture: a picture")
            && page.text().contains("https://far.example/card.png"),
        "{}",
        page.text()
    );
}

#[test]
fn product_page_shows_texts_and_later_types() {
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
    let page = browsed.page("/catalog/A");
    assert!(text(&page.reply.body).contains("<strong>bold</strong>"));
    let page = browsed.page("/catalog/LATER");
    for shown in ["Hologram", "Shine level", "very", "#112233"] {
        assert!(page.text().contains(shown), "{shown}: {}", page.text());
    }
}

#[test]
fn browser_beyond_loopback_needs_a_setting() {
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
