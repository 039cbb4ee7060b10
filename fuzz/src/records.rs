//! JSON records: the parser of loads reads the same value as another one, and each record is a product or has a fault.

use serde::de::IgnoredAny;
use serde_json::{Value, from_str};
use vitrine_ingest::load::json::Node;
use vitrine_ingest::load::read::{Shape, read_plain};

use crate::load::check_items;

/// Checks an input: as one JSON value, and as a file of records.
pub fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let (node, problems) = Node::parse(text);
        let is_json = from_str::<IgnoredAny>(text).is_ok();
        assert!(is_json || (node == Node::Unreadable && problems.len() == 1));
        if let (true, Ok(value)) = (problems.is_empty(), from_str::<Value>(text)) {
            assert_eq!(from_str::<Value>(&node.to_json()).expect("JSON"), value);
        }
    }
    let mut items = Vec::new();
    read_plain("input", bytes, Shape::Whole, &mut |item| items.push(item)).expect("memory");
    check_items(bytes, &items);
}
