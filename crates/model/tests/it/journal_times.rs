//! Times of a journal's states: when they began and were replaced, and what is dropped by that.

use vitrine_model::changes::{Journal, JournalUpdate};
use vitrine_model::revision::Revision;

use crate::history::{revision, second};
use crate::journals::{known, position, texts, update};

/// Returns the revision with this number, published at another second.
fn at(number: u64, published: u64) -> Revision {
    Revision {
        created_at: second(published),
        ..revision(number, &number.to_string())
    }
}

#[test]
fn state_of_a_late_clock_is_replaced_when_the_one_before_was() {
    let mut update = JournalUpdate::default();
    for (number, published) in [(1, 10), (2, 1_000), (3, 20)] {
        update.revision(&at(number, published), None);
    }
    update.texts_state(texts(0), texts(1), second(900));
    update.texts_state(texts(1), texts(2), second(30));
    let journal = update.into_journal(texts(2)).unwrap();
    let mut update = JournalUpdate::default();
    update.revision(&at(3, 20), None);
    update.revision(&at(4, 40), None);
    update.texts_state(texts(2), texts(3), second(50));
    let journal = update.extend(&journal, texts(3)).unwrap();
    for (number, state, replaced) in [(2, 3, 1_000), (3, 3, 1_000), (4, 1, 900), (4, 2, 900)] {
        let point = journal.locate(&position(number, &number.to_string(), state));
        assert_eq!(
            journal.replaced_at(point.unwrap()),
            Some(second(replaced)),
            "{number} {state}"
        );
    }
    let journal = journal.trimmed(usize::MAX, second(500));
    assert_eq!(known(&journal), [1, 2, 3, 4], "replaced at 1,000");
}

#[test]
fn states_of_texts_are_dropped_like_revisions() {
    let mut update = update(1..=2);
    for state in 0..8 {
        update.texts_state(texts(state), texts(state + 1), second(10 + state));
    }
    let journal = update.into_journal(texts(8)).unwrap();
    let state = |journal: &Journal, state| journal.locate(&position(2, "2", state));
    let replaced = |state_id| journal.replaced_at(state(&journal, state_id).unwrap());
    assert_eq!(replaced(3), Some(second(13)));
    assert_eq!(replaced(8), None);
    let journal = journal.trimmed(usize::MAX, second(14));
    assert_eq!(state(&journal, 2), None);
    assert!(state(&journal, 4).is_some());
}

#[test]
fn known_since_is_the_later_begin_of_both_logs() {
    let journal = update(5..=8).into_journal(texts(0)).unwrap();
    // The last one is live, however long ago it was published.
    for (kept, known) in [(0, 5), (5, 5), (7, 7), (8, 8), (1_000, 8)] {
        assert_eq!(journal.known_since(second(kept)), Some(second(known)));
    }
    let mut update = update(5..=8);
    update.texts_since(second(6));
    update.texts_state(texts(3), texts(4), second(20));
    update.texts_state(texts(4), texts(5), second(30));
    let journal = update.into_journal(texts(5)).unwrap();
    for (kept, known) in [(0, 6), (19, 8), (20, 20), (29, 20), (1_000, 30)] {
        assert_eq!(journal.known_since(second(kept)), Some(second(known)));
    }
}

#[test]
fn journal_ends_at_its_newest_position_only() {
    let mut update = update(1..=3);
    update.texts_state(texts(0), texts(4), second(1));
    let journal = update.into_journal(texts(4)).unwrap();
    assert!(journal.ends_at(&position(3, "3", 4)));
    for older in [position(2, "2", 4), position(3, "3", 0)] {
        assert!(journal.locate(&older).is_some());
        assert!(!journal.ends_at(&older));
    }
    assert!(!journal.ends_at(&position(3, "other", 4)));
}
