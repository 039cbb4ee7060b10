//! The table of products: every order equals that of a naive sort of a random catalog, pages and jumps lead where they say,
//! columns are those chosen, and outside text stays text in each of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};

use serde_json::{Value, json};

use crate::assortments::set;
use crate::harness::browsed::{Browsed, BrowsedPage, attribute, codes, open};
use crate::harness::{Store, gift_card, text, wait_for};

/// SplitMix64, from `VITRINE_SEED` or another seed each time.
pub struct Random(u64);

impl Random {
    pub fn new(test: &str) -> Self {
        let given = std::env::var("VITRINE_SEED").ok();
        let seed = given.and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(test));
        println!("{test}: VITRINE_SEED={seed}");
        Self(seed)
    }

    pub fn below(&mut self, end: usize) -> usize {
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
pub fn random_product(random: &mut Random, number: usize) -> Value {
    let mut product = gift_card(&format!("C{:04}", number * 7 % 10_000));
    product["name"] = match random.below(3) {
        0 => (*random.of(&NAMES)).into(),
        1 => format!("{} {}", random.of(&NAMES), random.below(9)).into(),
        _ => format!("{} {}", NAMES[0], random.below(40)).into(),
    };
    product["state"] =
        (*random.of(&["LIVE", "TEMPORARILY_DISABLED", "TEMPORARILY_DEGRADED"])).into();
    product["is_orderable"] = (random.below(2) == 0).into();
    product["currency"] = (*random.of(&["EUR", "SEK", "JPY"])).into();
    product["discount_multiplier"] =
        (*random.of(&["0.0125", "0.01", "0.1", "0", "0.012501"])).into();
    let some = |all: &[&str], count: usize| json!(all[..count]);
    product["countries_redeemable_in"] = some(&["SE", "NO", "DK", "FI"], random.below(4) + 1);
    product["categories"] = some(&["a-one", "b-two", "c-three"], random.below(4));
    let lowest = *random.of(&["5.00", "10.00", "7.50", "100.00"]);
    let denominations = &mut product["gift_card"]["denominations"];
    denominations["minimum_value"] = lowest.into();
    denominations["maximum_value"] = "500.00".into();
    denominations["available_list"] = json!([lowest, "500.00"]);
    product
}

/// Compares two products by a column, naively.
fn compare(column: &str, left: &Value, right: &Value, changed: &BTreeMap<String, u64>) -> Ordering {
    let word = |product: &Value, name: &str| product[name].as_str().expect("a text").to_owned();
    let number = |text: String| text.parse::<f64>().expect("a number");
    let count = |product: &Value, name: &str| product[name].as_array().map(Vec::len);
    let lowest = |product: &Value| {
        let lowest = &product["gift_card"]["denominations"]["minimum_value"];
        number(lowest.as_str().expect("an amount").to_owned())
    };
    match column {
        "name" => word(left, "name")
            .to_lowercase()
            .cmp(&word(right, "name").to_lowercase()),
        "orderable" => left["is_orderable"]
            .as_bool()
            .cmp(&right["is_orderable"].as_bool()),
        "type" => word(left, "payout_type").cmp(&word(right, "payout_type")),
        "amounts" => lowest(left).total_cmp(&lowest(right)),
        "discount" => {
            let of = |product| number(word(product, "discount_multiplier"));
            of(left).total_cmp(&of(right))
        }
        "countries" => {
            count(left, "countries_redeemable_in").cmp(&count(right, "countries_redeemable_in"))
        }
        "categories" => count(left, "categories").cmp(&count(right, "categories")),
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
    for column in [
        "name",
        "code",
        "state",
        "orderable",
        "type",
        "currency",
        "amounts",
        "discount",
        "countries",
        "categories",
        "changed",
    ] {
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
fn order_by_discount_is_that_of_the_assortment() {
    let store = Store::of(&["A", "B", "C"].map(gift_card));
    let rules =
        json!({"discounts": [{"codes": ["B"], "set": "0.2"}, {"codes": ["C"], "set": "0.01"}]});
    set(&store, "own", &rules);
    let browsed = open(store, &[]);
    assert_eq!(
        codes(&browsed.page("/catalog?sort=-discount")),
        ["A", "B", "C"]
    );
    assert_eq!(
        codes(&browsed.page("/catalog?as=own&sort=-discount")),
        ["B", "A", "C"]
    );
    assert_eq!(
        codes(&browsed.page("/catalog?as=own&sort=discount")),
        ["C", "A", "B"]
    );
}

#[test]
fn jump_leads_to_the_page_of_the_first_product_from_there() {
    let products: Vec<Value> = (0..250)
        .map(|number| gift_card(&format!("P-{number:03}")))
        .collect();
    let browsed = open(Store::of(&products), &[]);
    let target = |page: &BrowsedPage| {
        let rows = page.tags("tr");
        let at = rows
            .iter()
            .position(|row| attribute(row, "id") == Some("from"));
        // The first row has the headings.
        at.map(|at| codes(page)[at - 1].clone())
    };
    for (query, first, jumped) in [
        ("from=P-150", "P-100", Some("P-150")),
        ("from=p-15", "P-100", Some("P-150")),
        ("from=A", "P-000", Some("P-000")),
        // Downwards, the first with this beginning is the last of them upwards.
        ("from=P-2&sort=-code", "P-249", Some("P-249")),
        ("from=product+p-1&sort=name", "P-100", Some("P-100")),
        ("from=Product+P-1&sort=-name", "P-249", Some("P-199")),
        ("page=3", "P-200", None),
    ] {
        let page = browsed.page(&format!("/catalog?{query}"));
        assert_eq!(
            codes(&page).first().map(String::as_str),
            Some(first),
            "{query}"
        );
        assert_eq!(target(&page).as_deref(), jumped, "{query}");
    }
    let beyond = browsed.page("/catalog?from=~");
    assert_eq!((codes(&beyond).len(), target(&beyond)), (50, None));
    assert_eq!(beyond.link("prev").as_deref(), Some("/catalog?page=2"));
    let forms = browsed.page("/catalog?sort=name&country=DE").tags("form");
    assert_eq!(
        forms.len(),
        5,
        "filters, columns, page, name, and the help's"
    );
}

#[test]
fn columns_are_those_of_the_address_in_one_order() {
    let browsed = open(Store::of(&[gift_card("A")]), &[]);
    let heads = |target: &str| {
        let page = browsed.page(target);
        let heads = page.tags("th");
        let heads = heads.iter().filter_map(|head| attribute(head, "class"));
        let heads = heads.filter_map(|class| class.split(' ').next()?.strip_prefix("of-"));
        let mut heads: Vec<String> = heads.map(str::to_owned).collect();
        // The name of the only row is a heading, too.
        assert_eq!(heads.pop().as_deref(), Some("name"));
        heads
    };
    let usual = [
        "name",
        "code",
        "state",
        "orderable",
        "amounts",
        "discount",
        "countries",
        "changed",
    ];
    assert_eq!(heads("/catalog"), usual);
    assert_eq!(
        heads("/catalog?column=type&column=code"),
        ["name", "code", "type"]
    );
    let page = browsed.page("/catalog?column=amounts&sort=-amounts");
    assert!(page.text().contains("EUR 10, 25, 50"), "{}", page.text());
    let sorted: Vec<_> = page
        .tags("th")
        .iter()
        .filter_map(|head| Some(attribute(head, "aria-sort")?.to_owned()))
        .collect();
    assert_eq!(sorted, ["descending"]);
    let cards = browsed.page("/catalog?view=cards");
    assert!(cards.tags("table").is_empty() && cards.tags("h2").len() > 1);
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
    for target in ["/catalog", "/catalog?view=cards"] {
        let body = text(&browsed.page(target).reply.body);
        assert!(!body.contains("class=\"badge "), "{target}: {body}");
    }
    let mut odd = gift_card("ODD");
    odd["state"] = "TEMPORARILY_DISABLED".into();
    odd["is_orderable"] = false.into();
    let browsed = open(Store::of(&[odd]), &[]);
    for target in ["/catalog", "/catalog?view=cards"] {
        let body = text(&browsed.page(target).reply.body);
        assert_eq!(
            body.matches("class=\"badge ").count(),
            2,
            "{target}: {body}"
        );
    }
}

#[test]
fn outside_text_stays_text_in_every_column() {
    let evil = "\"><script>alert(1)</script><img src=x onerror=alert(1)>";
    let mut hostile = gift_card("HOSTILE");
    hostile["name"] = evil.into();
    hostile["categories"] = json!([evil, "b", "c"]);
    let store = Store::of(&[hostile]);
    let browsed = open(store, &[]);
    let columns = [
        "code",
        "state",
        "orderable",
        "type",
        "currency",
        "amounts",
        "discount",
        "countries",
        "categories",
        "changed",
    ];
    let columns: Vec<String> = columns
        .iter()
        .map(|name| format!("column={name}"))
        .collect();
    let all = columns.join("&");
    for target in [
        format!("/catalog?{all}&q=%22%3E%3Cscript%3E"),
        format!("/catalog?{all}&from=%22%3E%3Cscript%3E&sort=name"),
        "/catalog?view=cards&category=%22%3E%3Cscript%3E".to_owned(),
    ] {
        let page = browsed.page(&target);
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
