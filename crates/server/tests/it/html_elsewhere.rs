//! HTML is rendered apart from the threads that serve, and once for each text.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Server, Store, gift_card, scrape};

/// Returns a product with a description of a mebibyte.
fn long(code: &str) -> Value {
    let line =
        "This gift card can be redeemed at any shop of ours in Sweden, Norway and Finland.\n\n";
    let text = format!("{code}\n\n{}", line.repeat((1 << 20) / line.len() - 1));
    let mut product = gift_card(code);
    product["gift_card"]["content_resources"]["description_md"] = json!(text);
    product
}

/// Asks for the HTML of these products at once, and returns when all are answered.
fn ask_for_html(server: &Server, key: &str, codes: &[String]) -> Vec<thread::JoinHandle<Instant>> {
    let ask = |code: &String| {
        let mut connection = server.keep_alive();
        let (key, target) = (key.to_owned(), format!("/v2/product/{code}?content=html"));
        thread::spawn(move || {
            let reply = connection.get(&key, &target).expect("an answer");
            assert_eq!(reply.status, 200);
            let html = reply.json()["gift_card"]["content_resources"]["description_html"].clone();
            assert!(html.as_str().expect("HTML").contains("<p>This gift card"));
            Instant::now()
        })
    };
    codes.iter().map(ask).collect()
}

#[test]
fn long_texts_do_not_delay_other_requests() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let codes: Vec<String> = (0..2 * cores).map(|number| format!("L{number}")).collect();
    let mut products: Vec<Value> = codes.iter().map(|code| long(code)).collect();
    products.push(gift_card("A"));
    let store = Store::of(&products);
    let [key, other] = ["greedy", "modest"].map(|label| store.key(label, &[]));
    let server = store.serve();
    let mut connection = server.keep_alive();
    assert_eq!(
        connection
            .get(&other, "/v2/ping")
            .expect("an answer")
            .status,
        200
    );
    let began = Instant::now();
    let asked = ask_for_html(&server, &key, &codes);
    let mut longest = Duration::ZERO;
    while !asked.iter().all(thread::JoinHandle::is_finished) {
        for target in ["/v2/ping", "/v2/product/A", "/v2/product/A?content=html"] {
            // A short text waits for one of another key at most.
            let waits_for_a_text = target.ends_with("html");
            let sent = Instant::now();
            let reply = connection.get(&other, target).expect("an answer");
            assert_eq!(reply.status, 200);
            if !waits_for_a_text {
                longest = longest.max(sent.elapsed());
            }
        }
    }
    let ends = asked
        .into_iter()
        .map(|asked| asked.join().expect("an answer"));
    let all = ends.max().expect("a time") - began;
    eprintln!("all HTML after {all:?}; another key waited for {longest:?} at most");
    assert!(longest * 4 < all, "{longest:?} of {all:?}");
}

#[test]
fn text_is_rendered_once_however_many_ask() {
    let store = Store::of(&[long("L")]);
    let key = store.key("partner", &[]);
    let server = store.serve_with(&["--admin-listen", "127.0.0.1:0"]);
    let codes = vec!["L".to_owned(); 12];
    for asked in ask_for_html(&server, &key, &codes) {
        asked.join().expect("an answer");
    }
    let scraped = scrape(&server);
    assert_eq!(
        scraped.sum("vitrine_cache_requests_total{cache=\"html\",found=\"false\"}"),
        1.0
    );
}
