//! Requests of keys by day: servers add to them.

use jiff::civil::{Date, date};
use vitrine_model::key::KeyRequests;
use vitrine_store::Store;
use vitrine_store::record::KeyDay;

use crate::rules;

rules! {
    requests_add_up,
    old_days_are_deleted,
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
