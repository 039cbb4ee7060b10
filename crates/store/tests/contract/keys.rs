//! API keys: read together, changed in one transaction, with a counter of changes. And their requests by day.

use jiff::civil::{Date, date};
use vitrine_model::key::{KeyKind, KeyRecord, KeyRequests, NewKey};
use vitrine_model::quota::Quota;
use vitrine_store::assortment::NewAssortment;
use vitrine_store::audit::AuditPosition;
use vitrine_store::record::KeyDay;
use vitrine_store::{IfMissing, KeyDecision, Store, StoreAddress, open};

use crate::audited::restore;
use crate::kept::on_both;
use crate::products::second;
use crate::rules;

rules! {
    keys_come_back,
    a_decision_may_do_nothing,
    a_changed_key_is_written_in_its_place,
    changed_keys_are_read_since_a_position,
    many_changed_keys_are_read_as_a_whole,
    other_changes_are_none_of_keys,
    named_keys_are_read_with_those_of_their_label,
    use_is_no_change,
    writes_fit_the_digest,
    requests_add_up,
    old_days_are_deleted,
}

pub fn record(seed: u8, created_at: i64) -> KeyRecord {
    let key = NewKey::from_random(KeyKind::Live, &[seed; NewKey::RANDOM_BYTES]);
    KeyRecord::new(
        &key,
        KeyKind::Live,
        &format!("key {seed}"),
        second(created_at),
    )
}

/// Returns a whole record as text: records can't be compared, and their `Debug` hides the hash.
fn all_of(record: &KeyRecord) -> String {
    format!("{record:?} {:?}", record.secret_hash.as_bytes())
}

pub fn write(store: &Store, records: &[KeyRecord]) {
    store
        .change_keys(&crate::audited::set_key(), None, &mut |_| records.to_vec())
        .unwrap();
}

fn assert_keys(store: &Store, expected: &[&KeyRecord]) -> u64 {
    let read = store.read_keys(None).unwrap();
    assert!(read.is_whole);
    assert_eq!(read.state, store.state().unwrap());
    let found: Vec<String> = read.records.iter().map(all_of).collect();
    let expected: Vec<String> = expected.iter().map(|record| all_of(record)).collect();
    assert_eq!(found, expected);
    read.state.keys
}

/// Reads the keys since a position, which moves on; returns all of those that changed, or `None` if all keys were read.
fn changed(store: &Store, position: &mut Option<AuditPosition>) -> Option<Vec<String>> {
    let read = store.read_keys(position.as_ref()).unwrap();
    assert_eq!(read.state, store.state().unwrap());
    let whole = store.keys().unwrap();
    if read.is_whole {
        assert_eq!(read.records.len(), whole.len());
    }
    *position = Some(read.position);
    let records = read.records.iter().map(all_of);
    (!read.is_whole).then(|| records.collect())
}

fn keys_come_back(store: &Store) {
    let empty = assert_keys(store, &[]);
    let full = KeyRecord {
        kind: KeyKind::Test,
        api_version: Some("2024-02-05".to_owned()),
        quota: Some(Quota::new(600, 60).unwrap()),
        expires_at: Some(second(5_000)),
        revoked_at: Some(second(4_000)),
        rotated_at: Some(second(3_000)),
        ..record(1, 300)
    };
    let plain = record(2, 100);
    write(store, &[full.clone(), plain.clone()]);
    let one = assert_keys(store, &[&plain, &full]);
    assert_ne!(one, empty);
    let newest = record(3, 900);
    write(store, std::slice::from_ref(&newest));
    assert_ne!(assert_keys(store, &[&plain, &full, &newest]), one);
    assert_eq!(store.state().unwrap().revision_id, None);
}

fn a_decision_may_do_nothing(store: &Store) {
    let key = record(1, 100);
    write(store, std::slice::from_ref(&key));
    let before = store.state().unwrap();
    let mut seen = Vec::new();
    store
        .change_keys(&crate::audited::set_key(), None, &mut |records| {
            seen = records.iter().map(all_of).collect();
            Vec::new()
        })
        .unwrap();
    assert_eq!(seen, [all_of(&key)]);
    assert_eq!(store.state().unwrap(), before);
}

fn a_changed_key_is_written_in_its_place(store: &Store) {
    let (old, other) = (record(1, 100), record(2, 200));
    write(store, &[old.clone(), other.clone()]);
    let before = store.state().unwrap();
    let revoked = KeyRecord {
        revoked_at: Some(second(300)),
        ..old
    };
    write(store, std::slice::from_ref(&revoked));
    assert_ne!(assert_keys(store, &[&revoked, &other]), before.keys);
}

fn changed_keys_are_read_since_a_position(store: &Store) {
    let mut position = None;
    assert_eq!(changed(store, &mut position), None);
    let (old, other) = (record(1, 100), record(2, 200));
    write(store, &[old.clone(), other.clone()]);
    assert_eq!(changed(store, &mut position), None, "nothing was recorded");
    let first = position.clone();
    assert_eq!(changed(store, &mut position), Some(vec![]));
    let revoked = KeyRecord {
        revoked_at: Some(second(300)),
        ..old
    };
    let new = record(3, 50);
    write(store, std::slice::from_ref(&revoked));
    write(store, std::slice::from_ref(&new));
    let both = Some(vec![all_of(&new), all_of(&revoked)]);
    assert_eq!(changed(store, &mut position), both, "oldest first");
    let labelled = KeyRecord {
        label: "other".to_owned(),
        ..other
    };
    write(store, std::slice::from_ref(&labelled));
    let latest = Some(vec![all_of(&labelled)]);
    assert_eq!(changed(store, &mut position), latest);
    let all = Some([&new, &revoked, &labelled].map(all_of).to_vec());
    assert_eq!(changed(store, &mut first.clone()), all, "read once each");
}

fn many_changed_keys_are_read_as_a_whole(store: &Store) {
    write(store, &[record(0, 100)]);
    let read = store.read_keys(None).unwrap();
    let key = |number: u32| {
        let mut random = [0; NewKey::RANDOM_BYTES];
        random[..4].copy_from_slice(&number.to_be_bytes());
        let key = NewKey::from_random(KeyKind::Live, &random);
        KeyRecord::new(&key, KeyKind::Live, "many", second(number.into()))
    };
    let keys: Vec<KeyRecord> = (1..=1_000).map(key).collect();
    write(store, &keys);
    let since = |store: &Store| store.read_keys(Some(&read.position)).unwrap();
    let changed = since(store);
    assert_eq!((changed.is_whole, changed.records.len()), (false, 1_000));
    write(store, &[key(1_001)]);
    let changed = since(store);
    assert_eq!((changed.is_whole, changed.records.len()), (true, 1_002));
}

fn other_changes_are_none_of_keys(store: &Store) {
    write(store, &[record(1, 100)]);
    let mut position = None;
    changed(store, &mut position);
    let new = NewAssortment {
        name: "a".to_owned(),
        rules: Some("all".to_owned()),
        codes: 0,
        by: None,
        note: None,
        confirmation: None,
    };
    let version = store.set_assortment(&new, None).unwrap();
    assert_eq!(changed(store, &mut position), Some(vec![]));
    let before = position.clone();
    let assigned = KeyRecord {
        assortment: Some("a".to_owned()),
        ..record(1, 100)
    };
    write(store, std::slice::from_ref(&assigned));
    // Rules and the keys that changed, of one moment.
    let read = store.read_assortments(&[], before.as_ref()).unwrap();
    assert_eq!(read.changed, [version]);
    assert_eq!((read.keys.is_whole, read.keys.records.len()), (false, 1));
    let expected = Some(vec![all_of(&assigned)]);
    assert_eq!(changed(store, &mut position), expected);
    assert_eq!(Some(read.keys.position), position);
}

fn named_keys_are_read_with_those_of_their_label(store: &Store) {
    let labelled = |seed, label: &str| KeyRecord {
        label: label.to_owned(),
        ..record(seed, i64::from(seed))
    };
    let keys = [
        labelled(1, "a"),
        labelled(2, "b"),
        labelled(3, "a"),
        labelled(4, "c"),
    ];
    write(store, &keys);
    let read = |names: &[&str]| {
        let mut seen = Vec::new();
        let decide: KeyDecision<'_> = &mut |records| {
            seen.extend(records.iter().map(all_of));
            Vec::new()
        };
        let context = crate::audited::set_key();
        store.change_keys(&context, Some(names), decide).unwrap();
        seen
    };
    let of = |places: &[usize]| {
        places
            .iter()
            .map(|at| all_of(&keys[*at]))
            .collect::<Vec<_>>()
    };
    assert_eq!(read(&[]), of(&[]));
    assert_eq!(read(&["a"]), of(&[0, 2]));
    assert_eq!(read(&[&keys[2].prefix]), of(&[0, 2]));
    assert_eq!(read(&["c", &keys[1].prefix, "d", "a\0"]), of(&[1, 3]));
    // The log compares what is written with what was there, whatever was read.
    let revoked = KeyRecord {
        revoked_at: Some(second(300)),
        ..keys[0].clone()
    };
    let revoke: KeyDecision<'_> = &mut |_| vec![revoked.clone()];
    let context = crate::audited::set_key();
    store.change_keys(&context, Some(&[]), revoke).unwrap();
    let changes = store.audit(None, 1).unwrap().remove(0).changes;
    let fields: Vec<&str> = changes.iter().map(|change| &*change.field).collect();
    assert_eq!(fields, ["revoked_at"]);
}

/// Returns the position of a store's keys.
fn position_of(store: &Store) -> Option<AuditPosition> {
    Some(store.read_keys(None).unwrap().position)
}

#[test]
fn keys_of_a_database_put_back_are_read_as_a_whole() {
    on_both(|kept| {
        let store = kept.open();
        write(&store, &[record(1, 100)]);
        let mut before = position_of(&store);
        write(&store, &[record(2, 200)]);
        let mut lost = position_of(&store);
        (kept.run)("delete from audit_entry where number > 1");
        (kept.run)("delete from api_key where created_at = 200000");
        assert_eq!(changed(&store, &mut lost.clone()), None, "it is ahead");
        write(&store, &[record(3, 300), record(4, 400)]);
        assert_eq!(
            changed(&store, &mut lost),
            None,
            "another entry has its number"
        );
        let both = Some(vec![all_of(&record(3, 300)), all_of(&record(4, 400))]);
        assert_eq!(changed(&store, &mut before), both, "it is of both pasts");
        (kept.run)("delete from audit_entry");
        for _ in 0..2 {
            assert_eq!(changed(&store, &mut before), None, "the log is gone");
        }
    });
}

#[test]
fn keys_of_another_or_a_restored_store_are_read_as_a_whole() {
    let backups = tempfile::tempdir().unwrap();
    let path = backups.path().join("backup.db");
    let address = format!("sqlite:{}", backups.path().join("first.db").display());
    let first = open(&address, IfMissing::Create).unwrap();
    write(&first, &[record(1, 100), record(2, 200)]);
    first.backup(&path).unwrap();
    on_both(|kept| {
        let Ok(address) = kept.url.parse::<StoreAddress>();
        address.create_from(&path, &restore()).unwrap();
        let store = open(&kept.url, IfMissing::Refuse).unwrap();
        // The new store has the entries of the other one.
        assert_eq!(changed(&store, &mut position_of(&first)), None);
        let mut position = position_of(&store);
        assert_eq!(changed(&store, &mut position), Some(vec![]));
        store.restore(&path, &restore()).unwrap();
        assert_eq!(changed(&store, &mut position), None);
        let revoked = KeyRecord {
            revoked_at: Some(second(300)),
            ..record(1, 100)
        };
        write(&store, std::slice::from_ref(&revoked));
        let only = Some(vec![all_of(&revoked)]);
        assert_eq!(changed(&store, &mut position), only);
        store.restore(&path, &restore()).unwrap();
        write(&store, &[record(3, 300)]);
        assert_eq!(
            changed(&store, &mut position),
            None,
            "a restore is among them"
        );
    });
}

fn use_is_no_change(store: &Store) {
    let (used, other) = (record(1, 100), record(2, 200));
    write(store, &[used.clone(), other.clone()]);
    let before = store.state().unwrap();
    let prefix = used.prefix.clone();
    // An older use, from a server that lags, doesn't replace a newer one.
    for moment in [600, 1_200, 660] {
        store
            .record_key_use(&[(prefix.clone(), second(moment))])
            .unwrap();
    }
    store.record_key_use(&[]).unwrap();
    assert_eq!(store.state().unwrap(), before);
    let expected = KeyRecord {
        last_used_at: Some(second(1_200)),
        ..used.clone()
    };
    assert_keys(store, &[&expected, &other]);
    // A change of the key keeps its last use.
    let revoked = KeyRecord {
        revoked_at: Some(second(300)),
        ..used
    };
    write(store, std::slice::from_ref(&revoked));
    let expected = KeyRecord {
        last_used_at: Some(second(1_200)),
        ..revoked
    };
    assert_keys(store, &[&expected, &other]);
}

fn writes_fit_the_digest(store: &Store) {
    let full = KeyRecord {
        api_version: Some("2024-02-05".to_owned()),
        quota: Some(Quota::new(600, 60).unwrap()),
        expires_at: Some(second(5_000)),
        rotated_at: Some(second(3_000)),
        ..record(1, 300)
    };
    let revoked = KeyRecord {
        revoked_at: Some(second(400)),
        ..full.clone()
    };
    for written in [&full, &full, &revoked] {
        write(store, &[written.clone(), record(2, 100)]);
        assert_eq!(store.check().unwrap(), []);
    }
    store
        .record_key_use(&[(full.prefix.clone(), second(900))])
        .unwrap();
    assert_eq!(store.check().unwrap(), []);
}

pub fn day(day: Date, prefix: &str, requests: u64, charged: u64) -> KeyDay {
    KeyDay {
        day,
        prefix: prefix.to_owned(),
        counts: KeyRequests { requests, charged },
    }
}

/// First day of all tests.
pub const FIRST: Date = date(2026, 1, 30);

fn requests_add_up(store: &Store) {
    let next = date(2026, 1, 31);
    let before = store.state().unwrap();
    assert_eq!(store.key_days(Date::MIN).unwrap(), []);
    store.add_key_days(&[], FIRST).unwrap();
    let days = [day(FIRST, "b", 3, 2), day(FIRST, "a", 1, 0)];
    store.add_key_days(&days, FIRST).unwrap();
    let days = [day(next, "b", 5, 5), day(FIRST, "b", 10, 1)];
    store.add_key_days(&days, FIRST).unwrap();
    let found = store.key_days(FIRST).unwrap();
    let expected = [
        day(next, "b", 5, 5),
        day(FIRST, "a", 1, 0),
        day(FIRST, "b", 13, 3),
    ];
    assert_eq!(found, expected);
    assert_eq!(store.key_days(next).unwrap(), expected[..1]);
    assert_eq!(store.state().unwrap(), before, "servers needn't notice");
    assert_eq!(store.check().unwrap(), []);
}

fn old_days_are_deleted(store: &Store) {
    let keys: Vec<KeyDay> = (0..1_500)
        .map(|key| day(FIRST, &format!("k{key}"), 1, 1))
        .collect();
    store.add_key_days(&keys, FIRST).unwrap();
    let next = date(2026, 1, 31);
    let count = || store.key_days(Date::MIN).unwrap().len();
    assert_eq!(count(), 1_500);
    let days = [day(next, "a", 1, 1)];
    store.add_key_days(&days, next).unwrap();
    assert_eq!(count(), 501, "a bounded number at once");
    store.add_key_days(&days, next).unwrap();
    let left = store.key_days(Date::MIN).unwrap();
    assert_eq!(left, [day(next, "a", 2, 2)]);
}
