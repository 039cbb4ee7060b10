//! Digests of stored rows, and the comparison of a product with its own.
//!
//! All are XXH3-128: they tell changed rows from unchanged ones, and find damage and edits by hand. No cryptographic hash is
//! needed: the operator's own catalog doesn't attack them, and who can write to the store can write digests as well.

use std::ops::Range;

use serde_json::value::RawValue;
use xxhash_rust::xxh3::Xxh3Default;

use crate::db::Value;
use crate::record::OwnText;

/// Text in front of the content resources in a document.
const CONTENT_KEY: &str = "\"content_resources\":";

/// Hash of the columns of a row, each with a mark that tells a missing value from an empty one, and the length of what has no
/// fixed length.
#[derive(Default)]
pub(crate) struct RowHash(Xxh3Default);

impl RowHash {
    /// Returns the digest of columns.
    pub(crate) fn of(columns: &[Value<'_>]) -> [u8; 16] {
        let mut hash = Self::default();
        for column in columns {
            match *column {
                Value::Text(text) => hash.bytes(text.map(str::as_bytes)),
                Value::Bytes(bytes) => hash.bytes(bytes),
                Value::Integer(number) => hash.number(number),
                Value::Boolean(value) => hash.number(value.map(i64::from)),
                // No column has an array.
                Value::Texts(_) | Value::Integers(_) => {}
            }
        }
        hash.finish()
    }

    pub(crate) fn bytes(&mut self, bytes: Option<&[u8]>) {
        self.0.update(&[u8::from(bytes.is_some())]);
        let bytes = bytes.unwrap_or_default();
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn number(&mut self, number: Option<i64>) {
        self.0.update(&[u8::from(number.is_some())]);
        self.0.update(&number.unwrap_or_default().to_le_bytes());
    }

    pub(crate) fn finish(self) -> [u8; 16] {
        self.0.digest128().to_be_bytes()
    }
}

/// Digest of a stored product, with its input beside code and document. Cheap to read, so that the reader of a catalog
/// can leave the comparison to other threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDigest {
    digest: [u8; 16],
    is_orderable: i64,
    rest: Vec<u8>,
}

impl StoredDigest {
    /// Returns the stored digest of a product. `parts` are its discount, countries and categories.
    pub(crate) fn new(
        digest: [u8; 16],
        is_orderable: i64,
        parts: [&str; 3],
        own_texts: &[OwnText],
    ) -> Self {
        Self {
            digest,
            is_orderable,
            rest: rest(parts, own_texts),
        }
    }

    /// Returns whether code and document match the digest, and `content` is the range of the content resources.
    #[must_use]
    pub fn matches(&self, code: &str, document: &str, content: Option<&Range<usize>>) -> bool {
        hash(self.is_orderable, [code, document], &self.rest) == self.digest
            && content.is_none_or(|content| is_content(document, content))
    }
}

/// Returns the digest of a product. It covers code, document, discount, countries and categories as stored, orderability, and
/// the texts in any order. The document has most of this, too, but lists are made of the columns beside it. The range of the
/// content resources isn't part of it: see [`is_content`].
pub(crate) fn digest(parts: [&str; 5], is_orderable: i64, own_texts: &[OwnText]) -> [u8; 16] {
    let [code, document, parts @ ..] = parts;
    hash(is_orderable, [code, document], &rest(parts, own_texts))
}

fn hash(is_orderable: i64, code_and_document: [&str; 2], rest: &[u8]) -> [u8; 16] {
    let mut hash = Xxh3Default::new();
    hash.update(&is_orderable.to_le_bytes());
    for part in code_and_document {
        hash.update(&length(part));
        hash.update(part.as_bytes());
    }
    hash.update(rest);
    hash.digest128().to_be_bytes()
}

fn rest(parts: [&str; 3], own_texts: &[OwnText]) -> Vec<u8> {
    // As long as most are.
    let mut bytes = Vec::with_capacity(512);
    let mut part = |text: &str| {
        bytes.extend(length(text));
        bytes.extend(text.as_bytes());
    };
    parts.into_iter().for_each(&mut part);
    let mut own_texts: Vec<&OwnText> = own_texts.iter().collect();
    own_texts.sort_unstable_by_key(|own| own.name);
    for own in own_texts {
        part(own.name.as_str());
        part(own.source.as_deref().unwrap_or_default());
    }
    bytes
}

/// Returns the length of a part, which separates it from the next one.
fn length(part: &str) -> [u8; 8] {
    (part.len() as u64).to_le_bytes()
}

/// Returns whether `range` is exactly that of the document's content resources.
pub(crate) fn is_content(document: &str, range: &Range<usize>) -> bool {
    let head = document.get(..range.start);
    let value = document.get(range.clone());
    head.is_some_and(|head| head.ends_with(CONTENT_KEY))
        && value.is_some_and(|value| {
            value.starts_with('{')
                && value.ends_with('}')
                && serde_json::from_str::<&RawValue>(value).is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_beside_the_content_is_no_content() {
        let document = r#"{"name":"\"content_resources\":{}","gift_card":{"assets":{},"content_resources":{"locale":"de}"}}}"#;
        let value = r#"{"locale":"de}"}"#;
        let start = document.find(value).unwrap();
        let end = start + value.len();
        for other_start in 0..document.len() {
            for other_end in 0..document.len() + 2 {
                let range = other_start..other_end;
                let expected = (other_start, other_end) == (start, end);
                assert_eq!(is_content(document, &range), expected, "{range:?}");
            }
        }
    }
}
