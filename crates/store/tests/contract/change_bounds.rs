//! The bounds of a read of the history: a revision, a time and a number of changes.

use jiff::Timestamp;
use vitrine_store::history::HistoryStart;
use vitrine_store::{Store, TextStatus};

use crate::change_history::{EVERYTHING, Item, numbers, publish_six, read, set, steps};
use crate::products::{product, publish, publish_texts, second};
use crate::rules;

rules! {
    history_begins_at_its_bounds,
    late_clock_does_not_end_a_history,
    texts_states_begin_at_their_bounds,
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
