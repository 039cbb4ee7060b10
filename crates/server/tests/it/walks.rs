//! Lists against a naive model over HTTP, on real input; and walks and reads while the catalog
//! changes underneath.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use crate::harness::{SAMPLE, Server, Store, gift_card, skipped, wait_for};

/// Recorded products; beside the project where it is developed, but no part of it.
pub const RECORDED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/data/recorded-catalog.ndjson"
);

/// The recorded products, or the sample catalog, out loud, where they aren't there.
fn real_input() -> &'static str {
    if Path::new(RECORDED).exists() {
        RECORDED
    } else {
        skipped("walks of recorded data, which isn't there; the sample catalog stands in");
        SAMPLE
    }
}

fn products(file: &str) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(file).expect("a catalog");
    let product = |line: &str| {
        let product: Value = serde_json::from_str(line).expect("a product");
        (
            product["code"].as_str().expect("a code").to_owned(),
            product,
        )
    };
    text.lines().map(product).collect()
}

/// Walks the whole list by cursors until a page is empty.
fn walk(server: &Server, key: &str, limit: usize, forwards: bool) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    let mut cursor = if forwards {
        String::new()
    } else {
        "&before=~~~~~~~~".to_owned()
    };
    loop {
        let page = server.get(key, &format!("/v2/product?limit={limit}{cursor}"));
        let codes = page.codes();
        let cursors = &page.json()["pagination"]["cursors"];
        assert_eq!(
            cursors["before"].as_str(),
            codes.first().map(String::as_str)
        );
        assert_eq!(cursors["after"].as_str(), codes.last().map(String::as_str));
        let Some(edge) = (if forwards {
            codes.last()
        } else {
            codes.first()
        }) else {
            return seen;
        };
        cursor = match forwards {
            true => format!("&after={edge}"),
            false => format!("&before={edge}"),
        };
        let at = if forwards { seen.len() } else { 0 };
        seen.splice(at..at, codes);
    }
}

#[test]
fn walks_of_real_input_give_every_code_once_in_order() {
    let store = Store::new();
    let input = real_input();
    let report = store.load(input);
    assert_eq!(report["faults"], serde_json::json!([]));
    let expected: Vec<String> = products(input).into_keys().collect();
    if input == RECORDED {
        assert_eq!(expected.len(), 251);
    }
    let key = store.key("walker", &[]);
    let server = store.serve();
    for limit in [1, 7, 100, 500] {
        assert_eq!(
            walk(&server, &key, limit, true),
            expected,
            "forwards by {limit}"
        );
        assert_eq!(
            walk(&server, &key, limit, false),
            expected,
            "backwards by {limit}"
        );
    }
}

#[test]
fn each_listed_product_equals_its_single_read_byte_for_byte() {
    for input in [real_input(), SAMPLE] {
        let store = Store::new();
        store.load(input);
        let key = store.key("reader", &[]);
        let server = store.serve();
        let list = server.get(&key, "/v2/product");
        let list = String::from_utf8(list.body).expect("UTF-8");
        for code in products(input).keys() {
            let single = server.get(&key, &format!("/v2/product/{code}"));
            assert_eq!(single.status, 200);
            let single = String::from_utf8(single.body).expect("UTF-8");
            assert!(list.contains(&single), "{code} differs");
        }
    }
}

/// A list request: what may be asked of the input, and what need not exist in it.
#[derive(Debug, Clone)]
struct ListRequest {
    countries: Vec<String>,
    categories: Vec<String>,
    is_orderable: Option<bool>,
    cursor: Option<(bool, String)>,
    limit: Option<usize>,
}

fn any_request(products: &BTreeMap<String, Value>) -> impl Strategy<Value = ListRequest> + use<> {
    let of = |field: &str| -> Vec<String> {
        let values = products
            .values()
            .flat_map(|product| product[field].as_array().expect("a list"));
        let texts: BTreeSet<&str> = values.filter_map(Value::as_str).collect();
        texts.into_iter().map(str::to_owned).collect()
    };
    let mut countries = of("countries_redeemable_in");
    countries.push("AQ".to_owned());
    let mut categories = of("categories");
    categories.push("no such".to_owned());
    let codes: Vec<String> = products.keys().cloned().collect();
    let cursor = (
        any::<bool>(),
        prop_oneof![
            3 => prop::sample::select(codes),
            1 => "[A-Za-z0-9._~-]{1,4}".prop_filter("reserved", |code| code != "." && code != ".."),
        ],
    );
    (
        prop::collection::vec(prop::sample::select(countries), 0..4),
        prop::collection::vec(prop::sample::select(categories), 0..4),
        any::<Option<bool>>(),
        prop::option::of(cursor),
        prop::option::of(prop_oneof![1..20_usize, 1..=500_usize]),
    )
        .prop_map(
            |(countries, categories, is_orderable, cursor, limit)| ListRequest {
                countries,
                categories,
                is_orderable,
                cursor,
                limit,
            },
        )
}

impl ListRequest {
    fn target(&self) -> String {
        let mut pairs = Vec::new();
        let encoded = |text: &str| {
            text.bytes()
                .map(|byte| format!("%{byte:02X}"))
                .collect::<String>()
        };
        pairs.extend(
            self.countries
                .iter()
                .map(|c| format!("countries_redeemable_in={c}")),
        );
        pairs.extend(
            self.categories
                .iter()
                .map(|c| format!("categories={}", encoded(c))),
        );
        pairs.extend(self.is_orderable.map(|only| format!("is_orderable={only}")));
        pairs.extend(self.limit.map(|limit| format!("limit={limit}")));
        pairs.extend(self.cursor.as_ref().map(|(after, code)| match after {
            true => format!("after={code}"),
            false => format!("before={code}"),
        }));
        format!("/v2/product?{}", pairs.join("&"))
    }

    /// Returns the codes that filtering and cutting the input gives.
    fn expected(&self, products: &BTreeMap<String, Value>) -> Vec<String> {
        let any_of = |product: &Value, field: &str, wanted: &[String]| {
            let has = |wanted: &String| {
                let values = product[field].as_array().expect("a list");
                values.iter().any(|value| value == wanted)
            };
            wanted.is_empty() || wanted.iter().any(has)
        };
        let matching: Vec<&String> = products
            .iter()
            .filter(|(_, product)| {
                any_of(product, "countries_redeemable_in", &self.countries)
                    && any_of(product, "categories", &self.categories)
                    && (self.is_orderable != Some(true) || product["is_orderable"] == true)
            })
            .map(|(code, _)| code)
            .collect();
        let limit = self.limit.unwrap_or(500);
        let page: Vec<&String> = match &self.cursor {
            None => matching.into_iter().take(limit).collect(),
            Some((true, x)) => matching
                .into_iter()
                .filter(|c| *c > x)
                .take(limit)
                .collect(),
            Some((false, x)) => {
                let ahead: Vec<&String> = matching.into_iter().filter(|c| *c < x).collect();
                ahead[ahead.len().saturating_sub(limit)..].to_vec()
            }
        };
        page.into_iter().cloned().collect()
    }
}

#[test]
fn thousand_random_lists_equal_a_naive_filter_over_the_input() {
    let store = Store::new();
    let input = real_input();
    store.load(input);
    let key = store.key("random", &[]);
    let server = store.serve();
    let products = products(input);
    let config = ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&any_request(&products), |asked| {
        let found = server.get(&key, &asked.target()).codes();
        prop_assert_eq!(found, asked.expected(&products));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// A catalog of residents, which are always there, and every `step`th of many guests.
fn with_guests(generation: u64) -> Vec<Value> {
    let named = |code: String| {
        let mut product = gift_card(&code);
        product["name"] = format!("generation {generation}").into();
        product
    };
    let residents = (0..40).map(|n| named(format!("R{n:03}-resident")));
    let guests = (0..40).filter(|n| (n + generation).is_multiple_of(3));
    residents
        .chain(guests.map(|n| named(format!("R{n:03}-guest"))))
        .collect()
}

#[test]
fn walks_during_loads_see_each_resident_exactly_once() {
    let store = Store::of(&with_guests(0));
    let key = store.key("walker", &[]);
    let server = store.serve();
    let residents: Vec<String> = (0..40).map(|n| format!("R{n:03}-resident")).collect();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for generation in 1..=20 {
                store.load_products(&with_guests(generation));
            }
            server.wait_for_revision(21);
            is_done.store(true, Ordering::Relaxed);
        });
        for forwards in [true, false] {
            let (server, key, residents, is_done) = (&server, &key, &residents, &is_done);
            scope.spawn(move || {
                let mut walks = 0;
                while !is_done.load(Ordering::Relaxed) || walks < 10 {
                    let seen = walk(server, key, 1 + walks % 7, forwards);
                    let seen: Vec<String> = seen
                        .into_iter()
                        .filter(|code| code.ends_with("resident"))
                        .collect();
                    assert_eq!(seen, *residents);
                    walks += 1;
                }
            });
        }
    });
}

#[test]
fn reads_during_loads_never_fail_or_mix_catalogs() {
    let store = Store::of(&with_guests(0));
    let key = store.key("reader", &[]);
    let server = store.serve();
    let (live, reads) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for generation in 1..=50 {
                store.load_products(&with_guests(generation));
            }
            wait_for("the last load", || {
                (live.load(Ordering::Relaxed) == 50).then_some(())
            });
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut connection = server.keep_alive();
                while live.load(Ordering::Relaxed) < 50 {
                    let page = connection.get(&key, "/v2/product").expect("an answer");
                    assert_eq!(page.status, 200);
                    let page = page.json();
                    let catalog = page["catalog"].as_array().expect("a list");
                    let names: BTreeSet<&str> = catalog
                        .iter()
                        .filter_map(|product| product["name"].as_str())
                        .collect();
                    assert_eq!(names.len(), 1, "one generation a page");
                    let name = names.first().expect("a name");
                    let generation = name
                        .trim_start_matches("generation ")
                        .parse()
                        .expect("a number");
                    assert_eq!(catalog.len(), with_guests(generation).len());
                    live.fetch_max(generation, Ordering::Relaxed);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    eprintln!("{} reads during 50 loads", reads.load(Ordering::Relaxed));
}
