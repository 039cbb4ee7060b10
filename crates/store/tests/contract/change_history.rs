//! The history of changes: what each revision and each texts state changed; its bounds, and its gaps after a restore or damage.

use std::path::Path;

use jiff::Timestamp;
use vitrine_model::content::TextDigest;
use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::Publication as _;
use vitrine_store::document::PackedDocument;
use vitrine_store::history::{History, HistoryItem, HistoryStart, Version};
use vitrine_store::record::{Keep, Moment, RevisionNote, StoredProduct};
use vitrine_store::{IfMissing, Store, StoreAddress, StoreError, TextStatus, open};

use crate::history::at;
use crate::kept::on_both;
use crate::products::{product, publish, publish_texts, restore, second};
use crate::rules;

rules! {
    history_has_each_version_that_began_or_ended,
    pruned_revisions_are_left_out,
    history_has_take_downs_and_put_backs,
    texts_states_survive_a_prune_of_their_texts,
    failing_visitor_ends_the_read,
    history_begins_at_its_bounds,
    late_clock_does_not_end_a_history,
    texts_states_begin_at_their_bounds,
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
        let text = |one: Version<'_>| format!("{one:?}");
        items.push(match item {
            HistoryItem::Ended(one) => Item::Ended(one.revision, one.code.to_owned(), text(one)),
            HistoryItem::Began(one) => Item::Began(one.revision, one.code.to_owned(), text(one)),
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

fn version(product: &StoredProduct, revision: u64) -> String {
    let categories: Vec<Box<str>> = product
        .categories
        .iter()
        .map(|one| one.as_str().into())
        .collect();
    let version = Version {
        revision,
        code: product.code.as_str(),
        is_orderable: product.is_orderable,
        countries: &product.countries,
        categories: &categories,
        document: &product.document,
    };
    format!("{version:?}")
}

/// Returns the items of one revision, by comparing it with the one before.
fn differences(store: &Store, number: u64) -> Vec<Item> {
    let products = |number| at(store, Moment::Revision(number)).unwrap();
    let (before, after) = (products(number - 1), products(number));
    let missing = |from: &[StoredProduct], other: &[StoredProduct]| -> Vec<(String, String)> {
        let missing = from.iter().filter(|product| !other.contains(product));
        missing
            .map(|product| (product.code.to_string(), version(product, number)))
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

fn since_revision(revision: u64) -> HistoryStart {
    HistoryStart {
        revision,
        ..EVERYTHING
    }
}

fn since_second(since: i64) -> HistoryStart {
    HistoryStart {
        since: second(since),
        ..EVERYTHING
    }
}

fn at_most(max_changes: u64) -> HistoryStart {
    HistoryStart {
        max_changes,
        ..EVERYTHING
    }
}

fn history_begins_at_its_bounds(store: &Store) {
    publish_six(store);
    let first = |from: HistoryStart| {
        let (history, items) = read(store, &from);
        let oldest = numbers(&history).first().copied();
        let after = |item: &Item| match item {
            Item::Ended(number, ..) | Item::Began(number, ..) => Some(*number) > oldest,
            Item::Text(..) | Item::Damaged(_) => false,
        };
        assert!(items.iter().all(after), "{items:?}");
        oldest
    };
    for (revision, expected) in [(0, 1), (1, 1), (5, 5), (6, 6)] {
        assert_eq!(first(since_revision(revision)), Some(expected));
    }
    for revision in [7, u64::MAX] {
        let beyond = first(since_revision(revision));
        assert_eq!(beyond, None, "beyond the live revision");
    }
    // A revision is live until the next one replaces it.
    for (since, expected) in [(5, 1), (19, 1), (20, 2), (21, 2), (59, 5), (60, 6), (99, 6)] {
        assert_eq!(first(since_second(since)), Some(expected));
    }
    // Revisions 6 to 2 changed 3, 4, 4, 3 and 3 products.
    for (max_changes, expected) in [
        (0, 6),
        (2, 6),
        (3, 5),
        (6, 5),
        (7, 4),
        (11, 3),
        (16, 2),
        (17, 1),
    ] {
        let from = at_most(max_changes);
        assert_eq!(first(from), Some(expected), "{max_changes} changes");
    }
}

fn late_clock_does_not_end_a_history(store: &Store) {
    for (name, now) in [("1", 10), ("2", 60), ("3", 20), ("4", 30)] {
        publish(store, &[product("A", name)], second(now)).unwrap();
    }
    for (since, expected) in [(9, 1), (59, 1), (60, 4)] {
        assert_eq!(
            numbers(&read(store, &since_second(since)).0).first(),
            Some(&expected)
        );
    }
}

fn texts_states_begin_at_their_bounds(store: &Store) {
    let live = [("A", "one"), ("B", "two"), ("C", "one")];
    publish_texts(store, &live, second(10));
    let one = set(store, "one", TextStatus::TakenDown);
    let two = set(store, "two", TextStatus::TakenDown);
    let back = set(store, "one", TextStatus::Served);
    // They changed 2, 1 and 2 products.
    let all = [one, two, back];
    for (max_changes, expected) in [
        (0, &[][..]),
        (1, &[]),
        (2, &all[2..]),
        (3, &all[1..]),
        (4, &all[1..]),
        (5, &all),
    ] {
        let from = at_most(max_changes);
        let (history, items) = read(store, &from);
        assert_eq!(steps(&history), expected, "{max_changes} changes");
        assert_eq!(history.texts_since.is_some(), expected.len() < all.len());
        let of_texts = items.iter().filter(|item| matches!(item, Item::Text(..)));
        assert!(of_texts.count() as u64 <= max_changes);
    }
    let from = HistoryStart {
        since: Timestamp::MAX,
        ..EVERYTHING
    };
    assert_eq!(steps(&read(store, &from).0), []);
}

fn text(texts: u64, code: &str) -> Item {
    Item::Text(texts, code.to_owned())
}

/// Creates an SQLite store of two revisions with a text taken down, and its backup. Returns the id of its live revision
/// and the step of its texts.
fn back_up(directory: &Path, backup: &Path) -> (String, (u64, u64)) {
    let url = format!("sqlite:{}", directory.join("source.db").display());
    let store = open(&url, IfMissing::Create).unwrap();
    publish_texts(&store, &[("A", "one")], second(10));
    let live = [("A", "one"), ("B", "two"), ("C", "three")];
    publish_texts(&store, &live, second(20));
    let step = set(&store, "three", TextStatus::TakenDown);
    let live = store.backup(backup).unwrap().unwrap();
    (live.id, step)
}

#[test]
fn restore_keeps_the_former_id_and_is_one_texts_step() {
    on_both(|kept| {
        let backup = kept.directory.join("backup.db");
        let (id, step) = back_up(kept.directory, &backup);
        let store = kept.open();
        store.restore(&backup, &crate::audited::restore()).unwrap();
        let (history, items) = read(&store, &EVERYTHING);
        assert_eq!(numbers(&history), [1, 2]);
        let formers = |history: &History| -> Vec<Option<String>> {
            let formers = history.revisions.iter().map(|one| one.former_id.clone());
            formers.collect()
        };
        assert_eq!(formers(&history), [None, Some(id.clone())]);
        let first = store.state().unwrap();
        assert_ne!(first.revision_id.as_ref(), Some(&id));
        assert_eq!(steps(&history), [step, (step.1, first.texts)]);
        assert!(items.contains(&text(step.1, "C")));
        assert!(!items.iter().any(|item| *item == text(first.texts, "C")));

        // What was taken down since stays so: that differs from the backup. What was put back is down again, as there.
        set(&store, "one", TextStatus::TakenDown);
        set(&store, "three", TextStatus::Served);
        publish(&store, &[product("Z", "1")], second(30)).unwrap();
        store.restore(&backup, &crate::audited::restore()).unwrap();
        let again = store.state().unwrap();
        assert!(again.texts > first.texts);
        let (history, items) = read(&store, &EVERYTHING);
        assert_eq!(numbers(&history), [1, 2]);
        assert_eq!(formers(&history), [None, Some(id.clone())]);
        assert_eq!(steps(&history), [step, (step.1, again.texts)]);
        let texts: Vec<_> = items
            .into_iter()
            .filter(|item| matches!(item, Item::Text(..)))
            .collect();
        assert_eq!(texts, [text(step.1, "C"), text(again.texts, "A")]);

        publish(&store, &[product("Z", "1")], second(40)).unwrap();
        let (history, _) = read(&store, &EVERYTHING);
        assert_eq!(formers(&history), [None, Some(id), None]);
        assert_eq!(store.check().unwrap(), []);
    });
}

#[test]
fn created_store_has_the_history_of_its_backup() {
    on_both(|kept| {
        let backup = kept.directory.join("backup.db");
        let (id, step) = back_up(kept.directory, &backup);
        let Ok(address) = kept.url.parse::<StoreAddress>();
        let live = address
            .create_from(&backup, &crate::audited::restore())
            .unwrap()
            .unwrap();
        let store = kept.open();
        let (history, items) = read(&store, &EVERYTHING);
        assert_eq!(numbers(&history), [1, 2]);
        let last = history.revisions.last().unwrap();
        assert_eq!(
            (&last.revision, &last.former_id),
            (&live, &Some(id.clone()))
        );
        assert_ne!(live.id, id);
        assert_eq!(steps(&history)[0], step);
        let of_texts = items.iter().filter(|item| matches!(item, Item::Text(..)));
        assert_eq!(of_texts.collect::<Vec<_>>(), [&text(step.1, "C")]);
    });
}

#[test]
fn texts_counter_without_a_step_is_a_gap() {
    on_both(|kept| {
        let store = kept.open();
        publish_texts(&store, &[("A", "one")], second(10));
        set(&store, "one", TextStatus::TakenDown);
        (kept.run)("update state set texts_counter = texts_counter + 7");
        let (history, items) = read(&store, &EVERYTHING);
        assert_eq!((steps(&history), items), (vec![], vec![]));
        let step = set(&store, "one", TextStatus::Served);
        let (history, items) = read(&store, &EVERYTHING);
        assert_eq!(
            (steps(&history), items),
            (vec![step], vec![text(step.1, "A")])
        );
    });
}

#[test]
fn history_ends_at_a_missing_revision() {
    on_both(|kept| {
        let store = kept.open();
        for number in 1..=5 {
            publish(&store, &[product("A", &number.to_string())], second(number)).unwrap();
        }
        (kept.run)("delete from revision where number = 3");
        let (history, items) = read(&store, &EVERYTHING);
        assert_eq!((numbers(&history), items.len()), (vec![4, 5], 2));
    });
}

#[test]
fn damaged_version_is_visited_as_damaged() {
    for damage in [
        "update product_version set countries = '[\"Germany\"]'",
        "update product_version set categories = 'food'",
        "update product_version set countries = '[]'",
        "update product_document set document = PACKED",
    ] {
        on_both(|kept| {
            let packed = PackedDocument::pack(b"{}").unwrap();
            let packed = Hexadecimal(packed.as_bytes());
            let damage = match kept.is_sqlite() {
                true => damage.replace("PACKED", &format!("x'{packed}'")),
                false => damage.replace("PACKED", &format!("'\\x{packed}'")),
            };
            let store = kept.open();
            publish(&store, &[product("A", "1"), product("B", "1")], second(1)).unwrap();
            publish(&store, &[product("A", "2"), product("B", "1")], second(2)).unwrap();
            publish(&store, &[product("C", "1")], second(3)).unwrap();
            let (_, before) = read(&store, &EVERYTHING);
            let is_damaged = "code = 'A' and from_revision = 2";
            let ids = format!("(select id from product_version where {is_damaged})");
            (kept.run)(&match damage.starts_with("update product_document") {
                true => format!("{damage} where product_version_id in {ids}"),
                false => format!("{damage} where {is_damaged}"),
            });
            let (history, items) = read(&store, &EVERYTHING);
            assert_eq!(numbers(&history), [1, 2, 3]);
            let damaged: Vec<_> = items.iter().filter(|item| !before.contains(item)).collect();
            assert_eq!(damaged, [&Item::Damaged(2), &Item::Damaged(3)], "{damage}");
            assert_eq!(items.len(), before.len());
            let from = HistoryStart {
                revision: 3,
                ..EVERYTHING
            };
            assert_eq!(read(&store, &from).1, []);
        });
    }
}
