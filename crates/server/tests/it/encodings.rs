//! Content codings: every answer decodes to the same bytes, and each client gets what it takes.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::harness::{Reply, Server, Store, gift_card, scrape, wait_for};

/// The codings that are offered.
const CODINGS: [&str; 3] = ["zstd", "gzip", "br"];

/// Bodies shorter than this go out plain where the client takes that.
const WORTH_COMPRESSING_BYTES: usize = 1000;

/// A body as it was before it was encoded.
fn decoded(reply: &Reply) -> Vec<u8> {
    let mut plain = Vec::new();
    let read = match reply.header("content-encoding") {
        None => return reply.body.clone(),
        Some("zstd") => return zstd::stream::decode_all(&*reply.body).expect("zstd"),
        Some("gzip") => flate2::read::GzDecoder::new(&*reply.body).read_to_end(&mut plain),
        Some("br") => brotli::Decompressor::new(&*reply.body, 4096).read_to_end(&mut plain),
        Some(other) => panic!("nobody asked for {other}"),
    };
    read.expect("a body that decodes");
    plain
}

fn request(server: &Server, key: &str, target: &str, accepted: &[&str]) -> Reply {
    let mut headers = vec![("X-Api-Key", key)];
    headers.extend(accepted.iter().map(|line| ("Accept-Encoding", *line)));
    server.send("GET", target, &headers)
}

/// Everything that the sample catalog can be asked for.
fn all_targets(server: &Server, key: &str) -> Vec<String> {
    let fixed = [
        "/v2/product",
        "/v2/product?categories=none",
        "/v2/product?countries_redeemable_in=DE&is_orderable=true",
        "/v2/product/categories",
        "/v2/product/countries",
        "/v2/ping",
        "/openapi.json",
    ];
    let mut targets: Vec<String> = fixed.map(str::to_owned).to_vec();
    let catalog = server.get(key, "/v2/product").json();
    for product in catalog["catalog"].as_array().expect("a list") {
        let code = product["code"].as_str().expect("a code");
        for form in ["url", "md", "html"] {
            targets.push(format!("/v2/product/{code}?content={form}"));
        }
        let text = product.to_string();
        let digests = text.split("/v2/texts/").skip(1);
        targets.extend(digests.map(|rest| format!("/v2/texts/{}.md", &rest[..64])));
    }
    let mut page = "/v2/product?limit=7".to_owned();
    loop {
        targets.push(page);
        let answer = server.get(key, targets.last().expect("a page")).json();
        match answer["pagination"]["cursors"]["after"].as_str() {
            Some(after) => page = format!("/v2/product?limit=7&after={after}"),
            None => break,
        }
    }
    targets.sort();
    targets.dedup();
    targets
}

#[test]
fn every_answer_decodes_to_the_same_bytes() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let targets = all_targets(&server, &key);
    assert!(
        targets
            .iter()
            .any(|target| target.starts_with("/v2/texts/")),
        "texts are among them"
    );
    for target in &targets {
        let plain = server.get(&key, target);
        assert_eq!(plain.header("content-encoding"), None, "{target}");
        for coding in CODINGS {
            let only = format!("{coding}, identity;q=0");
            // The second time it may come from the cache.
            for accepted in [coding, &only, &only, coding] {
                let reply = request(&server, &key, target, &[accepted]);
                assert_eq!(reply.status, 200, "{target}");
                assert!(decoded(&reply) == plain.body, "{target} as {accepted}");
                let is_plain = accepted == coding && plain.body.len() < WORTH_COMPRESSING_BYTES;
                assert_eq!(
                    reply.header("content-encoding"),
                    (!is_plain).then_some(coding),
                    "{target} as {accepted}"
                );
                for name in ["etag", "content-type", "vary", "cache-control", "link"] {
                    assert_eq!(reply.header(name), plain.header(name), "{target} {name}");
                }
            }
        }
    }
}

#[test]
fn client_preference_precedes_ours() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    for (accepted, coding) in [
        (&[] as &[&str], None),
        (&[""], None),
        (&["identity"], None),
        (&["deflate"], None),
        (&["gzip"], Some("gzip")),
        (&["GZip"], Some("gzip")),
        (&["x-gzip"], Some("gzip")),
        (&["br"], Some("br")),
        (&["gzip, deflate, br, zstd"], Some("zstd")),
        (&["gzip, deflate, br"], Some("gzip")),
        (&["gzip;q=0.9, br"], Some("br")),
        (&["gzip; q=0.5 , br ;q=0.501"], Some("br")),
        (&["gzip;q=0.1"], Some("gzip")),
        (&["identity, gzip;q=0.1"], None),
        (&["gzip;q=0"], None),
        (&["zstd;q=0, *"], Some("gzip")),
        (&["*;q=0"], None),
        (&["*;q=0, br"], Some("br")),
        (&["identity;q=0"], Some("gzip")),
        (&["identity;q=0, gzip;q=0, zstd;q=0, br;q=0"], None),
        (&["br;q=0.5", "zstd;q=0.4"], Some("br")),
        (
            &["br;q=2, gzip;q=, ;, zstd;q=0.0000, ,,gzip;q=0.001"],
            Some("gzip"),
        ),
    ] {
        let reply = request(&server, &key, "/v2/product", accepted);
        assert_eq!(reply.status, 200, "{accepted:?}");
        assert_eq!(reply.header("content-encoding"), coding, "{accepted:?}");
    }
}

#[test]
fn wildcard_in_accept_encoding_gets_gzip() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let plain = server.get(&key, "/v2/product").body;
    for (accepted, coding) in [
        ("*", Some("gzip")),
        ("gzip, *", Some("gzip")),
        ("gzip;q=1.0, *;q=0.5", Some("gzip")),
        ("identity;q=0, *", Some("gzip")),
        ("deflate, *", Some("gzip")),
        ("br, *;q=0.1", Some("br")),
        ("gzip;q=0, *", None),
        ("gzip;q=0, identity;q=0, *", None),
    ] {
        let reply = request(&server, &key, "/v2/product", &[accepted]);
        assert_eq!(reply.header("content-encoding"), coding, "{accepted}");
        assert!(decoded(&reply) == plain, "{accepted}");
    }
}

#[test]
fn head_describes_the_encoded_body_as_get_does() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    for target in ["/v2/product", "/v2/product/BRIARWICK-GB", "/openapi.json"] {
        for accepted in ["identity", "zstd", "gzip", "br"] {
            let headers = [("X-Api-Key", key.as_str()), ("Accept-Encoding", accepted)];
            let head = server.send("HEAD", target, &headers);
            let get = server.send("GET", target, &headers);
            assert!(head.body.is_empty());
            let names = ["content-length", "content-encoding", "etag", "vary"];
            for name in names {
                assert_eq!(head.header(name), get.header(name), "{target} {accepted}");
            }
        }
    }
}

#[test]
fn not_modified_has_no_encoding_headers() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    let text = all_targets(&server, &key)
        .into_iter()
        .find(|target| target.starts_with("/v2/texts/"));
    for target in ["/v2/product", "/openapi.json", &text.expect("a text")] {
        let full = request(&server, &key, target, &["zstd, identity;q=0"]);
        assert_eq!(full.header("content-encoding"), Some("zstd"));
        let tag = full.header("etag").expect("a tag");
        for accepted in ["zstd", "br", "identity", "identity;q=0"] {
            let headers = [
                ("X-Api-Key", key.as_str()),
                ("Accept-Encoding", accepted),
                ("If-None-Match", tag),
            ];
            let reply = server.send("GET", target, &headers);
            assert_eq!(reply.status, 304, "{target} {accepted}");
            assert!(reply.body.is_empty());
            assert_eq!(reply.header("content-encoding"), None);
            for name in ["etag", "vary", "cache-control"] {
                assert_eq!(reply.header(name), full.header(name), "{target}");
            }
        }
    }
}

#[test]
fn errors_are_plain_unless_that_is_refused() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    for (target, status) in [
        ("/v2/product/NONE", 404),
        ("/v2/nothing", 404),
        ("/v2/product?limit=0", 400),
    ] {
        for (accepted, coding) in [
            ("gzip, br, zstd", None),
            ("*", None),
            ("*;q=0", None),
            ("identity;q=0", Some("gzip")),
            ("br, *;q=0", Some("br")),
        ] {
            let mut reply = request(&server, &key, target, &[accepted]);
            assert_eq!(reply.status, status, "{target}");
            assert_eq!(reply.header("content-encoding"), coding, "{accepted}");
            let vary = coding.map(|_| "Accept-Encoding");
            assert_eq!(reply.header("vary"), vary, "{accepted}");
            reply.body = decoded(&reply);
            reply.error();
        }
    }
}

#[test]
fn encoded_page_is_unaffected_by_other_products() {
    let named = |code: &str, name: &str| {
        let mut product = gift_card(code);
        product["name"] = json!(name);
        product
    };
    let codes: Vec<String> = (10..60).map(|number| format!("P{number}")).collect();
    let catalog = |last: &str| -> Vec<Value> {
        let products = codes.iter().map(|code| gift_card(code));
        products.chain([named("Z", last)]).collect()
    };
    let store = Store::of(&catalog("before"));
    let key = store.key("reader", &[]);
    let server = store.serve();
    let pages = ["/v2/product?limit=50", "/v2/product?limit=20&after=P12"];
    let read = |target: &str| CODINGS.map(|coding| request(&server, &key, target, &[coding]));
    let before = pages.map(read);
    let changed_before = read("/v2/product/Z").map(|reply| decoded(&reply));

    server.wait_for_loaded(&store.load_products(&catalog("after")));
    for (target, before) in pages.iter().zip(&before) {
        for (reply, before) in read(target).iter().zip(before) {
            assert_eq!(reply.header("etag"), before.header("etag"), "{target}");
            assert!(reply.body == before.body, "{target}");
        }
    }
    for (reply, before) in read("/v2/product/Z").iter().zip(&changed_before) {
        assert_ne!(
            &decoded(reply),
            before,
            "what changed isn't served from a cache"
        );
    }
}

#[test]
fn concurrent_requests_for_a_new_page_are_answered() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    // The addresses of texts are part of the bytes.
    let public = ["--public-url", "https://catalog.example"];
    let plain = store.serve_with(&public).get(&key, "/v2/product").body;
    for options in [&[] as &[&str], &["--cache-mib", "0"], &["--cache-mib", "1"]] {
        let server = store.serve_with(&[&public[..], options].concat());
        // Some ask and go away at once: whoever waits for them mustn't wait for ever.
        for coding in CODINGS {
            for _ in 0..5 {
                let mut gone = server.connect();
                let request = format!(
                    "GET /v2/product HTTP/1.1\r\nHost: v\r\nX-Api-Key: {key}\r\nAccept-Encoding: {coding}\r\n\r\n"
                );
                gone.write_all(request.as_bytes()).expect("sent");
            }
        }
        std::thread::scope(|scope| {
            for index in 0..100 {
                let coding = CODINGS[index % CODINGS.len()];
                let (server, key, plain) = (&server, &key, &plain);
                scope.spawn(move || {
                    let reply = request(server, key, "/v2/product", &[coding]);
                    assert_eq!(reply.status, 200);
                    assert_eq!(reply.header("content-encoding"), Some(coding));
                    assert!(decoded(&reply) == *plain, "{coding} {options:?}");
                });
            }
        });
    }
}

#[test]
fn access_log_counts_what_is_sent() {
    let store = Store::sample();
    let key = store.key("reader", &[]);
    let server = store.serve();
    for accepted in ["identity", "zstd", "gzip", "br"] {
        let reply = request(&server, &key, "/v2/product", &[accepted]);
        let said = format!("\"bytes\":{},", reply.body.len());
        wait_for("the request's line", || {
            server.stdout().contains(&said).then_some(())
        });
    }
}

#[test]
fn page_compresses_better_at_the_second_request() {
    let store = Store::new();
    let invented = store.ok(&["generate", "--products", "300"]);
    store.load(store.write("invented.ndjson", invented));
    let key = store.key("reader", &[]);
    let server = store.serve();
    let ask = || request(&server, &key, "/v2/product", &["gzip"]);
    let first = ask();
    let smaller = wait_for("a smaller body", || {
        let again = ask();
        (again.body.len() < first.body.len()).then_some(again)
    });
    assert_eq!(decoded(&smaller), decoded(&first));
    assert_eq!(smaller.header("etag"), first.header("etag"));
    assert_eq!(ask().body, smaller.body, "once");
}

#[test]
fn page_of_many_parts_is_kept_at_the_second_request() {
    let products: Vec<Value> = (0..300)
        .map(|number| {
            let mut product = gift_card(&format!("P{number:03}"));
            product["countries_redeemable_in"] = json!([if number % 2 == 0 { "DE" } else { "SE" }]);
            product
        })
        .collect();
    let store = Store::of(&products);
    let key = store.key("reader", &[]);
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    let target = "/v2/product?countries_redeemable_in=SE&limit=150";
    let kept = || scrape(&server).value("vitrine_cache_bytes{cache=\"plain\"}");
    let first = server.get(&key, target);
    assert_eq!(kept(), 0.0, "most pages are asked for once");
    assert_eq!(server.get(&key, target).body, first.body);
    assert!(kept() >= first.body.len() as f64, "{}", kept());
    assert_eq!(server.get(&key, target).body, first.body);
    let hits = "vitrine_cache_requests_total{cache=\"plain\",found=\"true\"}";
    assert_eq!(scrape(&server).value(hits), 1.0);
}
