//! Methods and paths as the access log shows them: shortened, and without secrets.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use vitrine_model::key::NewKey;

/// Maximum number of characters of a method: a client may send any word, even a key.
const METHOD_CHARACTERS: usize = 16;

/// Maximum number of characters of a path.
const PATH_CHARACTERS: usize = 256;

/// Minimum length of a key, in bytes.
const MIN_KEY_BYTES: usize = 50;

/// Maximum length of a key's name, between its start and its secret, in bytes: `test_` and eleven letters or digits.
const KEY_NAME_BYTES: usize = 16;

/// Returns a method as the log shows it.
pub(crate) fn shown_method(method: &str) -> &str {
    start(method, METHOD_CHARACTERS)
}

/// Returns a path as the log shows it: its start, and only the prefix of a key in it. Everything after the prefix may
/// be the secret, in any encoding.
pub(crate) fn shown_path(path: &str) -> Cow<'_, str> {
    let path = start(path, PATH_CHARACTERS);
    if path.len() < MIN_KEY_BYTES {
        return path.into();
    }
    let decoded = decoded(path);
    let Some(key) = decoded.find(NewKey::START) else {
        return path.into();
    };
    let name = key + NewKey::START.len();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = decoded[name..].bytes().take(KEY_NAME_BYTES);
    let name_bytes = bytes.take_while(is_name).count();
    decoded[..name + name_bytes].to_owned().into()
}

/// Decodes a path repeatedly, until nothing is percent-encoded: proxies decode, too.
fn decoded(path: &str) -> Cow<'_, str> {
    let mut decoded = Cow::Borrowed(path);
    while decoded.contains('%') {
        let once = percent_decode_str(&decoded).decode_utf8_lossy();
        if once == decoded {
            break;
        }
        decoded = Cow::Owned(once.into_owned());
    }
    decoded
}

/// Returns the first characters of a text.
fn start(text: &str, characters: usize) -> &str {
    if text.len() <= characters {
        return text;
    }
    let end = text.char_indices().nth(characters);
    &text[..end.map_or(text.len(), |(end, _)| end)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_in_a_path_is_cut_after_its_prefix() {
        let secret = "S3".repeat(22);
        for (prefix, between) in [
            ("vitrine_AAAAAAAAAAA", "."),
            ("vitrine_AAAAAAAAAAA", "%2E"),
            ("vitrine_AAAAAAAAAAA", "%252e"),
            ("vitrine_AAAAAAAAAAA", "%u002E"),
            ("vitrine_AAAAAAAAAAA", "%"),
            ("vitrine%5FAAAAAAAAAAA", "."),
            ("%76itrine%255fAAAAAAAAAAA", "%2E"),
            ("vitrine_test_AAAAAAAAAAA", "%2E"),
            ("%FFvitrine_AAAAAAAAAAA", "%FF"),
        ] {
            let path = format!("/v2/x/{prefix}{between}{secret}/more");
            let shown = shown_path(&path);
            assert!(shown.ends_with("_AAAAAAAAAAA"), "{path}: {shown}");
        }
    }

    #[test]
    fn path_without_a_key_is_shown_unchanged() {
        let long = format!("/v2/product/{}", "%25".repeat(100));
        assert_eq!(shown_path(&long), long[..PATH_CHARACTERS]);
        let encoded = "/v2/product/caf%C3%A9%2Evitrine%2E%FF%2525%zz/and/so/on/and/so/on";
        for path in ["/v2/product/A", "/v2/product/vitrine_A.B", encoded] {
            assert_eq!(shown_path(path), path);
        }
        let letters = format!("/{}", "é".repeat(300));
        assert_eq!(shown_path(&letters).chars().count(), PATH_CHARACTERS);
        assert_eq!(shown_method(&"A".repeat(300)).len(), METHOD_CHARACTERS);
    }
}
