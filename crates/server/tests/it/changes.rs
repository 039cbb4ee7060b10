//! The changes feed: its answers to the letter, their headers, and the walks over them.

use std::io::Read as _;

use serde_json::{Value, json};

use crate::harness::feed::{CHANGES, CatalogCopy, Changes, FeedServer, list};
use crate::harness::{
    Certificate, Headers, Reply, Store, block_on, gift_card, read, text, wait_for,
};

const VERSION: &str = "2024-02-05";

/// A gift card with this name.
pub fn named(code: &str, name: &str) -> Value {
    let mut product = gift_card(code);
    product["name"] = name.into();
    product
}

/// Returns the token at the end of an answer.
fn next(reply: &Reply) -> String {
    Changes::of(reply).next
}

/// Returns the bytes that an answer with these changes must have.
fn body<'c>(
    changes: impl IntoIterator<Item = (&'c str, &'c str)>,
    next: &str,
    has_more: bool,
) -> String {
    let change =
        |(code, product): (&str, &str)| format!("{{\"code\":\"{code}\",\"product\":{product}}}");
    let changes: Vec<String> = changes.into_iter().map(change).collect();
    let changes = changes.join(",");
    format!("{{\"changes\":[{changes}],\"next\":\"{next}\",\"has_more\":{has_more}}}")
}

#[test]
fn answers_have_the_objects_of_the_list_to_the_letter() {
    let served = FeedServer::over(Store::sample(), &[]);
    let all = list(&served.server, &served.key, "");
    assert_eq!(all.len(), 72);
    let pairs = || {
        all.iter()
            .map(|(code, product)| (code.as_str(), product.as_str()))
    };
    for headers in [&[][..], &[("X-Api-Version", VERSION)]] {
        let headers = [&[("X-Api-Key", served.key.as_str())], headers].concat();
        let first = served.server.send("GET", CHANGES, &headers);
        assert_eq!(text(&first.body), body(pairs(), &next(&first), false));
        let half = format!("{CHANGES}?limit=36");
        let half = served.server.send("GET", &half, &headers);
        let expected = body(pairs().take(36), &next(&half), true);
        assert_eq!(text(&half.body), expected);
    }
    let mut copy = served.copy("");
    // Both changes and removals, also at the ends.
    let codes: Vec<&String> = all.keys().collect();
    served.load(&[named(codes[5], "a \"quoted\" näme \\ 🎁"), gift_card("zz")]);
    let changed = served.ask(&copy, "");
    let now = list(&served.server, &served.key, "");
    let product = |code: &str| now.get(code).map_or("null", String::as_str);
    let mut expected: Vec<(&str, &str)> = codes
        .iter()
        .map(|code| (code.as_str(), product(code)))
        .collect();
    expected.push(("zz", product("zz")));
    assert_eq!(text(&changed.body), body(expected, &next(&changed), false));
    copy.apply(&changed);
    let empty = served.ask(&copy, "");
    assert_eq!(text(&empty.body), body([], &next(&empty), false));
    served.settle(&mut copy);
}

#[test]
fn empty_catalog_gives_an_empty_list() {
    let served = FeedServer::of(&[gift_card("A")], &[]);
    let mut copy = served.copy("");
    served.retire_all();
    let first = served.server.get(&served.key, CHANGES);
    assert_eq!(text(&first.body), body([], &next(&first), false));
    assert_eq!(served.walk(&mut copy), ["-A"]);
    served.settle(&mut copy);
    let mut begun = CatalogCopy::of("");
    begun.apply(&first);
    served.load(&[gift_card("B")]);
    assert_eq!(served.walk(&mut begun), ["B"]);
}

#[test]
fn store_without_a_revision_is_unavailable() {
    let store = Store::new();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let reply = server.get(&key, CHANGES);
    assert_eq!((reply.status, reply.error().as_str()), (503, "unavailable"));
    assert!(reply.header("retry-after").is_some());
}

#[test]
fn walks_name_each_product_once_at_any_limit() {
    let served = FeedServer::over(Store::sample(), &[]);
    let all: Vec<String> = list(&served.server, &served.key, "").into_keys().collect();
    let begun = served.copy("");
    // Of each three products one is removed, and one changed.
    let products = all
        .chunks(3)
        .flat_map(|part| [gift_card(&part[0]), named(&part[1], "new")]);
    let products: Vec<Value> = products.collect();
    served.load(&products);
    let expected: Vec<String> = (0..)
        .zip(&all)
        .map(|(index, code)| match index % 3 {
            2 => format!("-{code}"),
            _ => code.clone(),
        })
        .collect();
    for limit in [1, 2, 7, 71, 72, 73, 500] {
        let limit = format!("limit={limit}");
        let mut copy = begun.clone();
        let found = copy.walk(&served.server, &served.key, &limit);
        assert_eq!(found, expected, "{limit}");
        served.settle(&mut copy);
        let mut new = CatalogCopy::of("");
        let found = new.walk(&served.server, &served.key, &limit);
        let visible: Vec<&String> = expected
            .iter()
            .filter(|code| !code.starts_with('-'))
            .collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), visible, "{limit}");
        served.settle(&mut new);
    }
}

#[test]
fn page_that_is_full_at_the_end_has_no_more() {
    let served = FeedServer::of(&["A", "B", "C"].map(gift_card), &[]);
    let mut copy = CatalogCopy::of("");
    let target = copy.target("limit=3");
    assert!(
        !copy
            .apply(&served.server.get(&served.key, &target))
            .has_more
    );
    served.load(&[named("A", "new"), named("B", "new"), gift_card("C")]);
    let pages = [("limit=1", true), ("limit=1", false)];
    for (limit, has_more) in pages {
        let answer = copy.apply(&served.ask(&copy, limit));
        assert_eq!((answer.changes.len(), answer.has_more), (1, has_more));
    }
    assert_eq!(served.walk(&mut copy), [""; 0]);
}

#[test]
fn limit_may_change_within_a_walk() {
    let served = FeedServer::over(Store::sample(), &[]);
    let mut copy = CatalogCopy::of("");
    for limit in [1, 30, 2, 30, 500] {
        copy.ask(&served.server, &served.key, &format!("limit={limit}"));
    }
    assert_eq!(copy.products.len(), 72);
    served.settle(&mut copy);
}

#[test]
fn answers_are_not_stored_and_have_no_tag() {
    let served = FeedServer::over(Store::sample(), &[]);
    let copy = served.copy("");
    let etag = served.server.get(&served.key, "/v2/product?limit=500");
    let etag = etag.header("etag").expect("a tag").to_owned();
    for target in [CHANGES.to_owned(), copy.target("")] {
        for condition in [None, Some("*"), Some(etag.as_str())] {
            let mut headers = vec![("X-Api-Key", served.key.as_str())];
            headers.extend(condition.map(|tag| ("If-None-Match", tag)));
            let reply = served.server.send("GET", &target, &headers);
            Changes::of(&reply);
            assert_eq!(reply.header("cache-control"), Some("no-store"));
            assert_eq!(reply.header("content-type"), Some("application/json"));
            assert_eq!(reply.header("x-api-version"), Some(VERSION));
            for absent in ["etag", "link", "last-modified", "age", "retry-after"] {
                assert_eq!(reply.header(absent), None, "{absent}");
            }
            assert!(reply.header("x-request-id").is_some());
            let vary = reply.header("vary").expect("Vary");
            assert!(vary.contains("X-Api-Key"), "{vary}");
        }
    }
}

#[test]
fn head_has_the_headers_and_no_body() {
    let served = FeedServer::over(Store::sample(), &[]);
    let headers: Headers<'_> = &[("X-Api-Key", served.key.as_str())];
    let get = served.server.send("GET", CHANGES, headers);
    let head = served.server.send("HEAD", CHANGES, headers);
    assert_eq!((head.status, head.body.len()), (200, 0));
    for name in ["content-length", "content-type", "cache-control", "vary"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
}

#[test]
fn compressed_answers_decode_to_the_same_changes() {
    let served = FeedServer::over(Store::sample(), &[]);
    let plain = served.server.get(&served.key, CHANGES);
    let plain = text(&plain.body);
    // The token has the time of its issue.
    let changes = |body: &str| body.split("],\"next\":").next().map(str::to_owned);
    for _ in 0..3 {
        for coding in ["gzip", "zstd", "br"] {
            let headers = [
                ("X-Api-Key", served.key.as_str()),
                ("Accept-Encoding", coding),
            ];
            let reply = served.server.send("GET", CHANGES, &headers);
            assert_eq!(reply.header("content-encoding"), Some(coding));
            let mut decoded = Vec::new();
            let read = match coding {
                "zstd" => zstd::stream::copy_decode(&*reply.body, &mut decoded),
                "gzip" => flate2::read::GzDecoder::new(&*reply.body)
                    .read_to_end(&mut decoded)
                    .map(drop),
                _ => brotli::Decompressor::new(&*reply.body, 4096)
                    .read_to_end(&mut decoded)
                    .map(drop),
            };
            read.expect("a body that decodes");
            assert_eq!(changes(&text(&decoded)), changes(&plain), "{coding}");
            let decoded = Reply {
                body: decoded,
                ..reply
            };
            let mut copy = CatalogCopy::of("");
            copy.apply(&decoded);
            served.settle(&mut copy);
        }
    }
}

#[test]
fn http2_gives_the_same_changes() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let certificate = Certificate::new(&store, "server");
    let server = certificate.serve(&store, &[]);
    let body = block_on(async {
        let mut client = certificate.http2(server.address).await.expect("HTTP/2");
        let answer = client.ask(&key, CHANGES).await.expect("asked");
        let (status, body) = read(answer).await.expect("an answer");
        assert_eq!(status, 200);
        let (_, listed) = client.get(&key, "/v2/product").await.expect("an answer");
        let listed: Value = serde_json::from_slice(&listed).expect("JSON");
        (
            serde_json::from_slice::<Value>(&body).expect("JSON"),
            listed,
        )
    });
    let (changes, listed) = body;
    let products = changes["changes"].as_array().expect("a list");
    let products: Vec<&Value> = products.iter().map(|change| &change["product"]).collect();
    assert_eq!(json!(products), listed["catalog"]);
}

#[test]
fn since_now_gives_the_token_of_what_changes_from_now_on() {
    let served = FeedServer::over(Store::sample(), &[]);
    let ask = |query: &str| {
        served
            .server
            .get(&served.key, &format!("{CHANGES}?{query}"))
    };
    let begun = ask("since=now&is_orderable=true");
    assert_eq!(text(&begun.body), body([], &next(&begun), false));
    let token = next(&begun);
    served.load(&[gift_card("NEW")]);
    let news = wait_for("the change", || {
        let news = ask(&format!("since={token}&is_orderable=true"));
        (Changes::of(&news)
            .changes
            .iter()
            .any(|change| change.code == "NEW"))
        .then_some(news)
    });
    assert!(!text(&news.body).contains("\"has_more\":true"));
    // It is a token of these filters, and nothing can be waited for without one.
    assert_eq!(ask(&format!("since={token}")).error(), "pagination_error");
    let refused = ask("since=now&wait=5");
    assert_eq!(
        (refused.status, refused.error()),
        (400, "bad_request".to_owned())
    );
}
