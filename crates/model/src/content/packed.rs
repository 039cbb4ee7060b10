//! Compressed Markdown, as stores and snapshots keep it.

use bytes::Bytes;

use super::TextDigest;
use crate::Invalid;

/// Error of compressed bytes that aren't the expected text.
const DAMAGED: Invalid = Invalid::new("text_damaged", "a text as it was packed");

/// Markdown of one text, compressed by zstd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedMarkdown(Bytes);

impl From<Bytes> for PackedMarkdown {
    /// Takes compressed bytes without copying them.
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl PackedMarkdown {
    /// Maximum length of one text's Markdown, in bytes.
    pub const MAX_LENGTH_BYTES: usize = 1 << 20;

    /// Compresses `markdown`.
    ///
    /// # Errors
    ///
    /// If it is longer than [`MAX_LENGTH_BYTES`](Self::MAX_LENGTH_BYTES): all that was packed can be unpacked in bounded
    /// memory.
    pub fn pack(markdown: &str) -> Result<Self, Invalid> {
        let invalid = Invalid::new("text_too_long", "Markdown of at most 1 MiB");
        if markdown.len() > Self::MAX_LENGTH_BYTES {
            return Err(invalid);
        }
        zstd::bulk::compress(markdown.as_bytes(), 3)
            .map(|bytes| Self(bytes.into()))
            .map_err(|_| invalid)
    }

    /// Returns the compressed bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Copies compressed bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }

    /// Returns the marker of a text that is corrupt in the store: no bytes.
    #[must_use]
    pub fn damaged() -> Self {
        Self(Bytes::new())
    }

    /// Returns true for the marker of a corrupt text.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the length of the Markdown according to the compressed bytes; the maximum length if they are corrupt.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        let told = zstd::zstd_safe::get_frame_content_size(&self.0);
        let told: Option<usize> = told.ok().flatten().and_then(|told| told.try_into().ok());
        let most = Self::MAX_LENGTH_BYTES;
        told.unwrap_or(most).min(most)
    }

    /// Decompresses the Markdown, and checks that it has this digest.
    ///
    /// # Errors
    ///
    /// If the bytes are corrupt, or are those of another text: the compressed bytes have no checksum of their own.
    pub fn unpack_as(&self, digest: &TextDigest) -> Result<String, Invalid> {
        let markdown = self.unpack()?;
        let is_whole = TextDigest::of(&markdown) == *digest;
        is_whole.then_some(markdown).ok_or(DAMAGED)
    }

    /// Decompresses the Markdown, without checking its digest.
    ///
    /// # Errors
    ///
    /// If the bytes can't be decompressed, or aren't UTF-8.
    pub fn unpack(&self) -> Result<String, Invalid> {
        let bytes = zstd::bulk::decompress(&self.0, self.length_bytes()).map_err(|_| DAMAGED)?;
        String::from_utf8(bytes).map_err(|_| DAMAGED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrupt_or_other_packed_text_is_not_unpacked() {
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
