//! JSON values as written: members in order, each key once, numbers as text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use memchr::memchr2;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Error as _, Serializer};
use serde_json::value::RawValue;

use super::pointer::At;
use super::report::{shown, shown_pointer};

/// Maximum nesting of values, in levels.
const MAX_LEVELS: usize = 64;

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
        let mut parser = Parser {
            text,
            at: 0,
            // Of the whole text at once, which is quicker than of each string; most have none.
            has_controls: (text.bytes()).fold(false, |found, byte| found | (byte < b' ')),
            problems: Vec::new(),
        };
        match parser.whole() {
            Some(node) => (node, parser.problems),
            None => {
                let message = match serde_json::from_str::<IgnoredAny>(text) {
                    Err(error) => json_message(&error),
                    Ok(_) => "expected JSON".to_owned(),
                };
                let problem = problem("json", &At::ROOT, text, &message);
                (Self::Unreadable, vec![problem])
            }
        }
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

    /// As [`member`](Self::member), to be changed.
    pub(crate) fn member_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Object(members) => members
                .iter_mut()
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
        // A value can't fail to become JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Appends the value as compact JSON.
    pub fn write_json(&self, out: &mut String) {
        out.push_str(&self.to_json());
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null | Self::Unreadable => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => match RawValue::from_string((*number).to_owned()) {
                Ok(number) => number.serialize(serializer),
                Err(error) => Err(S::Error::custom(error)),
            },
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(members) => {
                serializer.collect_map(members.iter().map(|(key, value)| (key, value)))
            }
        }
    }
}

/// Appends a string as JSON.
pub fn write_text(text: &str, out: &mut String) {
    // A string can't fail to become JSON.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn json_message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    // The line within a record is always 1, or has no meaning for the file's author.
    let what = message.split(" at line ").next().unwrap_or_default();
    let column = match error.column() {
        0 => String::new(),
        column => format!(" at column {column}"),
    };
    format!("expected JSON: {what}{column}")
}

fn problem(rule: &'static str, at: &At<'_>, value: &str, message: &str) -> Problem {
    Problem {
        rule,
        pointer: shown_pointer(&at.to_string()),
        value: shown(value),
        message: message.to_owned(),
    }
}

/// Parser of a text, in one pass. Its methods return `None` where the text isn't JSON.
struct Parser<'a> {
    text: &'a str,
    /// Position of the next byte.
    at: usize,
    /// True if the text has control characters, which strings can't have.
    has_controls: bool,
    problems: Vec<Problem>,
}

/// Number of bytes of a string that are looked at one by one: most strings are shorter, and a call for them would take longer.
const FEW_BYTES: usize = 16;

/// Returns the position of the next quote or backslash.
fn end_of_piece(bytes: &[u8]) -> Option<usize> {
    let few = &bytes[..bytes.len().min(FEW_BYTES)];
    let found = few.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    found.or_else(|| Some(few.len() + memchr2(b'"', b'\\', &bytes[few.len()..])?))
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Option<Node<'a>> {
        self.skip_blanks();
        let node = self.value(&At::ROOT, 0)?;
        self.skip_blanks();
        (self.at == self.text.len()).then_some(node)
    }

    /// Adds a problem of the text that begins at `start` and ends here.
    fn note(&mut self, rule: &'static str, at: &At<'_>, start: usize, message: &str) {
        if self.problems.len() < MAX_PROBLEMS {
            let text = self.text.get(start..self.at).unwrap_or_default();
            self.problems.push(problem(rule, at, text, message));
        }
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r'));
    }

    /// Skips bytes; returns their number.
    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        let skipped = (rest.iter())
            .position(|byte| !is_skipped(*byte))
            .unwrap_or(rest.len());
        self.at += skipped;
        skipped
    }

    /// Takes a byte if it is the next one.
    fn take(&mut self, byte: u8) -> Option<()> {
        let is_next = self.next() == Some(byte);
        self.at += usize::from(is_next);
        is_next.then_some(())
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Option<Node<'a>> {
        let is_next = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        is_next.then_some(node)
    }

    fn value(&mut self, at: &At<'_>, level: usize) -> Option<Node<'a>> {
        if level > MAX_LEVELS {
            let start = self.at;
            self.skip_value()?;
            self.note(
                "nesting",
                at,
                start,
                "expected at most 64 levels of nesting",
            );
            return Some(Node::Unreadable);
        }
        match self.next()? {
            b'n' => self.word("null", Node::Null),
            b't' => self.word("true", Node::Bool(true)),
            b'f' => self.word("false", Node::Bool(false)),
            b'"' => self.text(at),
            b'[' => self.list(at, level),
            b'{' => self.object(at, level),
            _ => self.number(),
        }
    }

    fn skip_value(&mut self) -> Option<()> {
        let rest = serde_json::Deserializer::from_str(self.text.get(self.at..)?);
        let mut values = rest.into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(())
    }

    fn list(&mut self, at: &At<'_>, level: usize) -> Option<Node<'a>> {
        self.take(b'[')?;
        self.skip_blanks();
        if self.take(b']').is_some() {
            return Some(Node::List(Vec::new()));
        }
        let mut items = Vec::with_capacity(8);
        loop {
            self.skip_blanks();
            items.push(self.value(&at.index(items.len()), level + 1)?);
            self.skip_blanks();
            if self.take(b',').is_none() {
                self.take(b']')?;
                return Some(Node::List(items));
            }
        }
    }

    fn object(&mut self, at: &At<'_>, level: usize) -> Option<Node<'a>> {
        self.take(b'{')?;
        self.skip_blanks();
        if self.take(b'}').is_some() {
            return Some(Node::Object(Vec::new()));
        }
        // As many as most objects of products have.
        let mut members: Vec<(Cow<'a, str>, Node<'a>)> = Vec::with_capacity(16);
        let mut positions = Positions::default();
        loop {
            self.skip_blanks();
            let start = self.at;
            let key = self.string()?.unwrap_or_else(|error| {
                self.note("json", at, start, &json_message(&error));
                Cow::Borrowed("")
            });
            self.skip_blanks();
            self.take(b':')?;
            self.skip_blanks();
            let start = self.at;
            let at = at.key(&key);
            if let Some(first) = positions.find(&key, &members) {
                self.skip_value()?;
                self.note("duplicate_key", &at, start, "expected each key once");
                // It's unknown which one is meant, so neither is checked further.
                members[first].1 = Node::Unreadable;
            } else {
                let value = self.value(&at, level + 1)?;
                if key.contains('\0') {
                    let message = "expected a key without the character U+0000";
                    self.note("nul_character", &at, start, message);
                }
                members.push((key, value));
            }
            self.skip_blanks();
            if self.take(b',').is_none() {
                self.take(b'}')?;
                return Some(Node::Object(members));
            }
        }
    }

    fn text(&mut self, at: &At<'_>) -> Option<Node<'a>> {
        let start = self.at;
        match self.string()? {
            Ok(text) if text.contains('\0') => {
                let message = "expected a text without the character U+0000";
                self.note("nul_character", at, start, message);
            }
            Ok(text) => return Some(Node::Text(text)),
            Err(error) => self.note("json", at, start, &json_message(&error)),
        }
        Some(Node::Unreadable)
    }

    /// Reads a string, borrowed if it has no escapes. The inner error is that of escapes that make no text.
    fn string(&mut self) -> Option<serde_json::Result<Cow<'a, str>>> {
        let start = self.at;
        self.take(b'"')?;
        let mut has_escapes = false;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let found = end_of_piece(rest)?;
            if self.has_controls && rest[..found].iter().any(|byte| *byte < b' ') {
                return None;
            }
            self.at += found + 1;
            if rest[found] == b'"' {
                break;
            }
            has_escapes = true;
            // Of `\"` and `\\` both bytes are behind; what else follows is judged below.
            self.at += 1;
            if self.at > self.text.len() {
                return None;
            }
        }
        if !has_escapes {
            let text = self.text.get(start + 1..self.at - 1)?;
            return Some(Ok(Cow::Borrowed(text)));
        }
        let quoted = self.text.get(start..self.at)?;
        match serde_json::from_str::<String>(quoted) {
            Ok(text) => Some(Ok(Cow::Owned(text))),
            // JSON allows half a surrogate pair.
            Err(error) => serde_json::from_str::<IgnoredAny>(quoted)
                .is_ok()
                .then_some(Err(error)),
        }
    }

    /// Reads a number (RFC 8259, 6).
    fn number(&mut self) -> Option<Node<'a>> {
        let start = self.at;
        let digits = |reader: &mut Self| reader.skip(|byte| byte.is_ascii_digit());
        let _ = self.take(b'-');
        let begins_with_zero = self.next() == Some(b'0');
        match digits(self) {
            0 => return None,
            1 => {}
            _ if begins_with_zero => return None,
            _ => {}
        }
        if self.take(b'.').is_some() && digits(self) == 0 {
            return None;
        }
        if self.take(b'e').or_else(|| self.take(b'E')).is_some() {
            let _ = self.take(b'+').or_else(|| self.take(b'-'));
            if digits(self) == 0 {
                return None;
            }
        }
        self.text.get(start..self.at).map(Node::Number)
    }
}

/// Index of an object's keys. Up to 32 are searched linearly, which is fastest; more are hashed, so that the time isn't
/// quadratic.
#[derive(Default)]
struct Positions(HashMap<String, usize>);

impl Positions {
    const MAX_FEW: usize = 32;

    /// Returns the position of `key` among `members`; if it is absent, `None`, and the caller pushes it next.
    fn find(&mut self, key: &str, members: &[(Cow<'_, str>, Node<'_>)]) -> Option<usize> {
        if members.len() <= Self::MAX_FEW {
            return members.iter().position(|(other, _)| other == key);
        }
        if self.0.is_empty() {
            let keys = members.iter().map(|(key, _)| key.to_string());
            self.0.extend(keys.zip(0..));
        }
        let first = self.0.get(key).copied();
        if first.is_none() {
            self.0.insert(key.to_owned(), members.len());
        }
        first
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

    /// Texts with a piece removed, doubled or replaced anywhere, so that some are JSON and some aren't.
    fn variants(text: &str) -> Vec<String> {
        let pieces: Vec<char> = text.chars().collect();
        let mut all = vec![text.to_owned()];
        for (at, piece) in pieces.iter().enumerate() {
            for other in [
                "", "0", "\"", "\\", "{", "}", "[", "]", ",", ":", "e", ".", "-", " ", "\n", "\0",
                "u",
            ] {
                let mut changed: String = pieces[..at].iter().collect();
                changed += other;
                changed.extend(&pieces[at + 1..]);
                all.push(changed);
            }
            let mut doubled: String = pieces[..=at].iter().collect();
            doubled.push(*piece);
            doubled.extend(&pieces[at + 1..]);
            all.push(doubled);
        }
        all
    }

    #[test]
    fn values_are_read_as_by_another_parser() {
        let (mut read, mut refused) = (0, 0);
        for text in [
            r#"{"a":[1,-0.5e+3,true,false,null,"é\u00e9\"\\"],"b":{"c":{}, "d" : [] }}"#,
            " [ \"\\ud83d\\ude00\", 10, 0, 0.1, 1E-2 , {\"k\":\"v\"} ] \n",
            r#"{"a":{"a":{"a":"\u0000"}},"b":"\ud800","a":01}"#,
            "\"text\"",
            "-12",
        ] {
            for variant in variants(text) {
                let (node, problems) = Node::parse(&variant);
                let rules: Vec<&str> = problems.iter().map(|problem| problem.rule).collect();
                if serde_json::from_str::<IgnoredAny>(&variant).is_err() {
                    refused += 1;
                    assert_eq!((node, &rules[..]), (Node::Unreadable, &["json"][..]));
                } else if rules.is_empty() {
                    read += 1;
                    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text);
                    let expected = value(&variant).expect("JSON");
                    assert_eq!(value(&node.to_json()).expect("JSON"), expected, "{variant}");
                }
            }
        }
        assert!(read > 100 && refused > 1_000, "{read} {refused}");
    }

    #[test]
    fn repeated_keys_are_found_among_many() {
        let members: Vec<String> = (0..100).map(|key| format!("\"{}\":1", key % 90)).collect();
        let (_, problems) = Node::parse(&format!("{{{}}}", members.join(",")));
        let found: Vec<&str> = problems.iter().map(|one| one.pointer.as_str()).collect();
        let expected: Vec<String> = (0..10).map(|key| format!("/{key}")).collect();
        assert_eq!(found, expected);
    }
}
