//! Journals: positions that they know, what they drop, what they take from a store and from bytes.

use jiff::Timestamp;
use vitrine_model::changes::{ChangesQuery, Journal, JournalUpdate, Position, StateId, Work};
use vitrine_model::query::Limit;
use vitrine_model::selector::Selector;
use vitrine_model::snapshot::Snapshot;

use crate::naive::{Made, made};

use crate::history::{revision, second};

/// Returns an update with revisions of these numbers, whose ids are the numbers.
pub fn update(numbers: impl IntoIterator<Item = u64>) -> JournalUpdate {
    let mut update = JournalUpdate::default();
    for number in numbers {
        change(&mut update, number, "A");
        update.revision(&revision(number, &number.to_string()), None);
    }
    update
}

/// Adds a change of a product, which can be ordered after it.
fn change(update: &mut JournalUpdate, revision: u64, code: &str) {
    let after = Made {
        categories: vec!["food".into()],
        ..made(true)
    };
    update.ended(revision, code, &made(false).facts());
    update.began(revision, code, &after.facts());
}

pub fn texts(state: u64) -> StateId {
    StateId::of_texts(state)
}

pub fn position(number: u64, id: &str, state: u64) -> Position {
    Position {
        number,
        revision: StateId::of_revision(id),
        texts: texts(state),
        assortment: StateId::default(),
    }
}

/// Returns true if the journal knows the revision with this number, by the number as its id.
fn knows(journal: &Journal, number: u64) -> bool {
    let (_, newest) = journal.newest();
    let revision = StateId::of_revision(&number.to_string());
    let position = Position {
        number,
        revision,
        texts: newest,
        assortment: StateId::default(),
    };
    journal.locate(&position).is_some()
}

/// Returns the numbers of the revisions that the journal knows, up to 99.
pub fn known(journal: &Journal) -> Vec<u64> {
    (0..100).filter(|number| knows(journal, *number)).collect()
}

/// Returns the removals between two positions, in an empty catalog.
fn removals(journal: &Journal, since: &Position, until: &Position) -> Vec<String> {
    let [since, until] = [since, until].map(|at| journal.locate(at).expect("a known position"));
    let query = ChangesQuery::default();
    let empty = Snapshot::default();
    let work = &mut Work::unlimited();
    let page = journal.changes(&empty, [since, until], &query, None, work);
    let codes = page.changes.iter().map(|change| change.code().to_string());
    codes.collect()
}

#[test]
fn unknown_positions_are_not_located() {
    let mut update = update(3..=6);
    update.texts_state(texts(5), texts(9), second(1));
    let journal = update.into_journal(texts(9)).unwrap();
    assert_eq!(journal.newest(), (6, texts(9)));
    for (number, id, state) in [(3, "3", 5), (6, "6", 9), (4, "4", 9)] {
        let found = journal.locate(&position(number, id, state));
        assert!(found.is_some(), "{number} {id} {state}");
    }
    for (number, id, state) in [
        (2, "2", 9),
        (7, "7", 9),
        (u64::MAX, "6", 9),
        (4, "5", 9),
        (4, "", 9),
        (4, "4", 0),
        (4, "4", 7),
        (4, "4", 10),
        (4, "4", u64::MAX),
    ] {
        let found = journal.locate(&position(number, id, state));
        assert_eq!(found, None, "{number} {id} {state}");
    }
}

#[test]
fn former_ids_of_revisions_are_located() {
    let journal = update(1..=4).into_journal(texts(0)).unwrap();
    let mut restored = JournalUpdate::default();
    restored.revision(&revision(4, "new"), Some("4"));
    change(&mut restored, 5, "A");
    restored.revision(&revision(5, "5"), None);
    let journal = restored.extend(&journal, texts(0)).unwrap();
    let points = ["4", "new"].map(|id| journal.locate(&position(4, id, 0)));
    assert!(points[0].is_some());
    assert_eq!(points[0], points[1]);
    assert_eq!(known(&journal), [1, 2, 3, 4, 5]);
    assert_eq!(journal.locate(&position(5, "new", 0)), None);
    let later = journal
        .clone()
        .trimmed(usize::MAX, Timestamp::from_second(5).unwrap());
    assert!(later.locate(&position(4, "new", 0)).is_some());
    let later = journal.trimmed(0, Timestamp::UNIX_EPOCH);
    assert_eq!(later.locate(&position(4, "new", 0)), None);
}

/// One change a revision takes the most.
#[test]
fn journal_of_a_million_changes_takes_100_bytes_each() {
    const COUNT: u64 = 1_000_000;
    let mut journal = update([0]).into_journal(texts(0)).unwrap();
    for since in [0, COUNT / 2] {
        let mut update = JournalUpdate::default();
        for number in since..=since + COUNT / 2 {
            let code = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            change(&mut update, number, &format!("PRODUCT-{:012X}", code >> 16));
            update.revision(&revision(number, &number.to_string()), None);
        }
        journal = update.extend(&journal, texts(0)).unwrap();
    }
    assert_eq!(journal.len() as u64, COUNT);
    let bytes = journal.bytes() / journal.len();
    println!("{bytes} bytes for each change");
    assert!(bytes <= 100, "{bytes}");
}

#[test]
fn trimmed_journal_drops_about_a_quarter_at_once() {
    let mut journal = update(0..=64).into_journal(texts(0)).unwrap();
    assert_eq!(known(&journal), (0..=64).collect::<Vec<_>>());
    for expected in [17, 29, 38, 45] {
        let max_bytes = journal.bytes() - 1;
        journal = journal.trimmed(max_bytes, Timestamp::UNIX_EPOCH);
        assert_eq!(known(&journal).first(), Some(&expected));
        assert!(journal.bytes() <= max_bytes);
    }
    journal = journal.trimmed(0, Timestamp::UNIX_EPOCH);
    assert_eq!(known(&journal), [64]);
    assert!(journal.is_empty());
    assert_eq!(journal.bytes(), 0);
    assert_eq!(
        journal.known_since(Timestamp::MIN),
        Timestamp::from_second(64).ok()
    );
}

#[test]
fn trimmed_journal_drops_states_replaced_too_long_ago() {
    // In segments of several sizes.
    let mut journal = update(0..=64).into_journal(texts(0)).unwrap();
    for number in 64..80 {
        journal = update(number..=number + 1)
            .extend(&journal, texts(0))
            .unwrap();
    }
    for (time, oldest) in [(0, 0), (10, 0), (40, 39), (65, 64), (75, 74), (1_000, 80)] {
        let time = Timestamp::from_second(time).unwrap();
        journal = journal.trimmed(usize::MAX, time);
        assert_eq!(known(&journal).first(), Some(&oldest), "{time}");
    }
}

#[test]
fn texts_are_trimmed_where_they_are_larger() {
    let mut update = update(1..=3);
    for state in 0..100 {
        update.texts_state(texts(state), texts(state + 1), second(1));
        update.text(texts(state + 1), "B");
    }
    let journal = update.into_journal(texts(100)).unwrap();
    let journal = journal.trimmed(3_000, Timestamp::UNIX_EPOCH);
    assert_eq!(known(&journal), [1, 2, 3], "revisions are kept");
    assert_eq!(journal.locate(&position(3, "3", 0)), None);
    assert!(journal.locate(&position(3, "3", 90)).is_some());
}

#[test]
fn states_are_replaced_by_the_next_revision() {
    let mut journal = update(5..=8).into_journal(texts(0)).unwrap();
    for trim in [false, true] {
        for (number, replaced) in [(7, Some(8)), (8, None)] {
            let point = journal.locate(&position(number, &number.to_string(), 0));
            let replaced = replaced.and_then(|second| Timestamp::from_second(second).ok());
            assert_eq!(journal.replaced_at(point.unwrap()), replaced, "{trim}");
        }
        journal = journal.trimmed(usize::MAX, Timestamp::from_second(8).unwrap());
        assert_eq!(known(&journal), [7, 8]);
    }
}

#[test]
fn updates_that_do_not_follow_are_refused() {
    let journal = update(1..=4).into_journal(texts(0)).unwrap();
    let extend = |update: JournalUpdate| update.extend(&journal, texts(0));
    assert_eq!(extend(JournalUpdate::default()), None, "no revision");
    assert_eq!(extend(update(5..=6)), None, "a gap");
    assert_eq!(extend(update(3..=6)), None, "from an older revision");
    assert_eq!(extend(update([4, 6])), None, "a gap within");
    let mut other = JournalUpdate::default();
    other.revision(&revision(4, "other"), Some("third"));
    assert_eq!(extend(other), None, "another store");
    let mut damaged = update(4..=6);
    damaged.unknown(5);
    assert_eq!(extend(damaged), None);
    let mut damaged = update(4..=6);
    damaged.unknown(4);
    let extended = extend(damaged).unwrap();
    assert_eq!(known(&extended), [1, 2, 3, 4, 5, 6]);
    assert_eq!(extend(update([4])).as_ref(), Some(&journal), "nothing new");
}

#[test]
fn journals_begin_after_what_is_unknown() {
    assert_eq!(JournalUpdate::default().into_journal(texts(0)), None);
    for (unknown, expected) in [
        (0, vec![1, 2, 3, 4]),
        (1, vec![1, 2, 3, 4]),
        (3, vec![3, 4]),
        (4, vec![4]),
        (u64::MAX, vec![4]),
    ] {
        let mut update = update(1..=4);
        update.unknown(unknown);
        update.unknown(0);
        let journal = update.into_journal(texts(0)).unwrap();
        assert_eq!(known(&journal), expected, "{unknown}");
    }
    let gap = update([1, 2, 4, 5]).into_journal(texts(0)).unwrap();
    assert_eq!(known(&gap), [4, 5]);
    assert_eq!(gap.len(), 1, "the change of revision 5");
}

#[test]
fn texts_that_do_not_follow_begin_anew() {
    let steps = |states: &[(u64, u64)]| {
        let mut update = update([1]);
        for (before, after) in states {
            update.texts_state(texts(*before), texts(*after), second(1));
        }
        update
    };
    let known = |journal: Journal| -> Vec<u64> {
        let knows = |state: &u64| journal.locate(&position(1, "1", *state)).is_some();
        (0..20).filter(knows).collect()
    };
    let made = |states, newest| known(steps(states).into_journal(texts(newest)).unwrap());
    assert_eq!(made(&[], 3), [3]);
    assert_eq!(made(&[(0, 2), (2, 3)], 3), [0, 2, 3]);
    assert_eq!(made(&[(0, 1), (2, 3), (3, 4)], 4), [2, 3, 4], "a gap");
    assert_eq!(made(&[(0, 2), (2, 3)], 5), [5], "they lead elsewhere");
    assert_eq!(made(&[(4, 2), (2, 3)], 3), [2, 3], "they don't ascend");
    assert_eq!(made(&[(2, 3), (3, 3)], 3), [3], "they don't ascend");
    let journal = steps(&[(2, 5)]).into_journal(texts(5)).unwrap();
    let extended = |states, newest| known(steps(states).extend(&journal, texts(newest)).unwrap());
    assert_eq!(extended(&[], 5), [2, 5]);
    assert_eq!(extended(&[(5, 6), (6, 9)], 9), [2, 5, 6, 9]);
    assert_eq!(
        extended(&[(0, 2), (2, 5), (5, 9)], 9),
        [2, 5, 9],
        "more than asked for"
    );
    assert_eq!(extended(&[(6, 9)], 9), [6, 9]);
    assert_eq!(extended(&[(4, 6), (6, 9)], 9), [4, 6, 9], "around it");
    assert_eq!(extended(&[], 9), [9]);
    assert_eq!(extended(&[(0, 1)], 1), [0, 1], "a lost state");
}

#[test]
fn highest_numbers_are_journaled() {
    let last = u64::MAX;
    let journal = update(last - 3..=last - 1)
        .into_journal(texts(u64::MAX))
        .unwrap();
    let journal = update(last - 1..=last)
        .extend(&journal, texts(u64::MAX))
        .unwrap();
    let newest = position(last, &last.to_string(), u64::MAX);
    let point = journal.locate(&newest).unwrap();
    assert_eq!(journal.replaced_at(point), None);
    let oldest = position(last - 3, &(last - 3).to_string(), u64::MAX);
    assert_eq!(removals(&journal, &oldest, &newest), ["A"]);
    assert!(removals(&journal, &newest, &oldest).is_empty());
    let journal = update([last]).extend(&journal, texts(u64::MAX)).unwrap();
    let journal = journal.trimmed(0, Timestamp::MAX);
    assert!(journal.locate(&newest).is_some());
    // Stores count with 63 bits.
    assert!(Journal::from_bytes(&journal.to_bytes()).is_err());
}

#[test]
fn products_with_invalid_codes_are_left_out() {
    let mut update = update(1..=2);
    for code in ["", "a/b", "ä", "changes", &"x".repeat(65)] {
        change(&mut update, 2, code);
        update.text(texts(1), code);
    }
    update.texts_state(texts(0), texts(1), second(1));
    update.text(texts(1), "B");
    let journal = update.into_journal(texts(1)).unwrap();
    assert_eq!(journal.len(), 2, "A in revision 2, and B");
    let [since, until] = [position(1, "1", 0), position(2, "2", 1)];
    assert_eq!(removals(&journal, &since, &until), ["A"]);
}

#[test]
fn last_change_is_the_newest_of_all_segments() {
    let made = |revisions: std::ops::RangeInclusive<u64>, changes: &[(u64, &str)]| {
        let mut update = JournalUpdate::default();
        revisions.for_each(|number| update.revision(&revision(number, &number.to_string()), None));
        for (number, code) in changes {
            change(&mut update, *number, code);
        }
        update
    };
    let start = made(1..=3, &[(2, "A"), (2, "B"), (3, "B")]);
    let journal = start.into_journal(texts(0)).unwrap();
    let update = made(3..=4, &[(4, "C"), (4, "A")]);
    let journal = update.extend(&journal, texts(0)).unwrap();
    let mut changes = journal.last_changes();
    let found = ["A", "AA", "B", "C", "D"].map(|code| changes.find(code));
    let revisions = found.map(|found| found.map(|change| (change.revision, change.at)));
    let expected = [Some(4), None, Some(3), Some(4), None];
    assert_eq!(
        revisions,
        expected.map(|number| Some((number?, second(number?))))
    );
    assert_eq!(journal.oldest_revision().revision, 1);
    assert_eq!(journal.last_changes().find("B").unwrap().revision, 3);
}

/// Uses whatever a journal has.
fn use_all(journal: Journal) {
    let filters = ["food", "toys"].map(|category| Selector {
        categories: Some(vec![category.to_owned()]),
        ..Selector::default()
    });
    let snapshot = Snapshot::default();
    let (number, newest) = journal.newest();
    let mut points = Vec::new();
    for (number, id, texts) in [(1, "1", texts(0)), (3, "3", texts(7)), (5, "new", newest)] {
        let revision = StateId::of_revision(id);
        let position = Position {
            number,
            revision,
            texts,
            assortment: StateId::default(),
        };
        points.extend(journal.locate(&position));
    }
    for since in &points {
        let _ = journal.replaced_at(*since);
        for until in &points {
            for filter in [&Selector::default(), &filters[0], &filters[1]] {
                let query = ChangesQuery {
                    filter: filter.clone(),
                    after: None,
                    limit: Limit::new(2).expect("a limit"),
                };
                let work = &mut Work::unlimited();
                let page = journal.changes(&snapshot, [*since, *until], &query, None, work);
                let codes = page
                    .changes
                    .iter()
                    .map(vitrine_model::changes::Change::code);
                assert!(codes.is_sorted_by(|one, other| one < other));
            }
        }
    }
    let next = update([number, number.saturating_add(1)]);
    let _ = next
        .extend(&journal, newest)
        .map(|journal| journal.trimmed(700, Timestamp::MAX));
    assert_eq!(
        Journal::from_bytes(&journal.to_bytes()).as_ref(),
        Ok(&journal)
    );
    let _ = (journal.known_since(Timestamp::MIN), journal.len());
    assert!(journal.trimmed(0, Timestamp::UNIX_EPOCH).is_empty());
}

#[test]
fn corrupt_bytes_are_refused_or_harmless() {
    let mut start = update(1..=3);
    for code in ["B", "C-1", "D"] {
        change(&mut start, 2, code);
        start.text(texts(4), code);
    }
    start.texts_state(texts(0), texts(4), second(1));
    start.texts_state(texts(4), texts(7), second(1));
    let journal = start.into_journal(texts(7)).unwrap();
    let journal = update(3..=5).extend(&journal, texts(7)).unwrap();
    let mut restored = JournalUpdate::default();
    restored.revision(&revision(5, "new"), Some("5"));
    let journal = restored.extend(&journal, texts(7)).unwrap();
    let sound = journal.to_bytes();
    use_all(journal);

    let mut read = 0;
    let mut check = |bytes: &[u8]| {
        if let Ok(journal) = Journal::from_bytes(bytes) {
            read += 1;
            use_all(journal);
        }
    };
    for at in 0..sound.len() {
        check(&sound[..at]);
        for value in [
            0,
            1,
            2,
            0x7f,
            0x80,
            0xff,
            sound[at] ^ 1,
            sound[at].wrapping_add(4),
        ] {
            let mut bytes = sound.clone();
            bytes[at] = value;
            check(&bytes);
            // Lengths and ends that belong to each other.
            let other = at + 8;
            if let Some(byte) = bytes.get_mut(other) {
                *byte = value;
                check(&bytes);
            }
        }
        let mut bytes = sound.clone();
        bytes.remove(at);
        check(&bytes);
        bytes.splice(at..at, [0; 9]);
        check(&bytes);
    }
    assert!(read > 1_000, "ids, times and facts may be any: {read}");
}
