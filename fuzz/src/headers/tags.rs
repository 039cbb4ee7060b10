//! Naive parser of `If-None-Match` (RFC 9110, section 13.1.2).

use http::header::IF_NONE_MATCH;
use http::{HeaderMap, HeaderValue, StatusCode};

/// Checks that the status is 304 if, and only if, a well-formed list has the tag, compared weakly.
pub(super) fn check_tag(headers: &HeaderMap, tag: &HeaderValue, status: StatusCode, about: &str) {
    let lists = headers.get_all(IF_NONE_MATCH).iter();
    let lists: Vec<&[u8]> = lists.map(HeaderValue::as_bytes).collect();
    let opaque = tag.as_bytes().strip_prefix(b"W/").expect("a weak tag");
    let read: Vec<Option<Vec<&[u8]>>> = lists.iter().map(|list| tags(list)).collect();
    let is_known = read
        .iter()
        .flatten()
        .flatten()
        .any(|tag| *tag == opaque || *tag == b"*");
    if read.iter().all(Option::is_some) {
        assert_eq!(status == StatusCode::NOT_MODIFIED, is_known, "{about}");
    } else if status == StatusCode::NOT_MODIFIED {
        // In a malformed list, tags may or may not be found, but only those that are there.
        let names = |list: &&[u8]| list.windows(opaque.len()).any(|part| part == opaque);
        assert!(is_known || lists.iter().any(names), "{about}");
    } else {
        assert_eq!(status, StatusCode::OK, "{about}");
    }
}

/// Returns the opaque tags of `#entity-tag`, or the star; `None` for anything else.
fn tags(list: &[u8]) -> Option<Vec<&[u8]>> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let trim = |mut text: &'_ [u8]| -> usize {
        let mut blanks = 0;
        while text.first().is_some_and(is_blank) {
            blanks += 1;
            text = &text[1..];
        }
        blanks
    };
    if list.trim_ascii() == b"*" {
        return Some(vec![b"*"]);
    }
    let mut tags = Vec::new();
    let mut rest = list;
    loop {
        rest = &rest[trim(rest)..];
        if let Some(after) = rest.strip_prefix(b",") {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Some(tags);
        }
        let start = rest.strip_prefix(b"W/").unwrap_or(rest);
        let inner = start.strip_prefix(b"\"")?;
        let end = inner.iter().position(|byte| *byte == b'"')?;
        let is_character = |byte: &u8| *byte == 0x21 || *byte >= 0x23 && *byte != 0x7f;
        if !inner[..end].iter().all(is_character) {
            return None;
        }
        tags.push(&start[..end + 2]);
        rest = &inner[end + 1..];
        rest = &rest[trim(rest)..];
        if !rest.is_empty() && !rest.starts_with(b",") {
            return None;
        }
    }
}
