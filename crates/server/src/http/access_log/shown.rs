//! What the access log shows of a request: no more than helps, and no secret.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use vitrine_model::key::NewKey;

/// How much of a method is shown: any word can be one, a key too.
const METHOD_CHARACTERS: usize = 16;

/// How much of a path is shown.
const PATH_CHARACTERS: usize = 256;

/// No key is shorter.
const LEAST_KEY_BYTES: usize = 50;

/// The longest name of a key, between how it begins and its secret: `test_` and eleven letters or digits.
const KEY_NAME_BYTES: usize = 16;

/// A method as the log shows it.
pub(crate) fn shown_method(method: &str) -> &str {
    start(method, METHOD_CHARACTERS)
}

/// A path as the log shows it: its start, and of a key that somebody put into it no more than the prefix. Whatever
/// follows that may be the secret, however it is encoded.
pub(crate) fn shown_path(path: &str) -> Cow<'_, str> {
    let path = start(path, PATH_CHARACTERS);
    if path.len() < LEAST_KEY_BYTES {
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

/// A path in which nothing is percent-encoded any more, not even twice: proxies decode, too.
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

/// The first characters of a text.
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
    fn of_a_key_in_a_path_only_the_prefix_is_shown() {
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
    fn a_path_without_a_key_is_shown_as_it_was_sent() {
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
