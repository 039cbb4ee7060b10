//! Records of JSON: the reader beside the one that it replaced, which is slower and simpler. Both must find the same product,
//! texts and findings, at the same places.

use vitrine_ingest::load::check::check as check_record;
use vitrine_ingest::load::read::{Item, Record, read_plain};
use vitrine_ingest::load::report::Place;

use crate::old_reader;

/// Checks an input: as one record, and as a file of records.
pub fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        compare(&Record::new(Place::file("record"), text.to_owned()));
    }
    read_plain("input", bytes, &mut |item| {
        if let Item::Record(Record { place, json, .. }) = item {
            compare(&Record::new(place, json));
        }
    })
    .expect("memory");
}

fn compare(record: &Record) {
    let (mut findings, mut expected_findings) = (Vec::new(), Vec::new());
    let found = check_record(record, &mut findings);
    let expected = old_reader::check(record, &mut expected_findings);
    assert_eq!(findings, expected_findings);
    assert_eq!(found.code, expected.code);
    let parts = found
        .record
        .map(|found| (found.product, found.content, found.texts));
    let expected = expected
        .record
        .map(|expected| (expected.product, expected.content, expected.texts));
    assert_eq!(parts, expected);
}
