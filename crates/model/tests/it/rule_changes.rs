//! The journal of changes under assortments that change, against a naive history.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use vitrine_model::assortment::{Rules, View};
use vitrine_model::changes::{ChangesPage, ChangesQuery, first_page};
use vitrine_model::code::ProductCode;
use vitrine_model::query::{Filter, Limit};
use vitrine_model::snapshot::Snapshot;

use crate::changes::{Changes, shown};
use crate::history::{History, operations};
use crate::naive::{Made, filter, matches};
use crate::rules::{assortment, rules, shown_discount, shows};

/// Generates versions of an assortment, each of which has parts of the one before; `None` is no assortment.
fn versions() -> impl Strategy<Value = Vec<Option<Rules>>> {
    let edit = (rules(), any::<[bool; 3]>(), prop::bool::weighted(0.1));
    let edits = prop::collection::vec(edit, 0..4);
    edits.prop_map(|edits| {
        let mut rules = Rules::default();
        let version = |(edit, [allow, deny, discounts], is_none): (Rules, [bool; 3], bool)| {
            if allow {
                rules.allow = edit.allow;
            }
            if deny {
                rules.deny = edit.deny;
            }
            if discounts {
                rules.discounts = edit.discounts;
            }
            (!is_none).then(|| rules.clone())
        };
        edits.into_iter().map(version).collect()
    })
}

/// Returns what a client is told that has a copy as of a moment, under the first of these versions.
fn expected(
    history: &History,
    [since, until]: [usize; 2],
    filter: &Filter,
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

/// Walks through all pages.
fn walk<'s>(
    snapshot: &'s Snapshot,
    mut query: ChangesQuery,
    page: impl Fn(&ChangesQuery) -> ChangesPage<'s>,
) -> Changes {
    let mut walk = Changes::new();
    loop {
        let page = page(&query);
        walk.extend(shown(snapshot, &page));
        assert!(page.changes.len() <= query.limit.get());
        let Some(last) = page.changes.last().filter(|_| page.has_more) else {
            assert!(!page.has_more, "an empty page with more");
            return walk;
        };
        assert_eq!(page.changes.len(), query.limit.get());
        query.after = Some(last.code().parse().expect("a code"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_of_catalog_and_rules_match_the_naive_history(
        operations in operations(),
        filter in prop_oneof![Just(Filter::default()), filter()],
        limit in 1..5_u16,
        versions in versions(),
        points in any::<[prop::sample::Index; 2]>(),
    ) {
        let history = History::of(7, &operations);
        let mut points = points.map(|point| point.index(history.moments.len()));
        points.sort_unstable();
        // Restores lose the ids of revisions.
        let journal = (1..=points[1]).fold(history.journal(0, 0), |journal, at| history.extended(&journal, at - 1, at));
        let [since, until] = points.map(|at| journal.locate(&history.position(at)).expect("known"));
        let snapshot = Arc::new(history.snapshot(points[1]));
        let views: Vec<_> = versions.iter()
            .map(|version| version.as_ref().map(|rules| assortment(rules).view(&snapshot)))
            .collect();
        let views: Vec<Option<&View>> = views.iter().map(Option::as_deref).collect();
        let mut all: Vec<Rules> = versions.into_iter().map(Option::unwrap_or_default).collect();
        if all.is_empty() {
            all.push(Rules::default());
        }
        let query = ChangesQuery { filter, after: None, limit: Limit::new(limit).expect("a limit") };
        let told = walk(&snapshot, query.clone(), |query| journal.changes(&snapshot, since, until, query, &views));
        let expected_told = expected(&history, points, &query.filter, &all);
        prop_assert_eq!(told, expected_told.into_iter().collect::<Changes>());

        let told = walk(&snapshot, query.clone(), |query| journal.changes(&snapshot, until, until, query, &views));
        let by_rules = expected(&history, [points[1]; 2], &query.filter, &all);
        prop_assert_eq!(told, by_rules.into_iter().collect::<Changes>());

        let now = views.last().copied().flatten();
        let told = walk(&snapshot, query.clone(), |query| first_page(&snapshot, query, now));
        let nothing = Rules { allow: Some(vec![]), ..Rules::default() };
        let last = all[all.len() - 1].clone();
        let everything = expected(&history, [points[1]; 2], &query.filter, &[nothing, last]);
        prop_assert_eq!(told, everything.into_iter().collect::<Changes>());
    }
}
