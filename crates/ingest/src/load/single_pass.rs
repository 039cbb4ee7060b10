//! Single pass over JSON without problems: what nearly all records are. Whatever may be a problem is left to the parser of
//! `json`, which says where it is; it looks at nested values once for each level.

use std::borrow::Cow;

use memchr::memchr2;

use super::json::{MAX_LEVELS, Node};

/// Maximum number of members of an object here: each key is compared with all before it.
const MAX_MEMBERS: usize = 32;

/// Parses a value as [`Node::parse`] does; `None` if it may have a problem.
pub(super) fn parse(text: &str) -> Option<Node<'_>> {
    // Of the whole text at once, which is quicker than of each string; most have none.
    let has_controls = (text.bytes()).fold(false, |found, byte| found | (byte < b' '));
    let mut reader = Reader {
        text,
        at: 0,
        has_controls,
    };
    reader.skip_blanks();
    let node = reader.value(0)?;
    reader.skip_blanks();
    (reader.at == text.len()).then_some(node)
}

struct Reader<'a> {
    text: &'a str,
    /// Position of the next byte.
    at: usize,
    /// True if the text has control characters, which strings can't have.
    has_controls: bool,
}

/// Number of bytes of a string that are looked at one by one: most strings are shorter, and a call for them would take longer.
const FEW_BYTES: usize = 16;

/// Returns the position of the next quote or backslash.
fn end_of_piece(bytes: &[u8]) -> Option<usize> {
    let few = &bytes[..bytes.len().min(FEW_BYTES)];
    let found = few.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    found.or_else(|| Some(few.len() + memchr2(b'"', b'\\', &bytes[few.len()..])?))
}

impl<'a> Reader<'a> {
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

    fn value(&mut self, level: usize) -> Option<Node<'a>> {
        if level > MAX_LEVELS {
            return None;
        }
        match self.next()? {
            b'n' => self.word("null", Node::Null),
            b't' => self.word("true", Node::Bool(true)),
            b'f' => self.word("false", Node::Bool(false)),
            b'"' => self.string().map(Node::Text),
            b'[' => self.list(level),
            b'{' => self.object(level),
            _ => self.number(),
        }
    }

    fn list(&mut self, level: usize) -> Option<Node<'a>> {
        self.take(b'[')?;
        self.skip_blanks();
        if self.take(b']').is_some() {
            return Some(Node::List(Vec::new()));
        }
        let mut items = Vec::with_capacity(8);
        loop {
            self.skip_blanks();
            items.push(self.value(level + 1)?);
            self.skip_blanks();
            if self.take(b',').is_none() {
                self.take(b']')?;
                return Some(Node::List(items));
            }
        }
    }

    fn object(&mut self, level: usize) -> Option<Node<'a>> {
        self.take(b'{')?;
        self.skip_blanks();
        if self.take(b'}').is_some() {
            return Some(Node::Object(Vec::new()));
        }
        // As many as most objects of products have.
        let mut members: Vec<(Cow<'a, str>, Node<'a>)> = Vec::with_capacity(16);
        loop {
            self.skip_blanks();
            let key = self.string()?;
            let is_repeated = members.iter().any(|(other, _)| *other == key);
            if is_repeated || members.len() == MAX_MEMBERS {
                return None;
            }
            self.skip_blanks();
            self.take(b':')?;
            self.skip_blanks();
            let value = self.value(level + 1)?;
            members.push((key, value));
            self.skip_blanks();
            if self.take(b',').is_none() {
                self.take(b'}')?;
                return Some(Node::Object(members));
            }
        }
    }

    /// Reads a string without U+0000, borrowed if it has no escapes.
    fn string(&mut self) -> Option<Cow<'a, str>> {
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
            return self.text.get(start + 1..self.at - 1).map(Cow::Borrowed);
        }
        let text: String = serde_json::from_str(self.text.get(start..self.at)?).ok()?;
        (!text.contains('\0')).then_some(Cow::Owned(text))
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn single_pass_reads_as_the_careful_parser() {
        let mut read = 0;
        for text in [
            r#"{"a":[1,-0.5e+3,true,false,null,"é\u00e9\"\\"],"b":{"c":{}, "d" : [] }}"#,
            " [ \"\\ud83d\\ude00\", 10, 0, 0.1, 1E-2 , {\"k\":\"v\"} ] \n",
            r#"{"a":{"a":{"a":"\u0000"}},"b":"\ud800","a":01}"#,
            "\"text\"",
            "-12",
        ] {
            for variant in variants(text) {
                let (node, problems) = Node::parse_with_problems(&variant);
                if let Some(found) = parse(&variant) {
                    read += 1;
                    assert_eq!((found, &problems[..]), (node, &[][..]), "{variant}");
                }
            }
        }
        assert!(read > 100, "{read}");
        for nested in [64, 65] {
            let text = format!("{}{}", "[".repeat(nested), "]".repeat(nested));
            let (_, problems) = Node::parse_with_problems(&text);
            assert_eq!(parse(&text).is_some(), problems.is_empty());
        }
        for line in include_str!("../../../../fixtures/catalog.ndjson").lines() {
            let (node, problems) = Node::parse_with_problems(line);
            let found = parse(line);
            assert_eq!(found, Some(node).filter(|_| problems.is_empty()));
        }
    }
}
