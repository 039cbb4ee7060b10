//! Waits of the changes feed: what ends them, who may wait, and what they cost.

use std::time::{Duration, Instant};

use crate::changes::named;
use crate::harness::feed::{
    CHANGES, CatalogCopy, Changes, FeedServer, Refusal, aged, of_unknown_revision, refusal,
};
use crate::harness::{KeepAlive, Reply, Server, Store, are_files, gift_card, scrape, wait_for};
use crate::openapi::documents;
use crate::openapi_headers::headers_are_described;

pub const ADMIN: [&str; 2] = ["--admin-listen", "127.0.0.1:0"];

/// Ten times the second within which a change should end a wait: other tests run beside this one.
const PROMPT: Duration = Duration::from_secs(10);

/// Serves `A`, which is in Germany.
fn served(options: &[&str]) -> FeedServer {
    FeedServer::of(&[gift_card("A")], &[&ADMIN, options].concat())
}

pub fn count_waits(server: &Server) -> f64 {
    scrape(server).value("vitrine_changes_waiting")
}

/// Waits until so many requests wait for changes.
pub fn wait_for_waits(server: &Server, count: usize) {
    wait_for("requests to wait", || {
        (count_waits(server) == count as f64).then_some(())
    });
}

/// Begins a wait on a connection of its own.
pub fn begin(server: &Server, key: &str, copy: &CatalogCopy, seconds: usize) -> KeepAlive {
    let mut connection = server.keep_alive();
    let target = copy.target(&format!("wait={seconds}"));
    connection.write(&format!(
        "GET {target} HTTP/1.1\r\nHost: vitrine.test\r\nX-Api-Key: {key}\r\n\r\n"
    ));
    connection
}

pub fn end(mut connection: KeepAlive) -> Reply {
    connection.read("GET").expect("an answer")
}

/// Asserts an empty answer that tells the client to pause.
fn assert_refused(reply: &Reply) {
    assert_eq!(Changes::of(reply).named(), [""; 0]);
    let seconds = reply.header("retry-after").expect("Retry-After");
    assert!(
        seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0),
        "{seconds}"
    );
    let [(_, document), _] = documents();
    let response = &document["paths"]["/product/changes"]["get"]["responses"]["200"];
    headers_are_described(&document, response, reply, "a refused wait");
}

#[test]
fn wait_ends_with_the_first_visible_change() {
    let served = served(&[]);
    let mut copy = served.copy("countries_redeemable_in=DE");
    let mut slowest = Duration::ZERO;
    for round in 0..5 {
        let waiting = begin(&served.server, &served.key, &copy, 55);
        wait_for_waits(&served.server, 1);
        served
            .store
            .load_products(&[named("A", &format!("Round {round}"))]);
        let loaded = Instant::now();
        let reply = end(waiting);
        slowest = slowest.max(loaded.elapsed());
        assert_eq!(copy.apply(&reply).named(), ["A"]);
        assert_eq!(reply.header("retry-after"), None);
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        served.settle(&mut copy);
    }
    println!("the slowest of 5 waits ended {slowest:?} after the load");
    assert!(slowest < PROMPT, "{slowest:?}");
    wait_for_waits(&served.server, 0);
}

#[test]
fn removal_and_text_end_a_wait() {
    let mut described = gift_card("B");
    described["gift_card"]["content_resources"]["description_md"] = "# One".into();
    let served = FeedServer::of(&[gift_card("A"), described.clone()], &ADMIN);
    let mut copy = served.copy("");
    let digest = vitrine_model::content::TextDigest::of("# One").to_string();
    let changes: [(&dyn Fn(), &str); 3] = [
        (
            &|| drop(served.store.ok(&["texts", "take-down", &digest])),
            "B",
        ),
        (
            &|| drop(served.store.ok(&["texts", "put-back", &digest])),
            "B",
        ),
        (
            &|| drop(served.store.load_products(&[described.clone()])),
            "-A",
        ),
    ];
    for (change, expected) in changes {
        let waiting = begin(&served.server, &served.key, &copy, 55);
        wait_for_waits(&served.server, 1);
        change();
        assert_eq!(copy.apply(&end(waiting)).named(), [expected]);
    }
    served.settle(&mut copy);
}

#[test]
fn invisible_change_moves_the_token_and_ends_no_wait() {
    let served = served(&["--changes-keep", "1s"]);
    let mut copy = served.copy("countries_redeemable_in=SE");
    let before = copy.clone();
    let waiting = begin(&served.server, &served.key, &copy, 55);
    wait_for_waits(&served.server, 1);
    for round in 0..2 {
        served.load(&[named("A", &format!("Round {round}"))]);
        wait_for_waits(&served.server, 1);
    }
    // Not even once its token couldn't be continued any more. Nothing but the end of the server ends it.
    wait_for("the token of before to end", || {
        (served.refusals(&before)[1] == Some(Refusal::Gone)).then_some(())
    });
    wait_for_waits(&served.server, 1);
    let mut served = served;
    served.server.signal("TERM");
    assert_eq!(copy.apply(&end(waiting)).named(), [""; 0]);
    assert_eq!(served.server.wait(), Some(0));
    let served = served.restart(&["--changes-keep", "1s"]);
    assert_eq!(served.refusals(&copy), [None; 2]);
    served.settle(&mut copy);
}

#[test]
fn wait_ends_empty_at_its_time() {
    let served = served(&[]);
    let mut copy = served.copy("");
    let before = copy.clone();
    for seconds in [0, 1] {
        let began = Instant::now();
        let reply = served.ask(&copy, &format!("wait={seconds}"));
        assert!(began.elapsed() >= Duration::from_secs(seconds));
        assert_eq!(copy.apply(&reply).named(), [""; 0]);
        assert_eq!(reply.header("retry-after"), None);
    }
    served.load(&[named("A", "new")]);
    // What has changed already isn't waited for.
    for copy in [copy, before] {
        let began = Instant::now();
        assert_eq!(Changes::of(&served.ask(&copy, "wait=55")).named(), ["A"]);
        assert!(began.elapsed() < PROMPT);
    }
}

/// An empty answer would say that the copy is right, and it isn't.
#[test]
fn rest_of_a_begun_copy_that_vanished_is_removed() {
    let served = FeedServer::of(&["A", "B"].map(gift_card), &ADMIN);
    let mut copies = [(); 2].map(|()| CatalogCopy::of(""));
    for copy in &mut copies {
        assert_eq!(copy.ask(&served.server, &served.key, "limit=1"), ["A"]);
    }
    served.load(&[named("A", "new")]);
    for (copy, more) in copies.iter_mut().zip(["", "wait=55"]) {
        let began = Instant::now();
        assert_eq!(copy.ask(&served.server, &served.key, more), ["-B"]);
        assert!(began.elapsed() < PROMPT);
        assert_eq!(copy.ask(&served.server, &served.key, ""), ["A", "-B"]);
        served.settle(copy);
    }
}

#[test]
fn end_of_a_walk_waits_if_nothing_changed_meanwhile() {
    let served = FeedServer::of(&["A", "B"].map(gift_card), &ADMIN);
    let mut copy = served.copy("countries_redeemable_in=DE");
    served.load(&[named("A", "new"), named("B", "new")]);
    assert_eq!(copy.ask(&served.server, &served.key, "limit=1"), ["A"]);
    assert_eq!(
        copy.ask(&served.server, &served.key, "limit=1&wait=55"),
        ["B"]
    );
    let waiting = begin(&served.server, &served.key, &copy, 55);
    wait_for_waits(&served.server, 1);
    served
        .store
        .load_products(&[named("A", "newer"), named("B", "new")]);
    assert_eq!(copy.apply(&end(waiting)).named(), ["A"]);
    served.settle(&mut copy);
}

#[test]
fn shutdown_ends_all_waits_with_200() {
    let options = ["--drain-delay", "1h", "--max-waits", "100"];
    let mut served = served(&options);
    let mut copies = vec![served.copy(""); 20];
    let all: Vec<KeepAlive> = copies
        .iter()
        .map(|copy| begin(&served.server, &served.key, copy, 55))
        .collect();
    wait_for_waits(&served.server, 20);
    let signalled = Instant::now();
    served.server.signal("TERM");
    for (connection, copy) in all.into_iter().zip(&mut copies) {
        assert_eq!(copy.apply(&end(connection)).named(), [""; 0]);
    }
    let took = signalled.elapsed();
    println!("20 waits ended {took:?} after SIGTERM");
    assert!(took < PROMPT, "{took:?}");
    // Balancers that haven't noticed go on sending: nobody waits any more.
    assert_refused(&served.ask(&copies[0], "wait=55"));
    served.server.signal("TERM");
    assert_eq!(served.server.wait(), Some(0));
    let served = served.restart(&[]);
    for copy in &mut copies[..2] {
        served.settle(copy);
    }
}

#[test]
fn server_with_waits_exits_without_a_cut() {
    let mut served = served(&["--drain-timeout", "1h"]);
    let copy = served.copy("");
    let waiting = begin(&served.server, &served.key, &copy, 55);
    wait_for_waits(&served.server, 1);
    let signalled = Instant::now();
    served.server.signal("TERM");
    assert_eq!(Changes::of(&end(waiting)).named(), [""; 0]);
    assert_eq!(served.server.wait(), Some(0));
    let took = signalled.elapsed();
    println!("the server ended {took:?} after SIGTERM");
    assert!(took < PROMPT, "{took:?}");
    let said = served.server.stderr();
    assert!(!said.contains("closed the remaining connections"), "{said}");
}

#[test]
fn key_revoked_during_a_wait_gets_401_at_its_end() {
    let served = served(&[]);
    let revoked = served.store.key("revoked", &[]);
    let kept = served.copy("");
    wait_for("the key", || {
        (served.server.get(&revoked, "/v2/ping").status == 200).then_some(())
    });
    let waits = [&revoked, &served.key].map(|key| begin(&served.server, key, &kept, 55));
    wait_for_waits(&served.server, 2);
    served.store.ok(&["keys", "revoke", "revoked"]);
    wait_for("the revocation", || {
        (served.server.get(&revoked, "/v2/ping").status == 401).then_some(())
    });
    served.store.load_products(&[named("A", "new")]);
    let [refused, answered] = waits.map(end);
    assert_eq!(
        (refused.status, refused.error().as_str()),
        (401, "invalid_api_key")
    );
    assert_eq!(Changes::of(&answered).named(), ["A"]);
}

#[test]
fn restore_during_a_wait_ends_it() {
    if !are_files("restore during a wait ends it") {
        return;
    }
    let served = served(&[]);
    let backup = served.store.path("backup.db").display().to_string();
    served.store.ok(&["backup", &backup]);
    served.load(&["A", "B"].map(gift_card));
    let mut copy = served.copy("");
    let young = copy.clone();
    copy.token = copy.token.map(|token| aged(&token, 60));
    let waits = [&young, &copy].map(|copy| begin(&served.server, &served.key, copy, 55));
    wait_for_waits(&served.server, 2);
    served.store.ok(&["restore", "--yes", &backup]);
    let refusals = waits.map(|connection| refusal(&end(connection)));
    assert_eq!(refusals, [Some(Refusal::Unknown), Some(Refusal::Gone)]);
}

/// Requests left of a quota.
fn left(reply: &Reply) -> &str {
    let limit = reply.header("ratelimit").expect("RateLimit");
    let (_, rest) = limit.split_once(";r=").expect("what is left");
    rest.split(';').next().expect("a number")
}

#[test]
fn only_answers_with_changes_cost_quota() {
    let served = served(&[]);
    let key = served.store.key("small", &["--quota", "2/36000"]);
    let mut copy = CatalogCopy::of("");
    let ask = |copy: &CatalogCopy, more: &str| served.server.get(&key, &copy.target(more));
    let first = wait_for("the key", || {
        let reply = ask(&copy, "");
        (reply.status != 401).then_some(reply)
    });
    assert_eq!(left(&first), "1");
    copy.apply(&first);
    for more in ["", "wait=0", "wait=1"] {
        let empty = ask(&copy, more);
        assert_eq!(copy.apply(&empty).named(), [""; 0]);
        assert_eq!(left(&empty), "1", "{more}");
    }
    let waiting = begin(&served.server, &key, &copy, 55);
    wait_for_waits(&served.server, 1);
    served.store.load_products(&[named("A", "new")]);
    let changed = end(waiting);
    assert_eq!(copy.apply(&changed).named(), ["A"]);
    assert_eq!(left(&changed), "0");
    // Now even an answer that would be empty is refused: nothing is searched for, and no wait begins.
    for more in ["", "wait=55"] {
        let began = Instant::now();
        let refused = ask(&copy, more);
        assert_eq!(
            (refused.status, refused.error().as_str()),
            (429, "rate_limited")
        );
        assert!(refused.header("retry-after").is_some() && began.elapsed() < PROMPT);
    }
    // What is gone is told all the same.
    let mut gone = copy.clone();
    gone.token = gone
        .token
        .map(|token| of_unknown_revision(&aged(&token, 60)));
    assert_eq!(refusal(&ask(&gone, "wait=55")), Some(Refusal::Gone));
    // Changes are refused, and not lost: the token stays good.
    served.load(&[named("A", "newer")]);
    assert_eq!(ask(&copy, "").status, 429);
    copy.settle(&served.server, &served.key);
    wait_for_waits(&served.server, 0);
}

#[test]
fn wait_beyond_the_limits_is_answered_at_once() {
    let store = Store::of(&[gift_card("A")]);
    let keys: Vec<String> = (0..5)
        .map(|number| store.key(&format!("k{number}"), &[]))
        .collect();
    let served = FeedServer::over(store, &[&ADMIN[..], &["--max-waits", "4"]].concat());
    let copy = served.copy("");
    let refused = || scrape(&served.server).value("vitrine_changes_waits_refused_total");
    let begin = |key: &str| begin(&served.server, key, &copy, 55);
    let mut waits = vec![begin(&keys[0])];
    wait_for_waits(&served.server, 1);
    // A quarter is one key's.
    assert_refused(&served.server.get(&keys[0], &copy.target("wait=55")));
    for key in &keys[1..4] {
        waits.push(begin(key));
    }
    wait_for_waits(&served.server, 4);
    assert_refused(&served.server.get(&keys[4], &copy.target("wait=55")));
    assert_eq!(refused(), 2.0);
    // What needn't wait is answered.
    assert_eq!(
        served
            .server
            .get(&keys[4], &copy.target("wait=0"))
            .header("retry-after"),
        None
    );
    assert_eq!(served.server.get(&keys[0], CHANGES).status, 200);
    served.load(&[named("A", "new")]);
    for waiting in waits {
        assert_eq!(Changes::of(&end(waiting)).named(), ["A"]);
    }
    wait_for_waits(&served.server, 0);
    // The places are free again.
    let copy = served.copy("");
    let reply = served.server.get(&keys[0], &copy.target("wait=1"));
    assert_eq!(reply.header("retry-after"), None);
}
