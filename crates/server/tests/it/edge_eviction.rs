//! At the limit of connections, the one that was idle longest is closed for a new one, first one without a good key.

use std::time::{Duration, Instant};

use crate::harness::{Certificate, KeepAlive, Server, Store, block_on, scrape, wait_for};

const ADMIN: [&str; 2] = ["--admin-listen", "127.0.0.1:0"];

fn served(most: &str) -> (Store, String, Server) {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let server = store.serve_with(&[&ADMIN as &[_], &["--max-connections", most]].concat());
    (store, key, server)
}

/// A connection that has asked once with this key and is idle.
fn idle(server: &Server, key: &str, status: u16) -> KeepAlive {
    let mut connection = server.keep_alive();
    let reply = connection.get(key, "/v2/ping").expect("an answer");
    assert_eq!(reply.status, status);
    connection
}

fn evicted(server: &Server, with_key: bool) -> f64 {
    let series = format!("vitrine_http_connections_evicted_total{{with_key=\"{with_key}\"}}");
    scrape(server).value(&series)
}

/// A new connection, once others have been idle for long enough.
fn wait_for_room(server: &Server, key: &str) -> KeepAlive {
    wait_for("room", || {
        let mut connection = server.keep_alive();
        let reply = connection.get(key, "/v2/ping")?;
        (reply.status == 200).then_some(connection)
    })
}

#[test]
fn idle_keyless_connections_make_room_for_new_ones() {
    let (_store, key, server) = served("3");
    let mut keyed = idle(&server, &key, 200);
    let mut keyless = [(); 2].map(|()| idle(&server, "wrong.key", 401));
    // Who was idle for less than a second is in use.
    let idle_since = Instant::now();
    wait_for("a second", || {
        (idle_since.elapsed() > Duration::from_millis(1100)).then_some(())
    });
    let mut new = [(); 2].map(|()| idle(&server, &key, 200));
    for connection in &mut keyless {
        assert!(connection.read("GET").is_none(), "closed");
    }
    for connection in new.iter_mut().chain([&mut keyed]) {
        let reply = connection.get(&key, "/v2/ping").expect("an answer");
        assert_eq!(reply.status, 200);
    }
    let counts = [false, true].map(|with_key| evicted(&server, with_key));
    assert_eq!(counts, [2.0, 0.0]);
}

#[test]
fn longest_idle_keyed_connection_makes_room_last() {
    let (_store, key, server) = served("2");
    let mut first = idle(&server, &key, 200);
    let mut second = idle(&server, &key, 200);
    let mut new = wait_for_room(&server, &key);
    assert!(first.read("GET").is_none(), "closed");
    for connection in [&mut second, &mut new] {
        let reply = connection.get(&key, "/v2/ping").expect("an answer");
        assert_eq!(reply.status, 200);
    }
    assert_eq!(evicted(&server, true), 1.0);
}

#[test]
fn idle_http2_connection_makes_room_with_goaway() {
    let store = Store::sample();
    let key = store.key("client", &[]);
    let certificate = Certificate::new(&store, "server");
    let options = [&ADMIN as &[_], &["--max-connections", "1"]].concat();
    let server = certificate.serve(&store, &options);
    block_on(async {
        let mut first = certificate.http2(server.address).await.expect("a session");
        assert_eq!(first.get(&key, "/v2/ping").await.expect("asked").0, 200);
        let _new = wait_for("room", || certificate.connect(server.address, &[]));
        let ended = first.connection.await.expect("no panic");
        assert!(ended.is_ok(), "closed without GOAWAY: {ended:?}");
    });
    assert_eq!(evicted(&server, true), 1.0);
}
