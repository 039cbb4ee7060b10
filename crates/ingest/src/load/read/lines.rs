//! Newline-delimited JSON: read line by line, so that the lines after a faulty one are checked, too.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, BufRead, Read};

use memchr::memmem;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::values::read_stream;
use super::{Item, MAX_RECORD_BYTES, Record, Shape, Sink, TOO_LARGE};
use crate::load::report::{Finding, MAX_SHOWN_CHARACTERS, Place, shown};

/// Returns true if an input that begins with `head` has one record per line.
pub(super) fn is_line_delimited(head: &[u8]) -> bool {
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let second = lines.next();
    if first.starts_with(b"[") || has_catalog(head) {
        return false;
    }
    match serde_json::from_slice::<&RawValue>(first) {
        Ok(_) => true,
        // Incomplete at the end of the line: either the object continues in the next line, or the next line begins a
        // record of its own, or there is only this line.
        Err(error) if error.is_eof() => second.is_none_or(|line| line.starts_with(b"{")),
        Err(_) => true,
    }
}

/// Returns true if the first value is an object whose `catalog` is an array, as far as `head` shows.
fn has_catalog(head: &[u8]) -> bool {
    struct Keys<'f>(&'f Cell<bool>);
    impl<'de> Visitor<'de> for Keys<'_> {
        type Value = ();

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<String>()? {
                if key == "catalog" {
                    map.next_value_seed(IsArray(self.0))?;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }
    let found = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_slice(head);
    // The head is usually truncated; what was parsed until then counts.
    let _ = deserializer.deserialize_map(Keys(&found));
    found.get()
}

/// Returns the names of the members around the array of products within an object, if that is neither a product nor a list
/// response, as far as `head` shows.
pub(super) fn array_within(head: &[u8], shape: Shape) -> Option<Vec<String>> {
    let names_of_product = match shape {
        Shape::Whole => &PRODUCT_NAMES[..],
        Shape::Patch => &PRODUCT_NAMES[..1],
    };
    let head = String::from_utf8_lossy(head);
    // Of each object or array that is open, the name of its current member; `None` for arrays.
    let mut open: Vec<Option<&str>> = Vec::new();
    let mut outer_names = HashSet::new();
    let (mut text, mut found) = ("", None);
    let mut rest = &head[..];
    while let Some(start) = rest.find(['"', '{', '}', '[', ']', ':']) {
        let (mark, after) = (rest.as_bytes()[start], &rest[start + 1..]);
        rest = after;
        match mark {
            b'"' => {
                let Some(length) = text_length(after) else {
                    break;
                };
                (text, rest) = (&after[..length], &after[length + 1..]);
            }
            b':' => {
                if let [Some(_)] = open[..] {
                    outer_names.insert(text);
                }
                if let Some(Some(name)) = open.last_mut() {
                    *name = text;
                }
            }
            b'{' => open.push(Some("")),
            b'[' => {
                let names: Option<Vec<&str>> = open.iter().copied().collect();
                match names.as_deref() {
                    Some([] | ["catalog"]) => return None,
                    Some(names) if found.is_none() && begins_with(after, names_of_product) => {
                        found = Some(names.iter().map(ToString::to_string).collect());
                    }
                    _ => {}
                }
                open.push(None);
            }
            _ => {
                open.pop();
                if open.is_empty() {
                    break;
                }
            }
        }
    }
    let is_product = names_of_product
        .iter()
        .all(|name| outer_names.contains(name));
    found.filter(|_| !is_product)
}

/// Names of members that each product has, and hardly anything else; patches only need the first.
const PRODUCT_NAMES: [&str; 2] = ["code", "payout_type"];

/// Returns true if the first of these items has all of these members.
fn begins_with(items: &str, names: &[&str]) -> bool {
    let mut items = serde_json::Deserializer::from_str(items).into_iter();
    let first: Option<Result<HashMap<String, IgnoredAny>, _>> = items.next();
    let first = first.and_then(Result::ok);
    first.is_some_and(|first| names.iter().all(|name| first.contains_key(*name)))
}

/// Returns the length of a JSON text that goes on here, up to its closing quote.
fn text_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

pub(super) fn read_lines(
    file: &str,
    first_number: u64,
    mut input: impl BufRead,
    sink: Sink<'_>,
) -> io::Result<()> {
    let mut line = Vec::new();
    for number in first_number.. {
        line.clear();
        let taken = (&mut input)
            .take(MAX_RECORD_BYTES + 1)
            .read_until(b'\n', &mut line)?;
        if taken == 0 {
            break;
        }
        let place = Place {
            line: Some(number),
            ..Place::file(file)
        };
        if taken as u64 > MAX_RECORD_BYTES {
            let start = String::from_utf8_lossy(&line[..4 * MAX_SHOWN_CHARACTERS]);
            let start: String = start.chars().take(MAX_SHOWN_CHARACTERS).collect();
            sink(Item::unreadable(Finding {
                // Its length is unknown: it wasn't read to its end.
                value: Some(format!("{start}…")),
                ..Finding::fault(&place, "record_too_large", TOO_LARGE)
            }));
            if line.last() != Some(&b'\n') {
                input.skip_until(b'\n')?;
            }
            continue;
        }
        let json = line.trim_ascii();
        if !json.is_empty() {
            read_line(&place, json, sink)?;
        }
    }
    Ok(())
}

/// Reads a line: usually a product, but arrays and list responses are accepted, too.
fn read_line(place: &Place, json: &[u8], sink: Sink<'_>) -> io::Result<()> {
    let Ok(json) = std::str::from_utf8(json) else {
        let message = "expected UTF-8; convert the input first";
        let text = String::from_utf8_lossy(json);
        let finding = Finding {
            value: Some(shown(&text)),
            ..Finding::fault(place, "utf8", message)
        };
        sink(Item::Unreadable {
            findings: vec![finding],
            is_record: true,
        });
        return Ok(());
    };
    if json.starts_with('[')
        || (memmem::find(json.as_bytes(), b"\"catalog\"").is_some() && has_catalog(json.as_bytes()))
    {
        return read_stream(place, json.as_bytes(), sink);
    }
    sink(Item::Record(Record::new(place.clone(), json.to_owned())));
    Ok(())
}

/// Visitor that tells whether a value is an array, as soon as it begins.
struct IsArray<'f>(&'f Cell<bool>);

impl<'de> DeserializeSeed<'de> for IsArray<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for IsArray<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.set(true);
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
