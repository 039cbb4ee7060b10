//! The table of products: every order equals that of a naive sort of a random catalog, the columns are what they should be, and
//! outside text stays text in each of them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};

use serde_json::{Value, json};

use crate::harness::browsed::{Browsed, attribute, codes, open};
use crate::harness::{Store, gift_card, text, wait_for};

/// SplitMix64, from `VITRINE_SEED` or another seed each time.
struct Random(u64);

impl Random {
    fn new(test: &str) -> Self {
        let given = std::env::var("VITRINE_SEED").ok();
        let seed = given.and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(test));
        println!("{test}: VITRINE_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).expect("small")
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Names with much in common: long beginnings, other scripts, cases, and the same one again.
const NAMES: [&str; 9] = [
    "A gift card for everything that there is",
    "A gift card for everything that there is, and more",
    "a gift card for every",
    "Ångström",
    "ångström",
    "スターギフト",
    "بطاقة هدية",
    "Zürich",
    "<b>bold</b>",
];

/// Returns a product with values that have much in common with others'.
fn random_product(random: &mut Random, number: usize) -> Value {
    let mut product = gift_card(&format!("C{:04}", number * 7 % 10_000));
    product["name"] = match random.below(3) {
        0 => (*random.of(&NAMES)).into(),
        1 => format!("{} {}", random.of(&NAMES), random.below(9)).into(),
        _ => format!("{} {}", NAMES[0], random.below(40)).into(),
    };
    product["state"] =
        (*random.of(&["LIVE", "TEMPORARILY_DISABLED", "TEMPORARILY_DEGRADED"])).into();
    product["is_orderable"] = (random.below(2) == 0).into();
    let countries = &["SE", "NO", "DK", "FI"][..=random.below(4)];
    product["countries_redeemable_in"] = json!(countries);
    product
}

/// Compares two products by a column, naively.
fn compare(column: &str, left: &Value, right: &Value, changed: &BTreeMap<String, u64>) -> Ordering {
    let word = |product: &Value, name: &str| product[name].as_str().expect("a text").to_owned();
    match column {
        "name" => word(left, "name")
            .to_lowercase()
            .cmp(&word(right, "name").to_lowercase()),
        "changed" => changed[&word(left, "code")].cmp(&changed[&word(right, "code")]),
        other => word(left, other).cmp(&word(right, other)),
    }
}

/// Returns the codes of all pages of an address.
fn walk(browsed: &Browsed, target: &str) -> Vec<String> {
    let mut page = browsed.page(target);
    let mut all = codes(&page);
    while let Some(next) = page.link("next") {
        page = browsed.page(&next);
        all.extend(codes(&page));
    }
    all
}

#[test]
fn every_order_equals_a_naive_sort() {
    let mut random = Random::new("every_order_equals_a_naive_sort");
    let mut products: Vec<Value> = (0..310)
        .map(|number| random_product(&mut random, number))
        .collect();
    let browsed = open(Store::of(&products), &[]);
    let mut changed: BTreeMap<String, u64> = BTreeMap::new();
    for product in &mut products {
        let revision = if random.below(4) == 0 { 2 } else { 1 };
        if revision == 2 {
            product["gift_card"]["expiry"]["in_months"] = 24.into();
        }
        changed.insert(
            product["code"].as_str().expect("a code").to_owned(),
            revision,
        );
    }
    let report = browsed.store.load_products(&products);
    browsed.server.wait_for_loaded(&report);
    wait_for("the journal", || {
        let page = browsed.page("/catalog");
        text(&page.reply.body)
            .contains("revision 2\"")
            .then_some(())
    });
    for column in ["name", "code", "state", "changed"] {
        for direction in ["", "-"] {
            for filter in ["", "&orderable=yes&q=c", "&country=FI"] {
                let is_wanted = |product: &&Value| match filter {
                    "" => true,
                    "&country=FI" => {
                        product["countries_redeemable_in"].as_array().map(Vec::len) == Some(4)
                    }
                    _ => product["is_orderable"] == true,
                };
                let mut sorted: Vec<&Value> = products.iter().filter(is_wanted).collect();
                sorted.sort_by(|left, right| {
                    let order = compare(column, left, right, &changed);
                    let order = if direction == "-" {
                        order.reverse()
                    } else {
                        order
                    };
                    order.then_with(|| left["code"].as_str().cmp(&right["code"].as_str()))
                });
                let wanted: Vec<&str> = sorted
                    .iter()
                    .filter_map(|one| one["code"].as_str())
                    .collect();
                let target = format!("/catalog?sort={direction}{column}{filter}");
                assert_eq!(walk(&browsed, &target), wanted, "{target}");
            }
        }
    }
}

#[test]
fn addresses_of_former_views_lead_to_the_table() {
    let products: Vec<Value> = (0..150)
        .map(|number| gift_card(&format!("P-{number:03}")))
        .collect();
    let browsed = open(Store::of(&products), &[]);
    let usual = browsed.page("/catalog");
    for former in [
        "view=cards",
        "view=table&column=image&column=code",
        "from=P-120",
        "sort=-discount&column=categories",
        "page=1&from=A",
    ] {
        let page = browsed.page(&format!("/catalog?{former}"));
        assert_eq!(codes(&page), codes(&usual), "{former}");
        assert_eq!(page.link("next").as_deref(), Some("/catalog?page=2"));
    }
    let sorted = browsed.page("/catalog?view=cards&sort=-code&page=2");
    assert_eq!(codes(&sorted).first().map(String::as_str), Some("P-049"));
}

#[test]
fn columns_have_headings_and_four_of_them_sort() {
    let browsed = open(Store::of(&[gift_card("A")]), &[]);
    let page = browsed.page("/catalog?sort=-changed");
    let heads = page.tags("th");
    let heads = heads.iter().filter_map(|head| {
        let class = attribute(head, "class")?.split(' ').next()?;
        Some((class.strip_prefix("of-")?, attribute(head, "aria-sort")))
    });
    let heads: Vec<(&str, Option<&str>)> = heads.collect();
    let sorted = [("changed", Some("descending"))];
    let unsorted = [
        "name",
        "code",
        "state",
        "orderable",
        "amounts",
        "discount",
        "countries",
    ];
    let unsorted = unsorted.map(|name| (name, None));
    // The name of the only row is a heading, too.
    let row = [("name", None)];
    assert_eq!(heads, [&unsorted[..], &sorted, &row].concat());
    assert!(page.text().contains("EUR 10, 25, 50"), "{}", page.text());
    let links = page.tags("a");
    let links = links.iter().filter_map(|link| attribute(link, "href"));
    let orders: BTreeSet<&str> = links
        .filter_map(|link| link.strip_prefix("/catalog?sort="))
        .collect();
    let expected = [
        "-changed", "-code", "-name", "-state", "changed", "name", "state",
    ];
    assert_eq!(orders, BTreeSet::from(expected));
}

#[test]
fn picked_filters_are_named_and_folded_up() {
    let browsed = open(Store::of(&[gift_card("A")]), &[]);
    let page = browsed.page("/catalog?orderable=yes");
    assert!(
        page.text().contains("Can be ordered: Yes"),
        "{}",
        page.text()
    );
    let body = text(&page.reply.body);
    assert!(body.contains("<details class=\"filter-groups\">"), "{body}");
}

#[test]
fn only_exceptions_have_badges() {
    let usual = gift_card("USUAL");
    let browsed = open(Store::of(&[usual]), &[]);
    let body = text(&browsed.page("/catalog").reply.body);
    assert!(!body.contains("class=\"badge "), "{body}");
    let mut odd = gift_card("ODD");
    odd["state"] = "TEMPORARILY_DISABLED".into();
    odd["is_orderable"] = false.into();
    let browsed = open(Store::of(&[odd]), &[]);
    let body = text(&browsed.page("/catalog").reply.body);
    assert_eq!(body.matches("class=\"badge ").count(), 2, "{body}");
}

#[test]
fn outside_text_stays_text_in_every_column() {
    let evil = "\"><script>alert(1)</script><img src=x onerror=alert(1)>";
    let mut hostile = gift_card("HOSTILE");
    hostile["name"] = evil.into();
    hostile["categories"] = json!([evil, "b", "c"]);
    let store = Store::of(&[hostile]);
    let browsed = open(store, &[]);
    for target in [
        "/catalog?q=%22%3E%3Cscript%3E",
        "/catalog?from=%22%3E%3Cscript%3E&sort=name",
        "/catalog?view=cards&category=%22%3E%3Cscript%3E",
    ] {
        let page = browsed.page(target);
        for script in page.tags("script") {
            assert_eq!(
                attribute(&script, "src"),
                Some("/assets/browser.js"),
                "{target}"
            );
        }
        assert!(
            page.tags("img")
                .iter()
                .all(|image| attribute(image, "onerror").is_none())
        );
        assert!(
            !text(&page.reply.body).contains("<script>alert"),
            "{target}"
        );
    }
}
