//! The digest of a stored product, and the comparison with it.

use std::ops::Range;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::Xxh3Default;

use crate::record::OwnText;

/// Text in front of the content resources in a document.
const CONTENT_KEY: &str = "\"content_resources\":";

/// Checksum of a stored product and its digest: finds damage as the digest does, in a tenth of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum(pub(crate) [u8; 8]);

impl Checksum {
    /// Returns a stored checksum; a version that an earlier release wrote has none, and a damaged one counts as none.
    pub(crate) fn stored(bytes: Option<&[u8]>) -> Option<Self> {
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self)
    }
}

/// Digest of a stored product, with its input beside code and document. Cheap to read, so that the reader of a catalog
/// can leave the comparison to other threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDigest {
    digest: [u8; 32],
    checksum: Option<Checksum>,
    is_orderable: i64,
    rest: Vec<u8>,
}

impl StoredDigest {
    /// Returns the stored digest of a product. `parts` are its discount, countries and categories.
    pub(crate) fn new(
        (digest, checksum): ([u8; 32], Option<Checksum>),
        is_orderable: i64,
        parts: [&str; 3],
        own_texts: &[OwnText],
    ) -> Self {
        Self {
            digest,
            checksum,
            is_orderable,
            rest: rest(parts, own_texts),
        }
    }

    /// Returns whether code and document match the checksum, or else the digest, and `content` is the range of the content
    /// resources.
    #[must_use]
    pub fn matches(&self, code: &str, document: &str, content: Option<&Range<usize>>) -> bool {
        let input = Input {
            is_orderable: self.is_orderable,
            parts: [code, document],
            rest: &self.rest,
        };
        let is_intact = (self.checksum)
            .is_some_and(|stored| stored == input.checksum(&self.digest))
            || input.digest() == self.digest;
        is_intact && content.is_none_or(|content| is_content(document, content))
    }
}

/// Returns the digest that tells a changed product from an unchanged one. It covers code, document, discount, countries
/// and categories as stored, orderability, and the texts in any order. The document has most of this, too, but lists are
/// made of the columns beside it. The range of the content resources isn't part of it: see [`is_content`].
pub(crate) fn digest(parts: [&str; 5], is_orderable: i64, own_texts: &[OwnText]) -> [u8; 32] {
    with_checksum(parts, is_orderable, own_texts).0
}

/// Returns the digest, and the checksum of it and its input.
pub(crate) fn with_checksum(
    parts: [&str; 5],
    is_orderable: i64,
    own_texts: &[OwnText],
) -> ([u8; 32], Checksum) {
    let [code, document, parts @ ..] = parts;
    let input = Input {
        is_orderable,
        parts: [code, document],
        rest: &rest(parts, own_texts),
    };
    let digest = input.digest();
    (digest, input.checksum(&digest))
}

/// Input of the digest of a product.
struct Input<'i> {
    is_orderable: i64,
    /// Code and document.
    parts: [&'i str; 2],
    rest: &'i [u8],
}

impl Input<'_> {
    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        self.each(|bytes| hash.update(bytes));
        hash.finalize().into()
    }

    fn checksum(&self, digest: &[u8; 32]) -> Checksum {
        let mut hash = Xxh3Default::new();
        hash.update(digest);
        self.each(|bytes| hash.update(bytes));
        Checksum(hash.digest().to_be_bytes())
    }

    fn each(&self, mut update: impl FnMut(&[u8])) {
        update(&self.is_orderable.to_le_bytes());
        for part in self.parts {
            update(&length(part));
            update(part.as_bytes());
        }
        update(self.rest);
    }
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

/// Adds parts to a hash, each with a mark that tells a missing part from an empty one, and its length.
pub(crate) fn add_parts<'p>(hash: &mut Sha256, parts: impl IntoIterator<Item = Option<&'p [u8]>>) {
    for part in parts {
        hash.update([u8::from(part.is_some())]);
        let part = part.unwrap_or_default();
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
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
