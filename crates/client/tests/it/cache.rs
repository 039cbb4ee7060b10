//! The ETag cache: unchanged responses come from memory.

use crate::mock_server::{MockServer, answer, json, pong};

const CATEGORIES: &str = r#"{"categories":[{"code":"fashion"}]}"#;

#[tokio::test]
async fn unchanged_responses_come_from_the_cache() {
    let server = MockServer::of(vec![
        json("200 OK\r\nETag: W/\"1\"", CATEGORIES),
        answer("304 Not Modified\r\nETag: W/\"1\"", ""),
        json("200 OK\r\nETag: W/\"2\"", r#"{"categories":[]}"#),
        answer("304 Not Modified", ""),
    ]);
    let client = server.builder().cache_bytes(1 << 20).build().unwrap();
    let first = client.categories().await.unwrap();
    assert_eq!(first[0].code, "fashion");
    assert_eq!(client.clone().categories().await.unwrap(), first);
    assert!(client.categories().await.unwrap().is_empty());
    assert!(client.categories().await.unwrap().is_empty());
    let heads = server.heads();
    let tags: Vec<Option<&str>> = heads
        .iter()
        .map(|head| {
            head.lines()
                .find_map(|line| line.strip_prefix("if-none-match: "))
        })
        .collect();
    assert_eq!(
        tags,
        [None, Some("w/\"1\""), Some("w/\"1\""), Some("w/\"2\"")]
    );
}

#[tokio::test]
async fn failures_and_other_urls_are_not_cached() {
    let server = MockServer::of(vec![
        json(
            "404 No\r\nETag: \"1\"",
            r#"{"type":"not_found","message":"no"}"#,
        ),
        json("200 OK\r\nETag: \"2\"", CATEGORIES),
        pong(),
    ]);
    let client = server.builder().cache_bytes(1 << 20).build().unwrap();
    client.categories().await.unwrap_err();
    client.categories().await.unwrap();
    client.ping().await.unwrap();
    assert!(
        server
            .heads()
            .iter()
            .all(|head| !head.contains("if-none-match"))
    );
}

#[tokio::test]
async fn no_tag_is_sent_without_a_cache() {
    let server = MockServer::of(vec![json("200 OK\r\nETag: W/\"1\"", CATEGORIES)]);
    let client = server.client();
    client.categories().await.unwrap();
    client.categories().await.unwrap();
    assert!(
        server
            .heads()
            .iter()
            .all(|head| !head.contains("if-none-match"))
    );
}

#[tokio::test]
async fn page_is_none_while_its_tag_stays() {
    let page = |code: &str| {
        format!(
            r#"{{"catalog":["{code}"],"pagination":{{"cursors":{{"before":"{code}","after":"{code}"}}}}}}"#
        )
    };
    let server = MockServer::of(vec![
        json("200 OK\r\nETag: W/\"1\"", page("A")),
        answer("304 Not Modified\r\nETag: W/\"1\"", ""),
        json("200 OK\r\nETag: W/\"2\"", page("B")),
    ]);
    let list = server.client().products().read_as::<String>();
    let etag = list.page().await.unwrap().etag.unwrap();
    assert_eq!(list.page_unless(&etag).await.unwrap(), None);
    let page = list.page_unless(&etag).await.unwrap().unwrap();
    assert_eq!(
        (page.catalog[0].as_str(), page.etag.as_deref()),
        ("B", Some("W/\"2\""))
    );
    let asked = server.heads();
    assert!(!asked[0].contains("if-none-match"));
    assert!(
        asked[1..]
            .iter()
            .all(|head| head.contains("if-none-match: w/\"1\""))
    );
}
