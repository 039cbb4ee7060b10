//! Paging and filters against a naive model: for any catalog and any query, the snapshot gives what
//! filtering and cutting a sorted list gives.

use std::collections::BTreeMap;

use proptest::prelude::*;
use vitrine_model::code::ProductCode;
use vitrine_model::place::Country;
use vitrine_model::query::{Cursor, Filter, Limit, ListQuery, Orderable};
use vitrine_model::revision::Revision;
use vitrine_model::snapshot::{Entry, Snapshot, SnapshotBuilder};

#[derive(Debug, Clone)]
struct Made {
    is_orderable: bool,
    countries: Vec<Country>,
    categories: Vec<Box<str>>,
}

fn code() -> impl Strategy<Value = ProductCode> {
    "[AB~.-]{1,3}".prop_filter_map("reserved", |text| text.parse().ok())
}

fn country() -> impl Strategy<Value = Country> {
    prop::sample::select(vec!["AT", "DE", "GB", "US"])
        .prop_map(|text| text.parse().expect("a country"))
}

fn category() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["books", "food", "Food", "café & bistro"]).prop_map(str::to_owned)
}

fn catalog() -> impl Strategy<Value = BTreeMap<ProductCode, Made>> {
    let made = (
        any::<bool>(),
        prop::collection::btree_set(country(), 0..3),
        prop::collection::btree_set(category(), 0..3),
    )
        .prop_map(|(is_orderable, countries, categories)| Made {
            is_orderable,
            countries: countries.into_iter().collect(),
            categories: categories.into_iter().map(Into::into).collect(),
        });
    prop::collection::btree_map(code(), made, 0..60)
}

fn query() -> impl Strategy<Value = ListQuery> {
    let cursor = prop_oneof![
        Just(Cursor::Start),
        code().prop_map(Cursor::After),
        code().prop_map(Cursor::Before),
    ];
    (
        prop::collection::vec(country(), 0..3),
        prop::collection::vec(category(), 0..3),
        any::<bool>(),
        cursor,
        1..12_u16,
    )
        .prop_map(|(countries, categories, only, cursor, limit)| ListQuery {
            filter: Filter {
                countries,
                categories,
                orderable: if only {
                    Orderable::Only
                } else {
                    Orderable::Any
                },
            },
            cursor,
            limit: Limit::new(limit).expect("a limit"),
        })
}

fn snapshot(catalog: &BTreeMap<ProductCode, Made>) -> Snapshot {
    let mut builder = SnapshotBuilder::new();
    for (code, made) in catalog {
        let bytes = format!("<{code}>");
        let entry = Entry {
            code: code.clone(),
            bytes: bytes.as_bytes(),
            content: None,
            own_texts: Vec::new(),
            is_orderable: made.is_orderable,
            countries: &made.countries,
            categories: &made.categories,
        };
        builder.product(entry).expect("in order");
    }
    builder.finish(Revision::default())
}

/// All matching codes in order, as anybody would find them.
fn naive<'c>(catalog: &'c BTreeMap<ProductCode, Made>, filter: &Filter) -> Vec<&'c ProductCode> {
    let matches = |made: &Made| {
        (filter.orderable == Orderable::Any || made.is_orderable)
            && (filter.countries.is_empty()
                || filter.countries.iter().any(|c| made.countries.contains(c)))
            && (filter.categories.is_empty()
                || filter
                    .categories
                    .iter()
                    .any(|c| made.categories.iter().any(|own| **own == **c)))
    };
    catalog
        .iter()
        .filter(|(_, made)| matches(made))
        .map(|(code, _)| code)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_page_is_what_a_naive_filter_gives(catalog in catalog(), query in query()) {
        let snapshot = snapshot(&catalog);
        let page = snapshot.page(&query);
        let all = naive(&catalog, &query.filter);
        let limit = query.limit.get();
        let expected: Vec<&ProductCode> = match &query.cursor {
            Cursor::Start => all.iter().copied().take(limit).collect(),
            Cursor::After(x) => all.iter().copied().filter(|c| *c > x).take(limit).collect(),
            Cursor::Before(x) => {
                let ahead: Vec<_> = all.iter().copied().filter(|c| *c < x).collect();
                ahead[ahead.len().saturating_sub(limit)..].to_vec()
            }
        };
        let found: Vec<&ProductCode> = page.products().map(|product| product.code()).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(page.first(), expected.first().copied());
        prop_assert_eq!(page.last(), expected.last().copied());
        let edge = expected.first().zip(expected.last());
        prop_assert_eq!(page.has_previous(), edge.is_some_and(|(first, _)| all.iter().any(|c| c < first)));
        prop_assert_eq!(page.has_next(), edge.is_some_and(|(_, last)| all.iter().any(|c| c > last)));
        let body = page.slices().join(&b","[..]);
        let rendered: Vec<String> = expected.iter().map(|code| format!("<{code}>")).collect();
        prop_assert_eq!(String::from_utf8(body).unwrap(), rendered.join(","));
    }

    #[test]
    fn a_walk_gives_every_match_once_in_both_directions(catalog in catalog(), query in query()) {
        let snapshot = snapshot(&catalog);
        let all = naive(&catalog, &query.filter);
        let mut forwards = Vec::new();
        let mut cursor = Cursor::Start;
        loop {
            let page = snapshot.page(&ListQuery { cursor: cursor.clone(), ..query.clone() });
            let Some(last) = page.last() else { break };
            forwards.extend(page.products().map(|product| product.code()));
            cursor = Cursor::After(last.clone());
        }
        prop_assert_eq!(&forwards, &all);
        let mut backwards = Vec::new();
        let mut cursor = Cursor::Before("~~~~".parse().unwrap());
        loop {
            let page = snapshot.page(&ListQuery { cursor: cursor.clone(), ..query.clone() });
            let Some(first) = page.first() else { break };
            let codes: Vec<_> = page.products().map(|product| product.code()).collect();
            backwards.splice(0..0, codes);
            cursor = Cursor::Before(first.clone());
        }
        prop_assert_eq!(&backwards, &all);
    }

    #[test]
    fn a_walk_through_changing_catalogs_sees_what_was_there_throughout_once(
        residents in prop::collection::btree_set(code(), 0..20),
        guests in prop::collection::vec(prop::collection::btree_set(code(), 0..20), 1..12),
        limit in 1..6_u16,
        forwards in any::<bool>(),
    ) {
        let catalog_at = |step: usize| -> BTreeMap<ProductCode, Made> {
            let made = Made { is_orderable: true, countries: vec![], categories: vec![] };
            let guests = &guests[step % guests.len()];
            residents.union(guests).map(|code| (code.clone(), made.clone())).collect()
        };
        let mut seen: Vec<ProductCode> = Vec::new();
        let highest: ProductCode = "~~~~".parse().unwrap();
        let mut cursor = if forwards { Cursor::Start } else { Cursor::Before(highest) };
        for step in 0.. {
            // Every page is answered by another revision of the catalog.
            let snapshot = snapshot(&catalog_at(step));
            let limit = Limit::new(limit).unwrap();
            let page = snapshot.page(&ListQuery { filter: Filter::default(), cursor, limit });
            let edge = if forwards { page.last() } else { page.first() };
            let Some(edge) = edge else { break };
            cursor = if forwards { Cursor::After(edge.clone()) } else { Cursor::Before(edge.clone()) };
            let codes = page.products().map(|product| product.code().clone());
            if forwards { seen.extend(codes) } else { seen.splice(0..0, codes.collect::<Vec<_>>()); }
        }
        prop_assert!(seen.is_sorted_by(|a, b| a < b), "nothing twice, all in order");
        prop_assert!(residents.iter().all(|code| seen.contains(code)));
    }
}
