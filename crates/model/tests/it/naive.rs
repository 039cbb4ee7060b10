//! A naive catalog, and snapshots built from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use vitrine_model::code::ProductCode;
use vitrine_model::geo::Country;
use vitrine_model::revision::Revision;
use vitrine_model::snapshot::{Block, BlockBuilder, Categories, Entry, Snapshot, TextTable};

/// Products by code.
pub type Catalog = BTreeMap<ProductCode, Made>;

/// A product.
#[derive(Debug, Clone)]
pub struct Made {
    pub is_orderable: bool,
    pub countries: Vec<Country>,
    pub categories: Vec<Box<str>>,
}

/// Returns a product without countries and categories.
pub fn made(is_orderable: bool) -> Made {
    Made {
        is_orderable,
        countries: vec![],
        categories: vec![],
    }
}

pub fn code() -> impl Strategy<Value = ProductCode> {
    "[AB~.-]{1,3}".prop_filter_map("reserved", |text| text.parse().ok())
}

pub fn country() -> impl Strategy<Value = Country> {
    prop::sample::select(vec!["AT", "DE", "GB", "US"])
        .prop_map(|text| text.parse().expect("a country"))
}

pub fn category() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["books", "food", "Food", "café & bistro"]).prop_map(str::to_owned)
}

pub fn catalog() -> impl Strategy<Value = Catalog> {
    let made = (
        any::<bool>(),
        prop::collection::btree_set(country(), 0..3),
        prop::collection::btree_set(category(), 0..3),
    )
        .prop_map(|(is_orderable, countries, categories)| Made {
            is_orderable,
            countries: countries.into_iter().collect(),
            categories: categories.into_iter().map(Into::into).collect(),
        });
    prop::collection::btree_map(code(), made, 0..60)
}

/// Generates the sizes of a snapshot's blocks, smaller than real ones because these catalogs are small.
pub fn block_sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1..6_usize, 1..5)
}

pub fn rendered(code: &ProductCode, made: &Made) -> String {
    format!("<{code} {}>", made.is_orderable)
}

pub fn snapshot(catalog: &Catalog, block_sizes: &[usize]) -> Snapshot {
    snapshot_of(
        catalog,
        block_sizes,
        Revision::default(),
        TextTable::default(),
    )
}

/// Builds a snapshot like [`snapshot`], with revision and texts.
pub fn snapshot_of(
    catalog: &Catalog,
    block_sizes: &[usize],
    revision: Revision,
    texts: TextTable,
) -> Snapshot {
    let mut categories = Categories::default();
    let mut sizes = block_sizes.iter().copied().cycle();
    let mut blocks: Vec<Block> = Vec::new();
    let mut builder = BlockBuilder::default();
    let mut size = sizes.next();
    for (code, made) in catalog {
        let bytes = rendered(code, made);
        let facets = categories.facets_of(made.is_orderable, &made.countries, &made.categories);
        let entry = Entry {
            code,
            bytes: bytes.as_bytes(),
            content: Some((1, bytes.len())),
            facets: &facets,
        };
        builder.push(&entry).expect("in order");
        if Some(builder.len()) >= size {
            blocks.push(builder.finish().expect("a block"));
            size = sizes.next();
        }
    }
    if !builder.is_empty() {
        blocks.push(builder.finish().expect("a block"));
    }
    let categories = Arc::new(categories);
    Snapshot::new(revision, categories, blocks, texts).expect("in order")
}
