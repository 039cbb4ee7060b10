//! JSON records: the quick parser and the careful one read the same value, and each record is a product or has a fault.

use vitrine_ingest::load::json::Node;
use vitrine_ingest::load::read::read_plain;

use crate::load::check_items;

/// Checks an input: as one JSON value, and as a file of records.
pub fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(Node::parse(text), Node::parse_with_problems(text));
    }
    let mut items = Vec::new();
    read_plain("input", bytes, &mut |item| items.push(item)).expect("memory");
    check_items(bytes, &items);
}
