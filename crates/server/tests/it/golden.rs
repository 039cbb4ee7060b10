//! Golden answers: the bytes of version 2024-02-05 on the sample catalog, which never change.
//!
//! The files in `tests/golden/2024-02-05` were written once, by running this with `VITRINE_BLESS=1`.
//! A difference here is a broken promise to clients, unless the sample catalog itself was changed.
//! HTML isn't among them: its safety is promised, its bytes aren't.

use std::path::PathBuf;

use crate::harness::{Store, text};

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

#[test]
fn released_answers_never_change() {
    let store = Store::sample();
    let key = store.key("golden", &[]);
    let server = store.serve_with(&["--public-url", "https://catalog.example"]);
    let directory = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/golden/2024-02-05"
    ));
    for (name, target) in ANSWERS {
        let file = directory.join(format!("{name}.json"));
        let answer = text(&server.get(&key, target).body);
        if std::env::var_os("VITRINE_BLESS").is_some() {
            std::fs::write(&file, &answer).expect("a golden file");
        }
        let golden = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(answer, golden, "{name}: GET {target}");
    }
}
