//! Cost of rendering 64 kB of Markdown, for each text of `fixtures/pathological-markdown.ndjson`: texts that
//! are known to be slow in one implementation or another. None may take more than 50 ms.

use divan::{Bencher, black_box};
use serde::Deserialize;
use vitrine_ingest::html;

const TEXTS: &str = include_str!("../../../fixtures/pathological-markdown.ndjson");

/// Length of a text, in bytes.
const TEXT_BYTES: usize = 64 << 10;

/// A text: its start, a part as often as it fits, the middle, and a tail as often as the part.
#[derive(Deserialize)]
struct Text {
    name: String,
    start: String,
    part: String,
    middle: String,
    tail: String,
}

fn main() {
    divan::main();
}

fn texts() -> impl Iterator<Item = Text> {
    TEXTS
        .lines()
        .map(|line| serde_json::from_str(line).expect("a text"))
}

fn names() -> Vec<String> {
    texts().map(|text| text.name).collect()
}

/// Rendering and sanitising, without the cache.
#[divan::bench(args = names(), sample_count = 5, sample_size = 1)]
fn pathological(bencher: Bencher<'_, '_>, name: &str) {
    let mut texts = texts();
    let text = texts.find(|text| text.name == name).expect("a name");
    let around = text.start.len() + text.middle.len();
    let times = (TEXT_BYTES - around) / (text.part.len() + text.tail.len());
    let (parts, tails) = (text.part.repeat(times), text.tail.repeat(times));
    let markdown = [text.start, parts, text.middle, tails].concat();
    bencher.bench_local(|| html::sanitised(black_box(&markdown)));
}
