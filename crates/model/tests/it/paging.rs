//! Paging and filters against a naive model, which filters and slices a sorted list.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use vitrine_model::code::ProductCode;
use vitrine_model::query::{Cursor, Limit, ListQuery};
use vitrine_model::revision::Revision;
use vitrine_model::search::{Search, words_of};
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::{Block, NewProduct, RebuildThreads, Snapshot, TextTable};

use crate::naive::{
    Catalog, Made, block_sizes, catalog, code, filter, finds, made, matches, rendered, search,
    snapshot,
};

pub fn query() -> impl Strategy<Value = ListQuery> {
    let cursor = prop_oneof![
        Just(Cursor::Start),
        code().prop_map(Cursor::After),
        code().prop_map(Cursor::Before),
    ];
    (filter(), search(), cursor, 1..12_u16).prop_map(|(filter, search, cursor, limit)| ListQuery {
        filter,
        search: search.map(|text| Search::parse(text).expect("a search")),
        cursor,
        limit: Limit::new(limit).expect("a limit"),
    })
}

/// Returns all matching codes in order, by a linear search.
fn naive<'c>(catalog: &'c Catalog, query: &ListQuery) -> Vec<&'c ProductCode> {
    let is_found = |code: &ProductCode, made: &Made| {
        let search = query.search.as_ref();
        search.is_none_or(|search| finds(search, code, made))
    };
    catalog
        .iter()
        .filter(|(code, made)| matches(code, made, &query.filter) && is_found(code, made))
        .map(|(code, _)| code)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_match_the_naive_filter(
        catalog in catalog(), query in query(), sizes in block_sizes(),
    ) {
        let snapshot = snapshot(&catalog, &sizes);
        let page = snapshot.page(&query);
        let all = naive(&catalog, &query);
        let limit = query.limit.get();
        let expected: Vec<&ProductCode> = match &query.cursor {
            Cursor::Start => all.iter().copied().take(limit).collect(),
            Cursor::After(x) => all.iter().copied().filter(|c| *c > x).take(limit).collect(),
            Cursor::Before(x) => {
                let ahead: Vec<_> = all.iter().copied().filter(|c| *c < x).collect();
                ahead[ahead.len().saturating_sub(limit)..].to_vec()
            }
        };
        let codes: Vec<&str> = expected.iter().map(|code| code.as_str()).collect();
        let found: Vec<&str> = page.products().map(|product| product.code()).collect();
        prop_assert_eq!(&found, &codes);
        prop_assert_eq!(page.first(), codes.first().copied());
        prop_assert_eq!(page.last(), codes.last().copied());
        let edge = expected.first().zip(expected.last());
        prop_assert_eq!(page.has_previous(), edge.is_some_and(|(first, _)| all.iter().any(|c| c < first)));
        prop_assert_eq!(page.has_next(), edge.is_some_and(|(_, last)| all.iter().any(|c| c > last)));
        let body = page.runs().map(|run| snapshot.slice(snapshot.run(run))).collect::<Vec<_>>().join(&b","[..]);
        let shared = page.runs().map(|run| snapshot.shared_slice(snapshot.run(run))).collect::<Vec<_>>().join(&b","[..]);
        let rendered: Vec<String> = expected.iter().map(|code| rendered(code, &catalog[*code])).collect();
        prop_assert_eq!(String::from_utf8(body).unwrap(), rendered.join(","));
        prop_assert_eq!(String::from_utf8(shared).unwrap(), rendered.join(","));
        let hashes: Vec<u8> = page.products().flat_map(|product| *product.hash().as_bytes()).collect();
        let hash = page.hash();
        prop_assert_eq!(&hash.as_bytes()[..], &Sha256::digest(&hashes)[..16]);
        prop_assert_eq!(page.hash_of(|product| product.hash()), hash);
    }

    #[test]
    fn walks_find_each_match_once_in_both_directions(
        catalog in catalog(), query in query(), sizes in block_sizes(),
    ) {
        let snapshot = snapshot(&catalog, &sizes);
        let all = naive(&catalog, &query);
        let mut forwards = Vec::new();
        let mut cursor = Cursor::Start;
        loop {
            let page = snapshot.page(&ListQuery { cursor: cursor.clone(), ..query.clone() });
            let Some(last) = page.last() else { break };
            forwards.extend(page.products().map(|product| product.code()));
            prop_assert!(forwards.len() <= all.len(), "it ends");
            cursor = Cursor::After(last.parse().unwrap());
        }
        let all: Vec<&str> = all.iter().map(|code| code.as_str()).collect();
        prop_assert_eq!(&forwards, &all);
        let mut backwards = Vec::new();
        let mut cursor = Cursor::Before("~~~~".parse().unwrap());
        loop {
            let page = snapshot.page(&ListQuery { cursor: cursor.clone(), ..query.clone() });
            let Some(first) = page.first() else { break };
            let codes: Vec<_> = page.products().map(|product| product.code()).collect();
            backwards.splice(0..0, codes);
            prop_assert!(backwards.len() <= all.len(), "it ends");
            cursor = Cursor::Before(first.parse().unwrap());
        }
        prop_assert_eq!(&backwards, &all);
    }

    #[test]
    fn walks_find_matches_in_few_of_many_blocks(
        // Scans skip blocks in words of 64.
        count in prop_oneof![60..200_usize, 64..67_usize],
        mut few in prop::collection::btree_set(prop_oneof![0..200_usize, 62..66_usize], 0..6),
        limit in 1..4_u16,
        sizes in prop_oneof![Just(vec![1]), Just(vec![2, 1])],
    ) {
        few.retain(|number| *number < count);
        let catalog: Catalog = (0..count)
            .map(|number| {
                let code = format!("P{number:03}").parse().unwrap();
                (code, made(few.contains(&number)))
            })
            .collect();
        let snapshot = snapshot(&catalog, &sizes);
        let filter = Selector { is_orderable: Some(true), ..Selector::default() };
        let expected: Vec<String> = few.iter().map(|number| format!("P{number:03}")).collect();
        for forwards in [true, false] {
            let mut seen: Vec<String> = Vec::new();
            let mut cursor = if forwards { Cursor::Start } else { Cursor::Before("Z".parse().unwrap()) };
            loop {
                let limit = Limit::new(limit).unwrap();
                let page = snapshot.page(&ListQuery { filter: filter.clone(), cursor, limit, search: None });
                let codes = page.products().map(|product| product.code().to_owned());
                let at = if forwards { seen.len() } else { 0 };
                seen.splice(at..at, codes.collect::<Vec<_>>());
                let (first, last) = (seen.first().cloned(), seen.last().cloned());
                let ends = if forwards { !page.has_next() } else { !page.has_previous() };
                if ends { break }
                prop_assert!(seen.len() < few.len(), "it ends");
                cursor = match forwards {
                    true => Cursor::After(last.unwrap().parse().unwrap()),
                    false => Cursor::Before(first.unwrap().parse().unwrap()),
                };
            }
            prop_assert_eq!(&seen, &expected);
        }
    }

    #[test]
    fn walks_across_revisions_find_lasting_products_once(
        residents in prop::collection::btree_set(code(), 0..20),
        guests in prop::collection::vec(prop::collection::btree_set(code(), 0..20), 1..12),
        limit in 1..6_u16,
        forwards in any::<bool>(),
    ) {
        let catalog_at = |step: usize| -> Catalog {
            let guests = &guests[step % guests.len()];
            residents.union(guests).map(|code| (code.clone(), made(true))).collect()
        };
        let mut seen: Vec<ProductCode> = Vec::new();
        let highest: ProductCode = "~~~~".parse().unwrap();
        let mut cursor = if forwards { Cursor::Start } else { Cursor::Before(highest) };
        for step in 0.. {
            prop_assert!(step <= 1_000, "it ends");
            // Each page comes from another revision of the catalog.
            let snapshot = snapshot(&catalog_at(step), &[3, 1, 4]);
            let limit = Limit::new(limit).unwrap();
            let page = snapshot.page(&ListQuery { cursor, limit, ..ListQuery::default() });
            let edge = if forwards { page.last() } else { page.first() };
            let Some(edge) = edge else { break };
            let edge = edge.parse().unwrap();
            cursor = if forwards { Cursor::After(edge) } else { Cursor::Before(edge) };
            let codes = page.products().map(|product| product.code().parse().unwrap());
            if forwards { seen.extend(codes) } else { seen.splice(0..0, codes.collect::<Vec<_>>()); }
        }
        prop_assert!(seen.is_sorted_by(|a, b| a < b), "nothing twice, all in order");
        prop_assert!(residents.iter().all(|code| seen.contains(code)));
    }

    #[test]
    fn changed_snapshots_equal_rebuilt_ones(
        before in catalog(),
        after in catalog(),
        sizes in block_sizes(),
        queries in prop::collection::vec(query(), 1..8),
        max in 1..4_usize,
    ) {
        let old = snapshot(&before, &sizes);
        let mut facets = Arc::clone(old.facet_numbers());
        let numbers = Arc::make_mut(&mut facets);
        // All products that differ, and one that doesn't.
        let codes = before.keys().chain(after.keys());
        let changes: BTreeMap<ProductCode, Option<NewProduct>> = codes
            .map(|code| (code.clone(), after.get(code).map(|made| {
                let bytes = rendered(code, made).into_bytes();
                NewProduct {
                    content: Some((1, bytes.len())),
                    discount: None,
                    facets: numbers.facets_of(&made.facts()),
                    words: words_of(made.name.0, code.as_str()).into(),
                    bytes,
                }
            })))
            .filter(|(code, _)| !matches!((before.get(code), after.get(code)),
                (Some(old), Some(new)) if format!("{old:?}") == format!("{new:?}")))
            .collect();
        let texts = TextTable::default();
        let threads = RebuildThreads { max, min_blocks: 1 };
        let changed = old.with_changes(Revision::default(), facets, &changes, texts, threads, || ()).unwrap();
        let anew = snapshot(&after, &[256]);
        prop_assert_eq!(changed.len(), anew.len());
        prop_assert_eq!(changed.countries().collect::<Vec<_>>(), anew.countries().collect::<Vec<_>>());
        prop_assert_eq!(changed.categories().collect::<Vec<_>>(), anew.categories().collect::<Vec<_>>());
        for code in before.keys().chain(after.keys()) {
            let seen = |snapshot: &Snapshot| snapshot.product(code).map(|product| {
                (product.code().to_owned(), product.bytes().to_owned(), product.hash(), product.content())
            });
            prop_assert_eq!(seen(&changed), seen(&anew));
        }
        for query in &queries {
            let (left, right) = (changed.page(query), anew.page(query));
            prop_assert_eq!(left.hash(), right.hash());
            prop_assert_eq!((left.first(), left.last()), (right.first(), right.last()));
            prop_assert_eq!(left.has_previous(), right.has_previous());
            prop_assert_eq!(left.has_next(), right.has_next());
        }
        for block in changed.blocks() {
            let (directory, arena) = (block.directory().clone(), block.arena().clone());
            prop_assert!(Block::from_bytes(directory, arena, block.words().clone()).is_ok());
        }
    }

    #[test]
    fn corrupt_blocks_are_refused_or_harmless(
        catalog in catalog(),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let sound = snapshot(&catalog, &[256]);
        let Some(block) = sound.blocks().first() else { return Ok(()) };
        let mut directory = block.directory().to_vec();
        let at = at.index(directory.len());
        directory[at] ^= 1 << bit;
        if let Ok(block) = Block::from_bytes(directory.into(), block.arena().clone(), block.words().clone()) {
            // Snapshots with later changes read them.
            let are_codes = block.codes().all(|code| code.parse::<ProductCode>().is_ok());
            prop_assert!(are_codes, "{:?}", block.codes().collect::<Vec<_>>());
            let facets = Arc::clone(sound.facet_numbers());
            let texts = TextTable::default();
            if let Ok(snapshot) = Snapshot::new(Revision::default(), facets, vec![block], texts) {
                let page = snapshot.page(&ListQuery::default());
                let read = page.runs().map(|run| snapshot.slice(snapshot.run(run)).len()).sum::<usize>();
                let _ = (read, page.hash(), page.products().count());
            }
        }
    }
}
