//! Pictures that products name: fetched by the server, judged by their bytes, and kept.

use serde_json::Value;

use crate::harness::browsed::Browsed;
use crate::harness::{Page, Reply, Store, Web, gift_card, text};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nand so on";

fn pictured(code: &str, address: &str) -> Value {
    let mut product = gift_card(code);
    product["gift_card"]["assets"]["card_image_url"] = address.into();
    product
}

fn open(products: &[Value], images: &str) -> Browsed {
    let store = Store::of(products);
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0", "--browser-images", images]);
    Browsed { store, server }
}

fn image(browsed: &Browsed, code: &str) -> Reply {
    let reply = browsed.ask_as(Some("localhost"), "GET", &format!("/catalog/{code}/image"));
    assert_eq!(reply.status, 200, "{code}");
    let policy = reply.header("content-security-policy");
    assert!(
        policy.is_some_and(|policy| policy.contains("sandbox")),
        "{code}"
    );
    reply
}

fn is_placeholder(reply: &Reply) -> bool {
    text(&reply.body).contains("font-weight=\"600\"")
}

#[test]
fn pictures_are_fetched_once_or_replaced() {
    let with = |kind: &str, body: &[u8]| Page::ok(body).with("Content-Type", kind);
    let web = Web::of(&[
        ("/png", with("text/plain", PNG)),
        (
            "/svg",
            with(
                "image/svg+xml",
                b"<svg xmlns='http://www.w3.org/2000/svg'/>",
            ),
        ),
        (
            "/html",
            with("image/png", b"<html><script>alert(1)</script>"),
        ),
        (
            "/long",
            with("image/png", &[PNG, &vec![0; 3 << 20]].concat()),
        ),
    ]);
    let codes = ["PNG", "SVG", "HTML", "LONG", "NONE"];
    let paths = ["/png", "/svg", "/html", "/long", "/none"];
    let products = codes
        .iter()
        .zip(paths)
        .map(|(code, path)| pictured(code, &web.url(path)));
    let products: Vec<Value> = products.collect();
    let browsed = open(&products, "fetch-private");
    let png = image(&browsed, "PNG");
    assert_eq!(
        (png.header("content-type"), &*png.body),
        (Some("image/png"), PNG)
    );
    assert_eq!(
        image(&browsed, "SVG").header("content-type"),
        Some("image/svg+xml")
    );
    for code in ["HTML", "LONG", "NONE"] {
        assert!(is_placeholder(&image(&browsed, code)), "{code}");
    }
    let asked = web.take_requests();
    assert_eq!(asked.len(), codes.len(), "{asked:?}");
    assert!(
        asked
            .iter()
            .all(|head| !head.contains("referer") && !head.contains("cookie")),
        "{asked:?}"
    );
    for code in codes {
        image(&browsed, code);
    }
    assert!(
        web.take_requests().is_empty(),
        "what is known isn't asked for again"
    );
}

#[test]
fn private_networks_are_asked_only_if_allowed() {
    let web = Web::of(&[("/png", Page::ok(PNG))]);
    let products = [
        pictured("A", &web.url("/png")),
        pictured("B", "http://[::1]:1/png"),
    ];
    for images in ["fetch", "placeholder"] {
        let browsed = open(&products, images);
        for code in ["A", "B"] {
            assert!(is_placeholder(&image(&browsed, code)), "{images} {code}");
        }
        assert!(web.take_requests().is_empty(), "{images}");
    }
}
