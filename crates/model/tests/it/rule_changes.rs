//! The journal of changes under assortments that change, against a naive history.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use vitrine_model::assortment::Rules;
use vitrine_model::changes::{ChangesPage, ChangesQuery, Work, first_page};
use vitrine_model::code::ProductCode;
use vitrine_model::query::Limit;
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::Snapshot;

use crate::changes::{Changes, shown};
use crate::history::{History, operations};
use crate::naive::{Made, filter, matches};
use crate::rules::{known, rules, shown_discount, shows, version_id};

/// Generates versions of an assortment, each of which has parts of the one before.
fn versions() -> impl Strategy<Value = Vec<Rules>> {
    let edit = (rules(), any::<[bool; 3]>(), prop::bool::weighted(0.1)).boxed();
    let few = prop::collection::vec(edit.clone(), 1..5);
    // As many as are kept, and the live one.
    let many = prop::collection::vec(edit, 60..66);
    let edits = prop_oneof![9 => few, 1 => many];
    edits.prop_map(|edits| {
        let mut rules = Rules::default();
        let version =
            |(edit, [allow, deny, discounts], is_everything): (Rules, [bool; 3], bool)| {
                if allow {
                    rules.allow = edit.allow;
                }
                if deny {
                    rules.deny = edit.deny;
                }
                if discounts {
                    rules.discounts = edit.discounts;
                }
                match is_everything {
                    true => Rules::default(),
                    false => rules.clone(),
                }
            };
        edits.into_iter().map(version).collect()
    })
}

/// Returns what a client is told that has a copy as of a moment, under the first of these versions.
fn expected(
    history: &History,
    [since, until]: [usize; 2],
    filter: &Selector,
    versions: &[Rules],
) -> BTreeMap<String, Option<String>> {
    let made = |at: usize, code: &ProductCode| -> Option<&Made> {
        let version = history.moments[at].catalog.get(code)?;
        matches(code, &version.made, filter).then_some(&version.made)
    };
    let is_shown = |at: usize, code: &ProductCode, rules: &Rules| {
        made(at, code).is_some_and(|made| shows(rules, code, made))
    };
    let now = versions.last().expect("the present version");
    let present = |code: &ProductCode| {
        let bytes = history.visible(until, code, filter);
        bytes.filter(|_| is_shown(until, code, now))
    };
    let mut told = BTreeMap::new();
    for code in history.moments[since + 1..=until]
        .iter()
        .flat_map(|one| &one.touched)
    {
        let mut moments = since..=until;
        if moments.any(|at| versions.iter().any(|rules| is_shown(at, code, rules))) {
            told.insert(code.to_string(), present(code));
        }
    }
    for code in history.moments[until].catalog.keys() {
        let is_other = |rules: &Rules| {
            let [was, is] = [rules, now].map(|rules| is_shown(until, code, rules));
            let discounts =
                [rules, now].map(|rules| shown_discount(rules, code, made(until, code)?));
            was != is || (was && discounts[0] != discounts[1])
        };
        if versions.iter().any(is_other) {
            told.insert(code.to_string(), present(code));
        }
    }
    told
}

/// Walks through all pages, each of which may look at so many products. Returns the changes and the number of pages.
fn walk<'s>(
    snapshot: &'s Snapshot,
    mut query: ChangesQuery,
    products: usize,
    page: impl Fn(&ChangesQuery, &mut Work<'_>) -> ChangesPage<'s>,
) -> (Changes, usize) {
    let (mut walk, mut pages) = (Changes::new(), 0);
    loop {
        let page = page(&query, &mut Work::new(products, &|| false));
        pages += 1;
        walk.extend(shown(snapshot, &page));
        assert!(page.changes.len() <= query.limit.get());
        let Some(after) = page.more_after else {
            return (walk, pages);
        };
        assert!(Some(&after) > query.after.as_ref(), "it doesn't advance");
        assert!(
            page.changes
                .iter()
                .all(|change| change.code() <= after.as_str())
        );
        query.after = Some(after);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_of_catalog_and_rules_match_the_naive_history(
        operations in operations(),
        filter in prop_oneof![Just(Selector::default()), filter()],
        limit in 1..5_u16,
        versions in versions(),
        products in prop_oneof![1..6_usize, Just(usize::MAX)],
        points in any::<[prop::sample::Index; 2]>(),
    ) {
        let history = History::of(7, &operations);
        let mut points = points.map(|point| point.index(history.moments.len()));
        points.sort_unstable();
        // Restores lose the ids of revisions.
        let journal = (1..=points[1]).fold(history.journal(0, 0), |journal, at| history.extended(&journal, at - 1, at));
        let [since, until] = points.map(|at| journal.locate(&history.position(at)).expect("known"));
        let snapshot = Arc::new(history.snapshot(points[1]));
        let known = known(&versions);
        let rules = known.versions_since(version_id(1), Timestamp::MIN).expect("the first version");
        let rules = rules.rules(&snapshot);
        let query = ChangesQuery { filter, after: None, limit: Limit::new(limit).expect("a limit") };
        let since_base = |query: &ChangesQuery, work: &mut Work<'_>| {
            journal.changes(&snapshot, [since, until], query, Some(&rules), work)
        };
        let (told, pages) = walk(&snapshot, query.clone(), products, since_base);
        let expected_told = expected(&history, points, &query.filter, &versions);
        prop_assert_eq!(&told, &expected_told.into_iter().collect::<Changes>());
        if products == usize::MAX {
            prop_assert_eq!(pages, told.len().div_ceil(limit.into()).max(1), "pages are full");
        }

        let since_rules = |query: &ChangesQuery, work: &mut Work<'_>| {
            journal.changes(&snapshot, [until; 2], query, Some(&rules), work)
        };
        let (told, _) = walk(&snapshot, query.clone(), products, since_rules);
        let by_rules = expected(&history, [points[1]; 2], &query.filter, &versions);
        prop_assert_eq!(told, by_rules.into_iter().collect::<Changes>());

        let now = known.live().view(&snapshot);
        let begin = |query: &ChangesQuery, work: &mut Work<'_>| first_page(&snapshot, query, Some(&*now), work);
        let (told, _) = walk(&snapshot, query.clone(), products, begin);
        let nothing = Rules { allow: Some(vec![]), ..Rules::default() };
        let last = versions[versions.len() - 1].clone();
        let everything = expected(&history, [points[1]; 2], &query.filter, &[nothing, last]);
        prop_assert_eq!(told, everything.into_iter().collect::<Changes>());
    }
}
