//! Golden answers: the bytes of each version on the sample catalog, which never change.
//!
//! The files in `tests/golden/VERSION` were written once, by running this with `VITRINE_BLESS=1`.
//! A difference here is a broken promise to clients, unless the sample catalog itself was changed.
//! HTML isn't among them: its safety is promised, its bytes aren't.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{SAMPLE, Store, text};

const ANSWERS: [(&str, &str); 12] = [
    ("list-first-page", "/v2/product?limit=5"),
    (
        "list-filtered",
        "/v2/product?countries_redeemable_in=SE&countries_redeemable_in=DE&is_orderable=true&limit=3&after=F",
    ),
    ("list-before", "/v2/product?limit=2&before=M"),
    ("list-empty", "/v2/product?categories=none"),
    ("gift-card-md", "/v2/product/BRIARWICK-GB?content=md"),
    ("gift-card-url", "/v2/product/HOSHIMICHI-JP"),
    ("subscription-md", "/v2/product/FABELZWEIG-DE?content=md"),
    ("later-payout-type", "/v2/product/OPENFARER-US"),
    ("categories", "/v2/product/categories"),
    ("countries", "/v2/product/countries"),
    (
        "error-parameters",
        "/v2/product?limit=501&countries=GB&before=A&after=B",
    ),
    ("error-not-found", "/v2/product/NONE"),
];

/// Returns the sample catalog with discounts of all lengths, which 2024-02-05 doesn't show.
fn exact_discounts() -> Store {
    let sample = std::fs::read_to_string(SAMPLE).expect("the sample catalog");
    let digits = ["", "0", "25", "3", "98765432"];
    let records: Vec<Value> = sample
        .lines()
        .zip(digits.into_iter().cycle())
        .map(|(line, digits)| {
            let mut record: Value = serde_json::from_str(line).expect("JSON");
            record["discount_multiplier"] = json!(format!("0.07{digits}"));
            record
        })
        .collect();
    Store::of(&records)
}

#[test]
fn released_answers_never_change() {
    assert_golden(&Store::sample(), "2024-02-05");
    assert_golden(&exact_discounts(), "2026-12-01");
}

/// Asserts that a version's answers are those of its files.
fn assert_golden(store: &Store, version: &str) {
    let key = store.key("golden", &["--api-version", version]);
    let server = store.serve_with(&["--public-url", "https://catalog.example"]);
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let directory = PathBuf::from(directory).join(version);
    for (name, target) in ANSWERS {
        let file = directory.join(format!("{name}.json"));
        let answer = text(&server.get(&key, target).body);
        if std::env::var_os("VITRINE_BLESS").is_some() {
            std::fs::write(&file, &answer).expect("a golden file");
        }
        let golden = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(answer, golden, "{version}, {name}: GET {target}");
    }
}
