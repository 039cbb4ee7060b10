//! Entity tags and conditional requests (RFC 9110, sections 8.8.3 and 13.1.2; docs/contract/caching.md#entity-tags).

use http::header::IF_NONE_MATCH;
use http::{HeaderMap, HeaderValue};
use vitrine_model::content_hash::ContentHash;

/// Weak entity tag of a response: one for all codings, the same as long as its plain bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag(ContentHash);

/// Start of a weak tag (RFC 9110, section 8.8.3).
const START: &[u8; 3] = b"W/\"";

/// Length of a tag in a header: its start, 32 digits, a quote.
const TAG_BYTES: usize = START.len() + 2 * ContentHash::LENGTH_BYTES + 1;

impl EntityTag {
    /// Returns the tag of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(ContentHash::of(bytes))
    }

    /// Returns the tag of a response that these parts determine.
    #[must_use]
    pub fn of_parts<'p>(parts: impl Iterator<Item = &'p [u8]>) -> Self {
        Self(ContentHash::of_parts(parts))
    }

    /// Returns the tag of bytes with this SHA-256.
    #[must_use]
    pub fn of_digest(digest: &[u8; 32]) -> Self {
        Self(ContentHash::from_sha256(digest))
    }

    /// Returns the tag of bytes with this hash.
    #[must_use]
    pub fn from_hash(hash: ContentHash) -> Self {
        Self(hash)
    }

    /// Returns the hash in it.
    #[must_use]
    pub fn hash(self) -> ContentHash {
        self.0
    }

    /// Returns the value of `ETag`.
    #[must_use]
    pub fn header_value(self) -> HeaderValue {
        // Quotes and digits can't be refused.
        HeaderValue::from_bytes(&self.text()).unwrap_or_else(|_| HeaderValue::from_static("W/\"\""))
    }

    /// Returns true if the client already has this response: `If-None-Match` lists the tag, or is `*`. Tags are compared
    /// weakly.
    #[must_use]
    pub fn matches_if_none_match(self, headers: &HeaderMap) -> bool {
        let mut lists = headers.get_all(IF_NONE_MATCH).iter().peekable();
        if lists.peek().is_none() {
            return false;
        }
        let text = self.text();
        let own = opaque(&text);
        lists
            .map(HeaderValue::as_bytes)
            .any(|list| list.trim_ascii() == b"*" || tags(list).any(|tag| tag == own))
    }

    fn text(self) -> [u8; TAG_BYTES] {
        let mut text = [b'"'; TAG_BYTES];
        text[..START.len()].copy_from_slice(START);
        for (pair, byte) in text[START.len()..]
            .chunks_exact_mut(2)
            .zip(self.0.as_bytes())
        {
            pair[0] = HEX_DIGITS[usize::from(byte >> 4)];
            pair[1] = HEX_DIGITS[usize::from(byte & 15)];
        }
        text
    }
}

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns a tag without its weakness indicator.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Returns the opaque tags of a list, up to the first member that isn't one.
fn tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        while let [b' ' | b'\t' | b',', after @ ..] = rest {
            rest = after;
        }
        rest = opaque(rest);
        let end = memchr::memchr(b'"', rest.strip_prefix(b"\"")?)? + 2;
        let (tag, after) = rest.split_at(end);
        rest = after;
        Some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_matches_lists_weakly_and_the_star() {
        let tag = EntityTag::from_hash(ContentHash::from_bytes([7; 16]));
        let weak = String::from_utf8(tag.text().to_vec()).unwrap();
        assert_eq!(weak, format!("W/\"{}\"", "07".repeat(16)));
        assert_eq!(tag.header_value(), weak);
        let strong = weak.trim_start_matches("W/").to_owned();
        let is_known = |value: &str| {
            let headers = HeaderMap::from_iter([(IF_NONE_MATCH, value.parse().unwrap())]);
            tag.matches_if_none_match(&headers)
        };
        for value in [
            "*",
            " * ",
            &weak,
            &strong,
            &format!("\"a\", {weak}"),
            &format!("W/\"x,y\" ,{strong}"),
            &format!(",,{strong},"),
        ] {
            assert!(is_known(value), "{value}");
        }
        let bare = strong.trim_matches('"').to_owned();
        for value in [
            "",
            "\"\"",
            &bare,
            "W/",
            "\"a\"",
            &format!("\"a{bare}\""),
            "**",
        ] {
            assert!(!is_known(value), "{value}");
        }
    }
}
