//! Costs of single steps of a load.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use vitrine_ingest::load::check::check;
use vitrine_ingest::load::json::Node;
use vitrine_ingest::load::read::{Record, Shape, read_plain};
use vitrine_ingest::load::report::Place;
use vitrine_ingest::view::document;
use vitrine_model::content::{Content, PackedMarkdown, TextDigest};
use vitrine_store::prepared::PreparedProduct;
use vitrine_store::record::StoredProduct;

/// Records that are without faults.
const CATALOG: &str = include_str!("../../../fixtures/catalog.ndjson");

/// A text of the usual length.
const TEXT: &str = include_str!("../../../README.md");

fn main() {
    divan::main();
}

/// A record as most generated ones are: with 64 amounts.
fn record() -> Record {
    let line = CATALOG.lines().next().expect("a record");
    let mut product: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let amounts: Vec<String> = (1..=64).map(|amount| format!("{amount}0.00")).collect();
    let denominations = &mut product["gift_card"]["denominations"];
    denominations["available_list"] = amounts.into();
    denominations["type"] = "open".into();
    let json = product.to_string();
    Record::new(Place::file("catalog.ndjson"), json)
}

/// Splitting lines.
#[divan::bench]
fn split(bencher: Bencher<'_, '_>) {
    bencher
        .counter(BytesCount::of_str(CATALOG))
        .bench_local(|| {
            let mut items = Vec::new();
            read_plain(
                "a",
                black_box(CATALOG.as_bytes()),
                Shape::Whole,
                &mut |item| {
                    items.push(item);
                },
            )
            .expect("memory");
            items
        });
}

/// Parsing a record.
#[divan::bench]
fn parse(bencher: Bencher<'_, '_>) {
    let record = record();
    bencher
        .counter(BytesCount::of_str(&record.json))
        .bench_local(|| Node::parse(black_box(&record.json)).1.len());
}

/// Parsing a record with a general parser, for comparison.
#[divan::bench]
fn parse_with_serde(bencher: Bencher<'_, '_>) {
    let record = record();
    bencher
        .counter(BytesCount::of_str(&record.json))
        .bench_local(|| serde_json::from_str::<serde_json::Value>(black_box(&record.json)));
}

/// Parsing and checking a record.
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

/// Rendering a product as it is stored.
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

/// The digest and the columns of a product.
#[divan::bench]
fn prepare(bencher: Bencher<'_, '_>) {
    let checked = check(&record(), &mut Vec::new());
    let product = checked.record.expect("no faults").product;
    let rendered = document(&product, &Content::default()).expect("JSON");
    let stored = StoredProduct {
        code: product.code,
        document: rendered.json,
        content: rendered.content,
        discount_multiplier: product.discount_multiplier.to_string(),
        is_orderable: product.is_orderable,
        countries: product.countries_redeemable_in,
        categories: product.categories.iter().map(ToString::to_string).collect(),
        own_texts: Vec::new(),
    };
    bencher
        .counter(BytesCount::of_str(&stored.document))
        .with_inputs(|| stored.clone())
        .bench_local_values(|stored| PreparedProduct::new(stored).expect("a product"));
}

/// The digest of a text.
#[divan::bench]
fn hash_text(bencher: Bencher<'_, '_>) {
    bencher
        .counter(BytesCount::of_str(TEXT))
        .bench_local(|| TextDigest::of(black_box(TEXT)));
}

/// Compressing a text.
#[divan::bench]
fn pack_text(bencher: Bencher<'_, '_>) {
    bencher
        .counter(BytesCount::of_str(TEXT))
        .bench_local(|| PackedMarkdown::pack(black_box(TEXT)));
}
