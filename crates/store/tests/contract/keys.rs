//! API keys: read together, changed in one transaction, with a counter of changes. And their requests by day.

use jiff::civil::{Date, date};
use vitrine_model::key::{KeyKind, KeyRecord, KeyRequests, NewKey};
use vitrine_model::quota::Quota;
use vitrine_store::Store;
use vitrine_store::record::KeyDay;

use crate::products::second;
use crate::rules;

rules! {
    keys_come_back,
    a_decision_may_do_nothing,
    a_changed_key_is_written_in_its_place,
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
        .change_keys(&crate::audited::set_key(), &mut |_| records.to_vec())
        .unwrap();
}

fn assert_keys(store: &Store, expected: &[&KeyRecord]) -> u64 {
    let (changes, found) = store.read_keys().unwrap();
    assert_eq!(changes, store.state().unwrap());
    let found: Vec<String> = found.iter().map(all_of).collect();
    let expected: Vec<String> = expected.iter().map(|record| all_of(record)).collect();
    assert_eq!(found, expected);
    changes.keys
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
        .change_keys(&crate::audited::set_key(), &mut |records| {
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
