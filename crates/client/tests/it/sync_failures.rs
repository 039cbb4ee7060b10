//! Syncs through outages, lost tokens and servers without sense.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use vitrine_client::{Retries, SyncEvent};

use crate::mock_server::{KEY, MockServer, answer, error};
use crate::sync::{events, page, shown, sync};

#[tokio::test]
async fn transient_failures_are_repeated_with_the_same_token() {
    let cut = |whole: Vec<u8>| whole[..whole.len() - 1].to_vec();
    let server = MockServer::of(vec![
        page(&["a"], "t1", false),
        error("503 Busy\r\nRetry-After: 0", "unavailable"),
        cut(page(&["b"], "t2", false)),
        answer("502 Bad Gateway\r\nContent-Type: text/html", "<h1>502</h1>"),
        b"HTTP/1.1 ".to_vec(),
        error("429 Too Many\r\nRetry-After: 0", "rate_limited"),
        error("500 Oh", "internal_server_error"),
        error("504 Late", "timeout"),
        page(&["b"], "t3", false),
    ]);
    // More failures than other requests are retried for.
    let mut sync = sync(&server.client(), None);
    let mut expected = vec!["start", "a t1!"];
    expected.extend(["retry"; 7]);
    expected.push("b t3!");
    assert_eq!(events(&mut sync, 10).await, expected);
    let queries = server.queries("/v2/product/changes");
    assert_eq!(queries[0], "");
    assert!(
        queries[1..]
            .iter()
            .all(|query| query == "?since=t1&wait=45")
    );
    assert_eq!(queries.len(), 9);
}

#[tokio::test]
async fn silent_server_is_asked_again() {
    let server = MockServer::of(vec![b"".to_vec(), page(&["a"], "t1", false)]);
    let builder = server.builder().timeout(Duration::from_secs(2));
    let mut sync = sync(&builder.build().unwrap(), Some("t0"));
    assert_eq!(events(&mut sync, 2).await, ["retry", "a t1"]);
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn retry_after_of_a_failure_is_waited_for() {
    let server = MockServer::of(vec![
        error("503 Busy\r\nRetry-After: 1", "unavailable"),
        page(&["a"], "t1", false),
    ]);
    let mut sync = sync(&server.client(), Some("t0"));
    let Some(Ok(SyncEvent::Retrying(failure))) = sync.next().await else {
        panic!("no failure");
    };
    assert_eq!(
        failure.api().unwrap().retry_after,
        Some(Duration::from_secs(1))
    );
    let failed = Instant::now();
    assert_eq!(events(&mut sync, 1).await, ["a t1"]);
    assert!(failed.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn lost_token_starts_the_copy_over() {
    let server = MockServer::of(vec![
        page(&["b"], "t1", true),
        error("410 Gone", "changes_gone"),
        page(&["a"], "u1", false),
        page(&["b"], "u2", false),
    ]);
    let mut sync = sync(&server.client(), Some("t0"));
    assert_eq!(
        events(&mut sync, 4).await,
        ["b t1", "start", "a u1!", "b u2!"]
    );
    assert_eq!(
        server.queries("/v2/product/changes"),
        ["?since=t0", "?since=t1", "", "?since=u1&wait=45"]
    );
}

#[tokio::test]
async fn permanent_failures_end_the_sync() {
    for (head, name) in [
        ("400 Bad Request", "pagination_error"),
        ("401 Unauthorized", "invalid_api_key"),
        ("404 Not Found", "not_found"),
        // The other error with this status.
        ("410 Gone", "version_removed"),
    ] {
        let server = MockServer::of(vec![page(&["a"], "t1", false), error(head, name)]);
        let mut sync = sync(&server.client(), None);
        assert_eq!(events(&mut sync, 2).await, ["start", "a t1!"]);
        let failure = sync.next().await.unwrap().unwrap_err();
        assert_eq!(failure.api().unwrap().error_type.as_str(), name);
        assert_eq!(shown(sync.next().await), "end");
        assert_eq!(server.count(), 2);
        assert!(!format!("{failure:?} {sync:?}").contains(KEY));
    }
}

/// Number of requests to a server without sense.
const REQUESTS: u32 = 40;
/// Longest pause of the client, after the first failure too.
const PAUSE: Duration = Duration::from_millis(50);

#[tokio::test]
async fn servers_without_progress_keep_no_sync_busy() {
    let gone = || error("410 Gone", "changes_gone");
    let mut cases = JoinSet::new();
    for (case, answers) in [
        ("empty at once", vec![page(&[], "t1", false)]),
        ("more of nothing", vec![page(&[], "t1", true)]),
        ("same page again", vec![page(&["a"], "t1", true)]),
        ("same token again", vec![page(&["a"], "t1", false)]),
        ("gone without a token", vec![gone()]),
        ("gone each time", vec![page(&["a"], "t1", true), gone()]),
        (
            "tokens in a circle",
            vec![page(&["b"], "t1", true), page(&["a"], "t2", true)],
        ),
        (
            "changes without an end",
            vec![page(&["a"], "t1", false), page(&["a"], "t2", false)],
        ),
        ("unavailable", vec![error("503 Busy", "unavailable")]),
    ] {
        cases.spawn(async move {
            let answers = answers.iter().cloned().cycle();
            let server = MockServer::of(answers.take(2 * REQUESTS as usize).collect());
            let mut retries = Retries::none();
            (retries.first_pause, retries.longest_pause) = (PAUSE, PAUSE);
            let client = server.builder().retries(retries).build().unwrap();
            let begun = Instant::now();
            let mut sync = sync(&client, Some("t0"));
            while server.count() < REQUESTS as usize {
                sync.next().await.unwrap().unwrap();
            }
            // A pause is random, half of the longest one on average; half of the requests may have none.
            assert!(begun.elapsed() >= PAUSE * REQUESTS / 10, "{case}");
        });
    }
    cases.join_all().await;
}
