//! Transient failures are retried, permanent ones aren't, and all requests end.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use vitrine_client::{Error, ErrorType, FaultType, Retries};

use crate::mock_server::{MockServer, answer, error, json, pong};

fn cut() -> Vec<u8> {
    let whole = pong();
    whole[..whole.len() - 1].to_vec()
}

#[tokio::test]
async fn transient_failures_are_retried() {
    let busy = error("503 Service Unavailable\r\nRetry-After: 0", "unavailable");
    let gateway = answer("502 Bad Gateway\r\nContent-Type: text/html", "<h1>502</h1>");
    let server = MockServer::of(vec![busy, cut(), gateway, b"HTTP/1.1 ".to_vec(), pong()]);
    server.client().ping().await.unwrap();
    assert_eq!(server.count(), 5);
}

#[tokio::test]
async fn last_failure_is_returned_after_all_retries() {
    let server = MockServer::of(vec![
        cut(),
        error(
            "429 Too Many\r\nRetry-After: 0\r\nX-Request-Id: r-7",
            "rate_limited",
        ),
    ]);
    let failure = server.client().ping().await.unwrap_err();
    assert!(
        matches!(failure, Error::GaveUp { tries: 5, .. }),
        "{failure:?}"
    );
    let api = failure.api().unwrap();
    assert_eq!(api.status, 429);
    assert_eq!(api.error_type, ErrorType::RateLimited);
    assert_eq!(
        (api.request_id.as_deref(), api.retry_after),
        (Some("r-7"), Some(Duration::ZERO))
    );
    assert_eq!(server.count(), 5);
}

#[tokio::test]
async fn permanent_failures_are_returned_at_once() {
    for (head, name, expected) in [
        (
            "400 Bad Request",
            "bad_request",
            Some(ErrorType::BadRequest),
        ),
        (
            "401 Unauthorized",
            "invalid_api_key",
            Some(ErrorType::InvalidApiKey),
        ),
        ("403 Forbidden", "forbidden", Some(ErrorType::Forbidden)),
        ("404 Not Found", "not_found", Some(ErrorType::NotFound)),
        (
            "410 Gone",
            "version_removed",
            Some(ErrorType::VersionRemoved),
        ),
        ("418 Teapot", "teapot", None),
    ] {
        let server = MockServer::of(vec![error(head, name), pong()]);
        let failure = server.client().ping().await.unwrap_err();
        let error_type = &failure.api().unwrap().error_type;
        assert_eq!((error_type.known(), error_type.as_str()), (expected, name));
        assert_eq!(failure.is_not_found(), name == "not_found");
        assert_eq!(server.count(), 1, "{failure}");
    }
}

#[tokio::test]
async fn retry_after_beyond_the_total_ends_the_retries() {
    let server = MockServer::of(vec![
        error("503 Busy\r\nRetry-After: 3600", "unavailable"),
        pong(),
    ]);
    let failure = server.client().ping().await.unwrap_err();
    assert_eq!(
        failure.api().unwrap().retry_after,
        Some(Duration::from_secs(3600))
    );
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn retry_after_of_a_balancer_is_waited_for() {
    let busy = answer(
        "503 Busy\r\nContent-Type: text/html\r\nRetry-After: 3600",
        "<h1>503</h1>",
    );
    let cut_off = busy[..busy.len() - 1].to_vec();
    let mut failures = Vec::new();
    for busy in [busy, cut_off] {
        let server = MockServer::of(vec![busy, pong()]);
        failures.push(server.client().ping().await.unwrap_err());
        assert_eq!(server.count(), 1, "{failures:?}");
    }
    assert!(
        matches!(
            failures.as_slice(),
            [
                Error::Unexpected { status: 503, .. },
                Error::Transport { .. }
            ]
        ),
        "{failures:?}"
    );
}

#[tokio::test]
async fn permanent_failure_after_a_retry_is_returned_as_is() {
    let busy = error("503 Busy\r\nRetry-After: 0", "unavailable");
    let server = MockServer::of(vec![cut(), busy, error("404 Not Found", "not_found")]);
    let failure = server.client().product("A").await.unwrap_err();
    assert!(
        matches!(&failure, Error::Api(error) if error.error_type == ErrorType::NotFound),
        "{failure:?}"
    );
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn refused_parameters_are_listed_in_the_error() {
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../server/tests/golden/2024-02-05/error-parameters.json"
    );
    let server = MockServer::of(vec![json(
        "400 Bad Request",
        std::fs::read(golden).unwrap(),
    )]);
    let failure = server
        .client()
        .products()
        .limit(501)
        .page()
        .await
        .unwrap_err();
    let api = failure.api().unwrap();
    let types = api.details.iter().map(|fault| fault.fault_type.known());
    assert_eq!(
        types.collect::<Vec<_>>(),
        [
            Some(FaultType::OutOfRange),
            Some(FaultType::UnknownParameter),
            Some(FaultType::MutuallyExclusive)
        ]
    );
    assert_eq!(api.details[0].location, ["query", "limit"]);
    assert!(failure.to_string().contains("`limit` is 501"), "{failure}");
}

#[tokio::test]
async fn silent_servers_end_with_a_timeout() {
    let server = MockServer::of(vec![Vec::new()]);
    let client = server
        .builder()
        .timeout(Duration::from_millis(50))
        .retries(Retries::none());
    let failure = client.build().unwrap().ping().await.unwrap_err();
    assert!(matches!(failure, Error::Timeout), "{failure:?}");
    // The total timeout also ends a running attempt.
    let mut retries = Retries::default();
    retries.longest_total = Duration::from_millis(50);
    let client = server.builder().retries(retries).build().unwrap();
    let failure = client.ping().await.unwrap_err();
    assert!(matches!(failure, Error::Timeout), "{failure:?}");
}

#[tokio::test]
async fn refused_connections_are_retried_and_returned() {
    // A port without a listener: bound and released.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let key = vitrine_client::Key::new("a.b").unwrap();
    let mut retries = Retries::default();
    (retries.first_pause, retries.most) = (Duration::ZERO, 2);
    let client = vitrine_client::Client::builder(&format!("http://{port}"), key).retries(retries);
    let failure = client.build().unwrap().ping().await.unwrap_err();
    let Error::GaveUp { tries: 3, last } = &failure else {
        panic!("{failure:?}");
    };
    assert_eq!(last.to_string(), "can't connect");
}

#[tokio::test]
async fn bodies_beyond_the_maximum_are_refused() {
    let long = json(
        "200 OK",
        format!(r#"{{"message":"{}"}}"#, "x".repeat(2_000)),
    );
    let endless = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n".to_vec();
    let endless = [endless, vec![b' '; 100_000]].concat();
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![b' '; 1_000_000]).unwrap();
    let bomb = json("200 OK\r\nContent-Encoding: gzip", bomb.finish().unwrap());
    assert!(bomb.len() < 2_000);
    let long_error = json("500 Oh", vec![b' '; 2_001]);
    for body in [long, endless, bomb, long_error] {
        let server = MockServer::of(vec![body]);
        let client = server.builder().most_body_bytes(2_000).build().unwrap();
        let failure = client.ping().await.unwrap_err();
        assert!(
            matches!(failure, Error::TooLong { most_bytes: 2_000 }),
            "{failure:?}"
        );
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn responses_outside_the_contract_are_unexpected() {
    for (odd, expected) in [
        (
            answer("200 OK\r\nContent-Type: text/html", "<html>"),
            "application/json",
        ),
        (
            answer("200 OK", r#"{"message":"pong"}"#),
            "application/json",
        ),
        (
            answer("404 Not Found\r\nContent-Type: text/html", "<html>"),
            "a server of this contract",
        ),
        (
            json("404 Not Found", r#"{"error":"none"}"#),
            "a server of this contract",
        ),
        (json("204 No Content", ""), "a server of this contract"),
        (answer("304 Not Modified", ""), "no tag"),
    ] {
        let server = MockServer::of(vec![odd]);
        let failure = server.client().ping().await.unwrap_err();
        assert!(matches!(failure, Error::Unexpected { .. }), "{failure:?}");
        assert!(failure.to_string().contains(expected), "{failure}");
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn decode_errors_have_the_path_of_the_fault() {
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../server/tests/golden/2024-02-05/list-first-page.json"
    );
    let page = std::fs::read_to_string(golden).unwrap();
    let odd = page.replacen(r#""in_months":12"#, r#""in_months":"twelve""#, 1);
    assert_ne!(odd, page);
    let server = MockServer::of(vec![json("200 OK", odd), json("200 OK", "{\"catalog\":[")]);
    let client = server.client();
    let failure = client.products().page().await.unwrap_err();
    let Error::Decode { place, what } = &failure else {
        panic!("{failure:?}");
    };
    assert!(
        place.starts_with("catalog[") && place.ends_with("].gift_card.expiry.in_months"),
        "{place}"
    );
    assert!(what.contains("u32"), "{what}");
    let failure = client.products().page().await.unwrap_err();
    assert!(matches!(failure, Error::Decode { .. }), "{failure:?}");
    assert_eq!(server.count(), 2);
}
