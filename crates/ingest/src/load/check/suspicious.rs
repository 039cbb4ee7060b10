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
    let is_line = |byte: u8| is_text == IsText::Yes && matches!(byte, b'\n' | b'\r' | b'\t');
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte) || is_line(byte);
    // Nearly all values have only such, which is quick to see.
    if value
        .bytes()
        .fold(true, |plain, byte| plain & is_plain(byte))
    {
        return None;
    }
    let is_hidden = |character: char| match character {
        '\n' | '\r' | '\t' => is_text == IsText::No,
        '\u{fffd}' | '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        character => character.is_control(),
    };
    let has_no_width = |character: &char| matches!(character, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    let hidden = value.chars().find(|character| is_hidden(*character));
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
}
