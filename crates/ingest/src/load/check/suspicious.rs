//! Characters that people don't see, or that change how they see others.

use super::fields::Context;
use crate::load::json::Node;
use crate::load::pointer::At;

/// Says if a value is Markdown, which has lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::load) enum IsText {
    /// Markdown.
    Yes,
    /// Name, address or another value of one line.
    No,
}

impl Context<'_> {
    /// Warns of the first suspicious character of a value.
    pub(super) fn check_characters(
        &mut self,
        at: &At<'_>,
        node: &Node<'_>,
        value: &str,
        is_text: IsText,
    ) {
        if let Some(message) = warning(value, is_text) {
            self.warn(at, Some(node), "suspicious_characters", message);
        }
    }
}

/// Returns the warning about the first suspicious character of a value.
pub(in crate::load) fn warning(value: &str, is_text: IsText) -> Option<String> {
    let code_point = u32::from(suspicious(value, is_text)?);
    Some(format!(
        "U+{code_point:04X} in it, which people don't see as it is meant; remove it"
    ))
}

/// Returns the first character that is a replacement, a control or a control of directions; or any, if all have no width.
fn suspicious(value: &str, is_text: IsText) -> Option<char> {
    // Nearly all values have no byte with which such a character begins, which is quick to see.
    let is_line = |byte: u8| is_text == IsText::Yes && matches!(byte, b'\n' | b'\r' | b'\t');
    let begins_one = |byte: u8| matches!(byte, ..b' ' | 0x7f | 0xc2 | 0xd8 | 0xe2 | 0xef);
    let begins_one = |byte: u8| begins_one(byte) & !is_line(byte);
    if value
        .bytes()
        .fold(true, |none, byte| none & !begins_one(byte))
    {
        return None;
    }
    let is_hidden = |character: char| match character {
        '\u{fffd}' | '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        character => character.is_control(),
    };
    let has_no_width = |character: &char| matches!(character, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    let places = value.bytes().zip(0..).filter(|(byte, _)| begins_one(*byte));
    let mut candidates = places.filter_map(|(_, place)| value[place..].chars().next());
    let hidden = candidates.find(|character| is_hidden(*character));
    hidden.or_else(|| {
        let mut seen = value.chars().filter(|character| !character.is_whitespace());
        let first = seen.next().filter(has_no_width)?;
        seen.all(|character| has_no_width(&character))
            .then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspicious_characters_are_found() {
        for (value, in_value, in_text) in [
            ("Å Caf\u{e9} アサヒ", None, None),
            ("a\r\n\tb", Some('\r'), None),
            ("a\u{7}", Some('\u{7}'), Some('\u{7}')),
            ("a\u{85}", Some('\u{85}'), Some('\u{85}')),
            ("a\u{fffd}", Some('\u{fffd}'), Some('\u{fffd}')),
            ("a\u{202e}b", Some('\u{202e}'), Some('\u{202e}')),
            ("👨\u{200d}👩", None, None),
            (" \u{200b}\u{feff}", Some('\u{200b}'), Some('\u{200b}')),
        ] {
            assert_eq!(suspicious(value, IsText::No), in_value, "{value:?}");
            assert_eq!(suspicious(value, IsText::Yes), in_text, "{value:?}");
        }
    }

    #[test]
    fn every_character_is_judged_wherever_it_stands() {
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let is_hidden = character.is_control()
                || matches!(u32::from(character), 0xfffd | 0x61c | 0x200e | 0x200f)
                || matches!(u32::from(character), 0x202a..=0x202e | 0x2066..=0x2069);
            let expected = is_hidden.then_some(character);
            let value = format!("é{character}’");
            assert_eq!(suspicious(&value, IsText::No), expected, "{character:?}");
            let expected = expected.filter(|character| !matches!(character, '\n' | '\r' | '\t'));
            assert_eq!(suspicious(&value, IsText::Yes), expected, "{character:?}");
        }
    }
}
