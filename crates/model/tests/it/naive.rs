//! A naive catalog, and snapshots built from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use vitrine_model::code::ProductCode;
use vitrine_model::facts::Facts;
use vitrine_model::geo::Country;
use vitrine_model::money::{Currency, Discount};
use vitrine_model::product::PayoutTypeName;
use vitrine_model::revision::Revision;
use vitrine_model::search::{Search, words_of};
use vitrine_model::selector::{Selector, any_of};
use vitrine_model::snapshot::{
    Block, BlockBuilder, Entry, FacetNumbers, PlacedDiscount, Snapshot, TextTable,
};

/// Products by code.
pub type Catalog = BTreeMap<ProductCode, Made>;

/// A product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub name: Name,
    pub is_orderable: bool,
    pub currency: Currency,
    pub payout_type: &'static str,
    pub countries: Vec<Country>,
    pub categories: Vec<Box<str>>,
    pub discount: Option<Discount>,
}

impl Made {
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            is_orderable: self.is_orderable,
            currency: self.currency,
            payout_type: self.payout_type,
            countries: &self.countries,
            categories: &self.categories,
        }
    }
}

/// A name, and the words by which it is found; of the last ones, a match may begin with any character.
pub type Name = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const NAMES: [Name; 7] = [
    ("Café Noir", &["cafe", "noir"], &[]),
    ("CAFE\u{301}s' Ab", &["cafes", "ab"], &[]),
    ("H&M & Straße", &["h&m", "strasse"], &[]),
    ("İzmir, ΟΔΟΣ", &["izmir", "οδοσ"], &[]),
    ("礼品卡 品牌", &[], &["礼品卡", "品牌"]),
    ("بطاقة 🎁", &["بطاقة"], &[]),
    ("-", &[], &[]),
];

/// Searches with their folded words.
const SEARCHES: [(&str, &[&str]); 12] = [
    ("caf", &["caf"]),
    ("CAFÉ ab", &["cafe", "ab"]),
    ("a", &["a"]),
    ("b a", &["b", "a"]),
    ("aaaaaaaaaaaaaaaa", &["aaaaaaaaaaaaaaaa"]),
    ("h&m", &["h&m"]),
    ("m", &["m"]),
    ("straß", &["strass"]),
    ("οδος izm", &["οδοσ", "izm"]),
    ("品", &["品"]),
    ("品卡", &["品卡"]),
    ("🎁", &[]),
];

/// Generates a search in a quarter of the cases.
pub fn search() -> impl Strategy<Value = Option<&'static str>> {
    let text = prop::sample::select(SEARCHES.map(|(text, _)| text).to_vec());
    few(text.prop_map(Some))
}

/// Returns true if a search finds a product, by comparing all words.
pub fn finds(search: &Search, code: &ProductCode, made: &Made) -> bool {
    let of = |text: &str| Search::parse(text).expect("a search") == *search;
    let (_, wanted) = SEARCHES
        .into_iter()
        .find(|(text, _)| of(text))
        .expect("one of these");
    let code = code.as_str().to_lowercase();
    let (_, words, any) = made.name;
    let begins = |wanted: &&str| {
        let mut own = words
            .iter()
            .copied()
            .chain(code.split(['-', '.', '_', '~']));
        own.any(|own| own.starts_with(wanted)) || any.iter().any(|own| own.contains(wanted))
    };
    !wanted.is_empty() && wanted.iter().all(begins)
}

/// Returns a product without countries and categories.
pub fn made(is_orderable: bool) -> Made {
    Made {
        name: NAMES[0],
        is_orderable,
        currency: "EUR".parse().expect("a currency"),
        payout_type: "gift_card",
        countries: vec![],
        categories: vec![],
        discount: None,
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

/// Generates currencies, also one that doesn't exist.
pub fn currency() -> impl Strategy<Value = Currency> {
    let codes = prop::sample::select(vec!["EUR", "GBP", "SEK", "ZZZ"]);
    codes.prop_map(|code| Currency::well_formed(code).expect("a currency"))
}

pub fn payout_type() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["gift_card", "payment", "prepaid_card"])
}

pub fn discount() -> impl Strategy<Value = Discount> {
    let texts = prop::sample::select(vec!["0", "0.0125", "0.5", "0.999999", "1"]);
    texts.prop_map(|text| text.parse().expect("a discount"))
}

/// Generates discounts of products, some with many digits: near to thirds, shares differ by the last of them.
fn list_discount() -> impl Strategy<Value = Discount> {
    let long = format!("0.{}", "3".repeat(28));
    let higher = format!("0.{}4", "3".repeat(27));
    let texts = vec!["0.1234567", "0.0125000000001", "0.07000000000000001"];
    let texts = texts.into_iter().map(str::to_owned).chain([long, higher]);
    let long = prop::sample::select(texts.collect::<Vec<_>>());
    prop_oneof![
        3 => discount(),
        1 => long.prop_map(|text| text.parse().expect("a discount")),
    ]
}

pub fn product() -> impl Strategy<Value = Made> {
    (
        prop::sample::select(NAMES.to_vec()),
        any::<bool>(),
        currency(),
        payout_type(),
        prop::collection::btree_set(country(), 0..3),
        prop::collection::btree_set(category(), 0..3),
        prop::option::weighted(0.9, list_discount()),
    )
        .prop_map(
            |(name, is_orderable, currency, payout_type, countries, categories, discount)| Made {
                name,
                is_orderable,
                currency,
                payout_type,
                countries: countries.into_iter().collect(),
                categories: categories.into_iter().map(Into::into).collect(),
                discount,
            },
        )
}

pub fn catalog() -> impl Strategy<Value = Catalog> {
    prop::collection::btree_map(code(), product(), 0..60)
}

pub fn filter() -> impl Strategy<Value = Selector> {
    (
        prop::collection::vec(country(), 0..3),
        prop::collection::vec(category(), 0..3),
        any::<bool>(),
        few(prop::collection::vec(currency(), 0..3)),
        few(prop::collection::vec(payout_type(), 0..3)),
        few(prop::collection::btree_set(code(), 0..12)),
    )
        .prop_map(
            |(countries, categories, only, currencies, payout_types, codes)| {
                let names = payout_types.into_iter();
                let payout_types = names.map(|name| name.parse().expect("a payout type"));
                Selector {
                    countries: given(countries),
                    categories: given(categories),
                    currencies: given(currencies),
                    payout_types: given(payout_types.collect()),
                    codes: given(codes.into_iter().collect()).map(FromIterator::from_iter),
                    is_orderable: only.then_some(true),
                    ..Selector::default()
                }
            },
        )
}

/// Returns the values of a filter; none are no filter.
fn given<T>(values: Vec<T>) -> Option<Vec<T>> {
    (!values.is_empty()).then_some(values)
}

/// Generates a filter in a quarter of the cases: all at once would match nothing.
fn few<T: Default + Clone + std::fmt::Debug>(
    filter: impl Strategy<Value = T>,
) -> impl Strategy<Value = T> {
    prop_oneof![3 => Just(T::default()), 1 => filter]
}

/// Returns true if a product matches the filter.
pub fn matches(code: &ProductCode, made: &Made, filter: &Selector) -> bool {
    let is_payout_type = |one: &PayoutTypeName| one.as_str() == made.payout_type;
    let has_category = |name: &String| made.categories.iter().any(|own| **own == **name);
    any_of(filter.currencies.as_ref(), |one| *one == made.currency)
        && any_of(filter.payout_types.as_ref(), is_payout_type)
        && (filter.codes.as_ref()).is_none_or(|codes| codes.texts().any(|one| one == code.as_str()))
        && filter
            .is_orderable
            .is_none_or(|wanted| wanted == made.is_orderable)
        && any_of(filter.countries.as_ref(), |one| {
            made.countries.contains(one)
        })
        && any_of(filter.categories.as_ref(), has_category)
}

/// Generates the sizes of a snapshot's blocks, smaller than real ones because these catalogs are small.
pub fn block_sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1..6_usize, 1..5)
}

pub fn rendered(code: &ProductCode, made: &Made) -> String {
    format!("<{code} {}{}>", made.is_orderable, marked(made))
}

/// Returns the discount of a product as it is rendered, behind a mark by which it is found.
pub fn marked(made: &Made) -> String {
    let mark = |discount: Discount| format!(" ${}", discount.shown().cut());
    made.discount.map_or_else(String::new, mark)
}

/// Returns the place of a product's discount in its bytes.
fn placed(bytes: &str, made: &Made) -> Option<PlacedDiscount> {
    let start = bytes.rfind('$')? + 1;
    made.discount.map(|exact| PlacedDiscount { exact, start })
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
    let mut numbers = FacetNumbers::default();
    let mut sizes = block_sizes.iter().copied().cycle();
    let mut blocks: Vec<Block> = Vec::new();
    let mut builder = BlockBuilder::default();
    let mut size = sizes.next();
    for (code, made, bytes) in products {
        let facets = numbers.facets_of(&made.facts());
        let entry = Entry {
            code,
            bytes: bytes.as_bytes(),
            content: Some((1, bytes.len())),
            discount: placed(&bytes, made),
            facets: &facets,
            words: &words_of(made.name.0, code.as_str()),
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
    Snapshot::new(revision, Arc::new(numbers), blocks, texts).expect("in order")
}
