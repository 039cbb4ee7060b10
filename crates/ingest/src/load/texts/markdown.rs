//! Rules for texts as bytes.

use vitrine_model::Invalid;
use vitrine_model::content::{PackedMarkdown, TextDigest};

use crate::html;

/// Byte-order mark of UTF-8, which some editors write.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Maximum length of a text, including a byte-order mark, in bytes.
pub const MAX_BYTES: usize = PackedMarkdown::MAX_LENGTH_BYTES + BYTE_ORDER_MARK.len();

/// Checks the bytes of a text: UTF-8, visible, at most 1 MiB. Removes a byte-order mark and changes nothing else.
///
/// # Errors
///
/// If the bytes break one of these rules.
pub fn markdown(mut bytes: Vec<u8>) -> Result<String, Invalid> {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    // Checked first: a truncated text may end within a character.
    if bytes.len() > PackedMarkdown::MAX_LENGTH_BYTES {
        let expected = "Markdown of at most 1 MiB";
        return Err(Invalid::new("text_too_long", expected));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(Invalid::new("utf8", "UTF-8"));
    };
    if text.contains('\0') {
        return Err(Invalid::new("nul_character", "a text without U+0000"));
    }
    if text.trim().is_empty() {
        let expected = "a text that isn't blank";
        return Err(Invalid::new("text_blank", expected));
    }
    if html::renders_empty(&text, &TextDigest::of(&text)) {
        return Err(html::RENDERS_EMPTY);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_reported_by_its_name() {
        let rule = |bytes: &[u8]| markdown(bytes.to_vec()).map_err(|invalid| invalid.rule);
        assert_eq!(rule("Grüße\r\n".as_bytes()), Ok("Grüße\r\n".to_owned()));
        assert_eq!(rule(b"\xef\xbb\xbf# T"), Ok("# T".to_owned()));
        let longest = PackedMarkdown::MAX_LENGTH_BYTES;
        assert!(rule(&vec![b'x'; longest]).is_ok());
        assert_eq!(rule(&vec![b'x'; longest + 1]), Err("text_too_long"));
        assert_eq!(rule(b"caf\xe9"), Err("utf8"));
        assert_eq!(rule(b"a\0b"), Err("nul_character"));
        assert_eq!(rule(b"<!-- a -->"), Err("text_renders_empty"));
        for blank in ["", "\u{feff}", " \r\n\t", "\u{a0}"] {
            assert_eq!(rule(blank.as_bytes()), Err("text_blank"), "{blank:?}");
        }
    }
}
