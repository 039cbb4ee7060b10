//! The history of changes: what each revision and each texts state changed, without gaps that aren't told.

use jiff::Timestamp;
use vitrine_model::content::TextDigest;
use vitrine_store::history::{Facts, History, HistoryItem, HistoryStart};
use vitrine_store::record::{Keep, Moment, RevisionNote, StoredProduct};
use vitrine_store::{Store, StoreError, TextStatus};

use crate::history::at;
use crate::products::{product, publish, publish_texts, restore, second};
use crate::rules;

rules! {
    history_has_each_version_that_began_or_ended,
    pruned_revisions_are_left_out,
    history_has_take_downs_and_put_backs,
    texts_states_survive_a_prune_of_their_texts,
    failing_visitor_ends_the_read,
}

/// Item of a history, with the facts as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Ended(u64, String, String),
    Began(u64, String, String),
    Text(u64, String),
    Damaged(u64),
}

/// Start of a history without bounds.
pub const EVERYTHING: HistoryStart = HistoryStart {
    revision: 0,
    texts: None,
    since: Timestamp::MIN,
    max_changes: u64::MAX,
};

/// Reads a history. Returns its items in ascending order.
pub fn read(store: &Store, from: &HistoryStart) -> (History, Vec<Item>) {
    let mut items = Vec::new();
    let read = store.read_history(from, &mut |item| {
        let text = |facts: Facts<'_>| format!("{facts:?}");
        items.push(match item {
            HistoryItem::Ended {
                revision,
                code,
                facts,
            } => Item::Ended(revision, code.to_owned(), text(facts)),
            HistoryItem::Began {
                revision,
                code,
                facts,
            } => Item::Began(revision, code.to_owned(), text(facts)),
            HistoryItem::Text { texts, code } => Item::Text(texts, code.to_owned()),
            HistoryItem::Damaged { revision } => Item::Damaged(revision),
        });
        Ok(())
    });
    let history = read.unwrap();
    items.sort();
    assert_eq!(history.state, store.state().unwrap());
    let chain = &history.text_states;
    assert!(chain.windows(2).all(|pair| pair[0].after == pair[1].before));
    assert!(
        chain
            .last()
            .is_none_or(|last| last.after == history.state.texts)
    );
    (history, items)
}

/// Returns the numbers of a history's revisions.
pub fn numbers(history: &History) -> Vec<u64> {
    let numbers = history.revisions.iter().map(|one| one.revision.number);
    numbers.collect()
}

/// Returns the steps of a history's texts states.
pub fn steps(history: &History) -> Vec<(u64, u64)> {
    let steps = history
        .text_states
        .iter()
        .map(|step| (step.before, step.after));
    steps.collect()
}

/// Returns a product whose facts are those of `kind`.
fn of_kind(code: &str, kind: u8) -> StoredProduct {
    StoredProduct {
        is_orderable: kind.is_multiple_of(2),
        countries: ["DE", "AT", "SE"][..usize::from(kind % 4).min(3)]
            .iter()
            .map(|country| country.parse().unwrap())
            .collect(),
        categories: vec![format!("kind \"{kind}\""); usize::from(kind % 3)],
        ..product(code, &kind.to_string())
    }
}

fn facts(product: &StoredProduct) -> String {
    let categories: Vec<Box<str>> = product
        .categories
        .iter()
        .map(|one| one.as_str().into())
        .collect();
    let facts = Facts {
        is_orderable: product.is_orderable,
        countries: &product.countries,
        categories: &categories,
        document: &product.document,
    };
    format!("{facts:?}")
}

/// Returns the items of one revision, by comparing it with the one before.
fn differences(store: &Store, number: u64) -> Vec<Item> {
    let products = |number| at(store, Moment::Revision(number)).unwrap();
    let (before, after) = (products(number - 1), products(number));
    let missing = |from: &[StoredProduct], other: &[StoredProduct]| -> Vec<(String, String)> {
        let missing = from.iter().filter(|product| !other.contains(product));
        missing
            .map(|product| (product.code.to_string(), facts(product)))
            .collect()
    };
    let ended = missing(&before, &after).into_iter();
    let began = missing(&after, &before).into_iter();
    ended
        .map(|(code, facts)| Item::Ended(number, code, facts))
        .chain(began.map(|(code, facts)| Item::Began(number, code, facts)))
        .collect()
}

/// Publishes six revisions, a rollback among them.
pub fn publish_six(store: &Store) {
    let catalogs: [&[(&str, u8)]; 5] = [
        &[("A", 1), ("B", 1), ("C", 1)],
        &[("A", 1), ("B", 2), ("D", 3)],
        &[("A", 4)],
        &[("A", 5), ("B", 2), ("C", 6), ("E", 7)],
        &[],
    ];
    for (catalog, now) in catalogs.into_iter().zip(1..) {
        let products: Vec<_> = catalog
            .iter()
            .map(|(code, kind)| of_kind(code, *kind))
            .collect();
        publish(store, &products, second(now * 10)).unwrap();
    }
    let mut publication = store.publish().unwrap();
    assert!(restore(store, &mut *publication, 2).unwrap());
    publication
        .commit(second(60), &RevisionNote::default())
        .unwrap();
}

fn history_has_each_version_that_began_or_ended(store: &Store) {
    assert!(!store.is_replica().unwrap());
    let (nothing, items) = read(store, &EVERYTHING);
    assert_eq!((numbers(&nothing), items), (vec![], vec![]), "empty store");
    publish_six(store);
    for oldest in 1..=6 {
        let from = HistoryStart {
            revision: oldest,
            ..EVERYTHING
        };
        let (history, items) = read(store, &from);
        let mut expected: Vec<Item> = (oldest + 1..=6)
            .flat_map(|number| differences(store, number))
            .collect();
        expected.sort();
        assert_eq!(items, expected, "from revision {oldest}");
        assert_eq!(numbers(&history), (oldest..=6).collect::<Vec<_>>());
        for one in history.revisions {
            let published = store.revision(one.revision.number).unwrap().unwrap();
            assert_eq!(one.revision, published.revision);
            assert_eq!(one.former_id, None);
        }
    }
}

fn pruned_revisions_are_left_out(store: &Store) {
    publish_six(store);
    let (_, all) = read(
        store,
        &HistoryStart {
            revision: 4,
            ..EVERYTHING
        },
    );
    store
        .prune(Keep::Newest(3.try_into().unwrap()), Timestamp::MAX)
        .unwrap();
    let (history, items) = read(store, &EVERYTHING);
    assert_eq!((numbers(&history), items), (vec![4, 5, 6], all));
}

/// Takes a text down or puts it back. Returns the texts states before and after.
pub fn set(store: &Store, markdown: &str, status: TextStatus) -> (u64, u64) {
    let before = store.state().unwrap().texts;
    let digest = TextDigest::of(markdown);
    assert!(
        store
            .set_text_status(&digest, status, &crate::audited::take_down())
            .unwrap()
    );
    (before, store.state().unwrap().texts)
}

fn history_has_take_downs_and_put_backs(store: &Store) {
    let live = [("A", "one"), ("B", "two"), ("C", "one")];
    publish_texts(store, &live, second(10));
    let from = |texts| HistoryStart {
        revision: 9,
        texts,
        ..EVERYTHING
    };
    assert_eq!(steps(&read(store, &from(None)).0), []);
    let one = set(store, "one", TextStatus::TakenDown);
    let two = set(store, "two", TextStatus::TakenDown);
    let back = set(store, "one", TextStatus::Served);
    let item = |(_, after): (u64, u64), code: &str| Item::Text(after, code.to_owned());
    let of_one = |step| [item(step, "A"), item(step, "C")];
    let all = [&of_one(one)[..], &[item(two, "B")], &of_one(back)].concat();
    for unknown in [None, Some(one.0), Some(one.1 - 1), Some(u64::MAX)] {
        let (history, items) = read(store, &from(unknown));
        assert_eq!(steps(&history), [one, two, back]);
        assert_eq!(items, all);
    }
    let (history, items) = read(store, &from(Some(one.1)));
    assert_eq!(steps(&history), [two, back]);
    assert_eq!(items, all[2..]);
    let (history, items) = read(store, &from(Some(back.1)));
    assert_eq!((steps(&history), items), (vec![], vec![]));
    // Only live products: revisions tell of the others.
    publish_texts(store, &[("A", "new"), ("B", "two")], second(20));
    let (_, items) = read(store, &from(None));
    assert_eq!(items, [item(two, "B")]);
    // A missing text is no step.
    let unknown = TextDigest::of("unknown");
    assert!(
        !store
            .set_text_status(
                &unknown,
                TextStatus::TakenDown,
                &crate::audited::take_down()
            )
            .unwrap()
    );
    assert_eq!(steps(&read(store, &from(None)).0), [one, two, back]);
}

fn texts_states_survive_a_prune_of_their_texts(store: &Store) {
    publish_texts(store, &[("A", "one")], second(10));
    let down = set(store, "one", TextStatus::TakenDown);
    let back = set(store, "one", TextStatus::Served);
    publish_texts(store, &[("A", "two")], second(20));
    let keep = Keep::Newest(1.try_into().unwrap());
    assert_eq!(store.prune(keep, Timestamp::MAX).unwrap().texts, 1);
    let (history, items) = read(store, &EVERYTHING);
    assert_eq!(steps(&history), [down, back]);
    assert_eq!((numbers(&history), items), (vec![2], vec![]));
}

fn failing_visitor_ends_the_read(store: &Store) {
    publish_texts(store, &[("A", "one")], second(10));
    let fail = |texts| {
        let from = HistoryStart {
            texts,
            ..EVERYTHING
        };
        let failed = store.read_history(&from, &mut |_| Err("no more".into()));
        assert!(matches!(failed, Err(StoreError::Visitor(_))), "{failed:?}");
    };
    let (_, down) = set(store, "one", TextStatus::TakenDown);
    fail(None);
    publish_texts(store, &[("A", "two")], second(20));
    fail(Some(down));
}
