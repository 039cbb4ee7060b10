//! Costs of single steps of a request, and of a scrape.

use std::time::Duration;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, HeaderValue};
use vitrine::http::request::encoding::Accepted;
use vitrine::http::routes::{ROUTES, find};
use vitrine::metrics::requests::Requests;

fn main() {
    divan::main();
}

fn requests() -> Requests {
    Requests::new(&ROUTES.each_ref().map(|route| route.template))
}

/// Counting a request, from one thread and from several at once.
#[divan::bench(threads = [1, 2])]
fn observe(bencher: Bencher<'_, '_>) {
    let requests = requests();
    let took = Duration::from_nanos(9_000);
    bencher.bench(|| requests.observe(black_box(Some(3)), black_box(200), 2_300, black_box(took)));
}

/// Adding up what was counted.
#[divan::bench]
fn counts(bencher: Bencher<'_, '_>) {
    let requests = requests();
    bencher.bench_local(|| requests.metrics());
}

/// Finding the route of a path, and its place in the table.
#[divan::bench(args = ["/v2/product", "/v2/product/BRIARWICK-GB", "/v2/none"])]
fn route(path: &str) -> Option<usize> {
    Some(find(black_box(path))?.route.place())
}

/// Rendering a text of Markdown, which the cache saves most requests.
#[divan::bench(args = [1, 20])]
fn html(bencher: Bencher<'_, '_>, paragraphs: usize) {
    let paragraph = "## Terms\n\nUse it *within* a year, **once**, [here](https://example.com).\n\n\
                     - one\n- two\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n";
    let markdown = paragraph.repeat(paragraphs);
    bencher
        .counter(BytesCount::of_str(&markdown))
        .bench_local(|| vitrine_ingest::html::sanitised(black_box(&markdown)));
}

/// Choosing a coding by `Accept-Encoding`.
#[divan::bench(args = ["", "gzip", "gzip, deflate, br, zstd", "br;q=0.2, gzip;q=0.8, *;q=0.1"])]
fn coding(bencher: Bencher<'_, '_>, accepted: &str) {
    let mut headers = HeaderMap::new();
    if !accepted.is_empty() {
        let value = HeaderValue::from_str(accepted).expect("a header");
        headers.insert(ACCEPT_ENCODING, value);
    }
    bencher.bench_local(|| Accepted::by(black_box(&headers)).best());
}
