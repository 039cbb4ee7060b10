//! A naive catalog, and snapshots built from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use vitrine_model::code::ProductCode;
use vitrine_model::geo::Country;
use vitrine_model::query::{Filter, Orderable};
use vitrine_model::revision::Revision;
use vitrine_model::snapshot::{Block, BlockBuilder, Categories, Entry, Snapshot, TextTable};

/// Products by code.
pub type Catalog = BTreeMap<ProductCode, Made>;

/// A product.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    // Searches compare the first 16 bytes before the others.
    let text = prop_oneof![7 => "[AB~.-]{1,3}", 3 => "A{15}[AB]{0,3}"];
    text.prop_filter_map("reserved", |text| text.parse().ok())
}

pub fn country() -> impl Strategy<Value = Country> {
    prop::sample::select(vec!["AT", "DE", "GB", "US"])
        .prop_map(|text| text.parse().expect("a country"))
}

pub fn category() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["books", "food", "Food", "café & bistro"]).prop_map(str::to_owned)
}

pub fn product() -> impl Strategy<Value = Made> {
    (
        any::<bool>(),
        prop::collection::btree_set(country(), 0..3),
        prop::collection::btree_set(category(), 0..3),
    )
        .prop_map(|(is_orderable, countries, categories)| Made {
            is_orderable,
            countries: countries.into_iter().collect(),
            categories: categories.into_iter().map(Into::into).collect(),
        })
}

pub fn catalog() -> impl Strategy<Value = Catalog> {
    prop::collection::btree_map(code(), product(), 0..60)
}

pub fn filter() -> impl Strategy<Value = Filter> {
    (
        prop::collection::vec(country(), 0..3),
        prop::collection::vec(category(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(countries, categories, only)| Filter {
            countries,
            categories,
            orderable: if only {
                Orderable::Only
            } else {
                Orderable::Any
            },
        })
}

/// Returns true if a product matches the filter.
pub fn matches(made: &Made, filter: &Filter) -> bool {
    (filter.orderable == Orderable::Any || made.is_orderable)
        && (filter.countries.is_empty()
            || filter.countries.iter().any(|c| made.countries.contains(c)))
        && (filter.categories.is_empty()
            || filter
                .categories
                .iter()
                .any(|c| made.categories.iter().any(|own| **own == **c)))
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
    let products = catalog
        .iter()
        .map(|(code, made)| (code, made, rendered(code, made)));
    snapshot_from(products, block_sizes, revision, texts)
}

/// Builds a snapshot of products with their rendered bytes, ascending by code.
pub fn snapshot_from<'c>(
    products: impl Iterator<Item = (&'c ProductCode, &'c Made, String)>,
    block_sizes: &[usize],
    revision: Revision,
    texts: TextTable,
) -> Snapshot {
    let mut categories = Categories::default();
    let mut sizes = block_sizes.iter().copied().cycle();
    let mut blocks: Vec<Block> = Vec::new();
    let mut builder = BlockBuilder::default();
    let mut size = sizes.next();
    for (code, made, bytes) in products {
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
