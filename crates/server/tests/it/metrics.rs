//! Metrics of a server, as `/metrics` shows them.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use crate::harness::{
    Certificate, SAMPLE, Scrape, Server, Store, are_files, gift_card, scrape, skipped, text,
    wait_for,
};

fn serve(store: &Store) -> Server {
    store.serve_with(&["--admin-listen", "127.0.0.1:0"])
}

fn scraped(server: &Server) -> String {
    let reply = server.ask_admin("GET", "/metrics");
    assert_eq!(reply.status, 200);
    text(&reply.body)
}

fn requests(route: &str, status: &str) -> String {
    format!("vitrine_http_requests_total{{route=\"{route}\",status=\"{status}\"}}")
}

fn errors(kind: &str, simulated: bool) -> String {
    format!("vitrine_http_errors_total{{type=\"{kind}\",simulated=\"{simulated}\"}}")
}

#[test]
fn each_request_is_counted_by_route_and_status() {
    let store = Store::of(&[gift_card("A-1")]);
    let key = store.key("partner", &[]);
    let server = serve(&store);
    let before = scrape(&server);
    assert_eq!(before.sum("vitrine_http_requests_total"), 0.0);
    let page = server.get(&key, "/v2/product");
    let product = server.get(&key, "/v2/product/A-1");
    let tag = product.header("etag").expect("a tag").to_owned();
    let known = [("X-Api-Key", key.as_str()), ("If-None-Match", &tag)];
    assert_eq!(server.send("GET", "/v2/product/A-1", &known).status, 304);
    let headers = [("X-Api-Key", key.as_str())];
    assert_eq!(server.send("HEAD", "/v2/product/A-1", &headers).status, 200);
    let missing = server.get(&key, "/v2/product/B-1");
    for made_up in ["/v2/made-up", "/", "/v2/product/A-1/more"] {
        server.get(&key, made_up);
    }
    server.send("POST", "/v2/ping", &headers);
    server.send("GET", "/v2/ping", &[]);
    server.get("wrong.key", "/v2/ping");
    server.get(&key, "/v2/product?limit=0");
    let after = scrape(&server);
    let template = "/v2/product/{product_code}";
    for (route, status, count) in [
        ("/v2/product", "200", 1.0),
        ("/v2/product", "400", 1.0),
        (template, "200", 2.0),
        (template, "304", 1.0),
        (template, "404", 1.0),
        ("none", "404", 3.0),
        ("/v2/ping", "405", 1.0),
        ("/v2/ping", "401", 2.0),
    ] {
        assert_eq!(
            after.value(&requests(route, status)),
            count,
            "{route} {status}"
        );
    }
    assert_eq!(after.sum("vitrine_http_requests_total"), 12.0);
    let of_route = |metric: &str, route| after.value(&format!("{metric}{{route=\"{route}\"}}"));
    let count = |route| of_route("vitrine_http_request_duration_seconds_count", route);
    assert_eq!(
        (count(template), count("none"), count("/v2/product")),
        (4.0, 3.0, 2.0)
    );
    assert!(of_route("vitrine_http_request_duration_seconds_sum", template) > 0.0);
    // HEAD and 304 send no body.
    let bytes = of_route("vitrine_http_response_body_bytes_total", template);
    assert_eq!(bytes, (product.body.len() + missing.body.len()) as f64);
    assert!(
        of_route("vitrine_http_response_body_bytes_total", "/v2/product") > page.body.len() as f64
    );
    for (kind, count) in [
        ("unauthorized", 1.0),
        ("invalid_api_key", 1.0),
        ("not_found", 4.0),
        ("method_not_allowed", 1.0),
        ("pagination_error", 1.0),
    ] {
        assert_eq!(after.value(&errors(kind, false)), count, "{kind}");
    }
    assert_eq!(after.sum("vitrine_http_errors_total"), 8.0);
    assert_eq!(after.value("vitrine_http_connections_accepted_total"), 12.0);
}

#[test]
fn preflights_and_redirects_have_counters_of_their_own() {
    let store = Store::of(&[gift_card("A-1")]);
    let server = store.serve_with(&[
        "--admin-listen",
        "127.0.0.1:0",
        "--cors-origins",
        "https://shop.example",
    ]);
    let preflight = [
        ("Origin", "https://shop.example"),
        ("Access-Control-Request-Method", "GET"),
    ];
    let reply = server.send("OPTIONS", "/v2/product", &preflight);
    assert_eq!(reply.status, 204);
    let reply = server.send("GET", "/", &[("Accept", "text/html")]);
    assert_eq!(reply.status, 302);
    let scrape = scrape(&server);
    assert_eq!(scrape.value(&requests("/v2/product", "204")), 1.0);
    assert_eq!(scrape.value(&requests("none", "302")), 1.0);
}

#[test]
fn quota_refusals_and_simulated_errors_are_separate() {
    let store = Store::of(&[gift_card("A-1")]);
    let limited = store.key("limited", &["--quota", "1/3600"]);
    let test = store.key("test", &["--test"]);
    let both = store.key("limited test", &["--test", "--quota", "1/3600"]);
    let server = serve(&store);
    assert_eq!(server.get(&limited, "/v2/ping").status, 200);
    assert_eq!(server.get(&limited, "/v2/ping").status, 429);
    let ask = |key: &str, asked: &str| {
        let headers = [("X-Api-Key", key), ("X-Simulate", asked)];
        server.send("GET", "/v2/ping", &headers).status
    };
    assert_eq!(ask(&test, "rate_limited"), 429);
    assert_eq!(ask(&test, "internal_server_error"), 500);
    // Where the quota is used up, that is the answer, whatever was asked for.
    assert_eq!([(); 2].map(|()| ask(&both, "not_found")), [404, 429]);
    let scrape = scrape(&server);
    assert_eq!(scrape.value(&errors("rate_limited", false)), 2.0);
    assert_eq!(scrape.value(&errors("rate_limited", true)), 1.0);
    assert_eq!(scrape.value(&errors("not_found", true)), 1.0);
    assert_eq!(scrape.value(&errors("internal_server_error", false)), 0.0);
    assert_eq!(scrape.value(&errors("internal_server_error", true)), 1.0);
    assert_eq!(scrape.value("vitrine_keys"), 3.0);
}

#[test]
fn refused_simulation_is_counted_as_real() {
    let store = Store::of(&[gift_card("A-1")]);
    let (live, test) = (store.key("live", &[]), store.key("test", &["--test"]));
    let server = serve(&store);
    for (key, asked, status) in [(&live, "timeout", 403), (&test, "made_up", 400)] {
        let headers = [("X-Api-Key", key.as_str()), ("X-Simulate", asked)];
        assert_eq!(server.send("GET", "/v2/ping", &headers).status, status);
    }
    let scrape = scrape(&server);
    assert_eq!(scrape.value(&errors("forbidden", false)), 1.0);
    assert_eq!(scrape.value(&errors("forbidden", true)), 0.0);
    assert_eq!(scrape.value(&errors("timeout", true)), 0.0);
    assert_eq!(scrape.sum("vitrine_http_errors_total"), 2.0);
}

#[test]
fn metrics_show_nothing_of_a_request() {
    let store = Store::of(&[gift_card("SECRETIVE-1")]);
    let key = store.key("confidential-label", &[]);
    let server = serve(&store);
    server.get(&key, "/v2/product/SECRETIVE-1?content=html");
    server.get(&key, "/made-up-path?made-up-query=1");
    server.send(
        "GET",
        "/v2/ping",
        &[("X-Api-Key", "wrong.guess"), ("X-Request-Id", "own-id")],
    );
    let prefix = key.split_once('.').expect("two parts").0;
    for target in ["/livez", "/readyz", "/metrics", "/made-up-page"] {
        let said = text(&server.ask_admin("GET", target).body);
        for hidden in [
            "SECRETIVE",
            prefix,
            "confidential",
            "made-up",
            "guess",
            "own-id",
            "127.0.0.1",
        ] {
            assert!(!said.contains(hidden), "{target} tells {hidden}: {said}");
        }
    }
}

#[test]
fn metrics_show_the_catalog_and_its_swaps() {
    let store = Store::new();
    let server = serve(&store);
    let empty = scraped(&server);
    assert!(!empty.contains("vitrine_catalog_revision "), "{empty}");
    let full = "vitrine_catalog_swaps_total{rebuild=\"full\"}";
    assert_eq!(Scrape::parse(&empty).value(full), 0.0);
    assert_eq!(Scrape::parse(&empty).value("vitrine_ready"), 0.0);
    server.wait_for_loaded(&store.load(SAMPLE));
    let first = scrape(&server);
    let (key, second_key) = (store.key("one", &[]), store.key("two", &[]));
    server.wait_for_loaded(&store.load_products(&[gift_card("A-1"), gift_card("A-2")]));
    wait_for("the keys", || {
        (scrape(&server).value("vitrine_keys") == 2.0).then_some(())
    });
    let second = scrape(&server);
    for (scrape, revision, products) in [(&first, 1.0, 72.0), (&second, 2.0, 2.0)] {
        assert_eq!(scrape.value("vitrine_catalog_revision"), revision);
        assert_eq!(scrape.value("vitrine_catalog_products"), products);
        assert_eq!(scrape.sum("vitrine_catalog_swaps_total"), revision);
        assert_eq!(scrape.value("vitrine_ready"), 1.0);
        assert!(scrape.value("vitrine_catalog_last_swap_duration_seconds") > 0.0);
        let published = scrape.value("vitrine_catalog_revision_timestamp_seconds");
        let live = scrape.value("vitrine_catalog_live_timestamp_seconds");
        let started = scrape.value("process_start_time_seconds");
        assert!(
            started < published && published < live,
            "{started} {published} {live}"
        );
    }
    let bytes = |scrape: &Scrape| scrape.value("vitrine_catalog_bytes");
    assert!(bytes(&second) > 0.0 && bytes(&second) < bytes(&first));
    assert_eq!(
        server.get(&key, "/v2/ping").status,
        server.get(&second_key, "/v2/ping").status
    );
}

#[test]
fn metrics_show_cache_hits_and_misses() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = serve(&store);
    let found = |found| format!("vitrine_cache_requests_total{{cache=\"html\",found=\"{found}\"}}");
    server.get(&key, "/v2/product/BRIARWICK-GB?content=html");
    let first = scrape(&server);
    let texts = first.value(&found("false"));
    assert!(texts > 0.0 && first.value("vitrine_cache_bytes{cache=\"html\"}") > 0.0);
    assert_eq!(first.value(&found("true")), 0.0);
    server.get(&key, "/v2/product/BRIARWICK-GB?content=html");
    let second = scrape(&server);
    assert_eq!(
        (second.value(&found("false")), second.value(&found("true"))),
        (texts, texts)
    );
}

#[test]
fn metrics_show_an_unreadable_store() {
    if !are_files("a store that cannot be read is told") {
        return;
    }
    let store = Store::sample();
    let server = serve(&store);
    let rounds = ["catalog", "keys"];
    let failures = |of| format!("vitrine_follow_failures_total{{of=\"{of}\"}}");
    let last = |of| format!("vitrine_follow_last_success_timestamp_seconds{{of=\"{of}\"}}");
    let before = scrape(&server);
    for of in rounds {
        assert_eq!(before.value(&failures(of)), 0.0);
        assert!(before.value(&last(of)) > before.value("process_start_time_seconds"));
        wait_for("another round", || {
            (scrape(&server).value(&last(of)) > before.value(&last(of))).then_some(())
        });
    }
    std::fs::rename(store.path("vitrine.db"), store.path("away.db")).expect("moved");
    for of in rounds {
        wait_for("failures", || {
            (scrape(&server).value(&failures(of)) > 1.0).then_some(())
        });
    }
    let failed = scrape(&server);
    assert_eq!(failed.value("vitrine_ready"), 1.0, "it serves from memory");
    std::fs::rename(store.path("away.db"), store.path("vitrine.db")).expect("moved");
    for of in rounds {
        let fine = failed.value(&last(of));
        wait_for("a round that succeeds", || {
            (scrape(&server).value(&last(of)) > fine).then_some(())
        });
    }
}

#[test]
fn open_connections_are_counted_until_they_close() {
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = serve(&store);
    let open = |server: &Server| scrape(server).value("vitrine_http_connections_open");
    let mut connections: Vec<_> = (0..3).map(|_| server.keep_alive()).collect();
    for connection in &mut connections {
        connection.get(&key, "/v2/ping").expect("an answer");
    }
    assert_eq!(open(&server), 3.0);
    drop(connections);
    wait_for("connections to close", || {
        (open(&server) == 0.0).then_some(())
    });
}

#[test]
fn metrics_show_the_process() {
    let store = Store::sample();
    let scrape = scrape(&serve(&store));
    for metric in ["process_cpu_seconds_total", "process_start_time_seconds"] {
        assert!(scrape.value(metric) > 0.0, "{metric}");
    }
    if !cfg!(target_os = "linux") {
        return skipped("memory and descriptors: this system doesn't tell them");
    }
    assert!(scrape.value("process_resident_memory_bytes") > 1e6);
    let descriptors = scrape.value("process_open_fds");
    assert!(descriptors > 3.0 && descriptors < scrape.value("process_max_fds"));
}

#[test]
fn scrapes_under_load_lose_nothing() {
    const REQUESTS: usize = 300;
    let store = Store::sample();
    let key = store.key("partner", &[]);
    let server = serve(&store);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut before = scrape(&server);
                while !done.load(Ordering::Relaxed) {
                    let now = scrape(&server);
                    now.assert_grown_since(&before);
                    before = now;
                }
            });
        }
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = server.keep_alive();
                    for _ in 0..REQUESTS {
                        let reply = connection.get(&key, "/v2/product?limit=3");
                        assert_eq!(reply.expect("an answer").status, 200);
                    }
                })
            })
            .collect();
        let ended = clients.into_iter().map(ScopedJoinHandle::join);
        let ended: Vec<_> = ended.collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    let scrape = scrape(&server);
    let all = (4 * REQUESTS) as f64;
    assert_eq!(scrape.value(&requests("/v2/product", "200")), all);
    let count = "vitrine_http_request_duration_seconds_count{route=\"/v2/product\"}";
    assert_eq!(scrape.value(count), all);
}

#[test]
fn prometheus_reads_the_metrics() {
    let store = Store::sample();
    let server = serve(&store);
    let check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut check) = check else {
        return skipped(
            "`promtool check metrics`: promtool isn't installed (package `prometheus`)",
        );
    };
    let mut input = check.stdin.take().expect("piped");
    input
        .write_all(scraped(&server).as_bytes())
        .expect("written");
    drop(input);
    let output = check.wait_with_output().expect("its end");
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// Returns the metrics of a server with all settings that add metrics, its history of changes included.
fn all_metrics() -> String {
    let store = Store::sample();
    let options = [
        "--admin-listen",
        "127.0.0.1:0",
        "--limits",
        "redis://127.0.0.1:1",
    ];
    let server = Certificate::new(&store, "server").serve(&store, &options);
    let has_history = |scrape: &String| scrape.contains("vitrine_changes_oldest");
    wait_for("the history", || Some(scraped(&server)).filter(has_history))
}

/// Returns the names of all metrics of a scrape.
fn names(scrape: &str) -> Vec<&str> {
    let types = scrape
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let names: Vec<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 20, "{names:?}");
    names
}

#[test]
fn every_metric_has_a_sentence_of_help() {
    let scrape = all_metrics();
    for name in names(&scrape) {
        let start = format!("# HELP {name} ");
        let help = scrape.lines().find_map(|line| line.strip_prefix(&start));
        let help = help.unwrap_or_default();
        let is_started = help.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit());
        assert!(
            is_started && help.contains(' ') && help.ends_with('.'),
            "the help of {name} is no sentence: {help:?}"
        );
    }
}

#[test]
fn metrics_named_by_documents_exist() {
    let scrape = all_metrics();
    let names = names(&scrape);
    let mut found = 0;
    for page in ["backup", "monitor", "runbook", "scale"] {
        let path = format!(
            "{}/../../docs/operate/{page}.md",
            env!("CARGO_MANIFEST_DIR")
        );
        let document = std::fs::read_to_string(&path).expect("a document");
        for quoted in document.split('`').skip(1).step_by(2) {
            if quoted.starts_with("vitrine_") || quoted.starts_with("process_") {
                let name = quoted.split(['{', ' ', '[']).next().unwrap_or_default();
                assert!(names.contains(&name), "{path} names {name}, which is gone");
                found += 1;
            }
        }
    }
    assert!(found > 15, "{found}");
}
