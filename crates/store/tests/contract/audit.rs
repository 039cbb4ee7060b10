//! The audit log: an entry for each change of a key or of a text's status, in the transaction of the change. And the log and the
//! days of keys after restores, changes by hand and failures, in both databases.

use jiff::civil::Date;
use rusqlite::Connection;
use vitrine_model::content::TextDigest;
use vitrine_model::key::{KeyKind, KeyRecord, NewKey};
use vitrine_model::quota::Quota;
use vitrine_store::audit::{AuditAction, AuditContext, AuditEntry, Confirmation};
use vitrine_store::check::Severity;
use vitrine_store::{IfMissing, Store, StoreAddress, StoreError, TextStatus, open};

use crate::audited::{by_tester, restore, take_down};
use crate::kept::{Kept, on_both};
use crate::keys::{FIRST, day, record, write};
use crate::products::{publish_texts, second};
use crate::rules;

rules! {
    changed_keys_have_entries,
    no_entry_without_a_change,
    no_entry_tells_a_secret,
    texts_have_entries,
    confirmation_is_done_once,
}

/// Returns an entry on a line: number, action, subject, changed fields.
pub fn line(entry: &AuditEntry) -> String {
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let changes = entry.changes.iter().map(|change| {
        let (before, after) = (or_none(&change.before), or_none(&change.after));
        format!("{} {before} → {after}", change.field)
    });
    let changes: Vec<String> = changes.collect();
    let AuditEntry {
        number,
        action,
        subject_kind,
        subject,
        ..
    } = entry;
    format!(
        "{number} {action} {subject_kind} {subject}: {}",
        changes.join(", ")
    )
}

/// Returns all entries, newest first.
pub fn lines(store: &Store) -> Vec<String> {
    store
        .audit(None, u32::MAX)
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

fn changed_keys_have_entries(store: &Store) {
    let first = KeyRecord {
        quota: Some(Quota::new(600, 60).unwrap()),
        ..record(1, 100)
    };
    let create = by_tester(AuditAction::CreateKey);
    store
        .change_keys(&create, None, &mut |_| vec![first.clone()])
        .unwrap();
    let (key, other) = (&first.prefix, record(2, 200));
    let context = AuditContext {
        by: "olga\u{1b}[2J".to_owned(),
        note: Some("ticket 7".to_owned()),
        action: AuditAction::RotateKey,
        confirmation: None,
    };
    let before = jiff::Timestamp::now();
    store
        .change_keys(&context, None, &mut |records| {
            let mut changed = records[0].clone();
            (changed.quota, changed.rotated_at) = (None, Some(second(300)));
            vec![changed, other.clone()]
        })
        .unwrap();
    assert_eq!(
        lines(store),
        [
            format!(
                "3 rotate key {}: label - → key 2, kind - → live, created_at - → 1970-01-01T00:03:20Z",
                other.prefix
            ),
            format!("2 rotate key {key}: quota 600/60 → -, rotated_at - → 1970-01-01T00:05:00Z"),
            format!(
                "1 create key {key}: label - → key 1, kind - → live, quota - → 600/60, \
                 created_at - → 1970-01-01T00:01:40Z"
            ),
        ]
    );
    let of_key = store.audit(Some(key), 9).unwrap();
    assert_eq!(of_key.iter().map(|e| e.number).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(store.audit(None, 1).unwrap()[0].number, 3);
    assert_eq!(store.audit(Some("none"), 9).unwrap(), []);
    let newest = &of_key[0];
    assert_eq!(
        (newest.by.as_str(), newest.note.as_deref()),
        ("olga\u{1b}[2J", Some("ticket 7"))
    );
    assert!(newest.at.as_millisecond() >= before.as_millisecond());
    assert_eq!(store.check().unwrap(), []);
}

fn confirmation_is_done_once(store: &Store) {
    let context = |name: &str| AuditContext {
        confirmation: Some(Confirmation::of(name)),
        ..by_tester(AuditAction::CreateKey)
    };
    let write = |name: &str, records: Vec<KeyRecord>| {
        let mut written = Some(records);
        store.change_keys(&context(name), None, &mut |_| written.take().unwrap())
    };
    let is_confirmed = |name: &str| store.is_confirmed(&Confirmation::of(name)).unwrap();
    // An act may have several entries, or none.
    write("a", vec![record(1, 100), record(2, 100)]).unwrap();
    write("b", Vec::new()).unwrap();
    assert_eq!(["a", "b", "c"].map(is_confirmed), [true, false, false]);
    write("b", vec![record(3, 100)]).unwrap();
    assert_eq!(["a", "b", "c"].map(is_confirmed), [true, true, false]);
    let before = lines(store);
    assert_eq!(before.len(), 3);
    for name in ["a", "b"] {
        let again = write(name, vec![record(4, 100)]);
        assert!(matches!(again, Err(StoreError::Confirmed)), "{again:?}");
    }
    assert_eq!(lines(store), before);
    assert_eq!(store.keys().unwrap().len(), 3);
    assert_eq!(store.check().unwrap(), []);
}

fn no_entry_without_a_change(store: &Store) {
    let key = record(1, 100);
    let context = by_tester(AuditAction::SetKey);
    let write = |records: Vec<KeyRecord>| {
        let mut written = Some(records);
        store
            .change_keys(&context, None, &mut |_| written.take().unwrap_or_default())
            .unwrap();
    };
    write(vec![key.clone()]);
    store
        .record_key_use(&[(key.prefix.clone(), second(600))])
        .unwrap();
    for records in [vec![], vec![key.clone()], store.keys().unwrap()] {
        write(records);
    }
    assert_eq!(lines(store).len(), 1);
    let unknown = TextDigest::of("# unknown");
    let context = by_tester(AuditAction::TakeDownText);
    assert!(
        !store
            .set_text_status(&unknown, TextStatus::TakenDown, &context)
            .unwrap()
    );
    assert_eq!(lines(store).len(), 1);
}

fn no_entry_tells_a_secret(store: &Store) {
    let new = NewKey::from_random(KeyKind::Live, &[9; NewKey::RANDOM_BYTES]);
    let old = record(1, 100);
    let replaced = KeyRecord {
        secret_hash: new.secret_hash(),
        ..old.clone()
    };
    for record in [&old, &replaced] {
        let context = by_tester(AuditAction::SetKey);
        store
            .change_keys(&context, None, &mut |_| vec![record.clone()])
            .unwrap();
    }
    let prefix = &old.prefix;
    assert_eq!(lines(store)[0], format!("2 set key {prefix}: secret - → -"));
    let told = format!("{:?}", store.audit(None, 9).unwrap());
    for hash in [old.secret_hash, replaced.secret_hash] {
        let hash = vitrine_model::hexadecimal::Hexadecimal(hash.as_bytes()).to_string();
        assert!(!told.contains(&hash), "{told}");
    }
}

fn texts_have_entries(store: &Store) {
    publish_texts(store, &[("A", "# one"), ("B", "# two")], second(10));
    let text = TextDigest::of("# one");
    let set = |status, action| {
        let context = by_tester(action);
        assert!(store.set_text_status(&text, status, &context).unwrap());
    };
    set(TextStatus::Served, AuditAction::PutBackText);
    set(TextStatus::TakenDown, AuditAction::TakeDownText);
    set(TextStatus::TakenDown, AuditAction::TakeDownText);
    set(TextStatus::Served, AuditAction::PutBackText);
    assert_eq!(
        lines(store),
        [
            format!("2 put-back text {text}: status taken_down → served"),
            format!("1 take-down text {text}: status served → taken_down"),
        ]
    );
    assert_eq!(store.check().unwrap(), []);
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
                write(&store, &[record(seed, 100)]);
            }
            assert_eq!(faults(&store), [""; 0]);
            (kept.run)(change);
            assert_eq!(faults(&store), [place(found)], "{change}");
            // The log goes on.
            write(&store, &[record(4, 100)]);
            assert_eq!(faults(&store), [place(found)], "{change}");
        });
    }
}

/// An SQLite store of keys 1 and 2, its log and days, and its backup.
fn back_up(kept: &Kept<'_>) -> std::path::PathBuf {
    let source = kept.directory.join("source.db");
    let store = open(&format!("sqlite:{}", source.display()), IfMissing::Create).unwrap();
    publish_texts(&store, &[("A", "one"), ("B", "two")], second(10));
    write(&store, &[record(1, 100), record(2, 100)]);
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
        write(&store, &[one.clone(), three.clone()]);
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
fn backup_with_a_damaged_webhook_creates_no_store() {
    on_both(|kept| {
        let backup = back_up(kept);
        let file = Connection::open(&backup).unwrap();
        file.execute_batch("insert into webhook_attempt values ('wh_1', 1, '{')")
            .unwrap();
        drop(file);
        let Ok(address) = kept.url.parse::<StoreAddress>();
        address.create_from(&backup, &restore()).unwrap_err();
        let missing = address.open(IfMissing::Refuse, vitrine_store::DEFAULT_LOCK_WAIT);
        assert!(matches!(missing, Err(StoreError::Missing { .. })));
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
