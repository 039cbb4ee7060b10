//! The audit log and the days of keys after restores, changes by hand and failures, in both databases.

use jiff::civil::Date;
use rusqlite::Connection;
use vitrine_model::content::TextDigest;
use vitrine_model::key::KeyRecord;
use vitrine_store::check::Severity;
use vitrine_store::{IfMissing, Store, StoreAddress, TextStatus, open};

use crate::audit::lines;
use crate::audited::{restore, set_key, take_down};
use crate::kept::{Kept, on_both};
use crate::key_days::{FIRST, day};
use crate::keys::record;
use crate::products::{publish_texts, second};

fn write(store: &Store, record: &KeyRecord) {
    store
        .change_keys(&set_key(), &mut |_| vec![record.clone()])
        .unwrap();
}

/// Returns the places of the faults that a check finds, all by the rule of the audit log.
fn faults(store: &Store) -> Vec<String> {
    let problems = store.check().unwrap();
    let place = |problem: vitrine_store::check::Problem| {
        assert_eq!(
            (problem.rule, problem.severity),
            ("audit_entry", Severity::Fault)
        );
        problem.place
    };
    problems.into_iter().map(place).collect()
}

#[test]
fn changed_or_missing_entry_is_found_by_a_check() {
    let place = |number: u32| format!("entry {number} of the audit log");
    for (found, change) in [
        (
            2,
            "update audit_entry set changed_by = 'other' where number = 2",
        ),
        (3, "update audit_entry set note = '' where number = 3"),
        (1, "update audit_entry set changed_at = 7 where number = 1"),
        (2, "update audit_entry set changes = '[]' where number = 2"),
        (2, "delete from audit_entry where number = 1"),
        (3, "delete from audit_entry where number = 2"),
    ] {
        on_both(|kept| {
            let store = kept.open();
            for seed in 1..=3 {
                write(&store, &record(seed, 100));
            }
            assert_eq!(faults(&store), [""; 0]);
            (kept.run)(change);
            assert_eq!(faults(&store), [place(found)], "{change}");
            // The log goes on.
            write(&store, &record(4, 100));
            assert_eq!(faults(&store), [place(found)], "{change}");
        });
    }
}

/// An SQLite store of keys 1 and 2, its log and days, and its backup.
fn back_up(kept: &Kept<'_>) -> std::path::PathBuf {
    let source = kept.directory.join("source.db");
    let store = open(&format!("sqlite:{}", source.display()), IfMissing::Create).unwrap();
    publish_texts(&store, &[("A", "one"), ("B", "two")], second(10));
    write(&store, &record(1, 100));
    write(&store, &record(2, 100));
    let two = TextDigest::of("two");
    store
        .set_text_status(&two, TextStatus::TakenDown, &take_down())
        .unwrap();
    store.add_key_days(&[day(FIRST, "a", 1, 1)], FIRST).unwrap();
    let backup = kept.directory.join("backup.db");
    store.backup(&backup).unwrap();
    backup
}

#[test]
fn restore_keeps_log_and_days_and_tells_what_it_changes() {
    on_both(|kept| {
        let backup = back_up(kept);
        let store = kept.open();
        let (one, two, three) = (record(1, 100), record(2, 100), record(3, 100));
        write(&store, &one);
        write(&store, &three);
        store.add_key_days(&[day(FIRST, "b", 2, 2)], FIRST).unwrap();
        store.restore(&backup, &restore()).unwrap();
        let text = TextDigest::of("two");
        let (path, one, two, three) = (backup.display(), one.prefix, two.prefix, three.prefix);
        let values = |label| format!("label {label}, kind live");
        let created = |key| {
            let is = [values(format!("- → key {key}")), "created_at".to_owned()];
            is.join(", ").replace("kind live", "kind - → live") + " - → 1970-01-01T00:01:40Z"
        };
        let gone = "label key 3 → -, kind live → -, created_at 1970-01-01T00:01:40Z → -";
        let expected = [
            format!("6 restore text {text}: status served → taken_down"),
            format!("5 restore key {two}: {}", created(2)),
            format!("4 restore key {three}: {gone}"),
            format!("3 restore store {path}: revision - → 1"),
            format!("2 set key {three}: {}", created(3)),
            format!("1 set key {one}: {}", created(1)),
        ];
        assert_eq!(lines(&store), expected);
        let days = store.key_days(Date::MIN).unwrap();
        assert_eq!(days, [day(FIRST, "b", 2, 2)]);
        assert_eq!(faults(&store), [""; 0]);
        // Restored again, nothing differs but the store.
        store.restore(&backup, &restore()).unwrap();
        let again = format!("7 restore store {path}: ");
        assert_eq!(lines(&store)[0], again);
    });
}

#[test]
fn created_store_has_the_log_and_days_of_its_backup() {
    on_both(|kept| {
        let backup = back_up(kept);
        let Ok(address) = kept.url.parse::<StoreAddress>();
        address.create_from(&backup, &restore()).unwrap();
        let store = kept.open();
        let source = open(&format!("sqlite:{}", backup.display()), IfMissing::Refuse).unwrap();
        let path = backup.display();
        assert_eq!(
            lines(&store)[0],
            format!("4 restore store {path}: revision - → 1")
        );
        assert_eq!(lines(&store)[1..], lines(&source));
        let days = store.key_days(Date::MIN).unwrap();
        assert_eq!(days, [day(FIRST, "a", 1, 1)]);
        assert_eq!(faults(&store), [""; 0]);
    });
}

#[test]
fn backup_with_a_changed_log_is_restored() {
    on_both(|kept| {
        let backup = back_up(kept);
        let file = Connection::open(&backup).unwrap();
        file.execute_batch("update audit_entry set changed_by = 'other' where number = 1")
            .unwrap();
        drop(file);
        let Ok(address) = kept.url.parse::<StoreAddress>();
        address.create_from(&backup, &restore()).unwrap();
        let store = kept.open();
        assert_eq!(faults(&store), ["entry 1 of the audit log"]);
        assert_eq!(store.keys().unwrap().len(), 2);
    });
}

#[test]
fn days_of_two_servers_add_up_and_survive_a_failure() {
    on_both(|kept| {
        let stores = [kept.open(), kept.open()];
        std::thread::scope(|scope| {
            for store in &stores {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let days = [day(FIRST, "a", 1, 0), day(FIRST, "b", 2, 1)];
                        // Busy while the other writes: nothing was added.
                        while store.add_key_days(&days, FIRST).is_err() {}
                    }
                });
            }
        });
        let [store, other] = &stores;
        (kept.run)("alter table api_key_day rename to away");
        store
            .add_key_days(&[day(FIRST, "a", 1, 1)], FIRST)
            .unwrap_err();
        (kept.run)("alter table away rename to api_key_day");
        store.add_key_days(&[day(FIRST, "a", 1, 1)], FIRST).unwrap();
        let expected = [day(FIRST, "a", 41, 1), day(FIRST, "b", 80, 40)];
        assert_eq!(other.key_days(FIRST).unwrap(), expected);
    });
}
