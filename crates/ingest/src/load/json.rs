//! JSON values as written: members in order, each key once, numbers as text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::pointer::At;
use super::report::{shown, shown_pointer};
use super::single_pass;

/// Maximum nesting of values, in levels.
pub(super) const MAX_LEVELS: usize = 64;

/// Maximum number of problems kept for one record: it can have millions.
pub(super) const MAX_PROBLEMS: usize = 1_000;

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
    /// Unusable value; the problems say why.
    Unreadable,
}

/// Reason why a text, or a part of it, isn't a usable value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Rule that it breaks.
    pub rule: &'static str,
    /// Position: a JSON pointer, shortened.
    pub pointer: String,
    /// Text there, shortened.
    pub value: String,
    /// Description of the problem.
    pub message: String,
}

impl<'a> Node<'a> {
    /// Parses a value. Finds all problems: malformed JSON, too deep nesting, repeated keys, U+0000 in strings.
    #[must_use]
    pub fn parse(text: &'a str) -> (Self, Vec<Problem>) {
        match single_pass::parse(text) {
            Some(node) => (node, Vec::new()),
            None => Self::parse_with_problems(text),
        }
    }

    /// Parses a value as [`Node::parse`] does, without the quick parser in front.
    #[must_use]
    pub fn parse_with_problems(text: &'a str) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let node = match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) => parse(raw, &At::ROOT, 0, &mut problems),
            Err(error) => {
                problems.push(not_json(&error, &At::ROOT, text));
                Self::Unreadable
            }
        };
        (node, problems)
    }

    /// Returns the member of this name, if this is an object that has it.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members
                .iter()
                .find_map(|(key, value)| (key == name).then_some(value)),
            _ => None,
        }
    }

    /// Returns the items, if this is an array.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the string, if this is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value as compact JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    /// Appends the value as compact JSON.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Self::Null | Self::Unreadable => out.push_str("null"),
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

fn not_json(error: &serde_json::Error, at: &At<'_>, text: &str) -> Problem {
    let message = error.to_string();
    // The line within a record is always 1, or has no meaning for the file's author.
    let what = message.split(" at line ").next().unwrap_or_default();
    let column = match error.column() {
        0 => String::new(),
        column => format!(" at column {column}"),
    };
    problem("json", at, text, &format!("expected JSON: {what}{column}"))
}

fn problem(rule: &'static str, at: &At<'_>, value: &str, message: &str) -> Problem {
    Problem {
        rule,
        pointer: shown_pointer(&at.to_string()),
        value: shown(value),
        message: message.to_owned(),
    }
}

fn note(problems: &mut Vec<Problem>, problem: impl FnOnce() -> Problem) {
    if problems.len() < MAX_PROBLEMS {
        problems.push(problem());
    }
}

fn parse<'a>(
    raw: &'a RawValue,
    at: &At<'_>,
    level: usize,
    problems: &mut Vec<Problem>,
) -> Node<'a> {
    let text = raw.get();
    if level > MAX_LEVELS {
        let message = "expected at most 64 levels of nesting";
        note(problems, || problem("nesting", at, text, message));
        return Node::Unreadable;
    }
    let read = match text.as_bytes().first() {
        Some(b'n') => Ok(Node::Null),
        Some(b't') => Ok(Node::Bool(true)),
        Some(b'f') => Ok(Node::Bool(false)),
        Some(b'"') => serde_json::from_str(text).map(|Text(value)| {
            if value.contains('\0') {
                let message = "expected a text without the character U+0000";
                note(problems, || problem("nul_character", at, text, message));
                return Node::Unreadable;
            }
            Node::Text(value)
        }),
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(text).map(|items| {
            let mut item = |(index, raw)| parse(raw, &at.index(index), level + 1, problems);
            Node::List(items.into_iter().enumerate().map(&mut item).collect())
        }),
        Some(b'{') => {
            serde_json::from_str(text).map(|Members(members)| object(members, at, level, problems))
        }
        _ => Ok(Node::Number(text)),
    };
    read.unwrap_or_else(|error| {
        note(problems, || not_json(&error, at, text));
        Node::Unreadable
    })
}

fn object<'a>(
    members: Vec<(Text<'a>, &'a RawValue)>,
    at: &At<'_>,
    level: usize,
    problems: &mut Vec<Problem>,
) -> Node<'a> {
    let mut positions = Positions::of(members.len());
    let mut nodes: Vec<(Cow<'a, str>, Node<'a>)> = Vec::with_capacity(members.len());
    for (Text(key), raw) in members {
        let at = at.key(&key);
        if let Some(first) = positions.find(&key, &nodes) {
            let message = "expected each key once";
            note(problems, || {
                problem("duplicate_key", &at, raw.get(), message)
            });
            // It's unknown which one is meant, so neither is checked further.
            nodes[first].1 = Node::Unreadable;
            continue;
        }
        if key.contains('\0') {
            let message = "expected a key without the character U+0000";
            note(problems, || {
                problem("nul_character", &at, raw.get(), message)
            });
        }
        let node = parse(raw, &at, level + 1, problems);
        nodes.push((key, node));
    }
    Node::Object(nodes)
}

/// Index of an object's keys. Up to 32 are searched linearly, which is fastest; more are hashed, so that the time isn't
/// quadratic.
enum Positions {
    Few,
    Many(HashMap<String, usize>),
}

impl Positions {
    const MAX_FEW: usize = 32;

    fn of(members: usize) -> Self {
        match members <= Self::MAX_FEW {
            true => Self::Few,
            false => Self::Many(HashMap::with_capacity(members)),
        }
    }

    /// Returns the position of `key` among `nodes`; if it is absent, `None`, and the caller pushes it next.
    fn find(&mut self, key: &str, nodes: &[(Cow<'_, str>, Node<'_>)]) -> Option<usize> {
        match self {
            Self::Few => nodes.iter().position(|(other, _)| other == key),
            Self::Many(positions) => match positions.entry(key.to_owned()) {
                Entry::Occupied(first) => Some(*first.get()),
                Entry::Vacant(vacant) => {
                    vacant.insert(nodes.len());
                    None
                }
            },
        }
    }
}

/// String, borrowed if it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the members of an object, in order, with their values as JSON; repeated keys stay.
///
/// # Errors
///
/// If it isn't an object.
pub(crate) fn members(text: &str) -> serde_json::Result<Vec<(Cow<'_, str>, &str)>> {
    let Members(members) = serde_json::from_str(text)?;
    let members = members.into_iter();
    Ok(members.map(|(Text(key), raw)| (key, raw.get())).collect())
}

/// Members of an object, in order.
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
    fn order_and_numbers_stay_as_written() {
        let text = r#"{"b":1.50,"a":[1e3,-0,{"z":null,"y":true}],"é\n":"\u00e9\u2028"}"#;
        let (node, problems) = Node::parse(text);
        assert_eq!(problems, []);
        assert_eq!(
            node.to_json(),
            "{\"b\":1.50,\"a\":[1e3,-0,{\"z\":null,\"y\":true}],\"é\\n\":\"é\u{2028}\"}"
        );
    }

    #[test]
    fn unusable_json_is_refused_with_its_position() {
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
            let (_, problems) = Node::parse(text);
            let found: Vec<_> = problems
                .iter()
                .map(|p| (p.rule, p.pointer.as_str()))
                .collect();
            assert_eq!(found, [(rule, pointer)]);
        }
    }

    #[test]
    fn all_problems_of_a_value_are_found() {
        let (_, problems) = Node::parse(r#"{"a":"\u0000","b":["\ud800"],"a":1}"#);
        let rules: Vec<_> = problems.iter().map(|problem| problem.rule).collect();
        assert_eq!(rules, ["nul_character", "json", "duplicate_key"]);
    }
}
