//! Lookups in a snapshot other than pages, against a naive model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::geo::Country;
use vitrine_model::query::{Limit, ListQuery};
use vitrine_model::revision::Revision;
use vitrine_model::snapshot::{
    Block, BlockBuilder, Entry, FacetKind, FacetNumbers, NewProduct, PlacedDiscount,
    RebuildThreads, ServedText, Snapshot, TextTable, TextTableBuilder,
};

use crate::naive::{block_sizes, catalog, code, made, rendered, snapshot, snapshot_of};

#[test]
fn ended_texts_are_dropped_and_all_else_stays() {
    let moment = |second| Timestamp::from_second(second).expect("a moment");
    let (lasting, ending) = (TextDigest::of("lasting"), TextDigest::of("ending"));
    let mut texts = [(lasting, "lasting", None), (ending, "ending", Some(5))];
    texts.sort_by_key(|(digest, ..)| *digest.as_bytes());
    let mut builder = TextTableBuilder::default();
    for (digest, markdown, until) in texts {
        let text = ServedText {
            markdown: PackedMarkdown::pack(markdown).expect("short"),
            served_until: until.map(moment),
        };
        builder.push(&digest, &text).expect("ascending");
    }
    let catalog = BTreeMap::from([("A-1".parse().expect("a code"), made(true))]);
    let before = snapshot_of(&catalog, &[256], revision(7), builder.finish());
    assert!(
        before.without_ended_texts(moment(4)).is_none(),
        "all are served"
    );
    let after = before.without_ended_texts(moment(5)).expect("one ended");
    assert_eq!((after.revision(), after.len()), (&revision(7), 1));
    assert!(before.text(&ending, moment(4)).is_some());
    assert!(after.text(&ending, moment(4)).is_none(), "it is gone");
    assert!(after.text(&lasting, moment(5)).is_some());
}

#[test]
fn discount_outside_of_its_product_is_refused() {
    let code: ProductCode = "A-1".parse().expect("a code");
    let bytes = br#"{"d":"0.01"}"#;
    let starts = [(6, true), (8, true), (9, false), (usize::MAX >> 40, false)];
    let discounts = ["0.0125", "0.01250000000000000001"].into_iter();
    for (text, (start, is_sound)) in discounts.flat_map(|text| starts.map(|start| (text, start))) {
        let exact = text.parse().expect("a discount");
        let placed = PlacedDiscount { exact, start };
        let mut builder = BlockBuilder::default();
        let entry = Entry {
            code: &code,
            bytes,
            content: None,
            discount: Some(placed),
            facets: &[],
            words: "",
        };
        builder.push(&entry).expect("a product that fits");
        let block = builder.finish();
        assert_eq!(block.is_ok(), is_sound, "{start}");
        let Ok(block) = block else { continue };
        let texts = TextTable::default();
        let snapshot = Snapshot::new(revision(1), Arc::default(), vec![block], texts);
        let snapshot = snapshot.expect("a snapshot");
        let product = snapshot.product(&code).expect("a product");
        assert_eq!(product.discount(), Some(placed));
    }
}

#[test]
fn products_without_content_resources_have_no_range() {
    let code: ProductCode = "A-1".parse().expect("a code");
    let product = NewProduct {
        bytes: b"{}".to_vec(),
        content: None,
        discount: None,
        facets: Vec::new(),
        words: Box::default(),
    };
    let snapshot = Snapshot::default()
        .with_changes(
            revision(1),
            Arc::default(),
            &BTreeMap::from([(code.clone(), Some(product))]),
            TextTable::default(),
            RebuildThreads::NONE,
            || (),
        )
        .expect("a product that fits");
    let product = snapshot.product(&code).expect("a product");
    assert_eq!((product.bytes(), product.content()), (&b"{}"[..], None));
}

#[test]
fn facets_are_numbered_in_order_of_appearance() {
    let names = ["food", "books", "food", "Food"];
    let names = names.map(|name| (FacetKind::Category, name));
    // Names of different kinds are different.
    let others = [
        (FacetKind::PayoutType, "food"),
        (FacetKind::Currency, "EUR"),
    ];
    let facets: FacetNumbers = names.into_iter().chain(others).collect();
    let named: Vec<(FacetKind, &str)> = facets
        .names()
        .iter()
        .map(|(kind, name)| (*kind, &**name))
        .collect();
    assert_eq!(
        named,
        [&[names[0], names[1], names[3]][..], &others].concat()
    );
    let again: FacetNumbers = facets.names().iter().cloned().collect();
    assert_eq!(again, facets, "as a file of a snapshot tells them");
}

fn revision(number: u64) -> Revision {
    Revision {
        number,
        id: format!("id of {number}"),
        created_at: Timestamp::from_second(1_000).expect("a moment"),
    }
}

/// Returns a table of one text, and its digest.
fn texts(markdown: &str) -> (TextTable, TextDigest) {
    let digest = TextDigest::of(markdown);
    let text = ServedText {
        markdown: PackedMarkdown::pack(markdown).expect("short"),
        served_until: None,
    };
    let mut builder = TextTableBuilder::default();
    builder.push(&digest, &text).expect("the first");
    (builder.finish(), digest)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn products_countries_and_categories_match_the_model(
        catalog in catalog(), others in prop::collection::vec(code(), 0..20), sizes in block_sizes(),
    ) {
        let snapshot = snapshot(&catalog, &sizes);
        prop_assert_eq!(snapshot.len(), catalog.len());
        prop_assert_eq!(snapshot.is_empty(), catalog.is_empty());
        for code in catalog.keys().chain(&others) {
            let found = snapshot.product(code).map(|product| {
                (product.code().to_owned(), String::from_utf8(product.bytes().to_vec()).unwrap(), *product.hash().as_bytes(), product.content())
            });
            let expected = catalog.get(code).map(|made| {
                let bytes = rendered(code, made);
                let mut hash = [0; 16];
                hash.copy_from_slice(&Sha256::digest(&bytes)[..16]);
                (code.to_string(), bytes.clone(), hash, Some(1..bytes.len()))
            });
            prop_assert_eq!(found, expected);
        }
        let countries: BTreeSet<Country> = catalog.values().flat_map(|made| made.countries.clone()).collect();
        prop_assert_eq!(snapshot.countries().collect::<Vec<_>>(), countries.into_iter().collect::<Vec<_>>());
        let categories: BTreeSet<&str> =
            catalog.values().flat_map(|made| made.categories.iter().map(AsRef::as_ref)).collect();
        prop_assert_eq!(snapshot.categories().collect::<Vec<_>>(), categories.into_iter().collect::<Vec<_>>());
        let in_blocks: Vec<(String, String)> = snapshot
            .blocks()
            .iter()
            .flat_map(Block::products)
            .map(|(code, bytes)| (code.to_owned(), String::from_utf8(bytes.to_vec()).unwrap()))
            .collect();
        let all: Vec<_> = catalog.iter().map(|(code, made)| (code.to_string(), rendered(code, made))).collect();
        prop_assert_eq!(in_blocks, all);
    }

    #[test]
    fn revision_texts_and_size_match_the_model(
        catalog in catalog(), number in 1..9_u64, markdown in ".{1,40}", sizes in block_sizes(),
    ) {
        let (texts, digest) = texts(&markdown);
        let texts_take = texts.size_bytes();
        let snapshot = snapshot_of(&catalog, &sizes, revision(number), texts);
        prop_assert_eq!(snapshot.revision(), &revision(number));
        let text = snapshot.text(&digest, Timestamp::UNIX_EPOCH).map(|text| text.unpack().unwrap());
        prop_assert_eq!(text, Some(markdown));
        prop_assert_eq!(snapshot.texts().size_bytes(), texts_take);
        prop_assert!(texts_take > 32);
        let bytes = |block: &Block| block.directory().len() + block.arena().len();
        let blocks_take: usize = snapshot.blocks().iter().map(bytes).sum();
        prop_assert_eq!(snapshot.size_bytes(), blocks_take + texts_take);
        let rendered: usize = catalog.iter().map(|(code, made)| rendered(code, made).len()).sum();
        prop_assert!(blocks_take >= rendered);
    }

    #[test]
    fn pages_have_at_most_their_limit(catalog in catalog(), limit in 1..70_u16) {
        let snapshot = snapshot(&catalog, &[256]);
        let query = ListQuery { limit: Limit::new(limit).expect("a limit"), ..ListQuery::default() };
        let page = snapshot.page(&query);
        let expected = catalog.len().min(usize::from(limit));
        prop_assert_eq!((page.products().count(), page.len()), (expected, expected));
        prop_assert_eq!(page.is_empty(), expected == 0);
    }
}
