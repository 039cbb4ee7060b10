//! The changes feed through random histories: copies with all kinds of filters, asked at random times.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::changes::named;
use crate::harness::feed::{CatalogCopy, FeedServer};
use crate::harness::gift_card;

/// Returns the number of revisions of a history: `ci/long` may say more.
fn revisions() -> usize {
    let revisions = std::env::var("VITRINE_CHANGES_REVISIONS");
    revisions.map_or(25, |revisions| revisions.parse().expect("a number"))
}

/// Numbers that look random, always the same ones for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("small")
    }
}

type Catalog = BTreeMap<String, Value>;

const FILTERS: [&str; 6] = [
    "",
    "is_orderable=true",
    "countries_redeemable_in=SE",
    "countries_redeemable_in=SE&countries_redeemable_in=NO",
    "categories=toys",
    "categories=toys&countries_redeemable_in=NO&is_orderable=true",
];

/// Returns true if a product matches a filter, by another way than the server's.
fn matches(product: &Value, filters: &str) -> bool {
    let has = |name: &str, value: &str| {
        let values = product[name].as_array().expect("a list");
        values.iter().any(|one| one == value)
    };
    let any = |name: &str| {
        let given = filters
            .split('&')
            .filter_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        let given: Vec<&str> = given.collect();
        given.is_empty() || given.into_iter().any(|value| has(name, value))
    };
    let is_orderable = !filters.contains("is_orderable=true") || product["is_orderable"] == true;
    is_orderable && any("countries_redeemable_in") && any("categories")
}

/// Changes about a quarter of the products.
fn mutate(catalog: &mut Catalog, random: &mut Random, step: usize) {
    for number in 0..16 {
        let code = format!("P{number:02}");
        let product = catalog
            .entry(code.clone())
            .or_insert_with(|| gift_card(&code));
        match random.below(24) {
            0 | 1 => product["name"] = format!("Step {step}").into(),
            2 => product["countries_redeemable_in"] = json!(["SE"]),
            3 => product["countries_redeemable_in"] = json!(["NO", "SE"]),
            4 => product["countries_redeemable_in"] = json!(["DE"]),
            5 => product["categories"] = json!(["toys"]),
            6 => product["categories"] = json!(["fashion"]),
            7 => product["is_orderable"] = json!(random.below(2) == 0),
            8 | 9 => drop(catalog.remove(&code)),
            _ => {}
        }
    }
}

/// A copy with what must hold of it: nothing is named that wasn't visible since its base.
struct Watched {
    copy: CatalogCopy,
    filters: &'static str,
    /// State that the first page of the current walk showed, or of the last one's.
    base: usize,
    first: Option<usize>,
}

impl Watched {
    fn ask(&mut self, served: &FeedServer, states: &[Catalog], limit: usize) {
        let now = states.len() - 1;
        let reply = served.ask(&self.copy, &format!("limit={limit}"));
        let answer = self.copy.apply(&reply);
        let was_visible = |code: &str| {
            let product = states[self.base..]
                .iter()
                .filter_map(|state| state.get(code));
            product
                .into_iter()
                .any(|product| matches(product, self.filters))
        };
        for change in &answer.changes {
            let product = states[now].get(&change.code);
            let is_visible = product.is_some_and(|product| matches(product, self.filters));
            assert_eq!(change.product.is_some(), is_visible, "{}", change.code);
            assert!(
                was_visible(&change.code),
                "{} is leaked to {}",
                change.code,
                self.filters
            );
        }
        let first = *self.first.get_or_insert(now);
        if !answer.has_more {
            (self.base, self.first) = (first, None);
        }
    }
}

#[test]
fn random_histories_leave_every_copy_equal_to_the_list() {
    let mut random = Random(25);
    let mut states = vec![Catalog::new()];
    mutate(&mut states[0], &mut random, 0);
    let products: Vec<Value> = states[0].values().cloned().collect();
    let served = FeedServer::of(&products, &[]);
    let mut copies = Vec::new();
    let mut rolled_back = BTreeSet::new();
    for step in 1..=revisions() {
        let mut catalog = states[states.len() - 1].clone();
        mutate(&mut catalog, &mut random, step);
        if random.below(6) == 0 {
            let number = random.below(states.len());
            catalog = states[number].clone();
            rolled_back.insert(number);
        }
        // A load that changes nothing makes no revision; then the next one is waited for in vain.
        catalog.insert("STEP".to_owned(), named("STEP", &format!("Step {step}")));
        let products: Vec<Value> = catalog.values().cloned().collect();
        served.load(&products);
        states.push(catalog);
        for filters in FILTERS {
            if random.below(4) == 0 {
                copies.push(Watched {
                    copy: CatalogCopy::of(filters),
                    filters,
                    base: states.len() - 1,
                    first: None,
                });
            }
        }
        for watched in &mut copies {
            for _ in 0..random.below(3) {
                watched.ask(&served, &states, 1 + random.below(8));
            }
        }
    }
    let rollback = ["rollback", "--yes", "1"];
    served.change(|store| drop(store.ok(&rollback)));
    println!(
        "{} copies through {} states, {} of them repeated",
        copies.len(),
        states.len(),
        rolled_back.len()
    );
    for watched in &mut copies {
        served.settle(&mut watched.copy);
    }
}
