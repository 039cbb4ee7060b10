//! Entity tags and conditional requests (RFC 9110, sections 8.8.3 and 13.1.2; decisions, "Caching").

use http::HeaderMap;
use http::header::IF_NONE_MATCH;
use sha2::{Digest, Sha256};

/// The weak entity tag of an answer: one for all encodings, the same as long as its bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag(String);

impl EntityTag {
    /// The tag of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 16];
        hash.copy_from_slice(&Sha256::digest(bytes)[..16]);
        Self::from_hash(hash)
    }

    /// The tag of an answer that the given parts determine.
    #[must_use]
    pub fn of_parts<'p>(parts: impl Iterator<Item = &'p [u8]>) -> Self {
        let mut sum = Sha256::new();
        for part in parts {
            sum.update(part);
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&sum.finalize()[..16]);
        Self::from_hash(hash)
    }

    /// The tag of bytes whose hash is known.
    #[must_use]
    pub fn from_hash(hash: [u8; 16]) -> Self {
        Self(format!("W/\"{:032x}\"", u128::from_be_bytes(hash)))
    }

    /// The tag as it stands in a header.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the client already has this answer: `If-None-Match` lists the tag, or is `*`. Tags
    /// are compared weakly.
    #[must_use]
    pub fn is_known_to(&self, headers: &HeaderMap) -> bool {
        let own = opaque(&self.0);
        headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|list| list.trim() == "*" || tags(list).any(|tag| tag == own))
    }
}

/// A tag without its mark of weakness.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// The opaque tags of a list; whatever isn't one ends it.
fn tags(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = opaque(rest.trim_start_matches([' ', '\t', ',']));
        let end = rest.strip_prefix('"')?.find('"')? + 2;
        let (tag, after) = rest.split_at(end);
        rest = after;
        Some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_tag_is_found_in_lists_weakly_and_by_a_star() {
        let tag = EntityTag::from_hash([7; 16]);
        let strong = opaque(tag.as_str()).to_owned();
        let weak = tag.as_str().to_owned();
        let is_known = |value: &str| {
            let headers = HeaderMap::from_iter([(IF_NONE_MATCH, value.parse().unwrap())]);
            tag.is_known_to(&headers)
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
