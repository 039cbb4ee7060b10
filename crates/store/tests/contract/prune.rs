//! Pruning: kept revisions stay to the byte, the rest is deleted, and readers notice nothing.

use std::num::NonZeroU32;

use jiff::Timestamp;
use vitrine_model::content::TextDigest;
use vitrine_store::record::{Availability, Keep, Moment, PruneReport, StoredProduct};
use vitrine_store::{Store, StoreError, TextStatus};

use crate::history::at;
use crate::products::{product, publish, publish_texts, read, restore, second};
use crate::rules;

rules! {
    kept_revisions_stay,
    pruned_revisions_are_refused,
    revisions_are_kept_by_time,
    a_text_stays_while_it_is_served,
    a_text_that_was_taken_down_stays,
    a_plan_is_what_is_done,
    an_empty_store_has_nothing_to_prune,
}

/// Long after all revisions: only live texts are still served.
const LATER: Timestamp = Timestamp::MAX;

fn newest(count: u32) -> Keep {
    Keep::Newest(NonZeroU32::new(count).unwrap())
}

/// Asserts that a check finds nothing but documents that aren't JSON, which these tests have.
fn assert_whole(store: &Store) {
    let mut problems = store.check().unwrap();
    problems.retain(|problem| problem.rule != "document");
    assert_eq!(problems, []);
}

fn all_moments(store: &Store, numbers: std::ops::RangeInclusive<u64>) -> Vec<Vec<StoredProduct>> {
    numbers
        .map(|number| at(store, Moment::Revision(number)).unwrap())
        .collect()
}

/// Publishes twelve revisions in which products with texts are created, changed, retired and created again.
fn twelve_revisions(store: &Store) {
    for revision in 1..=12_u64 {
        let products: Vec<(String, String)> = (0..9)
            .filter(|number| (number + revision) % 4 != 0)
            .map(|number| {
                (
                    format!("P{number}"),
                    format!("# {}", (revision + number) / 3),
                )
            })
            .collect();
        let borrowed: Vec<(&str, &str)> = products
            .iter()
            .map(|(code, text)| (code.as_str(), text.as_str()))
            .collect();
        publish_texts(
            store,
            &borrowed,
            second(i64::try_from(revision).unwrap() * 10),
        );
    }
}

fn kept_revisions_stay(store: &Store) {
    twelve_revisions(store);
    let (changes, live) = (store.state().unwrap(), read(store, LATER));
    for (keep, oldest) in [(20, 1), (7, 6), (3, 10), (5, 10), (1, 12)] {
        let before = all_moments(store, oldest..=12);
        let pruned = store.prune(newest(keep), LATER).unwrap();
        assert_eq!(pruned.oldest_readable, Some(oldest));
        assert_eq!(all_moments(store, oldest..=12), before, "kept {keep}");
        for number in 1..oldest {
            assert!(
                store
                    .read_products(Moment::Revision(number), &mut |_| Ok(()))
                    .is_err()
            );
        }
        assert_whole(store);
        assert_eq!(store.state().unwrap(), changes, "servers notice nothing");
        assert_eq!(read(store, LATER), live);
    }
    let history = store.revisions(99).unwrap();
    let readings = history
        .iter()
        .map(|one| one.availability == Availability::Readable);
    assert_eq!(
        readings.collect::<Vec<_>>(),
        [[true].as_slice(), &[false; 11]].concat()
    );
    // Numbers continue, and the next prune deletes newer revisions.
    let (next, _) = publish(store, &[product("A", "1")], second(500)).unwrap();
    assert_eq!(next.number, 13);
    let live = i64::try_from(live.products.len()).unwrap();
    let pruned = store.prune(newest(1), LATER).unwrap();
    assert_eq!(
        (pruned.revisions, i64::try_from(pruned.versions).unwrap()),
        (1, live)
    );
    assert_whole(store);
}

fn pruned_revisions_are_refused(store: &Store) {
    for number in 1..=3 {
        publish(store, &[product("A", &number.to_string())], second(number));
    }
    store.prune(newest(2), LATER).unwrap();
    let code = product("A", "1").code;
    let is_access_denied = |error: StoreError| {
        matches!(
            error,
            StoreError::Pruned {
                number: 1,
                oldest_readable: 2
            }
        )
    };
    let first = Moment::Revision(1);
    assert!(is_access_denied(store.product(&code, first).unwrap_err()));
    assert!(is_access_denied(
        store.read_products(first, &mut |_| Ok(())).unwrap_err()
    ));
    let mut publication = store.publish().unwrap();
    assert!(is_access_denied(
        restore(store, &mut *publication, 1).unwrap_err()
    ));
    assert!(!restore(store, &mut *publication, 9).unwrap());
    assert!(restore(store, &mut *publication, 2).unwrap());
    drop(publication);
    // Revisions that never existed are missing, not pruned.
    assert_eq!(store.product(&code, Moment::Revision(0)).unwrap(), None);
    assert_eq!(at(store, Moment::Revision(0)), None);
    assert_eq!(at(store, Moment::Revision(4)), None);
}

fn revisions_are_kept_by_time(store: &Store) {
    for number in 1..=5 {
        publish(
            store,
            &[product("A", &number.to_string())],
            second(number * 100),
        );
    }
    // Revision 2 was live from 200 until 300.
    for (since, oldest) in [
        (50, 1),
        (100, 1),
        (299, 2),
        (300, 3),
        (450, 4),
        (500, 5),
        (900, 5),
    ] {
        let plan = store
            .plan_prune(Keep::LiveSince(second(since)), LATER)
            .unwrap();
        assert_eq!(plan.oldest_readable, Some(oldest), "since {since}");
        assert_eq!((plan.revisions, plan.versions), (oldest - 1, oldest - 1));
    }
    let pruned = store.prune(Keep::LiveSince(second(299)), LATER).unwrap();
    assert_eq!(pruned.oldest_readable, Some(2));
    // Pruned revisions stay pruned.
    let again = store.prune(Keep::LiveSince(second(50)), LATER).unwrap();
    assert_eq!(
        (again.oldest_readable, again.revisions, again.versions),
        (Some(2), 0, 0)
    );
}

fn a_text_stays_while_it_is_served(store: &Store) {
    publish_texts(store, &[("A", "# first"), ("B", "# kept")], second(10));
    publish_texts(store, &[("A", "# second"), ("B", "# kept")], second(20));
    publish_texts(store, &[("A", "# third"), ("B", "# kept")], second(30));
    publish(store, &[product("A", "1"), product("C", "1")], second(40));
    // Replaced at 20, 30 and 40; from 25 on, the last two are served.
    let served = read(store, second(25));
    assert_eq!(served.texts.len(), 3);
    let pruned = store.prune(newest(1), second(25)).unwrap();
    assert_eq!(
        (pruned.versions, pruned.texts, pruned.waiting_versions),
        (1, 1, 3)
    );
    assert_eq!(read(store, second(25)), served);
    assert_eq!(store.text(&TextDigest::of("# first")).unwrap(), None);
    assert_whole(store);
    let pruned = store.prune(newest(1), second(35)).unwrap();
    assert_eq!(
        (pruned.versions, pruned.texts, pruned.waiting_versions),
        (1, 1, 2)
    );
    let pruned = store.prune(newest(1), second(40)).unwrap();
    assert_eq!(
        (pruned.versions, pruned.texts, pruned.waiting_versions),
        (2, 2, 0)
    );
    assert_eq!(read(store, Timestamp::MIN).texts, []);
    assert_whole(store);
}

fn a_text_that_was_taken_down_stays(store: &Store) {
    publish_texts(store, &[("A", "# bad"), ("B", "# good")], second(10));
    publish(store, &[product("A", "1")], second(20));
    let bad = TextDigest::of("# bad");
    store
        .set_text_status(&bad, TextStatus::TakenDown, &crate::audited::take_down())
        .unwrap();
    let pruned = store.prune(newest(1), LATER).unwrap();
    assert_eq!((pruned.versions, pruned.texts), (2, 1));
    // It stays down if it is loaded again.
    publish_texts(store, &[("A", "# bad")], second(30));
    assert_eq!(read(store, second(30)).taken_down, [("A".to_owned(), bad)]);
    assert_whole(store);
}

fn a_plan_is_what_is_done(store: &Store) {
    twelve_revisions(store);
    for (keep, since) in [(9, second(0)), (6, second(85)), (2, LATER)] {
        let before = (all_moments(store, 12..=12), read(store, Timestamp::MIN));
        let plan = store.plan_prune(newest(keep), since).unwrap();
        assert_eq!(store.plan_prune(newest(keep), since).unwrap(), plan);
        assert_eq!(
            (all_moments(store, 12..=12), read(store, Timestamp::MIN)),
            before
        );
        let done = store.prune(newest(keep), since).unwrap();
        let free_bytes = plan.free_bytes;
        assert!(done.free_bytes >= free_bytes);
        assert_eq!(PruneReport { free_bytes, ..done }, plan);
        assert!(plan.revisions > 0 && plan.versions + plan.waiting_versions > 0);
    }
}

fn an_empty_store_has_nothing_to_prune(store: &Store) {
    assert_eq!(
        store.plan_prune(newest(1), LATER).unwrap(),
        PruneReport::default()
    );
    assert_eq!(
        store.prune(newest(1), LATER).unwrap(),
        PruneReport::default()
    );
    assert_eq!(
        store.prune(Keep::LiveSince(LATER), LATER).unwrap(),
        PruneReport::default()
    );
}
