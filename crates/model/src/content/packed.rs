//! A text as it rests: its Markdown, compressed.

use bytes::Bytes;

use super::TextDigest;
use crate::Invalid;

/// What is wrong with packed bytes that aren't the text they should be.
const DAMAGED: Invalid = Invalid::new("text_damaged", "a text as it was packed");

/// A text's Markdown, compressed: how it rests in the store and in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedMarkdown(Bytes);

impl From<Bytes> for PackedMarkdown {
    /// What a store kept, in memory that may be shared.
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl PackedMarkdown {
    /// The longest Markdown of one text, in bytes.
    pub const MAX_LENGTH_BYTES: usize = 1 << 20;

    /// Compresses `markdown`.
    ///
    /// # Errors
    ///
    /// Where it is longer than [`MAX_LENGTH_BYTES`](Self::MAX_LENGTH_BYTES), so that whatever was
    /// packed can be unpacked in bounded memory.
    pub fn pack(markdown: &str) -> Result<Self, Invalid> {
        let invalid = Invalid::new("text_too_long", "Markdown of at most 1 MiB");
        if markdown.len() > Self::MAX_LENGTH_BYTES {
            return Err(invalid);
        }
        zstd::bulk::compress(markdown.as_bytes(), 3)
            .map(|bytes| Self(bytes.into()))
            .map_err(|_| invalid)
    }

    /// The compressed bytes, for a store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What a store kept.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }

    /// The mark of a text that is damaged in the store: no bytes.
    #[must_use]
    pub fn damaged() -> Self {
        Self(Bytes::new())
    }

    /// Returns true for that mark.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes the Markdown has, as the packed ones say; the longest text's where they are damaged.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        let told = zstd::zstd_safe::get_frame_content_size(&self.0);
        let told: Option<usize> = told.ok().flatten().and_then(|told| told.try_into().ok());
        let most = Self::MAX_LENGTH_BYTES;
        told.unwrap_or(most).min(most)
    }

    /// The Markdown of this digest.
    ///
    /// # Errors
    ///
    /// Where the bytes are damaged, even so that they are those of another text: what is packed has no checksum of
    /// its own.
    pub fn unpack_as(&self, digest: &TextDigest) -> Result<String, Invalid> {
        let markdown = self.unpack()?;
        let is_whole = TextDigest::of(&markdown) == *digest;
        is_whole.then_some(markdown).ok_or(DAMAGED)
    }

    /// The Markdown, whatever its digest.
    ///
    /// # Errors
    ///
    /// Where the bytes are damaged so that they are no text.
    pub fn unpack(&self) -> Result<String, Invalid> {
        let bytes = zstd::bulk::decompress(&self.0, self.length_bytes()).map_err(|_| DAMAGED)?;
        String::from_utf8(bytes).map_err(|_| DAMAGED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_text_comes_back_as_what_it_was_or_not_at_all() {
        let digest = TextDigest::of("Grüße");
        let packed = PackedMarkdown::pack("Grüße").unwrap();
        assert_eq!(packed.length_bytes(), "Grüße".len());
        assert_eq!(packed.unpack().unwrap(), "Grüße");
        assert_eq!(packed.unpack_as(&digest).unwrap(), "Grüße");
        assert!(packed.unpack_as(&TextDigest::of("Gruß")).is_err());
        assert!(PackedMarkdown::from_bytes(b"junk").unpack().is_err());
        assert!(PackedMarkdown::pack(&"x".repeat((1 << 20) + 1)).is_err());
    }
}
