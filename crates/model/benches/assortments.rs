//! Cost of assortments: views, pages and products under them, and own discounts.

use std::sync::{Arc, LazyLock};

use divan::{Bencher, black_box};
use vitrine_model::assortment::{Assortment, DiscountChange, OwnDiscount, Rules, View, diff};
use vitrine_model::changes::StateId;
use vitrine_model::code::ProductCode;
use vitrine_model::facts::Facts;
use vitrine_model::geo::Country;
use vitrine_model::query::{Cursor, ListQuery};
use vitrine_model::revision::Revision;
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::{
    BlockBuilder, Entry, FacetNumbers, PlacedDiscount, Snapshot, TextTable,
};

const PRODUCTS: u32 = 1_000_000;
const COUNTRIES: [&str; 3] = ["US", "DE", "FR"];
/// First product of the page.
const PAGE_START: u32 = 100_000;
/// Number of codes in an assortment, and of own discounts.
const CODES: u32 = 500;

static SNAPSHOT: LazyLock<Arc<Snapshot>> = LazyLock::new(|| Arc::new(make()));

fn main() {
    divan::main();
}

fn code(number: u32) -> ProductCode {
    format!("BRIARWICK{number:07}").parse().expect("a code")
}

fn country(name: &str) -> Country {
    name.parse().expect("a country")
}

/// Returns a large catalog of small products: their bytes aren't read.
fn make() -> Snapshot {
    let mut numbers = FacetNumbers::default();
    let mut builder = BlockBuilder::default();
    let mut blocks = Vec::new();
    for number in 0..PRODUCTS {
        let countries = [country(COUNTRIES[number as usize % COUNTRIES.len()])];
        let facets = numbers.facets_of(&Facts {
            is_orderable: true,
            currency: "EUR".parse().expect("a currency"),
            payout_type: "gift_card",
            countries: &countries,
            categories: &["fashion".into()],
        });
        let entry = Entry {
            code: &code(number),
            bytes: br#"{"discount_multiplier":"0.01"}"#,
            content: None,
            discount: Some(PlacedDiscount {
                exact: "0.0125".parse().expect("a discount"),
                start: 24,
            }),
            facets: &facets,
            words: "",
        };
        builder.push(&entry).expect("it follows");
        if builder.is_full() || number + 1 == PRODUCTS {
            blocks.push(builder.finish().expect("a block"));
        }
    }
    let numbers = Arc::new(numbers);
    Snapshot::new(Revision::default(), numbers, blocks, TextTable::default()).expect("a snapshot")
}

/// An assortment.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// No assortment.
    Nothing,
    /// Everything, by countries and payout type.
    Everything,
    /// Everything, with a discount of its own for each product of the page.
    Discounts,
    /// Few products, spread over the catalog.
    Codes,
}

const KINDS: [Kind; 4] = [
    Kind::Nothing,
    Kind::Everything,
    Kind::Discounts,
    Kind::Codes,
];

fn codes(codes: impl Iterator<Item = u32>) -> Selector {
    Selector {
        codes: Some(codes.map(code).collect()),
        ..Selector::default()
    }
}

fn view(kind: Kind) -> Option<Arc<View>> {
    let rules = match kind {
        Kind::Nothing => return None,
        Kind::Everything => Rules {
            allow: Some(vec![Selector {
                countries: Some(COUNTRIES.map(country).to_vec()),
                payout_types: Some(vec!["gift_card".parse().expect("a payout type")]),
                ..Selector::default()
            }]),
            ..Rules::default()
        },
        Kind::Discounts => Rules {
            discounts: (PAGE_START..PAGE_START + CODES)
                .map(|number| OwnDiscount {
                    selector: codes([number].into_iter()),
                    change: DiscountChange::Share("0.8".parse().expect("a share")),
                })
                .collect(),
            ..Rules::default()
        },
        Kind::Codes => Rules {
            allow: Some(vec![codes((0..CODES).map(|index| index * 2_000))]),
            ..Rules::default()
        },
    };
    Some(assortment(rules).view(&SNAPSHOT))
}

fn assortment(rules: Rules) -> Assortment {
    Assortment::new("partner".to_owned(), StateId::default(), rules)
}

/// Finding a page of 500 products, its tag, its slices and their discounts.
#[divan::bench(args = KINDS)]
fn page(bencher: Bencher<'_, '_>, kind: Kind) {
    let (snapshot, view) = (Arc::clone(&SNAPSHOT), view(kind));
    let cursor = match kind {
        Kind::Codes => Cursor::Start,
        _ => Cursor::After(code(PAGE_START - 1)),
    };
    let query = ListQuery {
        cursor,
        ..ListQuery::default()
    };
    let view = view.as_deref();
    assert_eq!(snapshot.page_in(&query, view).len(), 500);
    bencher.bench_local(|| {
        let page = snapshot.page_in(black_box(&query), view);
        let mut discounts = view.map(|view| view.discounts(&snapshot));
        let (mut length, mut own) = (0, 0);
        for run in page.runs() {
            length += snapshot.run(run).len();
            if let Some(discounts) = &mut discounts {
                own += discounts.of(run).iter().flatten().count();
            }
        }
        (page.hash(), length, own)
    });
}

/// Finding one product, and its own discount.
#[divan::bench(args = [Kind::Nothing, Kind::Everything, Kind::Discounts])]
fn product(bencher: Bencher<'_, '_>, kind: Kind) {
    let (snapshot, view) = (Arc::clone(&SNAPSHOT), view(kind));
    let codes: Vec<ProductCode> = (0..PRODUCTS).step_by(997).map(code).collect();
    let mut codes = codes.iter().cycle();
    bencher.bench_local(|| {
        let code = black_box(codes.next().expect("a cycle"));
        match &view {
            None => snapshot.product(code).map(|product| (product, None)),
            Some(view) => view.product(&snapshot, code),
        }
        .map(|(product, own)| (product.hash(), own))
    });
}

/// Compiling the rules for a snapshot.
#[divan::bench(args = [Kind::Everything, Kind::Discounts, Kind::Codes])]
fn compile(bencher: Bencher<'_, '_>, kind: Kind) {
    let rules = view(kind).expect("an assortment").rules().clone();
    bencher
        .with_inputs(|| assortment(rules.clone()))
        .bench_local_refs(|assortment| assortment.view(&SNAPSHOT));
}

/// Finding the countries and categories of a view.
#[divan::bench(args = [Kind::Everything, Kind::Codes])]
fn names(bencher: Bencher<'_, '_>, kind: Kind) {
    let snapshot = Arc::clone(&SNAPSHOT);
    bencher
        .with_inputs(|| view(kind).expect("an assortment"))
        .bench_local_refs(|view| {
            view.countries(&snapshot).count() + view.categories(&snapshot).count()
        });
}

/// Comparing what is seen with and without an assortment.
#[divan::bench(args = [Kind::Everything, Kind::Discounts, Kind::Codes])]
fn difference(bencher: Bencher<'_, '_>, kind: Kind) {
    let (snapshot, view) = (Arc::clone(&SNAPSHOT), view(kind));
    bencher.bench_local(|| diff(&snapshot, None, view.as_deref()).shown_before);
}
