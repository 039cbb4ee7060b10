//! Walks over pages: to the end, resumed from a cursor, and never in a cycle.

use vitrine_client::{Error, Key, Page, blocking};

use crate::mock_server::{KEY, MockServer, error, json};

/// Returns a page whose products have only codes.
fn page(codes: &[&str], before: Option<&str>, after: Option<&str>) -> Vec<u8> {
    let body = serde_json::json!({"catalog": codes, "pagination": {"cursors": {"before": before, "after": after}}});
    json("200 OK", body.to_string())
}

/// Returns a page with the cursors of the contract.
fn right(codes: &[&str]) -> Vec<u8> {
    page(codes, codes.first().copied(), codes.last().copied())
}

fn queries(server: &MockServer) -> Vec<String> {
    server.queries("/v2/product")
}

#[tokio::test]
async fn walks_end_with_an_empty_page_or_without_a_cursor() {
    for last in [right(&[]), page(&["c"], Some("c"), None)] {
        let server = MockServer::of(vec![right(&["a", "b"]), last.clone()]);
        let mut products = server
            .client()
            .products()
            .limit(2)
            .read_as::<String>()
            .stream();
        let mut seen = Vec::new();
        while let Some(product) = products.next().await {
            seen.push(product.unwrap());
        }
        assert!(products.next().await.is_none());
        let expected: &[&str] = if last == right(&[]) {
            &["a", "b"]
        } else {
            &["a", "b", "c"]
        };
        assert_eq!(seen, expected);
        assert_eq!(queries(&server), ["?limit=2", "?limit=2&after=b"]);
    }
}

#[tokio::test]
async fn interrupted_walks_resume_from_their_cursor() {
    let server = MockServer::of(vec![
        right(&["a", "b"]),
        error("401 No", "invalid_api_key"),
        right(&["c"]),
        right(&[]),
    ]);
    let client = server.client();
    let list = client.products().country("SE").read_as::<String>();
    let mut pages = list.clone().pages();
    let page = pages.next().await.unwrap().unwrap();
    assert_eq!(page.catalog, ["a", "b"]);
    assert!(pages.next().await.unwrap().is_err());
    assert!(pages.next().await.is_none());
    let cursor = page.pagination.cursors.after.unwrap();
    let mut pages = list.after(cursor).pages();
    assert_eq!(pages.next().await.unwrap().unwrap().catalog, ["c"]);
    assert!(pages.next().await.is_none());
    let country = "?countries_redeemable_in=se";
    assert_eq!(
        queries(&server),
        [
            country.to_owned(),
            format!("{country}&after=b"),
            format!("{country}&after=b"),
            format!("{country}&after=c")
        ]
    );
}

#[tokio::test]
async fn walks_backwards_follow_the_before_cursor() {
    let server = MockServer::of(vec![right(&["c", "d"]), right(&["a", "b"]), right(&[])]);
    let mut pages = server
        .client()
        .products()
        .before("e")
        .read_as::<String>()
        .pages();
    let mut seen: Vec<Page<String>> = Vec::new();
    while let Some(page) = pages.next().await {
        seen.push(page.unwrap());
    }
    assert_eq!(seen.len(), 2);
    assert_eq!(queries(&server), ["?before=e", "?before=c", "?before=a"]);
}

#[tokio::test]
async fn repeated_cursors_end_the_walk_with_an_error() {
    let server = MockServer::of(vec![right(&["a"]), right(&["b"]), right(&["a"])]);
    let mut products = server.client().products().read_as::<String>().stream();
    assert_eq!(products.next().await.unwrap().unwrap(), "a");
    assert_eq!(products.next().await.unwrap().unwrap(), "b");
    let failure = products.next().await.unwrap().unwrap_err();
    assert!(matches!(failure, Error::Circle { .. }), "{failure:?}");
    assert!(products.next().await.is_none());
    assert_eq!(server.count(), 3);
}

#[test]
fn threads_can_share_a_blocking_client() {
    let server = MockServer::of(vec![right(&["a"]), right(&[])]);
    let client = blocking::Client::build(server.builder()).unwrap();
    let list = client.products().read_as::<String>();
    assert_eq!(
        client
            .iter(list.stream())
            .map(Result::unwrap)
            .collect::<Vec<_>>(),
        ["a"]
    );
    let server = MockServer::of(vec![json("200 OK", r#"{"message":"pong"}"#)]);
    let client = blocking::Client::new(&server.url(), Key::new(KEY).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| client.wait(client.ping()).unwrap());
        }
    });
    assert_eq!(server.count(), 4);
    assert!(!format!("{client:?}").contains("s3cret"));
}
