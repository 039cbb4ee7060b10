//! Keys with an assortment: stored, in backups and damaged.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use vitrine_model::key::KeyRecord;
use vitrine_store::assortment::{KeyView, RestorePlan};
use vitrine_store::{IfMissing, Store, StoreError, open};

use crate::assortments::{assigned, new, set};
use crate::kept::on_both;
use crate::keys::{record, write};
use crate::products::second;

#[test]
fn key_gets_and_loses_its_assortment() {
    on_both(|kept| {
        let store = kept.open();
        set(&store, "a", Some("one"));
        let plain = KeyRecord {
            assortment: None,
            ..assigned(1, "a")
        };
        for key in [plain.clone(), assigned(1, "a"), plain] {
            write(&store, std::slice::from_ref(&key));
            let read = store.keys().unwrap();
            assert_eq!(format!("{read:?}"), format!("{:?}", [key]));
            assert_eq!(store.check().unwrap(), []);
        }
    });
}

#[test]
fn too_many_assortments_are_refused() {
    on_both(|kept| {
        let store = kept.open();
        let digest = match kept.url.starts_with("sqlite:") {
            true => "x'00'",
            false => "'\\x00'",
        };
        (kept.run)(&format!(
            "with recursive n (i) as (select 1 union all select i + 1 from n where i < 9999) \
             insert into assortment_version (name, number, id, created_at, codes, digest, rules) \
             select 'n' || i, 1, 'i' || i, 0, 0, {digest}, '' from n"
        ));
        let last = set(&store, "last", Some("one"));
        let error = store.set_assortment(&new("more", Some("one")), None);
        let error = error.unwrap_err();
        let is_told = matches!(error, StoreError::AssortmentLimit { count: 10_001, .. });
        assert!(is_told, "{error}");
        // Those that are there can be edited, and a removal makes room.
        set(&store, "last", Some("two"));
        set(&store, "n1", None);
        set(&store, "more", Some("one"));
        let read = store.read_assortments(&[("last".to_owned(), last.id)], None);
        assert_eq!(read.unwrap().changed.len(), 10_000);
    });
}

/// Damages by SQL, each after the rules of a check that report it.
const DAMAGES: &str = "\
assortment: update assortment_version set rules = 'all' where number = 2
assortment: update assortment_version set codes = 0 where number = 1
assortment: update assortment_version set changed_by = null where number = 1
assortment key_assortment: update assortment_version set replaced_at = 9
assortment key_assortment: delete from assortment_version where number = 2
key_assortment: delete from assortment_version
api_key_digest key_assortment: update api_key set assortment = 'b'
api_key_digest: update api_key set expires_at = 9
api_key api_key_digest: update api_key set quota_seconds = 60
counter: update state set assortments_counter = -1";

#[test]
fn damaged_assortments_are_found() {
    for damage in DAMAGES.lines() {
        let (rules, sql) = damage.split_once(": ").unwrap();
        on_both(|kept| {
            let store = kept.open();
            set(&store, "a", Some("one"));
            set(&store, "a", Some("two"));
            write(&store, &[assigned(1, "a")]);
            assert_eq!(store.check().unwrap(), []);
            (kept.run)(sql);
            let problems = store.check().unwrap();
            let mut broken: Vec<&str> = problems.iter().map(|problem| problem.rule).collect();
            broken.sort_unstable();
            broken.dedup();
            assert_eq!(broken.join(" "), rules, "{sql}: {problems:?}");
        });
    }
}

/// Creates an SQLite store, prepares it and backs it up.
fn backup(directory: &Path, name: &str, prepare: impl FnOnce(&Store)) -> PathBuf {
    let url = format!("sqlite:{}", directory.join(name).display());
    let store = open(&url, IfMissing::Create).unwrap();
    prepare(&store);
    let path = directory.join(format!("{name}.backup"));
    store.backup(&path).unwrap();
    path
}

/// Returns the prefixes of a plan, each with what the key sees now and then: `-` nothing, `*` everything, or `NAME RULES`.
fn changes(plan: RestorePlan) -> Vec<(String, [String; 2])> {
    let told = |view: KeyView| match view {
        KeyView::Unknown => "-".to_owned(),
        KeyView::Everything => "*".to_owned(),
        KeyView::Assortment { name, rules } => format!("{name} {rules}"),
    };
    let change = |key: vitrine_store::assortment::RestoredKey| {
        assert!(!key.label.is_empty());
        (key.prefix, [told(key.now), told(key.then)])
    };
    plan.keys.into_iter().map(change).collect()
}

#[test]
fn restored_assortments_are_planned_and_come_back() {
    on_both(|kept| {
        let gone = KeyRecord {
            revoked_at: Some(second(5)),
            ..record(7, 7)
        };
        let expired = KeyRecord {
            expires_at: Some(second(99)),
            ..record(8, 8)
        };
        let path = backup(kept.directory, "source.db", |store| {
            set(store, "a", Some("old"));
            set(store, "b", Some("same"));
            set(store, "c", Some("one"));
            let keys = [(1, "a"), (2, "b"), (3, "c")].map(|(seed, name)| assigned(seed, name));
            write(store, &keys);
            write(store, &[4, 5, 6].map(|seed| record(seed, seed.into())));
            write(store, &[gone.clone(), expired.clone(), record(9, 9)]);
        });
        let store = kept.open();
        set(&store, "a", Some("new"));
        set(&store, "b", Some("same"));
        let revoked = KeyRecord {
            revoked_at: Some(second(500)),
            ..assigned(5, "b")
        };
        write(&store, &[assigned(1, "a"), assigned(2, "b"), record(3, 3)]);
        write(&store, &[assigned(4, "a"), revoked, record(6, 6)]);
        write(&store, &[record(7, 7), record(8, 8)]);
        let context = crate::audited::set_key();
        store.accept_assortments(&context).unwrap();
        let before = store.state().unwrap();

        let expected: Vec<(String, [String; 2])> = [
            (1, "a new", "a old"),
            (3, "*", "c one"),
            (4, "a new", "*"),
            (9, "-", "*"),
        ]
        .into_iter()
        .map(|(seed, now, then)| (record(seed, 0).prefix, [now.to_owned(), then.to_owned()]))
        .collect();
        assert_eq!(changes(store.plan_restore(&path).unwrap()), expected);
        assert_eq!(store.state().unwrap(), before);
        store.restore(&path, &context).unwrap();
        assert_eq!(changes(store.plan_restore(&path).unwrap()), []);

        let after = store.state().unwrap();
        assert_ne!(after.assortments, before.assortments);
        assert!(after.assortments_accepted > before.assortments_accepted);
        let rules = |name: &str| store.assortment_versions(name, 9).unwrap()[0].rules.clone();
        assert_eq!(rules("a").as_deref(), Some("old"));
        let key = |seed: u8| {
            let mut keys = store.keys().unwrap().into_iter();
            let prefix = record(seed, 0).prefix;
            keys.find(|key| key.prefix == prefix).unwrap()
        };
        assert_eq!(key(3).assortment.as_deref(), Some("c"));
        assert_eq!(
            (key(5).assortment, key(5).revoked_at),
            (None, Some(second(500)))
        );
        assert_eq!(store.check().unwrap(), []);
        let sqlite = Connection::open(&path).unwrap();
        let version: String = sqlite
            .query_row(
                "select id from assortment_version where name = 'a'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(store.assortments().unwrap()[0].id, version);
    });
}

#[test]
fn revocation_of_an_assigned_key_survives_a_restore() {
    on_both(|kept| {
        let path = backup(kept.directory, "source.db", |store| {
            set(store, "a", Some("one"));
            write(store, &[assigned(1, "a"), record(2, 2)]);
        });
        let store = kept.open();
        set(&store, "b", Some("one"));
        let revoked = |key: KeyRecord| KeyRecord {
            revoked_at: Some(second(500)),
            ..key
        };
        write(&store, &[revoked(record(1, 1)), revoked(assigned(2, "b"))]);
        assert_eq!(changes(store.plan_restore(&path).unwrap()), []);
        store.restore(&path, &crate::audited::set_key()).unwrap();
        let keys = store.keys().unwrap();
        let facts = keys
            .iter()
            .map(|key| (key.assortment.as_deref(), key.revoked_at));
        let facts: Vec<_> = facts.collect();
        assert_eq!(
            facts,
            [(Some("a"), Some(second(500))), (None, Some(second(500)))]
        );
        assert_eq!(store.check().unwrap(), []);
    });
}

#[test]
fn backup_without_assortments_is_planned_unchanged() {
    on_both(|kept| {
        let path = backup(kept.directory, "source.db", |store| {
            write(store, &[record(1, 1), record(2, 2)]);
        });
        let bytes = std::fs::read(&path).unwrap();
        let store = kept.open();
        set(&store, "a", Some("one"));
        write(&store, &[assigned(1, "a"), record(2, 2)]);
        let plan = changes(store.plan_restore(&path).unwrap());
        let widened = ["a one".to_owned(), "*".to_owned()];
        assert_eq!(plan, [(record(1, 1).prefix, widened)]);
        assert!(std::fs::read(&path).unwrap() == bytes, "it was written to");
        store.restore(&path, &crate::audited::set_key()).unwrap();
        assert_eq!(store.assortments().unwrap(), []);
        assert_eq!(store.check().unwrap(), []);
        let missing = store.plan_restore(&kept.directory.join("none"));
        missing.unwrap_err();
        std::fs::write(kept.directory.join("text"), "no backup").unwrap();
        store
            .plan_restore(&kept.directory.join("text"))
            .unwrap_err();
    });
}
