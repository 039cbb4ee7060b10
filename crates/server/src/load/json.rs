//! A JSON value as it was written: members in order, each key once, numbers to the letter.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep values may nest.
const MOST_LEVELS: usize = 64;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Node<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as it was written.
    Number(&'a str),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Node<'a>>),
    /// An object.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Why a text isn't a value that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The rule that it breaks.
    pub rule: &'static str,
    /// Where: a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl<'a> Node<'a> {
    /// Reads a value.
    ///
    /// # Errors
    ///
    /// Where the text isn't JSON, nests too deep, names a key twice, or has U+0000 in a string.
    pub fn parse(text: &'a str) -> Result<Self, Unreadable> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| not_json(&error, ""))?;
        parse(raw, "", 0)
    }

    /// The value as compact JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    /// Appends the value as compact JSON.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) => out.push_str(number),
            Self::Text(text) => write_text(text, out),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_text(key, out);
                    out.push(':');
                    value.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends a string as JSON.
pub fn write_text(text: &str, out: &mut String) {
    // A string can't fail to become JSON.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn not_json(error: &serde_json::Error, pointer: &str) -> Unreadable {
    let message = error.to_string();
    // The line within a record is always 1 or means nothing to whoever has the file before them.
    let what = message.split(" at line ").next().unwrap_or_default();
    let column = match error.column() {
        0 => String::new(),
        column => format!(" at column {column}"),
    };
    Unreadable {
        rule: "json",
        pointer: pointer.to_owned(),
        message: format!("expected JSON: {what}{column}"),
    }
}

fn parse<'a>(raw: &'a RawValue, pointer: &str, level: usize) -> Result<Node<'a>, Unreadable> {
    let text = raw.get();
    let read = |error: serde_json::Error| not_json(&error, pointer);
    let unreadable = |rule, message: &str| Unreadable {
        rule,
        pointer: pointer.to_owned(),
        message: message.to_owned(),
    };
    if level > MOST_LEVELS {
        return Err(unreadable(
            "nesting",
            "expected at most 64 levels of nesting",
        ));
    }
    match text.as_bytes().first() {
        Some(b'n') => Ok(Node::Null),
        Some(b't') => Ok(Node::Bool(true)),
        Some(b'f') => Ok(Node::Bool(false)),
        Some(b'"') => {
            let Text(value) = serde_json::from_str(text).map_err(read)?;
            if value.contains('\0') {
                let message = "expected a text without the character U+0000";
                return Err(unreadable("nul_character", message));
            }
            Ok(Node::Text(value))
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(read)?;
            let item = |(index, raw)| parse(raw, &format!("{pointer}/{index}"), level + 1);
            let items = items.into_iter().enumerate().map(item);
            items.collect::<Result<_, _>>().map(Node::List)
        }
        Some(b'{') => {
            let Members(members) = serde_json::from_str(text).map_err(read)?;
            let mut keys = HashSet::new();
            let mut nodes = Vec::with_capacity(members.len());
            for (Text(key), raw) in &members {
                let pointer = format!("{pointer}/{}", escaped(key));
                if !keys.insert(key.as_ref()) {
                    return Err(Unreadable {
                        rule: "duplicate_key",
                        pointer,
                        message: "expected each key once".to_owned(),
                    });
                }
                if key.contains('\0') {
                    let message = "expected a key without the character U+0000";
                    return Err(unreadable("nul_character", message));
                }
                nodes.push((key.clone(), parse(raw, &pointer, level + 1)?));
            }
            Ok(Node::Object(nodes))
        }
        _ => Ok(Node::Number(text)),
    }
}

/// A key as it stands in a JSON pointer (RFC 6901).
#[must_use]
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A string, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object's members in order.
struct Members<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_numbers_are_kept_to_the_letter() {
        let text = r#"{"b":1.50,"a":[1e3,-0,{"z":null,"y":true}],"é\n":"\u00e9\u2028"}"#;
        let node = Node::parse(text).unwrap();
        assert_eq!(
            node.to_json(),
            "{\"b\":1.50,\"a\":[1e3,-0,{\"z\":null,\"y\":true}],\"é\\n\":\"é\u{2028}\"}"
        );
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_its_place() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        for (text, rule, pointer) in [
            ("{\"a\":}", "json", ""),
            ("", "json", ""),
            ("{} {}", "json", ""),
            (r#"{"a":{"b":1,"b":2}}"#, "duplicate_key", "/a/b"),
            (r#"{"a/b":["\u0000"]}"#, "nul_character", "/a~1b/0"),
            (r#"["\ud800"]"#, "json", "/0"),
            (deep.as_str(), "nesting", &"/0".repeat(65)),
        ] {
            let error = Node::parse(text).unwrap_err();
            assert_eq!((error.rule, error.pointer.as_str()), (rule, pointer));
        }
    }
}
