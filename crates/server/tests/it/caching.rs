//! Entity tags, conditional requests, and how long answers may be kept.

use std::collections::HashMap;

use serde_json::json;

use crate::harness::{Reply, Server, Store, gift_card};

const CACHE_CONTROL: &str = "private, max-age=60, stale-while-revalidate=300, stale-if-error=86400";
const VARY: &str = "Accept-Encoding, X-Api-Version, X-Api-Key";

/// One target of each kind of answer.
const TARGETS: [&str; 9] = [
    "/v2/product",
    "/v2/product?limit=2&after=A",
    "/v2/product?categories=nothing",
    "/v2/product/B",
    "/v2/product/B?content=md",
    "/v2/product/B?content=html",
    "/v2/product/categories",
    "/v2/product/countries",
    "/v2/ping",
];

fn catalog() -> Store {
    let mut described = gift_card("B");
    described["gift_card"]["content_resources"]["description_md"] = json!("# B");
    Store::of(&[gift_card("A"), described, gift_card("C"), gift_card("D")])
}

/// The tag of an answer: weak, and well-formed.
fn tag(reply: &Reply) -> String {
    let tag = reply.header("etag").expect("ETag");
    let opaque = tag
        .strip_prefix("W/\"")
        .and_then(|rest| rest.strip_suffix('"'));
    let opaque = opaque.unwrap_or_else(|| panic!("{tag} isn't weak"));
    assert!(!opaque.is_empty() && !opaque.contains(['"', ' ']), "{tag}");
    tag.to_owned()
}

fn request(server: &Server, key: &str, target: &str, tags: &[&str]) -> Reply {
    let mut headers = vec![("X-Api-Key", key)];
    headers.extend(tags.iter().map(|tag| ("If-None-Match", *tag)));
    server.send("GET", target, &headers)
}

#[test]
fn answers_have_cache_control_and_vary() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for target in TARGETS {
        let full = server.get(&key, target);
        let not_modified = request(&server, &key, target, &[&tag(&full)]);
        assert_eq!((full.status, not_modified.status), (200, 304), "{target}");
        for reply in [full, not_modified] {
            assert_eq!(
                reply.header("cache-control"),
                Some(CACHE_CONTROL),
                "{target}"
            );
            assert_eq!(reply.header("vary"), Some(VARY), "{target}");
        }
    }
}

#[test]
fn matching_tag_is_answered_without_a_body() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for target in TARGETS {
        let full = server.get(&key, target);
        let weak = tag(&full);
        let strong = weak.trim_start_matches("W/").to_owned();
        let in_list = format!("\"x\", {weak}");
        let tight_list = format!("W/\"x,y\",{strong},\"z\"");
        for tags in [
            &[weak.as_str()] as &[&str],
            &[&strong],
            &["*"],
            &[&in_list],
            &[&tight_list],
            &["\"x\"", &weak],
        ] {
            let reply = request(&server, &key, target, tags);
            assert_eq!(reply.status, 304, "{target} {tags:?}");
            assert!(reply.body.is_empty());
            for name in ["etag", "cache-control", "vary", "link", "x-api-version"] {
                assert_eq!(reply.header(name), full.header(name), "{target} {name}");
            }
            assert!(reply.header("x-request-id").is_some());
        }
    }
    let paged = server.get(&key, TARGETS[1]);
    assert!(
        paged.header("link").is_some(),
        "a list among them has neighbours"
    );
}

#[test]
fn other_tag_is_answered_with_the_body() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let other = tag(&server.get(&key, "/v2/product/A"));
    for target in TARGETS {
        let full = server.get(&key, target);
        let bare = tag(&full)
            .trim_start_matches("W/")
            .trim_matches('"')
            .to_owned();
        let longer = format!("\"{bare}x\"");
        for value in ["\"x\"", &other, "", &bare, &longer, "W/", "\"", "\"*\""] {
            let reply = request(&server, &key, target, &[value]);
            assert_eq!(reply.status, 200, "{target} {value}");
            assert_eq!(reply.body, full.body, "{target} {value}");
        }
    }
}

#[test]
fn errors_are_never_not_modified() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    for (target, status) in [
        ("/v2/product/NONE", 404),
        ("/v2/product?limit=0", 400),
        ("/v2/nothing", 404),
    ] {
        let reply = request(&server, &key, target, &["*"]);
        assert_eq!(reply.status, status);
        reply.error();
    }
    let reply = request(&server, "wrong.key", "/v2/product", &["*"]);
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (401, "invalid_api_key")
    );
}

#[test]
fn equal_tags_mean_equal_bytes() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let mut bodies: HashMap<String, Vec<u8>> = HashMap::new();
    let more = [
        "/v2/product?limit=500",
        "/v2/product?limit=2",
        "/v2/product?limit=3",
        "/v2/product?limit=2&after=-",
        "/v2/product?limit=2&before=C",
        "/v2/product?categories=no&limit=2",
        "/v2/product/A",
        "/v2/product/A?content=url",
        "/v2/product/A?content=md",
        "/v2/product/A?content=html",
        "/v2/product/B?content=url",
    ];
    // Another process must make the same of them.
    for server in [store.serve(), store.serve()] {
        for target in TARGETS.iter().chain(&more) {
            for encoding in ["identity", "gzip, br, zstd"] {
                let headers = [("X-Api-Key", key.as_str()), ("Accept-Encoding", encoding)];
                let reply = server.send("GET", target, &headers);
                assert_eq!(reply.status, 200, "{target}");
                let tag = tag(&reply);
                if encoding == "identity" {
                    let same_bytes = bodies.iter().find(|(_, body)| **body == reply.body);
                    if let Some((of_same_bytes, _)) = same_bytes {
                        assert_eq!(&tag, of_same_bytes, "{target}: same bytes, another tag");
                    }
                    let body = bodies.entry(tag).or_insert_with(|| reply.body.clone());
                    assert_eq!(*body, reply.body, "{target}: same tag, other bytes");
                } else {
                    assert!(
                        bodies.contains_key(&tag),
                        "{target}: one tag for all encodings"
                    );
                }
            }
        }
    }
    assert!(bodies.len() > 10, "the targets differ");
}

#[test]
fn page_keeps_its_tag_until_a_product_on_it_changes() {
    let store = catalog();
    let key = store.key("partner", &[]);
    let server = store.serve();
    let on_page = [
        "/v2/product?limit=2",
        "/v2/product?limit=1&after=A",
        "/v2/product?limit=2&before=C",
        "/v2/product?limit=2&countries_redeemable_in=DE&categories=fashion&is_orderable=true",
        "/v2/product/B",
        "/v2/product/B?content=md",
        "/v2/product/B?content=html",
    ];
    let before = on_page.map(|target| tag(&server.get(&key, target)));
    let whole = tag(&server.get(&key, "/v2/product"));
    let load = |changed: &str| {
        let mut products = ["A", "B", "C", "D"].map(gift_card);
        products[1]["gift_card"]["content_resources"]["description_md"] = json!("# B");
        for product in &mut products {
            if product["code"] == changed {
                product["name"] = json!("Renamed");
            }
        }
        let report = store.load_products(&products);
        server.wait_for_loaded(&report);
    };

    load("D");
    assert_eq!(server.get(&key, "/v2/product/D").json()["name"], "Renamed");
    for (target, before) in on_page.iter().zip(&before) {
        assert_eq!(tag(&server.get(&key, target)), *before, "{target}");
        assert_eq!(
            request(&server, &key, target, &[before]).status,
            304,
            "{target}"
        );
    }
    assert_ne!(tag(&server.get(&key, "/v2/product")), whole);
    assert_eq!(request(&server, &key, "/v2/product", &[&whole]).status, 200);

    load("B");
    for (target, before) in on_page.iter().zip(&before) {
        assert_ne!(tag(&server.get(&key, target)), *before, "{target}");
        assert_eq!(
            request(&server, &key, target, &[before]).status,
            200,
            "{target}"
        );
    }
}

#[test]
fn product_with_texts_keeps_its_tag_with_its_bytes() {
    let load = |store: &Store, markdown: &str, outside: &str| {
        let mut product = gift_card("A");
        let texts = &mut product["gift_card"]["content_resources"];
        texts["description_md"] = json!(markdown);
        texts["disclaimer_markdown_url"] = json!(outside);
        texts
            .as_object_mut()
            .expect("texts")
            .remove("disclaimer_md");
        store.load_products(&[product])
    };
    let store = Store::new();
    load(&store, "# A", "https://a.example/1.md");
    let key = store.key("partner", &[]);
    let server = store.serve();
    let read = || {
        ["url", "md", "html"].map(|form| {
            let reply = server.get(&key, &format!("/v2/product/A?content={form}"));
            (tag(&reply), reply.body)
        })
    };
    let same_as = |before: &[(String, Vec<u8>); 3], same: [bool; 3]| {
        let after = read();
        for ((before, after), same) in before.iter().zip(&after).zip(same) {
            assert_eq!(before.1 == after.1, same, "the bytes");
            assert_eq!(before.0 == after.0, same, "the tag");
        }
        after
    };
    let first = read();
    // Another outside address shows in the URL form only.
    server.wait_for_loaded(&load(&store, "# A", "https://a.example/2.md"));
    let second = same_as(&first, [false, true, true]);
    // Other Markdown may come to the same HTML.
    server.wait_for_loaded(&load(&store, "# A\n\n\n", "https://a.example/2.md"));
    let third = same_as(&second, [false, false, true]);
    server.wait_for_loaded(&load(&store, "# B", "https://a.example/2.md"));
    same_as(&third, [false, false, false]);
}
