//! The history of changes after a restore or damage: what is unknown is a gap.

use std::path::Path;

use vitrine_model::hexadecimal::Hexadecimal;
use vitrine_store::document::PackedDocument;
use vitrine_store::history::{History, HistoryStart};
use vitrine_store::{IfMissing, StoreAddress, TextStatus, open};

use crate::change_history::{EVERYTHING, Item, numbers, read, set, steps};
use crate::kept::on_both;
use crate::products::{product, publish, publish_texts, second};

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
