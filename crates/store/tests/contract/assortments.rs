//! Assortments: versions that follow each other, read together with the keys.

use std::sync::Barrier;

use vitrine_model::key::KeyRecord;
use vitrine_store::assortment::{AssortmentVersion, MAX_CODES, NewAssortment};
use vitrine_store::{Store, StoreError};

use crate::keys::{record, write};
use crate::products::second;
use crate::rules;

rules! {
    versions_follow,
    stale_edits_are_refused,
    one_edit_wins,
    used_ones_are_not_removed,
    keys_name_live_ones,
    only_unknown_ones_are_read,
    history_has_each,
    codes_are_limited,
    acceptances_grow,
}

/// Returns a change; `rules` are no JSON: a store doesn't look into them.
pub fn new(name: &str, rules: Option<&str>) -> NewAssortment {
    NewAssortment {
        name: name.to_owned(),
        rules: rules.map(str::to_owned),
        codes: 3,
        by: Some("ops <ö>".to_owned()),
        note: rules.map(|rules| format!("because of {rules}")),
        confirmation: None,
    }
}

/// Writes rules over the version that is live. Returns the new version.
pub fn set(store: &Store, name: &str, rules: Option<&str>) -> AssortmentVersion {
    let live = store.assortments().unwrap();
    let live = live.into_iter().find(|live| live.name == name);
    let id = live.map(|live| live.id);
    store
        .set_assortment(&new(name, rules), id.as_deref())
        .unwrap()
}

/// Returns a key with an assortment.
pub fn assigned(seed: u8, assortment: &str) -> KeyRecord {
    KeyRecord {
        assortment: Some(assortment.to_owned()),
        ..record(seed, seed.into())
    }
}

fn versions_follow(store: &Store) {
    let mut states = vec![store.state().unwrap()];
    assert_eq!(store.assortments().unwrap(), []);
    let mut written = Vec::new();
    for rules in [Some("one"), Some("two"), None, Some("three")] {
        written.push(set(store, "nordic", rules));
        states.push(store.state().unwrap());
    }
    let other = set(store, "baltic", Some("{}"));
    for (number, version) in (1..).zip(&written) {
        assert_eq!((version.name.as_str(), version.number), ("nordic", number));
        assert_eq!(version.by.as_deref(), Some("ops <ö>"));
        assert_eq!(version.note.is_some(), version.rules.is_some());
    }
    assert!(written.is_sorted_by(|one, next| one.created_at <= next.created_at));
    for pair in states.windows(2) {
        let [before, after] = pair else {
            unreachable!()
        };
        assert_ne!(before.assortments, after.assortments);
        assert_ne!(before, after);
        assert_eq!((before.keys, before.texts), (after.keys, after.texts));
        assert_eq!(before.clone().of_catalog(), after.clone().of_catalog());
    }
    let versions = |name: &str, limit| store.assortment_versions(name, limit).unwrap();
    assert_eq!(versions("none", 9), []);
    assert_eq!(versions("baltic", 9), std::slice::from_ref(&other));
    let live = [other, written[3].clone()];
    assert_eq!(store.assortments().unwrap(), live);
    written.reverse();
    assert_eq!(versions("nordic", 9), written);
    assert_eq!(versions("nordic", 2), written[..2]);
    assert_eq!(store.check().unwrap(), []);
}

fn stale_edits_are_refused(store: &Store) {
    let first = set(store, "a", Some("one"));
    let gone = set(store, "gone", Some("one"));
    set(store, "gone", None);
    let second = set(store, "a", Some("two"));
    let before = store.state().unwrap();
    let refused = |new: &NewAssortment, expected: Option<&str>| {
        let error = store.set_assortment(new, expected).unwrap_err();
        assert_eq!(store.state().unwrap(), before);
        error
    };
    for rules in [Some("three"), None] {
        for expected in [None, Some(first.id.as_str()), Some("other")] {
            let error = refused(&new("a", rules), expected);
            let is_told = matches!(error, StoreError::AssortmentChanged { live: Some(2), .. });
            assert!(is_told, "{error}");
        }
        let error = refused(&new("gone", rules), Some(&gone.id));
        let is_told = matches!(error, StoreError::AssortmentChanged { live: None, .. });
        assert!(is_told, "{error}");
    }
    let error = refused(&new("gone", None), None);
    assert!(matches!(error, StoreError::NoAssortment { .. }), "{error}");
    assert_eq!(store.assortments().unwrap(), [second]);
}

fn one_edit_wins(store: &Store) {
    let first = set(store, "a", Some("one"));
    let both = Barrier::new(2);
    let edit = |rules: &'static str| {
        both.wait();
        store.set_assortment(&new("a", Some(rules)), Some(&first.id))
    };
    let outcomes = std::thread::scope(|scope| {
        let edits = ["two", "three"].map(|rules| scope.spawn(move || edit(rules)));
        edits.map(|edit| edit.join().unwrap())
    });
    let [Ok(won), Err(lost)] = &outcomes else {
        let [Err(lost), Ok(won)] = &outcomes else {
            panic!("{outcomes:?}");
        };
        return assert_one_won(store, won, lost);
    };
    assert_one_won(store, won, lost);
}

fn assert_one_won(store: &Store, won: &AssortmentVersion, lost: &StoreError) {
    let is_told = matches!(lost, StoreError::AssortmentChanged { live: Some(2), .. });
    assert!(is_told, "{lost}");
    assert_eq!(store.assortments().unwrap(), std::slice::from_ref(won));
    assert_eq!(store.assortment_versions("a", 9).unwrap().len(), 2);
}

fn used_ones_are_not_removed(store: &Store) {
    let live = set(store, "a", Some("one"));
    let keys: Vec<KeyRecord> = (1..=12).map(|seed| assigned(seed, "a")).collect();
    write(store, &keys);
    let remove = || store.set_assortment(&new("a", None), Some(&live.id));
    let before = store.state().unwrap();
    let error = remove().unwrap_err();
    assert_eq!(store.state().unwrap(), before);
    let told = error.to_string();
    let named = keys.iter().filter(|key| told.contains(&key.prefix));
    assert_eq!(named.count(), 10, "{told}");
    assert!(told.contains("12 keys") && told.contains('…'), "{told}");
    // Revoked keys don't count, and may name what was removed.
    let revoked = keys.iter().map(|key| KeyRecord {
        revoked_at: Some(second(900)),
        ..key.clone()
    });
    let revoked: Vec<KeyRecord> = revoked.collect();
    write(store, &revoked[1..]);
    let told = remove().unwrap_err().to_string();
    assert!(told.contains(&keys[0].prefix), "{told}");
    write(store, &revoked);
    assert_eq!(remove().unwrap().number, 2);
    write(store, &revoked);
    assert_eq!(store.check().unwrap(), []);
}

fn keys_name_live_ones(store: &Store) {
    set(store, "a", Some("one"));
    set(store, "gone", Some("one"));
    set(store, "gone", None);
    let (plain, key) = (record(9, 9), assigned(1, "a"));
    write(store, &[plain.clone(), key.clone()]);
    let names = || {
        let keys = store.keys().unwrap().into_iter();
        keys.map(|key| (key.prefix, key.assortment))
            .collect::<Vec<_>>()
    };
    let expected = |name: Option<&str>| {
        let name = name.map(str::to_owned);
        [(key.prefix.clone(), name), (plain.prefix.clone(), None)]
    };
    assert_eq!(names(), expected(Some("a")));
    let before = store.state().unwrap();
    for name in ["gone", "none"] {
        let wrong = KeyRecord {
            assortment: Some(name.to_owned()),
            ..key.clone()
        };
        let changed = vec![record(8, 8), wrong];
        let error = store
            .change_keys(&crate::audited::set_key(), None, &mut |_| changed.clone())
            .unwrap_err();
        assert!(matches!(error, StoreError::NoAssortment { .. }), "{error}");
        assert_eq!(names(), expected(Some("a")));
        assert_eq!(store.state().unwrap(), before);
    }
    store
        .record_key_use(&[(key.prefix.clone(), second(60))])
        .unwrap();
    for name in [None, Some("a"), Some("a"), None] {
        let moved = KeyRecord {
            assortment: name.map(str::to_owned),
            ..key.clone()
        };
        write(store, &[moved]);
        assert_eq!(names(), expected(name));
        assert_eq!(store.keys().unwrap()[0].last_used_at, Some(second(60)));
        assert_eq!(store.check().unwrap(), []);
    }
}

fn only_unknown_ones_are_read(store: &Store) {
    let mut live: Vec<AssortmentVersion> = ["a", "b", "c"]
        .iter()
        .map(|name| set(store, name, Some("one")))
        .collect();
    set(store, "gone", Some("one"));
    write(store, &[assigned(1, "a")]);
    let read = store.read_assortments(&[], None).unwrap();
    assert_eq!(read.keys.state, store.state().unwrap());
    assert_eq!(read.keys.records[0].assortment.as_deref(), Some("a"));
    assert_eq!((read.changed.len(), read.names.len()), (4, 4));
    set(store, "gone", None);
    live[1] = set(store, "b", Some("two"));
    let known = read.names;
    let read = store.read_assortments(&known, None).unwrap();
    assert_eq!(read.changed, [live[1].clone()]);
    let names = |versions: &[AssortmentVersion]| {
        let names = versions.iter();
        names
            .map(|version| (version.name.clone(), version.id.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(read.names, names(&live));
    let read = store.read_assortments(&read.names, None).unwrap();
    assert_eq!(read.changed, []);
    assert_eq!(store.read_assortments(&[], None).unwrap().changed, live);
}

fn history_has_each(store: &Store) {
    let versions = [
        set(store, "a", Some("one")),
        set(store, "a", Some("two")),
        set(store, "a", None),
        set(store, "b", Some("one")),
    ];
    let history = |since, limit| store.assortment_history(since, limit).unwrap();
    let all = history(second(0), 9);
    assert_eq!(all.len(), 4);
    assert!(versions.iter().all(|version| all.contains(version)));
    assert!(all.is_sorted_by(|one, next| one.created_at >= next.created_at));
    let of_a: Vec<u32> = all
        .iter()
        .filter(|version| version.name == "a")
        .map(|version| version.number)
        .collect();
    assert_eq!(of_a, [3, 2, 1]);
    assert_eq!(history(second(0), 2), all[..2]);
    // What was replaced at that moment was current at it.
    assert!(history(versions[1].created_at, 9).contains(&versions[0]));
    let later = versions[3].created_at + jiff::SignedDuration::from_secs(1);
    let current: Vec<u32> = history(later, 9).iter().map(|one| one.number).collect();
    assert_eq!((current.len(), current.contains(&3)), (2, true));
}

fn codes_are_limited(store: &Store) {
    let of = |name: &str, codes: u64| NewAssortment {
        codes: codes.try_into().unwrap(),
        ..new(name, Some("{}"))
    };
    let big = store.set_assortment(&of("big", MAX_CODES), None).unwrap();
    let before = store.state().unwrap();
    let error = store.set_assortment(&of("one", 1), None).unwrap_err();
    let is_told = matches!(
        error,
        StoreError::AssortmentLimit { count, limit: MAX_CODES, .. } if count == MAX_CODES + 1
    );
    assert!(is_told, "{error}");
    assert_eq!(store.state().unwrap(), before);
    store
        .set_assortment(&of("big", MAX_CODES - 1), Some(&big.id))
        .unwrap();
    store.set_assortment(&of("one", 1), None).unwrap();
    assert_eq!(store.assortments().unwrap().len(), 2);
}

fn acceptances_grow(store: &Store) {
    let mut before = store.state().unwrap();
    assert_eq!(before.assortments_accepted, None);
    for _ in 0..3 {
        store
            .accept_assortments(&crate::audited::set_key())
            .unwrap();
        let after = store.state().unwrap();
        assert!(after.assortments_accepted > before.assortments_accepted);
        assert_ne!(after.assortments, before.assortments);
        assert_eq!(after.keys, before.keys);
        before = after;
    }
}
