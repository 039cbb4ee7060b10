//! Cost of authenticating a key, and of changing one.

use divan::{Bencher, black_box};
use jiff::Timestamp;
use vitrine_model::key::{KeyKind, KeyRecord, KeyTable, NewKey};

fn main() {
    divan::main();
}

/// Returns a table of `keys` keys, and one of them.
fn table(keys: usize) -> (KeyTable, String) {
    let key = |number: usize| {
        let mut random = [0; 40];
        for (place, byte) in random.iter_mut().enumerate() {
            *byte = (number.wrapping_mul(31).wrapping_add(place) >> (place % 8)) as u8;
        }
        random[..8].copy_from_slice(&number.to_be_bytes());
        NewKey::from_random(KeyKind::Live, &random)
    };
    let record = |key: &NewKey| KeyRecord::new(key, KeyKind::Live, "bench", Timestamp::UNIX_EPOCH);
    let keys: Vec<NewKey> = (0..keys).map(key).collect();
    let known = keys[keys.len() / 2].reveal();
    let records = keys.iter().map(record).collect();
    (KeyTable::new(records, &KeyTable::default()), known)
}

#[divan::bench(args = [10, 10_000])]
fn known(bencher: Bencher<'_, '_>, keys: usize) {
    let (table, key) = table(keys);
    let now = Timestamp::from_second(1_000_000).expect("a moment");
    assert!(table.authenticate(&key, now).is_some());
    bencher.bench_local(|| table.authenticate(black_box(&key), now).is_some());
}

#[divan::bench(args = [10, 100_000])]
fn changed(bencher: Bencher<'_, '_>, keys: usize) {
    let (table, _) = table(keys);
    let record = table.records().next().expect("a key").clone();
    bencher.bench_local(|| {
        let changed = table.with_changed(vec![black_box(record.clone())]);
        assert!(changed.see_the_same(&table));
        changed
    });
}

#[divan::bench]
fn unknown(bencher: Bencher<'_, '_>) {
    let (table, key) = table(10);
    let wrong = format!("x{key}");
    let now = Timestamp::from_second(1_000_000).expect("a moment");
    assert!(table.authenticate(&wrong, now).is_none());
    bencher.bench_local(|| table.authenticate(black_box(&wrong), now).is_some());
}
