//! Sharing of blocks between snapshots of large catalogs, and the end of texts.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use proptest::prelude::*;
use vitrine_model::code::ProductCode;
use vitrine_model::content::{PackedMarkdown, TextDigest};
use vitrine_model::query::{Cursor, ListQuery};
use vitrine_model::revision::Revision;
use vitrine_model::snapshot::{
    Block, NewProduct, RebuildThreads, ServedText, Snapshot, TextTable, TextTableBuilder,
};

type Catalog = BTreeMap<ProductCode, u32>;

fn code(number: u32) -> ProductCode {
    format!("P{number:05}").parse().expect("a code")
}

fn product(code: &ProductCode, edition: u32) -> NewProduct {
    NewProduct {
        bytes: format!("<{code} {edition}>").into_bytes(),
        content: None,
        discount: None,
        facets: Vec::new(),
        words: Box::default(),
    }
}

/// Returns the snapshot after changes, as one thread and several threads make it.
fn changed(snapshot: &Snapshot, changes: &BTreeMap<ProductCode, Option<u32>>) -> Snapshot {
    let several = RebuildThreads {
        max: 3,
        min_blocks: 1,
    };
    let alone = changed_by(RebuildThreads::NONE, snapshot, changes);
    let together = changed_by(several, snapshot, changes);
    let blocks = |snapshot: &Snapshot| {
        let bytes = |block: &Block| (block.directory().clone(), block.arena().clone());
        snapshot.blocks().iter().map(bytes).collect::<Vec<_>>()
    };
    assert_eq!(blocks(&alone), blocks(&together));
    together
}

fn changed_by(
    threads: RebuildThreads,
    snapshot: &Snapshot,
    changes: &BTreeMap<ProductCode, Option<u32>>,
) -> Snapshot {
    let facets = Arc::clone(snapshot.facet_numbers());
    let changes = changes
        .iter()
        .map(|(code, edition)| (code.clone(), edition.map(|edition| product(code, edition))))
        .collect();
    let times_between = AtomicUsize::new(0);
    let next = snapshot
        .with_changes(
            Revision::default(),
            facets,
            &changes,
            TextTable::default(),
            threads,
            || {
                times_between.fetch_add(1, Ordering::Relaxed);
            },
        )
        .expect("products that fit");
    let made = arenas(&next).difference(&arenas(snapshot)).count();
    let times_between = times_between.into_inner();
    assert_eq!(times_between, made, "after each block that was made");
    next
}

fn arenas(snapshot: &Snapshot) -> HashSet<*const u8> {
    let arena = |block: &Block| block.arena().as_ptr();
    snapshot.blocks().iter().map(arena).collect()
}

/// Returns all bytes, page by page.
fn walked(snapshot: &Snapshot) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    let mut cursor = Cursor::Start;
    loop {
        let page = snapshot.page(&ListQuery {
            cursor,
            ..ListQuery::default()
        });
        seen.extend(page.products().map(|product| product.bytes().to_vec()));
        assert!(seen.len() <= snapshot.len(), "a walk ends");
        match page.last() {
            Some(last) => cursor = Cursor::After(last.parse().expect("a code")),
            None => return seen,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn unchanged_blocks_are_shared_between_revisions(
        size in 0..4_000_u32,
        revisions in prop::collection::vec(
            prop_oneof![
                // A few products anywhere, and a range that is added or removed as a whole.
                prop::collection::btree_map(0..5_000_u32, any::<Option<u32>>(), 0..8),
                (0..5_000_u32, 0..700_u32, any::<Option<u32>>())
                    .prop_map(|(from, count, edition)| (from..from + count).map(|n| (n, edition)).collect()),
            ],
            1..6,
        ),
    ) {
        let mut catalog: Catalog = (0..size).map(|number| (code(number), 0)).collect();
        let all = catalog.iter().map(|(code, edition)| (code.clone(), Some(*edition))).collect();
        let mut snapshot = changed(&Snapshot::default(), &all);
        for revision in revisions {
            let changes: BTreeMap<ProductCode, Option<u32>> =
                revision.iter().map(|(number, edition)| (code(*number), *edition)).collect();
            let next = changed(&snapshot, &changes);
            for (code, edition) in &changes {
                match edition {
                    Some(edition) => catalog.insert(code.clone(), *edition),
                    None => catalog.remove(code),
                };
            }
            let expected: Vec<Vec<u8>> =
                catalog.iter().map(|(code, edition)| product(code, *edition).bytes).collect();
            prop_assert_eq!(walked(&next), expected);
            prop_assert_eq!(next.len(), catalog.len());
            // Each change rebuilds its block, and one more if that became too small.
            let lost = arenas(&snapshot).difference(&arenas(&next)).count();
            prop_assert!(lost <= changes.len() * 2, "{} changes, {lost} blocks", changes.len());
            let sizes: Vec<usize> = next.blocks().iter().map(|block| block.codes().count()).collect();
            let small = sizes.iter().filter(|size| **size < 64).count();
            prop_assert!(small <= 1 && sizes.iter().all(|size| *size <= Block::CAPACITY), "{sizes:?}");
            snapshot = next;
        }
    }

    #[test]
    fn texts_are_served_until_their_end(
        texts in prop::collection::btree_map(0..40_u32, prop::option::of(0..10_i64), 0..40),
        changes in prop::collection::vec(
            prop::collection::btree_map(0..60_u32, prop::option::of(0..10_i64), 0..30), 0..4),
        now in 0..10_i64,
    ) {
        let second = |second| Timestamp::from_second(second).expect("a moment");
        let markdown = |number: u32| format!("text {number}");
        let text = |number: u32, until: Option<i64>| ServedText {
            markdown: PackedMarkdown::pack(&markdown(number)).expect("short"),
            served_until: until.map(second),
        };
        let digest = |number: u32| TextDigest::of(&markdown(number));
        let mut sorted: Vec<u32> = texts.keys().copied().collect();
        sorted.sort_by_key(|number| *digest(*number).as_bytes());
        let mut builder = TextTableBuilder::default();
        for number in &sorted {
            builder.push(&digest(*number), &text(*number, texts[number])).expect("ascending");
        }
        let mut table = builder.finish();
        let mut expected = texts;
        for change in changes {
            let changed = change.iter().map(|(number, until)| (digest(*number), text(*number, *until)));
            table = table.with(changed.collect(), second(0));
            expected.extend(change);
        }
        let (directory, markdowns) = table.to_bytes(second(now));
        let tables = [
            table.without_ended(second(now)).unwrap_or_else(|| table.clone()),
            TextTable::from_bytes(directory, markdowns).expect("what was written"),
            table,
        ];
        for table in tables {
            for number in 0..70 {
                let is_served = expected.get(&number).is_some_and(|until| until.is_none_or(|until| now < until));
                let found = table.get(&digest(number), second(now)).map(|text| text.unpack().expect("whole"));
                prop_assert_eq!(found, is_served.then(|| markdown(number)));
            }
        }
    }
}
