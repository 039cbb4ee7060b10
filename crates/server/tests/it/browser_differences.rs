//! Differences between any two revisions in the catalog browser: grouped, counted by field, searched.

use serde_json::Value;

use crate::browser_store_pages::{EVIL, assert_inert, links, reload};
use crate::harness::browsed::{Browsed, open};
use crate::harness::{Store, gift_card};

/// Serves three revisions: A and B are changed, one comes, one goes, and one is changed and changed back.
fn three_revisions() -> Browsed {
    let browsed = open(Store::of(&["A", "B", "GONE", "SAME"].map(gift_card)), &[]);
    let renamed = |code: &str, name: &str| {
        let mut product = gift_card(code);
        product["name"] = name.into();
        product
    };
    let second = [
        renamed("A", "First"),
        gift_card("B"),
        gift_card("GONE"),
        renamed("SAME", "x"),
    ];
    reload(&browsed, &second, EVIL);
    let mut dearer = renamed("B", "Second");
    dearer["discount_multiplier"] = "0.04".into();
    let third = [
        renamed("A", EVIL),
        dearer,
        gift_card("SAME"),
        gift_card("NEW"),
    ];
    reload(&browsed, &third, "third");
    browsed
}

#[test]
fn differences_of_two_revisions_are_grouped_and_counted() {
    let page = three_revisions().page("/revisions/compare?from=1&to=3");
    let words = page.text().split_whitespace().collect::<Vec<_>>().join(" ");
    let place = |shown: &str| {
        words
            .find(shown)
            .unwrap_or_else(|| panic!("{shown}: {words}"))
    };
    assert!(place("Products changed") < place("Products created"));
    assert!(place("Products created") < place("Products retired"));
    for shown in [
        "Name2",
        "Discount multiplier1",
        "5.00% (0.05)",
        "4.00% (0.04)",
    ] {
        assert!(words.contains(shown), "{shown}: {words}");
    }
}

#[test]
fn differences_of_revisions_are_searched() {
    let browsed = three_revisions();
    let products = |target: &str| {
        let page = browsed.page(target);
        assert_inert(&page, target);
        let links = links(&page).into_iter();
        let codes = links.filter_map(|link| {
            let code = link.strip_prefix("/catalog/")?.strip_suffix("#history")?;
            Some(code.to_owned())
        });
        codes.collect::<Vec<_>>().join(" ")
    };
    let target = "/revisions/compare?from=1&to=3";
    for (more, shown) in [
        // What was changed and changed back doesn't differ.
        ("", "A B NEW GONE"),
        ("&field=/discount_multiplier", "B"),
        ("&kind=created", "NEW"),
        ("&q=one", "GONE"),
    ] {
        assert_eq!(products(&format!("{target}{more}")), shown, "{more}");
    }
    assert_eq!(products("/revisions/2"), "A SAME");
    assert_eq!(products("/revisions/3?q=a&kind=changed"), "A SAME");
    let since = products("/revisions/compare?from=2");
    assert_eq!(since, "A B SAME NEW GONE");
    let list = |query: &str| {
        let page = browsed.page(&format!("/revisions{query}"));
        page.tags("tr").len() - 1
    };
    let found = (list(""), list("?q=THIRD"), list("?q=%22%3E%3Cscript"));
    assert_eq!(found, (3, 1, 1));
}

#[test]
fn comparisons_of_wrong_revisions_are_refused() {
    let browsed = three_revisions();
    for (wrong, status) in [
        ("from=3&to=1", 400),
        ("from=2&to=2", 400),
        ("to=2", 400),
        ("from=x&to=2", 400),
        ("from=0&to=2", 400),
        ("from=1&to=9", 404),
        ("from=1&to=100000", 400),
        ("from=1&to=2&from=1", 400),
        ("from=1&to=2&kind=lost", 400),
        ("from=1&to=2&colour=red", 400),
    ] {
        let target = format!("/revisions/compare?{wrong}");
        assert_eq!(browsed.ask(&target).status, status, "{wrong}");
    }
}

#[test]
fn pages_of_differences_have_a_hundred_products() {
    let codes: Vec<String> = (0..130).map(|number| format!("P-{number:03}")).collect();
    let country = |number: usize| if number.is_multiple_of(2) { "GB" } else { "US" };
    let product = |(number, code): (usize, &String)| {
        let mut product = gift_card(code);
        product["countries_redeemable_in"] = vec![country(number)].into();
        product
    };
    let products: Vec<Value> = codes.iter().enumerate().map(product).collect();
    let browsed = open(Store::of(&products), &[]);
    let mut changed = products[..129].to_vec();
    for (number, product) in changed.iter_mut().enumerate() {
        product["name"] = format!("Renamed {number}").into();
        product["countries_redeemable_in"] = vec![country(number), "NO"].into();
    }
    reload(&browsed, &changed, "second");
    let found = |target: &str| {
        let page = browsed.page(target);
        let links = links(&page);
        let next = links.iter().find(|link| link.contains("after=")).cloned();
        let products = links.iter().filter(|link| link.ends_with("#history"));
        (products.count(), next, page.text().to_owned())
    };
    let (count, next, words) = found("/revisions/2");
    assert_eq!(count, 100);
    assert!(words.contains("Counted in 130 products"), "{words}");
    // Added beside another country, it is the same change.
    assert!(words.contains("NO in 129"), "{words}");
    assert!(words.contains("Name, Countries redeemable in"), "{words}");
    let (count, next, words) = found(&next.expect("a next page"));
    assert_eq!((count, next), (30, None), "{words}");
    // Fields are counted in the products that are wanted.
    let (count, _, words) = found("/revisions/compare?from=1&to=2&kind=retired");
    assert_eq!(count, 1);
    assert!(!words.contains("Fields that differ"), "{words}");
}
