//! Hostile servers and catalogs get no key, no control of the terminal, and no request to another host.

use vitrine_client::{BuildError, Client, Error, Key};

use crate::mock_server::{KEY, MockServer, answer, json, pong};

fn assert_hides_the_key(failure: &Error) {
    let shown = format!("{failure} {failure:?} {failure:#?}");
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(
        !failure.to_string().contains(char::is_control),
        "{failure:?}"
    );
}

#[tokio::test]
async fn keys_repeated_by_the_server_are_redacted() {
    let echoing = format!(
        r#"{{"type":"{KEY}","message":"{KEY} \u001b[31m\nfoul","help":"not {KEY}","details":[
            {{"type":"{KEY}","message":"{KEY}","location":["header","{KEY}"]}}]}}"#
    );
    let head = format!("401 Unauthorized\r\nX-Request-Id: {KEY}");
    let server = MockServer::of(vec![
        json(&head, echoing),
        json("200 OK", format!(r#"{{"message":{{"{KEY}":"{KEY}"}}}}"#)),
        json("200 OK", format!(r#"{{"catalog":"{KEY} \u001b[31m"}}"#)),
        answer(&format!("302 Found\r\nLocation: http://{KEY}/"), KEY),
        answer("500 s3cret-part\r\nContent-Type: text/plain", KEY),
    ]);
    let client = server.client();
    assert!(!format!("{client:?} {:?}", client.products()).contains("s3cret"));
    let failure = client.ping().await.unwrap_err();
    assert_hides_the_key(&failure);
    assert!(failure.to_string().contains("[key]"), "{failure}");
    assert_hides_the_key(&client.ping().await.unwrap_err());
    let failure = client.products().page().await.unwrap_err();
    assert_hides_the_key(&failure);
    assert!(
        matches!(&failure, Error::Decode { place, .. } if place == "catalog"),
        "{failure:?}"
    );
    assert_hides_the_key(&client.ping().await.unwrap_err());
    assert_hides_the_key(&client.ping().await.unwrap_err());
    assert!(
        server
            .heads()
            .iter()
            .all(|head| head.contains(&format!("x-api-key: {KEY}")))
    );
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = MockServer::of(vec![pong()]);
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let server = MockServer::of(vec![answer(
            &format!("{status}\r\nLocation: {}/v2/ping", other.url()),
            "",
        )]);
        let failure = server.client().ping().await.unwrap_err();
        assert!(failure.to_string().contains("redirect"), "{failure}");
        assert_eq!(server.count(), 1);
    }
    assert_eq!(other.count(), 0);
}

#[tokio::test]
async fn malformed_headers_are_ignored() {
    let long = "x".repeat(3_000);
    let body = r#"{"type":"not_found","message":"no"}"#;
    for headers in [
        format!("X-Request-Id: {long}\r\nRetry-After: {long}\r\nETag: {long}"),
        "X-Request-Id: \u{e9}\u{ff}\r\nRetry-After: -1\r\nETag: \u{e9}".to_owned(),
        "X-Request-Id:\r\nRetry-After:\r\nETag:\r\nRetry-After: soon".to_owned(),
    ] {
        let server = MockServer::of(vec![
            json(&format!("404 No\r\n{headers}"), body),
            json(&format!("200 OK\r\n{headers}"), r#"{"message":"pong"}"#),
        ]);
        let client = server.builder().cache_bytes(1 << 20).build().unwrap();
        let failure = client.ping().await.unwrap_err();
        let api = failure.api().unwrap();
        assert!(
            api.request_id.as_deref().is_none_or(str::is_empty),
            "{api:?}"
        );
        assert_eq!(api.retry_after, None);
        client.ping().await.unwrap();
        client.ping().await.unwrap();
    }
}

#[tokio::test]
async fn requests_have_user_agent_and_version() {
    let server = MockServer::of(vec![pong()]);
    server.client().ping().await.unwrap();
    server
        .builder()
        .user_agent("picker/1.0")
        .build()
        .unwrap()
        .ping()
        .await
        .unwrap();
    let heads = server.heads();
    for line in [
        "get /v2/ping http/1.1",
        "x-api-version: 2024-02-05",
        "accept: application/json",
        "accept-encoding: gzip",
    ] {
        assert!(
            heads[0].lines().any(|own| own == line),
            "{line} in {heads:?}"
        );
    }
    assert!(
        heads[0].contains("\nuser-agent: vitrine-client/"),
        "{heads:?}"
    );
    assert!(
        heads[1].contains("\nuser-agent: picker/1.0 vitrine-client/"),
        "{heads:?}"
    );
}

#[tokio::test]
async fn texts_are_requested_without_the_key() {
    let text = answer(
        "200 OK\r\nContent-Type: text/markdown; charset=utf-8",
        "# Hello\n",
    );
    let server = MockServer::of(vec![
        text,
        answer("200 OK\r\nContent-Type: text/markdown", b"a\xff"),
        answer("200 OK\r\nContent-Type: image/png", "a"),
    ]);
    let client = server.client();
    assert_eq!(
        client
            .text(&format!("{}/a.md", server.url()))
            .await
            .unwrap(),
        "# Hello\n"
    );
    for _ in 0..2 {
        client
            .text(&format!("{}/b.md", server.url()))
            .await
            .unwrap_err();
    }
    let heads = server.heads();
    assert_eq!(heads.len(), 3);
    assert!(
        heads
            .iter()
            .all(|head| !head.contains("s3cret") && !head.contains("x-api-key")),
        "{heads:?}"
    );
    for address in [
        "",
        "file:///etc/passwd",
        "ftp://a.example/",
        "/v2/texts/a.md",
        "not an address",
    ] {
        let failure = client.text(address).await.unwrap_err();
        assert!(
            matches!(failure, Error::Request(_)),
            "{address}: {failure:?}"
        );
    }
}

#[tokio::test]
async fn codes_never_leave_their_path() {
    let server = MockServer::of(vec![json(
        "404 No",
        r#"{"type":"not_found","message":"no"}"#,
    )]);
    let client = server.client();
    for code in ["", ".", "..", "categories", "countries", "changes"] {
        let failure = client.product(code).await.unwrap_err();
        assert!(matches!(failure, Error::Request(_)), "{code}: {failure:?}");
    }
    assert_eq!(server.count(), 0);
    assert!(
        client
            .product("../ping?a=b#c/%2e%2e")
            .await
            .unwrap_err()
            .is_not_found()
    );
    let heads = server.heads();
    assert!(
        heads[0].starts_with("get /v2/product/..%2fping%3fa%3db%23c%2f%252e%252e http/1.1"),
        "{heads:?}"
    );
}

#[test]
fn keys_are_not_sent_unencrypted_to_other_machines() {
    let key = || Key::new(KEY).expect("a key");
    let refused = Client::new("http://catalog.example", key()).unwrap_err();
    assert_eq!(
        refused,
        BuildError::Insecure {
            host: "catalog.example".to_owned()
        }
    );
    Client::new("https://catalog.example", key()).unwrap();
    Client::builder("http://catalog.example", key())
        .allow_insecure()
        .build()
        .unwrap();
    let builder = Client::builder("https://catalog.example", key());
    assert!(!format!("{builder:?}").contains("s3cret"));
}

#[test]
fn requests_can_be_sent_on_other_threads() {
    fn is_send<T: Send>(_: T) {}
    let client = Client::new("http://127.0.0.1", Key::new(KEY).unwrap()).unwrap();
    is_send(client.product("A"));
    is_send(client.products().stream());
    is_send(client.products().page());
    is_send(client.clone());
}
