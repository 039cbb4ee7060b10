//! From bytes to records, told apart by content.
//!
//! Newline-delimited JSON is read line by line: a bad line is a finding, and the next one is read all
//! the same. Everything else is read as a stream of JSON values, each an array of products, a list
//! response (`{"catalog": […]}`) or one product; there, broken JSON ends the input. Neither holds more
//! than one record in memory.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Cursor, Read};
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json::write_text;
use super::report::{Finding, Place, shown};

/// The longest record, in bytes.
pub const MAX_RECORD_BYTES: u64 = 16 << 20;

/// How much of an input is looked at to tell what it is, in bytes.
const PEEKED_BYTES: u64 = 64 << 10;

const TOO_LARGE: &str = "expected records of at most 16 MiB";

/// One record, not yet looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it stands.
    pub place: Place,
    /// Its JSON.
    pub json: String,
}

/// Takes records, and findings in the place of records that can't be read.
pub type Sink<'s> = &'s mut dyn FnMut(Result<Record, Finding>);

/// Reads all records of an input.
///
/// # Errors
///
/// Where the input itself can't be read.
pub fn read(file: &str, mut input: impl BufRead, sink: Sink<'_>) -> io::Result<()> {
    let mut blank_lines = 0;
    let mut head = peek(&mut input)?;
    if head.starts_with(b"\xef\xbb\xbf") {
        head.drain(..3);
    }
    // However many blanks come first: something may follow.
    while !head.is_empty() && head.trim_ascii_start().is_empty() {
        blank_lines += head.iter().filter(|byte| **byte == b'\n').count() as u64;
        head = peek(&mut input)?;
    }
    match head.trim_ascii_start().first().copied() {
        None => return Ok(()),
        Some(b'{' | b'[') => {}
        Some(_) => {
            let start = String::from_utf8_lossy(&head);
            sink(Err(Finding {
                value: Some(shown(start.lines().next().unwrap_or_default())),
                ..Finding::fault(
                    &Place::file(file),
                    "json",
                    "expected JSON: one product a line, an array of products, one product, or a list response",
                )
            }));
            return Ok(());
        }
    }
    let is_lines = is_line_delimited(&head);
    let input = Cursor::new(head).chain(input);
    if is_lines {
        read_lines(file, blank_lines + 1, input, sink)
    } else {
        read_values(file, input, sink)
    }
}

/// As much of an input as is looked at.
fn peek(input: impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(PEEKED_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether an input that begins like this has one record a line.
fn is_line_delimited(head: &[u8]) -> bool {
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
        // Cut off at the line's end: either the object goes on in the next line, or the next line
        // begins a record of its own, or there is only this line.
        Err(error) if error.is_eof() => second.is_none_or(|line| line.starts_with(b"{")),
        Err(_) => true,
    }
}

/// Whether the first value is an object whose `catalog` is an array, as far as can be seen.
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
    // The head is mostly cut off somewhere: what counts is what was seen until then.
    let _ = deserializer.deserialize_map(Keys(&found));
    found.get()
}

fn read_lines(
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
            let start = String::from_utf8_lossy(&line[..200]);
            sink(Err(Finding {
                value: Some(shown(&start)),
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

/// One line: mostly a product, but an array and a list response are taken too.
fn read_line(place: &Place, json: &[u8], sink: Sink<'_>) -> io::Result<()> {
    let Ok(json) = std::str::from_utf8(json) else {
        let message = "expected UTF-8; convert the input first";
        sink(Err(Finding::fault(place, "utf8", message)));
        return Ok(());
    };
    if json.starts_with('[') || (json.contains("\"catalog\"") && has_catalog(json.as_bytes())) {
        return read_stream(place, json.as_bytes(), sink);
    }
    sink(Ok(Record {
        place: place.clone(),
        json: json.to_owned(),
    }));
    Ok(())
}

fn read_values(file: &str, input: impl BufRead, sink: Sink<'_>) -> io::Result<()> {
    read_stream(&Place::file(file), input, sink)
}

/// Reads JSON values, one after the other.
fn read_stream(place: &Place, input: impl Read, sink: Sink<'_>) -> io::Result<()> {
    let used = Rc::new(Cell::new(0));
    let capped = Capped {
        input,
        used: Rc::clone(&used),
    };
    let mut deserializer = serde_json::Deserializer::from_reader(capped);
    let mut index = 0;
    loop {
        let value = Value {
            place,
            used: &used,
            index: &mut index,
            sink: &mut *sink,
        };
        match (&mut deserializer).deserialize_any(value) {
            Ok(()) if deserializer.end().is_ok() => return Ok(()),
            // Another value follows, or what can't be one: the next round tells.
            Ok(()) => {}
            Err(error) if error.io_error_kind() == Some(io::ErrorKind::FileTooLarge) => {
                let at = Place {
                    index: Some(index),
                    ..place.clone()
                };
                sink(Err(Finding::fault(&at, "record_too_large", TOO_LARGE)));
                return Ok(());
            }
            Err(error) if error.is_io() => return Err(error.into()),
            Err(error) => {
                let at = Place {
                    index: Some(index),
                    ..place.clone()
                };
                let message = format!("expected JSON: {error}; what follows wasn't read");
                sink(Err(Finding::fault(&at, "json", &message)));
                return Ok(());
            }
        }
    }
}

/// A reader that fails when too much is read without a record coming to its end.
struct Capped<R> {
    input: R,
    used: Rc<Cell<u64>>,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.used.set(self.used.get() + read as u64);
        if self.used.get() > MAX_RECORD_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(read)
    }
}

/// A value of the stream, or the `catalog` of a list response.
struct Value<'v, 's> {
    place: &'v Place,
    used: &'v Cell<u64>,
    index: &'v mut u64,
    sink: Sink<'s>,
}

impl Value<'_, '_> {
    fn record(&mut self, json: String) {
        self.used.set(0);
        let place = Place {
            index: Some(*self.index),
            ..self.place.clone()
        };
        *self.index += 1;
        (self.sink)(Ok(Record { place, json }));
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a product, an array of products or a list response")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(raw) = items.next_element::<Box<RawValue>>()? {
            self.record(raw.get().to_owned());
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut json = String::from("{");
        let mut is_list = false;
        while let Some(key) = map.next_key::<String>()? {
            if key != "catalog" || is_list {
                let raw: Box<RawValue> = map.next_value()?;
                write_member(&key, raw.get(), &mut json);
                continue;
            }
            let catalog = map.next_value_seed(Catalog(Value {
                place: self.place,
                used: self.used,
                index: &mut *self.index,
                sink: &mut *self.sink,
            }))?;
            match catalog {
                Some(object) => write_member(&key, &object, &mut json),
                None => is_list = true,
            }
        }
        if !is_list {
            json.push('}');
            self.record(json);
        }
        Ok(())
    }
}

/// Says whether a value is an array, as soon as it begins.
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

/// What stands under `catalog`: the array of a list response; or the detail object of a payout type of
/// that name, which is given back.
struct Catalog<'v, 's>(Value<'v, 's>);

impl<'de> DeserializeSeed<'de> for Catalog<'_, '_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Option<String>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Catalog<'_, '_> {
    type Value = Option<String>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("`catalog` to be an array of products")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Option<String>, A::Error> {
        self.0.visit_seq(items).map(|()| None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<String>, A::Error> {
        let mut json = String::from("{");
        while let Some((key, raw)) = map.next_entry::<String, Box<RawValue>>()? {
            write_member(&key, raw.get(), &mut json);
        }
        json.push('}');
        Ok(Some(json))
    }
}

/// Appends a member to an object that is being written.
fn write_member(key: &str, json: &str, out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
    write_text(key, out);
    out.push(':');
    out.push_str(json);
}
