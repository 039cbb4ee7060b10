//! Costs of single steps of a load.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use vitrine_ingest::load::check::check;
use vitrine_ingest::load::read::Record;
use vitrine_ingest::load::report::Place;
use vitrine_ingest::view::document;
use vitrine_model::content::Content;

/// Records that are without faults.
const CATALOG: &str = include_str!("../../../fixtures/catalog.ndjson");

fn main() {
    divan::main();
}

fn record() -> Record {
    let line = CATALOG.lines().next().expect("a record");
    Record::new(Place::file("catalog.ndjson"), line.to_owned())
}

/// Reading and checking a record.
#[divan::bench]
fn check_record(bencher: Bencher<'_, '_>) {
    let record = record();
    bencher
        .counter(BytesCount::of_str(&record.json))
        .bench_local(|| {
            let mut findings = Vec::new();
            let checked = check(black_box(&record), &mut findings);
            assert!(checked.record.is_some(), "{findings:?}");
            checked
        });
}

/// Rendering a product as it is served.
#[divan::bench]
fn render(bencher: Bencher<'_, '_>) {
    let checked = check(&record(), &mut Vec::new());
    let product = checked.record.expect("no faults").product;
    let content = Content::default();
    let rendered = document(&product, &content).expect("JSON");
    bencher
        .counter(BytesCount::of_str(&rendered.json))
        .bench_local(|| document(black_box(&product), black_box(&content)));
}
