//! How a snapshot comes about: products in code order, texts in any.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::{ContentHash, Rendered, ServedText, Snapshot};
use crate::code::ProductCode;
use crate::content::{TextDigest, TextName};
use crate::place::Country;
use crate::revision::Revision;

/// One product on its way into a snapshot.
#[derive(Debug)]
pub struct Entry<'a> {
    /// Its code; codes must arrive in ascending order.
    pub code: ProductCode,
    /// Its bytes, rendered.
    pub bytes: &'a [u8],
    /// Where its content resources lie within `bytes`, if it has any.
    pub content: Option<Range<usize>>,
    /// The texts whose Markdown is held.
    pub own_texts: Vec<(TextName, TextDigest)>,
    /// Whether it can be ordered.
    pub is_orderable: bool,
    /// Where it can be redeemed.
    pub countries: &'a [Country],
    /// Its categories.
    pub categories: &'a [Box<str>],
}

/// Takes products and texts and makes a [`Snapshot`] of them.
#[derive(Debug, Default)]
pub struct SnapshotBuilder {
    snapshot: Snapshot,
}

/// A product came out of order, twice, or beyond what positions can count.
#[derive(Debug, thiserror::Error)]
#[error("product {code} isn't in ascending order of codes, or is one too many")]
pub struct OutOfOrder {
    code: ProductCode,
}

impl SnapshotBuilder {
    /// An empty snapshot.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a product.
    ///
    /// # Errors
    ///
    /// Where its code doesn't follow the one before.
    pub fn product(&mut self, entry: Entry<'_>) -> Result<(), OutOfOrder> {
        let Entry {
            code,
            bytes,
            content,
            own_texts,
            is_orderable,
            countries,
            categories,
        } = entry;
        let snapshot = &mut self.snapshot;
        let position = match u32::try_from(snapshot.codes.len()) {
            Ok(position) if snapshot.codes.last().is_none_or(|last| *last < code) => position,
            _ => return Err(OutOfOrder { code }),
        };
        if position > 0 {
            snapshot.arena.push(b',');
        }
        let start = snapshot.arena.len();
        snapshot.arena.extend_from_slice(bytes);
        snapshot.products.push(Rendered {
            bytes: start..snapshot.arena.len(),
            content,
            hash: content_hash(bytes),
        });
        snapshot.codes.push(code);
        if !own_texts.is_empty() {
            snapshot.own_texts.insert(position, own_texts);
        }
        if is_orderable {
            snapshot.orderable.insert(position);
        }
        for country in countries {
            let bitmap = snapshot.countries.entry(*country).or_default();
            bitmap.insert(position);
        }
        for category in categories {
            if let Some(bitmap) = snapshot.categories.get_mut(category) {
                bitmap.insert(position);
            } else {
                let bitmap = std::iter::once(position).collect();
                snapshot.categories.insert(category.clone(), bitmap);
            }
        }
        Ok(())
    }

    /// Adds a text.
    pub fn text(&mut self, digest: TextDigest, text: ServedText) {
        self.snapshot.texts.insert(digest, text);
    }

    /// The finished snapshot, which is that of `revision`.
    #[must_use]
    pub fn finish(self, revision: Revision) -> Snapshot {
        let mut snapshot = self.snapshot;
        snapshot.revision = revision;
        snapshot.arena.shrink_to_fit();
        snapshot.codes.shrink_to_fit();
        snapshot.products.shrink_to_fit();
        snapshot
    }
}

fn content_hash(bytes: &[u8]) -> ContentHash {
    let mut hash = ContentHash::default();
    hash.copy_from_slice(&Sha256::digest(bytes)[..16]);
    hash
}
