//! Connections on which changes are waited for: limits of idle and old ones don't cut them, and what is given up is freed.

use std::time::{Duration, Instant};

use crate::changes::named;
use crate::changes_waits::{ADMIN, begin, count_waits, end, wait_for_waits};
use crate::harness::feed::{CatalogCopy, Changes, FeedServer};
use crate::harness::{Certificate, KeepAlive, Server, Store, block_on, gift_card, read, wait_for};

/// Returns the duration of a wait beyond the age of its connection: `ci/long` may say more.
fn wait_seconds() -> u64 {
    let seconds = std::env::var("VITRINE_WAIT_SECONDS");
    seconds.map_or(3, |seconds| seconds.parse().expect("a number"))
}

/// A server that speaks HTTP/2, with a key and a copy of its catalog.
struct Encrypted {
    store: Store,
    key: String,
    certificate: Certificate,
    server: Server,
    copy: CatalogCopy,
}

fn encrypted(options: &[&str]) -> Encrypted {
    let store = Store::of(&[gift_card("A")]);
    let key = store.key("reader", &[]);
    let certificate = Certificate::new(&store, "server");
    let server = certificate.serve(&store, &[&ADMIN, options].concat());
    let body = block_on(async {
        let mut client = certificate.http2(server.address).await.expect("HTTP/2");
        let target = CatalogCopy::of("").target("");
        client.get(&key, &target).await.expect("an answer")
    });
    let mut copy = CatalogCopy::of("");
    copy.token = Some(token(&body));
    Encrypted {
        store,
        key,
        certificate,
        server,
        copy,
    }
}

fn changes((status, body): &(u16, Vec<u8>)) -> Changes {
    assert_eq!(*status, 200);
    serde_json::from_slice(body).expect("changes")
}

fn token(answer: &(u16, Vec<u8>)) -> String {
    changes(answer).next
}

#[test]
fn streams_of_one_connection_wait_together() {
    let served = encrypted(&["--max-waits", "40"]);
    let target = served.copy.target("wait=55");
    block_on(async {
        let mut client = served
            .certificate
            .http2(served.server.address)
            .await
            .expect("HTTP/2");
        let mut waits = Vec::new();
        for _ in 0..10 {
            waits.push(client.ask(&served.key, &target).await.expect("asked"));
        }
        wait_for_waits(&served.server, 10);
        // One more than a quarter is answered at once, and others are answered beside them.
        let refused = client.get(&served.key, &target).await.expect("an answer");
        assert_eq!(changes(&refused).named(), [""; 0]);
        let listed = client
            .get(&served.key, "/v2/product")
            .await
            .expect("an answer");
        assert_eq!(listed.0, 200);
        served.store.load_products(&[named("A", "new")]);
        for waiting in waits {
            let answer = read(waiting).await.expect("an answer");
            assert_eq!(changes(&answer).named(), ["A"]);
        }
    });
    wait_for_waits(&served.server, 0);
}

#[test]
fn stream_that_is_given_up_frees_its_place() {
    let served = encrypted(&["--max-waits", "1"]);
    let target = served.copy.target("wait=55");
    block_on(async {
        let mut client = served
            .certificate
            .http2(served.server.address)
            .await
            .expect("HTTP/2");
        for _ in 0..3 {
            let waiting = client.ask(&served.key, &target).await.expect("asked");
            wait_for_waits(&served.server, 1);
            drop(waiting);
            wait_for_waits(&served.server, 0);
        }
        // The whole connection.
        let waiting = client.ask(&served.key, &target).await.expect("asked");
        wait_for_waits(&served.server, 1);
        client.connection.abort();
        drop(client);
        drop(waiting);
        wait_for_waits(&served.server, 0);
    });
}

#[test]
fn http2_wait_outlives_the_age_of_its_connection() {
    let served = encrypted(&["--connection-age", "1s"]);
    let target = served.copy.target(&format!("wait={}", wait_seconds()));
    block_on(async {
        let mut client = served
            .certificate
            .http2(served.server.address)
            .await
            .expect("HTTP/2");
        let waiting = client.ask(&served.key, &target).await.expect("asked");
        let began = Instant::now();
        let answer = read(waiting).await.expect("an answer");
        assert!(began.elapsed() >= Duration::from_secs(wait_seconds()));
        assert_eq!(changes(&answer).named(), [""; 0]);
        let ended = client.connection.await.expect("no panic");
        assert!(ended.is_ok(), "it ends well: {ended:?}");
    });
}

#[test]
fn http1_wait_outlives_the_age_of_its_connection() {
    let options = [&ADMIN[..], &["--connection-age", "1s"]].concat();
    let served = FeedServer::of(&[gift_card("A")], &options);
    let copy = served.copy("");
    let mut connection = served.server.keep_alive();
    let target = copy.target(&format!("wait={}", wait_seconds()));
    let reply = connection.get(&served.key, &target).expect("an answer");
    assert_eq!(Changes::of(&reply).named(), [""; 0]);
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(connection.read("GET").is_none(), "closed after it");
}

#[test]
fn connection_that_waits_first_counts_as_one_with_a_key() {
    // At most 16 of 20 may be without.
    let options = [&ADMIN[..], &["--max-connections", "20"]].concat();
    let served = FeedServer::of(&[gift_card("A")], &options);
    let copy = served.copy("");
    let mut waiting = Vec::new();
    for count in 1..=18 {
        waiting.push(begin(&served.server, &served.key, &copy, 55));
        wait_for_waits(&served.server, count);
    }
    served.store.load_products(&[named("A", "new")]);
    for connection in waiting {
        assert_eq!(Changes::of(&end(connection)).named(), ["A"]);
    }
}

/// Begins a wait with more headers, and what follows them.
fn begin_with(served: &FeedServer, copy: &CatalogCopy, rest: &str) -> KeepAlive {
    let mut connection = served.server.keep_alive();
    let (target, key) = (copy.target("wait=55"), &served.key);
    connection.write(&format!(
        "GET {target} HTTP/1.1\r\nHost: vitrine.test\r\nX-Api-Key: {key}\r\n{rest}"
    ));
    wait_for_waits(&served.server, 1);
    connection
}

#[test]
fn requests_behind_a_wait_are_answered_after_it() {
    let served = FeedServer::of(&[gift_card("A")], &ADMIN);
    let mut copy = served.copy("");
    let ping = format!(
        "GET /v2/ping HTTP/1.1\r\nHost: vitrine.test\r\nX-Api-Key: {}\r\n\r\n",
        served.key
    );
    // Together with the wait, and after it has begun.
    let mut connection = begin_with(&served, &copy, &format!("\r\n{ping}"));
    connection.write(&ping);
    served.store.load_products(&[named("A", "new")]);
    let reply = connection.read("GET").expect("an answer");
    assert_eq!(copy.apply(&reply).named(), ["A"]);
    for _ in 0..2 {
        let reply = connection.read("GET").expect("an answer");
        assert_eq!(reply.status, 200);
        assert!(reply.header("etag").is_some(), "a ping");
    }
}

#[test]
fn wait_with_a_body_and_a_request_id_ends_like_others() {
    let served = FeedServer::of(&[gift_card("A")], &ADMIN);
    let mut copy = served.copy("");
    for (round, body) in ["\r\n", "Content-Length: 2\r\n\r\n{}"]
        .into_iter()
        .enumerate()
    {
        let rest = format!("X-Request-Id: mine-{round}\r\n{body}");
        let mut connection = begin_with(&served, &copy, &rest);
        served
            .store
            .load_products(&[named("A", &format!("Round {round}"))]);
        let reply = connection.read("GET").expect("an answer");
        assert_eq!(copy.apply(&reply).named(), ["A"]);
        let id = format!("mine-{round}");
        assert_eq!(reply.header("x-request-id"), Some(id.as_str()));
        let next = connection.get(&served.key, "/v2/ping");
        assert_eq!(next.expect("an answer").status, 200);
        served.settle(&mut copy);
    }
}

#[test]
fn waiting_connection_frees_its_place_once_it_is_reset() {
    let served = FeedServer::of(&[gift_card("A")], &ADMIN);
    let copy = served.copy("");
    let reset = begin(&served.server, &served.key, &copy, 55);
    let open = begin(&served.server, &served.key, &copy, 55);
    wait_for_waits(&served.server, 2);
    reset.reset();
    wait_for_waits(&served.server, 1);
    served.store.load_products(&[named("A", "new")]);
    assert_eq!(Changes::of(&end(open)).named(), ["A"]);
}

/// Begins a wait and closes its connection. Its place is free at once.
fn begin_and_close(served: &FeedServer, key: &str, copy: &CatalogCopy) {
    let waiting = begin(&served.server, key, copy, 55);
    wait_for_waits(&served.server, 1);
    drop(waiting);
    wait_for_waits(&served.server, 0);
}

/// Time within which a closed wait gives its place to another: less than it would have taken.
const SOON: Duration = Duration::from_secs(20);

/// Waits until a wait of this key has a place.
fn wait_for_place(served: &FeedServer, key: &str, copy: &CatalogCopy) {
    let began = Instant::now();
    wait_for("a place", || {
        let reply = served.server.get(key, &copy.target("wait=1"));
        reply.header("retry-after").is_none().then_some(())
    });
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

/// Four may wait, one of each key.
const FEW_WAITS: [&str; 4] = ["--admin-listen", "127.0.0.1:0", "--max-waits", "4"];

#[test]
fn closed_wait_gives_its_place_to_its_key() {
    let served = FeedServer::of(&[gift_card("A")], &FEW_WAITS);
    let copy = served.copy("");
    // Neither a body nor bytes behind the request hide that the client has closed.
    for rest in [
        "\r\n",
        "Content-Length: 0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "\r\nGET ",
    ] {
        drop(begin_with(&served, &copy, rest));
        wait_for_place(&served, &served.key, &copy);
        wait_for_waits(&served.server, 0);
    }
}

#[test]
fn closed_wait_gives_its_place_to_any_key() {
    let served = FeedServer::of(&[gift_card("A")], &FEW_WAITS);
    let copy = served.copy("");
    for _ in 0..4 {
        let key = served.store.key("client", &[]);
        wait_for("the key", || {
            let reply = served.server.get(&key, "/v2/ping");
            (reply.status == 200).then_some(())
        });
        begin_and_close(&served, &key, &copy);
    }
    wait_for_place(&served, &served.key, &copy);
}

#[test]
fn old_connection_gives_up_its_closed_wait() {
    let options = [&FEW_WAITS[..], &["--connection-age", "1s"]].concat();
    let served = FeedServer::of(&[gift_card("A")], &options);
    let copy = served.copy("");
    let mut connection = served.server.keep_alive();
    std::thread::sleep(Duration::from_millis(1_500));
    let (target, key) = (copy.target("wait=55"), &served.key);
    connection.write(&format!(
        "GET {target} HTTP/1.1\r\nHost: vitrine.test\r\nX-Api-Key: {key}\r\n\r\n"
    ));
    wait_for_waits(&served.server, 1);
    drop(connection);
    wait_for_place(&served, key, &copy);
}

#[test]
fn wait_behind_an_unread_response_gives_up_its_place() {
    let products: Vec<_> = (0..500).map(|n| gift_card(&format!("A{n}"))).collect();
    let served = FeedServer::of(&products, &FEW_WAITS);
    let copy = served.copy("");
    let mut connection = served.server.keep_alive();
    let rest = format!("Host: vitrine.test\r\nX-Api-Key: {}\r\n\r\n", served.key);
    let page = format!("GET /v2/product?limit=500 HTTP/1.1\r\n{rest}");
    let wait = format!("GET {} HTTP/1.1\r\n{rest}", copy.target("wait=55"));
    connection.write(&format!("{}{wait}", page.repeat(20)));
    std::thread::sleep(Duration::from_secs(1));
    for _ in 0..20 {
        assert_eq!(connection.read("GET").expect("a page").status, 200);
    }
    wait_for_waits(&served.server, 1);
    drop(connection);
    wait_for_place(&served, &served.key, &copy);
}

#[test]
fn half_closed_wait_frees_its_place_and_is_answered() {
    let served = FeedServer::of(&[gift_card("A")], &FEW_WAITS);
    let copy = served.copy("");
    let half_closed = begin_with(&served, &copy, "\r\n");
    half_closed.finish();
    wait_for_place(&served, &served.key, &copy);
    wait_for_waits(&served.server, 0);
    served.store.load_products(&[named("A", "new")]);
    let reply = end(half_closed);
    assert_eq!(Changes::of(&reply).named(), ["A"]);
    assert_eq!(reply.header("retry-after"), None);
}

#[test]
fn closed_wait_gives_its_connection_to_another() {
    let options = [&ADMIN[..], &["--max-connections-per-address", "40"]].concat();
    let served = FeedServer::of(&[gift_card("A")], &options);
    let copy = served.copy("");
    for _ in 0..40 {
        begin_and_close(&served, &served.key, &copy);
    }
    let began = Instant::now();
    wait_for("room", || {
        let mut connection = KeepAlive::try_to(served.server.address)?;
        let reply = connection.get(&served.key, "/v2/ping")?;
        (reply.status == 200).then_some(())
    });
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn waiting_connection_is_not_closed_for_a_new_one() {
    let options = [&ADMIN[..], &["--max-connections", "2"]].concat();
    let served = FeedServer::of(&[gift_card("A")], &options);
    let mut copy = served.copy("");
    // With a key: else they have to go first.
    let mut connections = [(); 2].map(|()| {
        wait_for("room", || {
            let mut connection = served.server.keep_alive();
            let reply = connection.get(&served.key, "/v2/ping")?;
            (reply.status == 200).then_some(connection)
        })
    });
    let target = copy.target("wait=2");
    let [waiting, second] = &mut connections;
    waiting.write(&format!(
        "GET {target} HTTP/1.1\r\nHost: vitrine.test\r\nX-Api-Key: {}\r\n\r\n",
        served.key
    ));
    wait_for_waits(&served.server, 1);
    // Longer ago than the other's last request, and not idle.
    let answered = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut answered = 0;
            while second.get(&served.key, "/v2/ping").is_some() {
                let new = served.server.keep_alive().get(&served.key, "/v2/ping");
                answered += usize::from(new.is_some_and(|reply| reply.status == 200));
                if count_waits(&served.server) == 0.0 {
                    break;
                }
            }
            answered
        });
        let reply = waiting.read("GET").expect("it isn't cut");
        assert_eq!(copy.apply(&reply).named(), [""; 0]);
        asking.join().expect("no panic")
    });
    println!("{answered} new connections were answered beside the wait");
}
