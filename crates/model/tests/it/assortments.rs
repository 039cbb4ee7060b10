//! Views of assortments against a naive model: a catalog that has only the visible products.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use vitrine_model::assortment::{
    Diff, DiscountDifference, ExcessiveDiscount, ListedProduct, NameKind, Rules, View, diff,
    unknown_names,
};
use vitrine_model::code::ProductCode;
use vitrine_model::money::Discount;
use vitrine_model::query::{Cursor, Limit, ListQuery};
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::Snapshot;

use crate::naive::{Catalog, block_sizes, catalog, code, made, snapshot};
use crate::paging::query;
use crate::rules::{assortment, own, rules, shown_discount, shows, visible};

/// Returns the own discounts of the products on a page.
fn own_discounts(snapshot: &Snapshot, view: &View, query: &ListQuery) -> Vec<Option<Discount>> {
    let page = snapshot.page_in(query, Some(view));
    let mut reader = view.discounts(snapshot);
    let mut all = Vec::new();
    for run in page.runs() {
        match reader.of(run) {
            [] => all.extend(vec![None; run.count()]),
            own => {
                assert_eq!(own.len(), run.count());
                all.extend_from_slice(own);
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_equal_those_of_a_catalog_of_what_is_visible(
        catalog in catalog(),
        rules in rules(),
        queries in prop::collection::vec(query(), 1..6),
        sizes in block_sizes(),
    ) {
        let whole = Arc::new(snapshot(&catalog, &sizes));
        let view = assortment(&rules).view(&whole);
        let catalog = visible(&catalog, &rules);
        let visible = snapshot(&catalog, &[256]);
        prop_assert_eq!(view.count(&whole), catalog.len());
        for query in &queries {
            let (page, expected) = (whole.page_in(query, Some(&view)), visible.page(query));
            let codes: Vec<&str> = page.products().map(|product| product.code()).collect();
            let expected_codes: Vec<&str> = expected.products().map(|product| product.code()).collect();
            prop_assert_eq!(&codes, &expected_codes);
            prop_assert_eq!((page.has_previous(), page.has_next()), (expected.has_previous(), expected.has_next()));
            prop_assert_eq!(page.hash(), expected.hash());
            let own_of = |code: &&str| {
                let (code, made) = catalog.get_key_value(*code).expect("a product");
                own(&rules, code, made).and_then(|(_, own)| own)
            };
            let own: Vec<_> = codes.iter().map(own_of).collect();
            prop_assert_eq!(own_discounts(&whole, &view, query), own);
        }
    }

    #[test]
    fn lookups_equal_those_of_a_catalog_of_what_is_visible(
        catalog in catalog(), rules in rules(), others in prop::collection::vec(code(), 0..20), sizes in block_sizes(),
    ) {
        let whole = Arc::new(snapshot(&catalog, &sizes));
        let view = assortment(&rules).view(&whole);
        let all = catalog;
        let catalog = visible(&all, &rules);
        let visible = snapshot(&catalog, &[256]);
        for code in all.keys().chain(&others) {
            let found = view.product(&whole, code).map(|(product, own)| (product.bytes(), product.hash(), own));
            let expected = visible.product(code).map(|product| {
                let own = own(&rules, code, &catalog[code]).and_then(|(_, own)| own);
                (product.bytes(), product.hash(), own)
            });
            prop_assert_eq!(found, expected);
            prop_assert_eq!(view.shows(&whole, code.as_str()), expected.is_some());
            if let Some(made) = all.get(code) {
                let listed = ListedProduct::new(code.as_str(), &made.facts(), made.discount);
                prop_assert_eq!(listed.is_shown_by(&rules), expected.is_some());
            }
            let listed = ListedProduct::find(&whole, code);
            prop_assert_eq!(listed.is_some(), all.contains_key(code));
            let listed = listed.filter(|listed| listed.is_shown_by(&rules));
            let own = listed.map(|listed| listed.own_discount(&rules));
            prop_assert_eq!(own, expected.map(|(_, _, own)| own));
        }
        let members = view.members(&whole);
        prop_assert_eq!(members.len(), whole.blocks().len());
        prop_assert_eq!(members.iter().map(|shown| shown.len()).sum::<usize>(), catalog.len());
        // Found once, and kept.
        for _ in 0..2 {
            prop_assert_eq!(view.categories(&whole).collect::<Vec<_>>(), visible.categories().collect::<Vec<_>>());
            prop_assert_eq!(view.countries(&whole).collect::<Vec<_>>(), visible.countries().collect::<Vec<_>>());
        }
        let excessive: Vec<ExcessiveDiscount> = catalog.iter().filter_map(|(code, made)| {
            let (entry, own) = own(&rules, code, made)?;
            (own.is_none() && made.discount.is_some()).then_some(ExcessiveDiscount { code: code.as_str(), entry })
        }).collect();
        prop_assert_eq!(view.excessive_discounts(&whole), excessive);
    }

    #[test]
    fn differences_match_the_naive_model(
        catalog in catalog(), before in rules(), after in rules(), sizes in block_sizes(), kinds in any::<[bool; 2]>(),
    ) {
        let snapshot = Arc::new(snapshot(&catalog, &sizes));
        // Also from and to no assortment.
        let everything = Rules::default();
        let before = if kinds[0] { &before } else { &everything };
        let after = if kinds[1] { &after } else { &everything };
        let views = [before, after].map(|rules| assortment(rules).view(&snapshot));
        let [one, other] = &views;
        let found = diff(&snapshot, kinds[0].then_some(one), kinds[1].then_some(other));
        let mut expected = Diff::default();
        for (code, made) in &catalog {
            let [was, is] = [before, after].map(|rules| shows(rules, code, made));
            let discounts = [before, after].map(|rules| shown_discount(rules, code, made));
            let code = code.as_str();
            expected.shown_before += usize::from(was);
            match (was, is, discounts) {
                (true, false, _) => expected.lost.push(code),
                (false, true, _) => expected.gained.push(code),
                (true, true, [Some(before), Some(after)]) if before != after =>
                    expected.discounts.push(DiscountDifference { code, before, after }),
                _ => {}
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn unknown_names_match_the_naive_model(catalog in catalog(), rules in rules(), sizes in block_sizes()) {
        let snapshot = snapshot(&catalog, &sizes);
        let found: BTreeSet<(NameKind, &str)> =
            unknown_names(&rules, &snapshot).iter().map(|unknown| (unknown.kind, unknown.name)).collect();
        let has = |kind: NameKind, name: &str| match kind {
            NameKind::Code => catalog.contains_key(name),
            NameKind::Category => catalog.values().any(|made| made.categories.iter().any(|own| **own == *name)),
            NameKind::Country => catalog.values().any(|made| made.countries.iter().any(|own| own.as_str() == name)),
        };
        let names = rules.selectors().flat_map(|selector| {
            let codes = selector.named_codes().map(|name| (NameKind::Code, name));
            let categories = selector.categories.iter().flatten().map(|name| (NameKind::Category, name.as_str()));
            let countries = selector.countries.iter().flatten().map(|one| (NameKind::Country, one.as_str()));
            codes.chain(categories).chain(countries)
        });
        let expected = names.filter(|(kind, name)| !has(*kind, name)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn walks_find_visible_products_in_few_of_many_blocks(
        // Scans skip blocks in words of 64.
        count in prop_oneof![60..200_usize, 64..67_usize],
        few in prop::collection::btree_set(prop_oneof![0..200_usize, 62..66_usize], 0..8),
        denied in prop::collection::btree_set(prop_oneof![0..200_usize, 62..66_usize], 0..4),
        limit in 1..4_u16,
        sizes in prop_oneof![Just(vec![1]), Just(vec![2, 1])],
    ) {
        let name = |number: usize| format!("P{number:03}");
        let code = |number: usize| name(number).parse::<ProductCode>().expect("a code");
        let catalog: Catalog = (0..count).map(|number| (code(number), made(true))).collect();
        let snapshot = Arc::new(snapshot(&catalog, &sizes));
        let selector = |numbers: &BTreeSet<usize>| Selector {
            codes: Some(numbers.iter().map(|number| code(*number)).collect()),
            ..Selector::default()
        };
        let rules = Rules { allow: Some(vec![selector(&few)]), deny: vec![selector(&denied)], discounts: vec![] };
        let view = assortment(&rules).view(&snapshot);
        let visible = few.difference(&denied).filter(|number| **number < count);
        let expected: Vec<String> = visible.map(|number| name(*number)).collect();
        for forwards in [true, false] {
            let mut seen: Vec<String> = Vec::new();
            let mut cursor = if forwards { Cursor::Start } else { Cursor::Before("Z".parse().unwrap()) };
            loop {
                let limit = Limit::new(limit).unwrap();
                let query = ListQuery { cursor, limit, ..ListQuery::default() };
                let page = snapshot.page_in(&query, Some(&view));
                let codes = page.products().map(|product| product.code().to_owned());
                let at = if forwards { seen.len() } else { 0 };
                seen.splice(at..at, codes.collect::<Vec<_>>());
                let ends = if forwards { !page.has_next() } else { !page.has_previous() };
                if ends { break }
                prop_assert!(seen.len() < expected.len(), "it ends");
                cursor = match forwards {
                    true => Cursor::After(seen[seen.len() - 1].parse().unwrap()),
                    false => Cursor::Before(seen[0].parse().unwrap()),
                };
            }
            prop_assert_eq!(&seen, &expected);
        }
    }
}

#[test]
fn views_are_made_once_and_show_nothing_of_other_snapshots() {
    let code: ProductCode = "A".parse().expect("a code");
    let catalog = Catalog::from([(code.clone(), made(true))]);
    let [one, other] = [[1], [2]].map(|sizes| Arc::new(snapshot(&catalog, &sizes)));
    let assortment = assortment(&Rules::default());
    let views = [&one, &other].map(|snapshot| assortment.view(snapshot));
    for _ in 0..2 {
        assert!(Arc::ptr_eq(&assortment.view(&one), &views[0]));
        assert!(Arc::ptr_eq(&assortment.view(&other), &views[1]));
    }
    for (view, own, foreign) in [(&views[0], &one, &other), (&views[1], &other, &one)] {
        assert!(view.is_of(own) && !view.is_of(foreign));
        assert!(view.shows(own, "A") && !view.shows(foreign, "A"));
        assert!(view.product(foreign, &code).is_none());
        assert_eq!(view.count(foreign), 0);
        assert!(
            foreign
                .page_in(&ListQuery::default(), Some(view))
                .is_empty()
        );
        assert_eq!(own.page_in(&ListQuery::default(), Some(view)).len(), 1);
        let [lost, gained] = [[None, Some(&**view)], [Some(&**view), None]]
            .map(|[before, after]| diff(foreign, before, after));
        assert_eq!((lost.lost, gained.gained), (vec!["A"], vec!["A"]));
    }
    // Many snapshots, one after the other: none is taken for another in the same memory.
    for _ in 0..100 {
        let next = Arc::new(snapshot(&catalog, &[1]));
        assert!(assortment.view(&next).shows(&next, "A"));
    }
}
