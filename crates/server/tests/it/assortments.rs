//! Assortments over HTTP, against a naive model: what a key isn't shown doesn't exist, in lists, single products,
//! categories, countries and changes, in both API versions.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::harness::feed::{CatalogCopy, list};
use crate::harness::{Reply, Server, Store, gift_card, text};

const VERSIONS: [&str; 2] = ["2024-02-05", "2026-12-01"];

const DISCOUNT: &str = "discount_multiplier";

/// Values of the members of selectors, with those that no product has.
const MEMBERS: [(&str, [&str; 4]); 4] = [
    ("countries", ["SE", "NO", "DE", "FR"]),
    ("categories", ["a", "b", "c", "d"]),
    ("currencies", ["SEK", "EUR", "NOK", "USD"]),
    (
        "payout_types",
        ["gift_card", "subscription", "payment", "gift_card"],
    ),
];

/// A product of the naive catalog.
pub fn product(number: usize, discount: &str) -> Value {
    let mut product = gift_card(&code(number));
    let countries = [json!(["SE"]), json!(["NO", "SE"]), json!(["DE"]), json!([])];
    product["countries_redeemable_in"] = countries[number % 4].clone();
    product["categories"] = json!([["a"], ["b"], ["c"]][number / 4 % 3]);
    product["currency"] = json!(["SEK", "EUR"][number / 3 % 2]);
    product["is_orderable"] = json!(!number.is_multiple_of(7));
    product[DISCOUNT] = json!(discount);
    product["gift_card"]["content_resources"]["description_md"] = json!("# About");
    product
}

fn code(number: usize) -> String {
    format!("P{number:03}")
}

/// Returns true if a selector selects a product.
fn selects(selector: &Value, product: &Value) -> bool {
    let members = selector.as_object().expect("a selector").iter();
    members
        .filter(|(name, _)| !["set", "share"].contains(&name.as_str()))
        .all(|(name, values)| {
            let values = values.as_array().expect("values");
            let has = |field: &str| {
                let own = product[field].as_array().expect("a list");
                own.iter().any(|one| values.contains(one))
            };
            match name.as_str() {
                "codes" => values.contains(&product["code"]),
                "countries" => has("countries_redeemable_in"),
                "categories" => has("categories"),
                "currencies" => values.contains(&product["currency"]),
                "payout_types" => values.contains(&product["payout_type"]),
                other => panic!("an unknown member {other}"),
            }
        })
}

/// Returns true if rules show a product.
pub fn shows(rules: &Value, product: &Value) -> bool {
    let any = |list: &Value| {
        let list = list.as_array().into_iter().flatten();
        list.into_iter().any(|selector| selects(selector, product))
    };
    (rules["allow"].is_null() || any(&rules["allow"])) && !any(&rules["deny"])
}

/// Returns a decimal without its point, with this number of fraction digits.
fn scaled(text: &str, digits: usize) -> u128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert!(fraction.len() <= digits, "{text} has more digits");
    let scaled = format!("{whole}{fraction:0<digits$}");
    scaled.parse().expect("a number")
}

/// Returns a discount as a version shows it.
fn shown_discount(millionths: u128, version: usize) -> String {
    let digits = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    match version {
        0 => digits[..4].to_owned(),
        _ => {
            let cut = digits.trim_end_matches('0');
            digits[..cut.len().max(4)].to_owned()
        }
    }
}

/// Returns the discount of a product, given as it was loaded, as rules show it, in millionths.
fn discount(rules: &Value, product: &Value) -> u128 {
    const DIGITS: usize = 18;
    let own = scaled(product[DISCOUNT].as_str().expect("a discount"), DIGITS);
    let one = 10_u128.pow(18);
    let entries = rules["discounts"].as_array().into_iter().flatten();
    let first = entries.into_iter().find(|entry| selects(entry, product));
    let Some(entry) = first else {
        return own * 1_000_000 / one;
    };
    match (entry["set"].as_str(), entry["share"].as_str()) {
        (Some(set), None) => scaled(set, 6),
        (None, Some(share)) => own * scaled(share, 6) / one,
        _ => panic!("both or neither"),
    }
}

/// Store with the naive catalog, and a server with keys: two of each assortment and two of none, one for each version.
pub struct Catalog {
    pub store: Store,
    pub server: Server,
    products: Vec<Value>,
    rules: Vec<Value>,
    /// By assortment, the last of none; then by version.
    pub keys: Vec<[String; 2]>,
}

impl Catalog {
    pub fn new(products: Vec<Value>, rules: Vec<Value>) -> Self {
        let store = Store::of(&products);
        let mut keys = Vec::new();
        for (number, rules) in rules.iter().enumerate() {
            let name = format!("assortment-{number}");
            set(&store, &name, rules);
            keys.push(VERSIONS.map(|version| {
                store.key(&name, &["--assortment", &name, "--api-version", version])
            }));
        }
        keys.push(VERSIONS.map(|version| store.key("all", &["--api-version", version])));
        Self {
            server: store.serve(),
            store,
            products,
            rules,
            keys,
        }
    }

    /// Returns the products that an assortment shows, as a version shows them, by code.
    fn expected(&self, assortment: usize, version: usize) -> BTreeMap<String, Value> {
        let (rules, all) = (self.rules.get(assortment), &self.keys[self.rules.len()]);
        let everything = list(&self.server, &all[version], "");
        let mut expected = BTreeMap::new();
        for product in &self.products {
            let code = product["code"].as_str().expect("a code");
            if rules.is_none_or(|rules| shows(rules, product)) {
                let mut shown: Value = serde_json::from_str(&everything[code]).expect("JSON");
                if let Some(rules) = rules {
                    let own = discount(rules, product);
                    shown[DISCOUNT] = json!(shown_discount(own, version));
                }
                expected.insert(code.to_owned(), shown);
            }
        }
        expected
    }

    fn check(&self, assortment: usize, version: usize, queries: &[(String, usize, usize)]) {
        let (server, key) = (&self.server, &self.keys[assortment][version]);
        let expected = self.expected(assortment, version);
        assert_eq!(parsed(list(server, key, "limit=37")), expected, "the list");
        let mut copy = CatalogCopy::of("limit=41");
        copy.settle(server, key);
        assert_eq!(parsed(copy.products), expected, "the changes");
        for (filter, limit, after) in queries {
            let target = format!("/v2/product?{filter}limit={limit}&after={}", code(*after));
            // The second time from the caches.
            for _ in 0..2 {
                let page = server.get(key, &target);
                let rest = expected.range(code(*after + 1)..);
                let rest = rest.map(|(_, product)| product);
                let matching: Vec<&Value> =
                    rest.filter(|product| matches(filter, product)).collect();
                let has_next = matching.len() > *limit;
                let cut: Vec<&Value> = matching.into_iter().take(*limit).collect();
                assert_eq!(page.json()["catalog"], json!(cut), "{target}");
                let link = page.header("link").unwrap_or_default();
                assert_eq!(link.contains("rel=\"next\""), has_next, "{target}: {link}");
            }
        }
        let names = |field: &str| -> BTreeSet<String> {
            let all = expected
                .values()
                .flat_map(|product| product[field].as_array());
            let all = all.flatten().filter_map(Value::as_str);
            all.map(str::to_owned).collect()
        };
        let categories = names("categories")
            .into_iter()
            .map(|code| json!({"code": code}));
        let categories: Vec<Value> = categories.collect();
        assert_eq!(
            server.get(key, "/v2/product/categories").json()["categories"],
            json!(categories)
        );
        let countries = server.get(key, "/v2/product/countries").json();
        assert_eq!(
            countries["countries"],
            json!(names("countries_redeemable_in"))
        );
        self.check_products(key, &expected);
    }

    /// Checks single products: one that isn't shown is answered like a code that never was.
    fn check_products(&self, key: &str, expected: &BTreeMap<String, Value>) {
        for number in (0..self.products.len()).step_by(11) {
            let code = code(number);
            for form in ["url", "md", "html"] {
                let found = self
                    .server
                    .get(key, &format!("/v2/product/{code}?content={form}"));
                let Some(product) = expected.get(&code) else {
                    let never = self
                        .server
                        .get(key, &format!("/v2/product/Q{}?content={form}", &code[1..]));
                    assert_eq!((found.status, never.status), (404, 404), "{code}");
                    let never_said = text(&never.body).replace(&format!("Q{}", &code[1..]), &code);
                    assert_eq!(text(&found.body), never_said);
                    assert_eq!(names(&found), names(&never));
                    continue;
                };
                let shown = found.json();
                assert_eq!(shown[DISCOUNT], product[DISCOUNT], "{code}, {form}");
                assert_eq!(shown["code"], json!(code));
            }
        }
    }

    /// Checks that tags are the same exactly where bytes are, over all keys.
    fn check_tags(&self, target: &str) {
        let keys = self.keys.iter().flatten();
        let replies: Vec<Reply> = keys.map(|key| self.server.get(key, target)).collect();
        for (index, one) in replies.iter().enumerate() {
            for other in &replies[..index] {
                let are_same = one.body == other.body;
                let tags = [one, other].map(|reply| reply.header("etag"));
                assert_eq!(tags[0] == tags[1], are_same, "{target}: {tags:?}");
            }
        }
    }
}

fn names(reply: &Reply) -> Vec<&str> {
    reply
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect()
}

fn parsed(products: BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let parse = |product: String| serde_json::from_str(&product).expect("JSON");
    let products = products.into_iter();
    products
        .map(|(code, product)| (code, parse(product)))
        .collect()
}

/// Returns true if a product matches the filter of a query.
fn matches(filter: &str, product: &Value) -> bool {
    match filter {
        "" => true,
        "is_orderable=true&" => product["is_orderable"] == json!(true),
        "countries_redeemable_in=SE&" => product["countries_redeemable_in"]
            .as_array()
            .expect("a list")
            .contains(&json!("SE")),
        "codes=P001&codes=P006&" => {
            ["P001", "P006"].contains(&product["code"].as_str().expect("a code"))
        }
        other => panic!("unknown {other}"),
    }
}

/// Sets the rules of an assortment.
pub fn set(store: &Store, name: &str, rules: &Value) {
    let file = store.write("rules.json", rules.to_string());
    let file = file.display().to_string();
    store.ok(&["assortments", "set", name, &file, "--allow", "retire=100%"]);
}

/// Some selectors.
fn selector() -> impl Strategy<Value = Value> {
    let members = MEMBERS.map(|(name, values)| {
        let values = subsequence(values.to_vec(), 0..=3);
        (Just(name), prop::option::weighted(0.35, values))
    });
    let codes = prop::option::weighted(0.4, vec(0..330_usize, 0..40));
    (members, codes).prop_map(|(members, codes)| {
        let mut selector = json!({});
        for (name, values) in members {
            if let Some(values) = values {
                selector[name] = json!(BTreeSet::from_iter(values));
            }
        }
        if let Some(codes) = codes {
            let codes: BTreeSet<String> = codes.into_iter().map(code).collect();
            selector["codes"] = json!(codes);
        }
        selector
    })
}

fn rules() -> impl Strategy<Value = Value> {
    let share = (selector(), select(vec!["0.8", "0", "1", "0.333333"]));
    let share = share.prop_map(|(mut selector, share)| {
        selector["share"] = json!(share);
        selector
    });
    let set = (selector(), select(vec!["0.0125", "0.05", "0", "1", "0.5"]));
    let set = set.prop_map(|(mut selector, set)| {
        selector["set"] = json!(set);
        selector
    });
    let allow = prop::option::weighted(0.8, vec(selector(), 0..4));
    let discounts = vec(prop_oneof![share, set], 0..4);
    (allow, vec(selector(), 0..2), discounts).prop_map(|(allow, deny, discounts)| {
        let mut rules = json!({"deny": deny, "discounts": discounts});
        if let Some(allow) = allow {
            rules["allow"] = json!(allow);
        }
        rules
    })
}

#[test]
fn every_read_shows_what_a_naive_model_shows() {
    let discount = select(vec![
        "0",
        "0.05",
        "0.0125",
        "0.9999",
        "1",
        "0.333333",
        "0.1234567",
        "0.078906250000000003",
    ]);
    let filter = select(vec![
        "",
        "is_orderable=true&",
        "countries_redeemable_in=SE&",
        "codes=P001&codes=P006&",
    ]);
    let query = (filter.prop_map(str::to_owned), 1..400_usize, 0..320_usize);
    let input = (vec(discount, 320), vec(rules(), 6), vec(query, 8));
    let config = ProptestConfig {
        cases: 3,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&input, |(discounts, rules, queries)| {
        let numbered = discounts.iter().enumerate();
        let products = numbered
            .map(|(number, text)| product(number, text))
            .collect();
        let catalog = Catalog::new(products, rules);
        for assortment in 0..catalog.keys.len() {
            for version in 0..VERSIONS.len() {
                catalog.check(assortment, version, &queries);
            }
        }
        for (filter, limit, after) in &queries {
            catalog.check_tags(&format!(
                "/v2/product?{filter}limit={limit}&after={}",
                code(*after)
            ));
        }
        for target in [
            "/v2/product/categories",
            "/v2/product/countries",
            "/v2/product/P000",
            "/v2/product/P013",
        ] {
            catalog.check_tags(target);
        }
        Ok(())
    });
    outcome.expect("all reads show what the model shows");
}
