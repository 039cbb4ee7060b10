//! Stream of JSON values: arrays of products, list responses, products. Malformed JSON ends it.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Item, MAX_RECORD_BYTES, Record, Sink, TOO_LARGE};
use crate::load::json::write_text;
use crate::load::report::{Finding, Place};

pub(super) fn read_values(file: &str, input: impl BufRead, sink: Sink<'_>) -> io::Result<()> {
    read_stream(&Place::file(file), input, sink)
}

/// Reads JSON values, one after the other.
pub(super) fn read_stream(place: &Place, input: impl Read, sink: Sink<'_>) -> io::Result<()> {
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
            // Another value may follow; the next iteration tells.
            Ok(()) => {}
            Err(error) if error.io_error_kind() == Some(io::ErrorKind::FileTooLarge) => {
                let at = Place {
                    index: Some(index),
                    ..place.clone()
                };
                sink(Item::unreadable(Finding::fault(
                    &at,
                    "record_too_large",
                    TOO_LARGE,
                )));
                return Ok(());
            }
            Err(error) if error.is_io() => return Err(error.into()),
            Err(error) => {
                let at = Place {
                    index: Some(index),
                    ..place.clone()
                };
                let message = format!("expected JSON: {error}; the rest wasn't read");
                sink(Item::unreadable(Finding::fault(&at, "json", &message)));
                return Ok(());
            }
        }
    }
}

/// Reader that fails if a record exceeds the maximum length.
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

/// Value of the stream, or the `catalog` of a list response.
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
        (self.sink)(Item::Record(Record::new(place, json)));
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
        let (mut has_catalog, mut is_list) = (false, false);
        while let Some(key) = map.next_key::<String>()? {
            if key != "catalog" || has_catalog {
                let raw: Box<RawValue> = map.next_value()?;
                if key == "catalog" && is_list {
                    let message = "expected one `catalog` in a list response; this is another";
                    let fault = Finding::fault(self.place, "duplicate_key", message);
                    (self.sink)(Item::unreadable(fault));
                }
                write_member(&key, raw.get(), &mut json);
                continue;
            }
            has_catalog = true;
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

/// Value of `catalog`: the array of a list response; or the detail object of a payout type with that name, which is
/// returned.
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

/// Appends a member to an object under construction.
fn write_member(key: &str, json: &str, out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
    write_text(key, out);
    out.push(':');
    out.push_str(json);
}
