//! Escapes of characters that control a terminal or reorder text: control characters and bidirectional formatting.
//!
//! [`single_line`] escapes texts from outside in reports and tables; [`lines`] escapes logs and terminal output
//! (`cli/output`) as a whole. Escapes are those of JSON, so JSON stays valid.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns true for C0, DEL and C1 control characters, line and paragraph separators, and bidirectional marks and
/// overrides.
#[must_use]
pub fn is_steering(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Escapes a text from outside for use within a line.
#[must_use]
pub fn single_line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Escapes a whole output. Line feeds, tabs, and carriage returns before line feeds stay.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |rest| {
        rest.starts_with(['\n', '\t']) || rest.starts_with("\r\n")
    })
}

/// Escapes all such characters, except where `is_structure` accepts the rest of the text.
fn escaped(text: &str, is_structure: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if !text.contains(is_steering) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (start, character) in text.char_indices() {
        match character {
            _ if !is_steering(character) || is_structure(&text[start..]) => out.push(character),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => {
                // Writing to a string can't fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_json_stays_valid_and_means_the_same() {
        let text = "a\u{1b}]0;x\u{7}\u{7f}\u{9b}31m\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\r\n\t";
        let json = serde_json::json!({ "text": text });
        for json in [json.to_string(), format!("{json:#}").replace('\n', "\r\n")] {
            let shown = lines(&json);
            let structure = shown.replace(['\r', '\n'], "");
            assert!(!structure.contains(is_steering), "{shown}");
            let read: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
            assert_eq!(read["text"], text);
        }
    }

    #[test]
    fn plain_text_and_structure_are_not_escaped() {
        let text = "a\tb\r\nü 雪 \u{200d}\n";
        assert_eq!(lines(text), text);
        assert_eq!(lines("a\rb"), "a\\rb");
        assert_eq!(single_line("a\nb"), "a\\nb");
    }
}
