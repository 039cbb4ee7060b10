//! Quotas that servers share through Redis: what a fleet grants, and what it grants while Redis is gone.

use std::time::{Duration, Instant};

use crate::harness::{Redis, Reply, Server, Store, gift_card, scrape, wait_for};

/// Maximum time until servers limit together again.
const CONVERGENCE: Duration = Duration::from_secs(5);

/// Requests that a quota grants, of which none comes back while a test runs.
const GRANTED: usize = 30;
pub const QUOTA: [&str; 2] = ["--quota", "30/86400"];

pub fn catalog() -> Store {
    Store::of(&[gift_card("A-1")])
}

fn server(store: &Store, url: &str) -> Server {
    store.serve_with(&["--limits", url, "--admin-listen", "127.0.0.1:0"])
}

fn fleet(store: &Store, url: &str) -> [Server; 3] {
    [(); 3].map(|()| server(store, url))
}

/// Returns the number of times that this server asked Redis.
fn redis_requests(server: &Server) -> f64 {
    scrape(server).value("vitrine_limits_round_trip_duration_seconds_count")
}

/// Returns the number of times that these servers decided by themselves.
fn decided_alone(servers: &[Server]) -> f64 {
    let local = "vitrine_quota_decisions_total{decided=\"local\"";
    servers.iter().map(|server| scrape(server).sum(local)).sum()
}

pub fn wait_for_breakers(servers: &[Server], open: f64) {
    wait_for("the breakers", || {
        let is_so = |server: &Server| scrape(server).value("vitrine_limits_breaker_open") == open;
        servers.iter().all(is_so).then_some(())
    });
}

/// Sends so many requests to each server, over four connections each, all at the same time; returns how many were
/// granted. All others must be refused properly: nothing fails.
fn burst(servers: &[Server], key: &str, each: usize) -> usize {
    std::thread::scope(|scope| {
        let clients = servers.iter().flat_map(|server| [server; 4]);
        let client = |server: &Server| {
            let mut connection = server.keep_alive();
            let replies = (0..each / 4).map(|_| connection.get(key, "/v2/product"));
            let is_granted = |reply: Option<Reply>| is_granted(&reply.expect("an answer"));
            replies.map(is_granted).filter(|granted| *granted).count()
        };
        let clients: Vec<_> = clients
            .map(|server| scope.spawn(move || client(server)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client"))
            .sum()
    })
}

pub fn is_granted(reply: &Reply) -> bool {
    assert!(reply.header("ratelimit").is_some() && reply.header("ratelimit-policy").is_some());
    match reply.status {
        200 => true,
        429 => {
            let seconds = reply.header("retry-after").expect("Retry-After");
            assert!(seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0));
            false
        }
        status => panic!("{status}"),
    }
}

/// Returns the part of `RateLimit` that says what is left.
fn left(reply: &Reply) -> String {
    let limit = reply.header("ratelimit").expect("RateLimit");
    limit.split(';').nth(1).expect("r=").to_owned()
}

/// Waits until all servers know a key; that costs nothing of its quota.
fn wait_for_key(servers: &[Server], key: &str) {
    for server in servers {
        wait_for("the key", || {
            let reply = server.get(key, "/v2/product?limit=0");
            (reply.status == 400).then_some(())
        });
    }
}

/// Repeats a trial with new keys until none of its requests was decided by one server alone: on a busy machine an answer
/// of Redis may come after 20 ms.
fn all_shared(store: &Store, servers: &[Server], mut trial: impl FnMut(&str)) {
    for number in 0..20 {
        wait_for_breakers(servers, 0.0);
        let key = store.key(&format!("trial {number}"), &QUOTA);
        let before = decided_alone(servers);
        wait_for_key(servers, &key);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| trial(&key)));
        if decided_alone(servers) == before {
            return outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }
    panic!("in no trial Redis answered all requests in time");
}

#[test]
fn three_servers_grant_one_quota() {
    let Some(redis) = Redis::start("a shared quota") else {
        return;
    };
    let store = catalog();
    let servers = fleet(&store, &redis.url());
    all_shared(&store, &servers, |key| {
        let granted = burst(&servers, key, GRANTED);
        assert!(granted.abs_diff(GRANTED) <= 1, "{granted}");
    });
    for server in &servers {
        assert!(redis_requests(server) > 0.0);
        assert!(server.stderr().contains("shared limits: Redis answers"));
    }
}

#[test]
fn servers_report_the_shared_remainder() {
    let Some(redis) = Redis::start("the headers of a shared quota") else {
        return;
    };
    let store = catalog();
    let free = store.key("free", &[]);
    let servers = fleet(&store, &redis.url());
    let [first, second, third] = &servers;
    for _ in 0..5 {
        assert_eq!(first.get(&free, "/v2/product").status, 200);
    }
    assert_eq!(
        redis_requests(first),
        0.0,
        "a key without a quota costs no round trip"
    );
    all_shared(&store, &servers, |key| {
        let reply = first.get(key, "/v2/product");
        assert_eq!((reply.status, left(&reply).as_str()), (200, "r=29"));
        let tag = reply.header("etag").expect("a tag").to_owned();
        let missing = second.get(key, "/v2/product/NONE");
        assert_eq!((missing.status, left(&missing).as_str()), (404, "r=28"));
        let head = third.send("HEAD", "/v2/product", &[("X-Api-Key", key)]);
        assert_eq!((head.status, left(&head).as_str()), (200, "r=27"));
        // What costs nothing isn't asked for; it tells what this server last heard.
        let before = redis_requests(third);
        let known = [("X-Api-Key", key), ("If-None-Match", tag.as_str())];
        for _ in 0..3 {
            let reply = third.send("GET", "/v2/product", &known);
            assert_eq!((reply.status, left(&reply).as_str()), (304, "r=27"));
            let reply = third.get(key, "/v2/product?limit=0");
            assert_eq!((reply.status, left(&reply).as_str()), (400, "r=27"));
        }
        assert_eq!(redis_requests(third), before);
        assert_eq!(left(&first.get(key, "/v2/ping")), "r=26");
    });
}

#[test]
fn quota_drips_as_fast_for_a_fleet_as_for_one() {
    let Some(redis) = Redis::start("the pace of a shared quota") else {
        return;
    };
    let store = catalog();
    // One each 20 ms once ten are used.
    let key = store.key("steady", &["--quota", "50/1"]);
    let servers = fleet(&store, &redis.url());
    let cost = Duration::from_millis(20).as_secs_f64();
    let mut connections = servers.each_ref().map(Server::keep_alive);
    for attempt in 0.. {
        let before = decided_alone(&servers);
        // All that it grants at once, after a pause of unknown length: to begin with, nothing is left.
        let mut refused_at = loop {
            let sent = Instant::now();
            let reply = connections[0].get(&key, "/v2/ping").expect("an answer");
            if !is_granted(&reply) {
                break sent;
            }
        };
        let (from, mut granted) = (Instant::now(), 0);
        while from.elapsed() < Duration::from_secs(1) {
            for connection in &mut connections {
                let sent = Instant::now();
                match is_granted(&connection.get(&key, "/v2/ping").expect("an answer")) {
                    true => granted += 1,
                    false => refused_at = sent,
                }
            }
        }
        if decided_alone(&servers) != before {
            assert!(attempt < 20, "in no attempt Redis answered in time");
            wait_for_breakers(&servers, 0.0);
            continue;
        }
        let most = from.elapsed().as_secs_f64() / cost + 1.0;
        let least = refused_at.duration_since(from).as_secs_f64() / cost - 1.0;
        let granted = f64::from(granted);
        assert!(
            least <= granted + 1.0 && granted <= most + 1.0,
            "{least} {granted} {most}"
        );
        return;
    }
}

#[test]
fn without_redis_each_server_limits_alone() {
    let store = catalog();
    let key = store.key("partner", &QUOTA);
    // Nothing listens there.
    let servers = fleet(&store, "redis://127.0.0.1:1");
    let granted = burst(&servers, &key, GRANTED + 8);
    assert_eq!(granted, 3 * GRANTED);
    for server in &servers {
        assert_eq!(
            redis_requests(server),
            0.0,
            "nobody waits for what isn't there"
        );
        let said = server.stderr();
        assert_eq!(
            said.matches("shared limits: Redis can't be used").count(),
            1,
            "{said}"
        );
    }
}

/// A fleet is used while `fault` happens to its Redis, and after `mended`.
fn goes_on(fault: impl FnOnce(&mut Redis), mended: impl FnOnce(&mut Redis)) {
    let Some(mut redis) = Redis::start("shared limits and a Redis that fails") else {
        return;
    };
    let store = catalog();
    let servers = fleet(&store, &redis.url());
    let key = store.key("partner", &QUOTA);
    wait_for_key(&servers, &key);
    wait_for_breakers(&servers, 0.0);
    let granted = std::thread::scope(|scope| {
        let during = scope.spawn(|| burst(&servers, &key, 400));
        wait_for("some requests", || {
            (redis_requests(&servers[0]) > 4.0).then_some(())
        });
        fault(&mut redis);
        during.join().expect("a burst")
    });
    let after = burst(&servers, &key, 40);
    let granted = granted + after;
    assert!((GRANTED - 1..=3 * GRANTED).contains(&granted), "{granted}");
    let is_open = |server: &Server| scrape(server).value("vitrine_limits_breaker_open") == 1.0;
    wait_for("the breakers to open", || {
        // Who asks finds out.
        burst(&servers, &key, 4);
        servers.iter().all(is_open).then_some(())
    });
    // From now on nobody waits.
    let before = servers.each_ref().map(redis_requests);
    burst(&servers, &key, 40);
    assert_eq!(servers.each_ref().map(redis_requests), before);
    mended(&mut redis);
    let since = Instant::now();
    wait_for_breakers(&servers, 0.0);
    assert!(since.elapsed() < 10 * CONVERGENCE, "{:?}", since.elapsed());
    all_shared(&store, &servers, |key| {
        let granted = burst(&servers, key, GRANTED);
        assert!(granted.abs_diff(GRANTED) <= 1, "{granted}");
    });
    for server in &servers {
        let (said, seen) = (server.stderr(), scrape(server));
        let turns = |to| {
            seen.value(&format!(
                "vitrine_limits_breaker_transitions_total{{to=\"{to}\"}}"
            ))
        };
        assert_eq!(
            said.matches("shared limits: Redis fails").count() as f64,
            turns("open")
        );
        assert_eq!(
            said.matches("shared limits: Redis answers").count() as f64,
            turns("closed")
        );
    }
}

#[test]
fn killed_redis_fails_no_request() {
    goes_on(Redis::kill, Redis::restart);
}

#[test]
fn hung_redis_fails_no_request() {
    goes_on(|redis| redis.signal("STOP"), |redis| redis.signal("CONT"));
}

#[test]
fn read_only_redis_fails_no_request() {
    // As after a failover to which servers haven't followed yet.
    goes_on(
        |redis| assert_eq!(redis.ask("REPLICAOF 127.0.0.1 1"), "+OK"),
        |redis| assert_eq!(redis.ask("REPLICAOF NO ONE"), "+OK"),
    );
}

#[test]
fn read_only_redis_keeps_the_breaker_open() {
    let Some(redis) = Redis::start("shared limits and a Redis that may only be read") else {
        return;
    };
    assert_eq!(redis.ask("REPLICAOF 127.0.0.1 1"), "+OK");
    let store = catalog();
    let server = server(&store, &redis.url());
    // It was tried once before the server was ready.
    assert_eq!(scrape(&server).value("vitrine_limits_breaker_open"), 1.0);
    wait_for("what is wrong with it to be told", || {
        let told = "shared limits: Redis can't be used";
        server.stderr().contains(told).then_some(())
    });
}

#[test]
fn third_late_answer_in_a_row_opens_the_breaker() {
    let Some(redis) = Redis::start("shared limits and a Redis that is late") else {
        return;
    };
    let store = catalog();
    let key = store.key("partner", &QUOTA);
    let server = server(&store, &redis.url());
    let mut connection = server.keep_alive();
    let mut ask = || assert!(connection.get(&key, "/v2/product").is_some());
    let late = || scrape(&server).value("vitrine_limits_failures_total{cause=\"timeout\"}");
    // One in time begins the count anew.
    wait_for("an answer in time", || {
        let before = (redis_requests(&server), late());
        ask();
        (redis_requests(&server) > before.0 && late() == before.1).then_some(())
    });
    let before = late();
    redis.signal("STOP");
    for answers in 1..=3 {
        ask();
        assert_eq!(late() - before, f64::from(answers));
        let is_open = scrape(&server).value("vitrine_limits_breaker_open");
        assert_eq!(is_open, f64::from(u8::from(answers == 3)), "{answers}");
    }
    redis.signal("CONT");
}

#[test]
fn flushed_redis_starts_quotas_anew() {
    let Some(redis) = Redis::start("shared limits and a Redis that is flushed") else {
        return;
    };
    let store = catalog();
    let servers = fleet(&store, &redis.url());
    all_shared(&store, &servers, |key| {
        assert!(burst(&servers, key, GRANTED).abs_diff(GRANTED) <= 1);
        assert_eq!(redis.ask("FLUSHALL"), "+OK");
        assert_eq!(redis.ask("SCRIPT FLUSH"), "+OK");
        let again = burst(&servers, key, GRANTED);
        assert!(again.abs_diff(GRANTED) <= 1, "{again}");
    });
    for server in &servers {
        let failures = scrape(server).value("vitrine_limits_failures_total{cause=\"error\"}");
        assert_eq!(failures, 0.0, "a script that is gone is no failure");
    }
}
