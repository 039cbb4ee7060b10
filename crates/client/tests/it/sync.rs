//! Syncs: the requests that keep a copy right, and the tokens that come with changes.

use std::time::{Duration, Instant};

use vitrine_client::{Client, Results, SyncEvent, blocking};

use crate::mock_server::{MockServer, json};

/// Returns a page of changes whose products are texts.
pub(crate) fn page(codes: &[&str], next: &str, has_more: bool) -> Vec<u8> {
    page_with("200 OK", codes, next, has_more)
}

fn page_with(head: &str, codes: &[&str], next: &str, has_more: bool) -> Vec<u8> {
    let changes: Vec<_> = codes
        .iter()
        .map(|code| serde_json::json!({"code": code, "product": format!("product {code}")}))
        .collect();
    let body = serde_json::json!({"changes": changes, "next": next, "has_more": has_more});
    json(head, body.to_string())
}

/// Begins a sync of products that are texts.
pub(crate) fn sync(client: &Client, stored: Option<&str>) -> Results<SyncEvent<String>> {
    let changes = client.changes().read_as::<String>();
    changes.sync(stored.map(str::to_owned))
}

/// Returns an event in short: codes, token and `!` at rest; `start`, `retry` or `end`.
pub(crate) fn shown(event: Option<vitrine_client::Result<SyncEvent<String>>>) -> String {
    match event {
        None => "end".to_owned(),
        Some(Err(error)) => format!("error {error}"),
        Some(Ok(SyncEvent::StartOver)) => "start".to_owned(),
        Some(Ok(SyncEvent::Retrying(_))) => "retry".to_owned(),
        Some(Ok(SyncEvent::Changes {
            changes,
            token,
            at_rest,
            ..
        })) => {
            let codes: Vec<&str> = changes.iter().map(|change| &*change.code).collect();
            let rest = if at_rest { "!" } else { "" };
            format!("{} {token}{rest}", codes.join(","))
        }
        Some(Ok(other)) => panic!("{other:?}"),
    }
}

/// Returns the next events of a sync, in short.
pub(crate) async fn events(sync: &mut Results<SyncEvent<String>>, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..count {
        seen.push(shown(sync.next().await));
    }
    seen
}

fn queries(server: &MockServer) -> Vec<String> {
    server.queries("/v2/product/changes")
}

#[tokio::test]
async fn copy_begins_with_everything_and_then_waits() {
    let server = MockServer::of(vec![
        page(&["a", "b"], "t1", true),
        page(&["c"], "t2", false),
        page(&["b"], "t3", false),
        page(&[], "t4", false),
        page(&["d"], "t5", false),
        page(&[], "t6", false),
    ]);
    let mut sync = sync(&server.client(), None);
    assert_eq!(
        events(&mut sync, 7).await,
        // A walk of two pages shows no single moment; the one after a copy at rest does.
        ["start", "a,b t1", "c t2", "b t3", " t4!", "d t5!", " t6!"]
    );
    assert_eq!(
        queries(&server),
        [
            "",
            "?since=t1",
            "?since=t2",
            "?since=t3",
            "?since=t4&wait=45",
            "?since=t5&wait=45"
        ]
    );
}

#[tokio::test]
async fn first_answer_without_more_is_at_rest() {
    let server = MockServer::of(vec![
        page(&["a"], "t1", false),
        page(&["a", "b"], "t2", true),
        page(&["c"], "t3", false),
        page(&["a"], "t4", true),
        page(&[], "t5", false),
        page(&[], "t6", false),
    ]);
    let request = server.client().changes().read_as::<String>();
    let mut sync = request
        .country("SE")
        .limit(2)
        .wait(Duration::from_secs(9))
        .sync(None);
    // The empty page that ends a walk of two shows a later moment than the first.
    assert_eq!(
        events(&mut sync, 7).await,
        ["start", "a t1!", "a,b t2", "c t3", "a t4", " t5", " t6!"]
    );
    let filters = "?countries_redeemable_in=se&limit=2";
    assert_eq!(
        queries(&server),
        [
            filters.to_owned(),
            format!("{filters}&since=t1&wait=9"),
            format!("{filters}&since=t2"),
            format!("{filters}&since=t3"),
            format!("{filters}&since=t4"),
            format!("{filters}&since=t5"),
        ]
    );
}

#[tokio::test]
async fn empty_page_with_more_is_followed_at_once() {
    let server = MockServer::of(vec![
        page(&["a", "b"], "t1", false),
        page(&[], "t2", true),
        page(&[], "t3", true),
        page(&["b"], "t4", false),
        page(&[], "t5", false),
    ]);
    let mut sync = sync(&server.client(), None);
    assert_eq!(
        events(&mut sync, 6).await,
        ["start", "a,b t1!", " t2", " t3", "b t4", " t5!"]
    );
    assert_eq!(
        queries(&server),
        [
            "",
            "?since=t1&wait=45",
            "?since=t2",
            "?since=t3",
            "?since=t4"
        ]
    );
}

#[tokio::test]
async fn stored_token_continues_without_a_start() {
    let server = MockServer::of(vec![
        page(&["b"], "t2", false),
        page(&[], "t2", false),
        page(&["c"], "t3", false),
    ]);
    let mut sync = sync(&server.client(), Some("t1"));
    // The stored token may be one from the middle of a walk, so the first answer says nothing of rest.
    assert_eq!(events(&mut sync, 3).await, ["b t2", " t2!", "c t3!"]);
    assert_eq!(
        queries(&server),
        ["?since=t1", "?since=t2", "?since=t2&wait=45"]
    );
}

#[tokio::test]
async fn sync_dropped_after_any_event_loses_nothing() {
    let server = MockServer::of(vec![
        page(&["a"], "t1", true),
        page(&["b"], "t2", true),
        page(&["c"], "t3", false),
        page(&["a"], "t4", false),
        page(&[], "t5", false),
    ]);
    let mut stored = None;
    let mut seen = Vec::new();
    while seen.len() < 5 {
        // The process dies after each transaction.
        let mut sync = sync(&server.client(), stored.as_deref());
        while let Some(event) = sync.next().await {
            if let SyncEvent::Changes { changes, token, .. } = event.unwrap() {
                seen.push(changes.len());
                stored = Some(token);
                break;
            }
        }
    }
    assert_eq!(seen, [1, 1, 1, 1, 0]);
    assert_eq!(
        queries(&server),
        ["", "?since=t1", "?since=t2", "?since=t3", "?since=t4"]
    );
}

#[tokio::test]
async fn dropped_next_repeats_no_request() {
    let pages = vec![
        page(&["a"], "t1", true),
        page(&["b"], "t2", true),
        page(&["c"], "t3", false),
    ];
    let server = MockServer::holding(pages, Duration::from_millis(50));
    let mut sync = sync(&server.client(), None);
    let (mut seen, mut dropped) = (Vec::new(), 0);
    while seen.len() < 4 {
        match tokio::time::timeout(Duration::from_millis(1), sync.next()).await {
            Ok(event) => seen.push(shown(event)),
            Err(_) => dropped += 1,
        }
    }
    assert_eq!(seen, ["start", "a t1", "b t2", "c t3"]);
    assert!(dropped >= 3, "{dropped}");
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn retry_after_of_an_answer_is_waited_for() {
    let server = MockServer::of(vec![
        page(&["a"], "t1", false),
        page_with("200 OK\r\nRetry-After: 1", &[], "t1", false),
        page(&["b"], "t2", false),
    ]);
    let mut sync = sync(&server.client(), None);
    assert_eq!(events(&mut sync, 3).await, ["start", "a t1!", " t1!"]);
    let answered = Instant::now();
    assert_eq!(events(&mut sync, 1).await, ["b t2!"]);
    assert!(answered.elapsed() >= Duration::from_secs(1));
    assert_eq!(
        queries(&server),
        ["", "?since=t1&wait=45", "?since=t1&wait=45"]
    );
}

#[test]
fn blocking_client_syncs_as_an_iterator() {
    let server = MockServer::of(vec![page(&["a"], "t1", false), page(&["b"], "t2", false)]);
    let client = blocking::Client::build(server.builder()).unwrap();
    let mut events = client.iter(client.changes().read_as::<String>().sync(None));
    let seen: Vec<String> = events.by_ref().take(3).map(|e| shown(Some(e))).collect();
    assert_eq!(seen, ["start", "a t1!", "b t2!"]);
    let mut events = client.iter(
        client
            .changes()
            .read_as::<String>()
            .sync(Some("t2".to_owned())),
    );
    assert_eq!(shown(events.next()), "b t2");
}
