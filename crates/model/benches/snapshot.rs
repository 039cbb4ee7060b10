//! Cost of lookups, pages, entity tags of pages, and applying a revision.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use vitrine_model::code::ProductCode;
use vitrine_model::facts::Facts;
use vitrine_model::geo::Country;
use vitrine_model::query::{Cursor, Limit, ListQuery};
use vitrine_model::revision::Revision;
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::{
    BlockBuilder, Entry, FacetNumbers, NewProduct, RebuildThreads, Snapshot, TextTable,
};

/// A small catalog and a large one.
const SIZES: [u32; 2] = [5_000, 100_000];
/// Approximate size of products from `vitrine generate`, in bytes.
const PRODUCT_BYTES: usize = 2_300;
const COUNTRIES: [&str; 3] = ["US", "DE", "FR"];
/// Number of categories: with two, both filters leave enough of the small catalog for the longest page.
const CATEGORIES: [&str; 2] = ["fashion", "food"];

fn main() {
    divan::main();
}

/// A query: size of the catalog, number of filters, size of the page.
#[derive(Debug, Clone, Copy)]
struct Case {
    products: u32,
    limit: u16,
    filters: usize,
}

impl std::fmt::Display for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            products,
            limit,
            filters,
        } = self;
        write!(formatter, "{limit} of {products}, {filters} filters")
    }
}

impl Case {
    /// Returns the query of a page that doesn't begin at the catalog's start.
    fn query(self) -> ListQuery {
        let country = COUNTRIES[0].parse().expect("a country");
        ListQuery {
            filter: Selector {
                countries: (self.filters > 0).then(|| vec![country]),
                categories: (self.filters > 1).then(|| vec![CATEGORIES[0].to_owned()]),
                ..Selector::default()
            },
            cursor: Cursor::After(code(self.products / 10)),
            limit: Limit::new(self.limit).expect("a limit"),
            search: None,
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for products in SIZES {
        for limit in [50, 500] {
            cases.extend((0..=2).map(|filters| Case {
                products,
                limit,
                filters,
            }));
        }
    }
    cases
}

/// Returns pages of 500 products: one contiguous run, and many runs.
fn long_pages() -> Vec<Case> {
    let is_long = |case: &Case| case.limit == 500 && case.filters < 2;
    cases().into_iter().filter(is_long).collect()
}

fn code(number: u32) -> ProductCode {
    format!("BRIARWICK{number:07}").parse().expect("a code")
}

/// Returns a catalog in memory, built once for all benchmarks.
fn snapshot(products: u32) -> Arc<Snapshot> {
    static MADE: LazyLock<Mutex<HashMap<u32, Arc<Snapshot>>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(
        made.entry(products)
            .or_insert_with(|| Arc::new(make(products))),
    )
}

fn facts<'a>(countries: &'a [Country], categories: &'a [Box<str>]) -> Facts<'a> {
    Facts {
        is_orderable: true,
        currency: "EUR".parse().expect("a currency"),
        payout_type: "gift_card",
        countries,
        categories,
    }
}

fn make(products: u32) -> Snapshot {
    let mut numbers = FacetNumbers::default();
    let countries: Vec<Country> = COUNTRIES
        .iter()
        .map(|code| code.parse().expect("a country"))
        .collect();
    let mut random = 1_u64;
    // Knuth's generator; its upper bits are the good ones.
    let mut below = |end: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % end
    };
    let mut builder = BlockBuilder::default();
    let mut blocks = Vec::new();
    for number in 0..products {
        let code = code(number);
        let country = countries[below(countries.len())];
        let category = CATEGORIES[below(CATEGORIES.len())].into();
        let facets = numbers.facets_of(&facts(&[country], &[category]));
        let entry = Entry {
            code: &code,
            bytes: &document(number, 'a'),
            content: None,
            discount: None,
            facets: &facets,
            words: "",
        };
        builder.push(&entry).expect("it follows");
        if builder.is_full() {
            blocks.push(builder.finish().expect("a block"));
        }
    }
    if !builder.is_empty() {
        blocks.push(builder.finish().expect("a block"));
    }
    let categories = Arc::new(numbers);
    Snapshot::new(
        Revision::default(),
        categories,
        blocks,
        TextTable::default(),
    )
    .expect("a snapshot")
}

fn document(number: u32, filler: char) -> Vec<u8> {
    let mut bytes = format!("{{\"code\":\"{number}\",\"text\":\"").into_bytes();
    bytes.resize(PRODUCT_BYTES - 2, filler as u8);
    bytes.extend_from_slice(b"\"}");
    bytes
}

/// Finding the products of a page.
#[divan::bench(args = cases())]
fn page(bencher: Bencher<'_, '_>, case: Case) {
    let (snapshot, query) = (snapshot(case.products), case.query());
    let found = snapshot.page(&query);
    assert_eq!(found.len(), usize::from(case.limit), "too few products");
    bencher
        .counter(ItemsCount::new(found.len()))
        .bench_local(|| snapshot.page(black_box(&query)).len());
}

/// The tag of a page that was found.
#[divan::bench(args = long_pages())]
fn page_tag(bencher: Bencher<'_, '_>, case: Case) {
    let snapshot = snapshot(case.products);
    let page = snapshot.page(&case.query());
    bencher
        .counter(ItemsCount::new(page.len()))
        .bench_local(|| black_box(&page).hash());
}

/// Copying the products of a page into one body.
#[divan::bench(args = long_pages())]
fn assemble(bencher: Bencher<'_, '_>, case: Case) {
    let snapshot = snapshot(case.products);
    let page = snapshot.page(&case.query());
    let length: usize = page
        .runs()
        .map(|run| snapshot.slice(snapshot.run(run)).len() + 1)
        .sum();
    bencher.counter(BytesCount::new(length)).bench_local(|| {
        let mut body = Vec::with_capacity(length);
        for run in black_box(&page).runs() {
            body.extend_from_slice(snapshot.slice(snapshot.run(run)));
            body.push(b',');
        }
        body
    });
}

/// References to the runs of a page, without copying.
#[divan::bench(args = long_pages())]
fn share(bencher: Bencher<'_, '_>, case: Case) {
    let snapshot = snapshot(case.products);
    let page = snapshot.page(&case.query());
    bencher.bench_local(|| {
        black_box(&page)
            .runs()
            .map(|run| snapshot.shared_slice(snapshot.run(run)).len())
            .sum::<usize>()
    });
}

/// Finding one product.
#[divan::bench(args = SIZES)]
fn product(bencher: Bencher<'_, '_>, products: u32) {
    let snapshot = snapshot(products);
    let codes: Vec<ProductCode> = (0..products).step_by(997).map(code).collect();
    let mut codes = codes.iter().cycle();
    bencher.bench_local(|| {
        let code = codes.next().expect("a cycle");
        snapshot
            .product(black_box(code))
            .expect("it is there")
            .hash()
    });
}

/// The snapshot of a revision with 100 changed products, spread over the catalog.
#[divan::bench(args = SIZES)]
fn change_100(bencher: Bencher<'_, '_>, products: u32) {
    let snapshot = snapshot(products);
    let facets = snapshot
        .facet_numbers()
        .as_ref()
        .clone()
        .facets_of(&facts(&[], &[]));
    let changes: BTreeMap<ProductCode, Option<NewProduct>> = (0..products)
        .step_by(products as usize / 100)
        .map(|number| {
            let product = NewProduct {
                bytes: document(number, 'b'),
                content: None,
                discount: None,
                facets: facets.clone(),
                words: Box::default(),
            };
            (code(number), Some(product))
        })
        .collect();
    assert_eq!(changes.len(), 100);
    bencher.bench_local(|| {
        let categories = Arc::clone(snapshot.facet_numbers());
        let changes = black_box(&changes);
        snapshot
            .with_changes(
                Revision::default(),
                categories,
                changes,
                TextTable::default(),
                RebuildThreads::NONE,
                || (),
            )
            .expect("products that fit")
    });
}
