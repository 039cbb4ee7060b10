//! Pages of changes, requested one by one.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use vitrine_client::{ChangesPage, Error, ErrorType, Json, Product, blocking};

use crate::mock_server::{MockServer, answer, error, json};

const GOLDEN: &str = include_str!("../../../server/tests/golden/2024-02-05/gift-card-url.json");

fn golden_page() -> String {
    format!(
        r#"{{"changes":[{{"code":"HOSHIMICHI-JP","product":{GOLDEN}}},{{"code":"Z","product":null}}],"next":"c1_a-Z","has_more":true}}"#
    )
}

#[tokio::test]
async fn page_has_products_removals_and_the_next_token() {
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(golden_page().as_bytes()).unwrap();
    let server = MockServer::of(vec![
        json("200 OK", golden_page()),
        json(
            "200 OK\r\nContent-Encoding: gzip\r\nRetry-After: 7",
            zipped.finish().unwrap(),
        ),
    ]);
    let request = server.client().changes().country("SE").limit(2);
    let page: ChangesPage<Product> = request.page().await.unwrap();
    assert_eq!((page.next.as_str(), page.has_more), ("c1_a-Z", true));
    assert_eq!(page.retry_after, None);
    let [added, removed] = page.changes.as_slice() else {
        panic!("{page:?}");
    };
    assert_eq!(added.product.as_ref().unwrap().code, added.code);
    assert_eq!((removed.code.as_str(), &removed.product), ("Z", &None));

    let request = request.since("c1_b").read_as::<Json>();
    let page = request.page().await.unwrap();
    assert_eq!(page.changes[0].product.as_ref().unwrap().get(), GOLDEN);
    assert_eq!(
        serde_json::to_string(&page.changes[1]).unwrap(),
        r#"{"code":"Z","product":null}"#
    );
    assert_eq!(page.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(
        server.queries("/v2/product/changes"),
        [
            "?countries_redeemable_in=se&limit=2",
            "?countries_redeemable_in=se&limit=2&since=c1_b"
        ]
    );
}

#[tokio::test]
async fn faulty_pages_remove_nothing() {
    let long = "a".repeat(401);
    let golden = golden_page();
    for (odd, expected) in [
        (golden.replace(r#","product":null"#, ""), "changes[1]"),
        (golden.replace("c1_a-Z", ""), "next"),
        (golden.replace("c1_a-Z", &long), "next"),
        (golden.replace("c1_a-Z", r"c1\n\u001b[31m"), "next"),
        (golden.replace(r#","has_more":true"#, ""), "has_more"),
    ] {
        let server = MockServer::of(vec![json("200 OK", &odd)]);
        let failure = server.client().changes().page().await.unwrap_err();
        assert!(matches!(failure, Error::Decode { .. }), "{failure:?}");
        assert!(failure.to_string().contains(expected), "{failure}");
        assert_eq!(server.count(), 1);
    }
    let server = MockServer::of(vec![answer("304 Not Modified", "")]);
    let failure = server.client().changes().page().await.unwrap_err();
    assert!(matches!(failure, Error::Unexpected { status: 304, .. }));
}

#[tokio::test]
async fn time_limits_allow_for_the_wait() {
    let page = json("200 OK", golden_page());
    let server = MockServer::holding(vec![page], Duration::from_secs(3));
    let mut retries = vitrine_client::Retries::none();
    retries.longest_total = Duration::from_secs(1);
    let builder = server.builder().retries(retries);
    let client = builder.timeout(Duration::from_secs(1)).build().unwrap();
    let request = client.changes().wait(Duration::from_secs(55));
    assert!(matches!(request.page().await, Err(Error::Timeout)));
    request.since("c1_x").page().await.unwrap();
    assert_eq!(
        server.queries("/v2/product/changes"),
        ["", "?since=c1_x&wait=55"]
    );
}

#[test]
fn transient_failures_are_retried_and_lost_tokens_told() {
    let server = MockServer::of(vec![
        error("503 Busy\r\nRetry-After: 0", "unavailable"),
        json("200 OK", golden_page()),
        error("410 Gone", "changes_gone"),
        error("410 Gone", "version_removed"),
    ]);
    let client = blocking::Client::build(server.builder()).unwrap();
    let request = client.changes().since("c1_x").read_as::<Json>();
    assert_eq!(client.wait(request.page()).unwrap().changes.len(), 2);
    let failure = client.wait(request.page()).unwrap_err();
    assert!(failure.is_changes_gone(), "{failure}");
    let api = failure.api().unwrap();
    assert_eq!(api.status, 410);
    assert_eq!(api.error_type, ErrorType::ChangesGone);
    let failure = client.wait(request.page()).unwrap_err();
    assert!(!failure.is_changes_gone(), "{failure}");
    assert_eq!(server.count(), 4);
}

#[tokio::test]
async fn chosen_api_version_is_asked_for() {
    use vitrine_client::ApiVersion;
    for (version, date) in [
        (None, "2024-02-05"),
        (Some(ApiVersion::V2024_02_05), "2024-02-05"),
        (Some(ApiVersion::V2026_12_01), "2026-12-01"),
    ] {
        let server = MockServer::of(vec![json("200 OK", golden_page())]);
        let builder = match version {
            None => server.builder(),
            Some(version) => server.builder().api_version(version),
        };
        builder.build().unwrap().changes().page().await.unwrap();
        let head = server.heads().remove(0).to_ascii_lowercase();
        assert!(head.contains(&format!("x-api-version: {date}")), "{head}");
    }
}
