//! Packed documents: compressed by zstd with a dictionary that is part of the program, since most of a document is what all
//! documents have. Each frame names its dictionary, so a later release can pack with a better one and still read these.

use std::cell::RefCell;
use std::fmt;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::get_frame_content_size;

use crate::StoreError;

/// Dictionary 1, made of invented products only (docs/decisions/0002-products-stored-as-served.md).
const DICTIONARY: &[u8] = include_bytes!("document.dict");

const LEVEL: i32 = 3;

/// Maximum length of a document, in bytes: what a record of the greatest length can become.
pub const MAX_LENGTH_BYTES: usize = 128 << 20;

static ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
static DECODER: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A document, compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedDocument(Box<[u8]>);

impl PackedDocument {
    /// Packs the bytes of a document.
    ///
    /// # Errors
    ///
    /// If it is longer than [`MAX_LENGTH_BYTES`]: all that was packed can be unpacked in bounded memory.
    pub fn pack(document: &[u8]) -> Result<Self, StoreError> {
        if document.len() > MAX_LENGTH_BYTES {
            return Err(StoreError::Unsupported(
                "a product's document can have at most 128 MiB",
            ));
        }
        let packed = COMPRESSOR.with_borrow_mut(|compressor| {
            let compressor = match compressor {
                Some(compressor) => compressor,
                None => compressor.insert(Compressor::with_prepared_dictionary(&ENCODER)?),
            };
            compressor.compress(document)
        });
        // Without the room that was kept for what can't be compressed: a million may wait in memory.
        let packed = packed.map(Vec::into_boxed_slice);
        packed.map(Self).map_err(|error| damaged(&error))
    }

    /// Returns the compressed bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Unpacks the compressed bytes of a document. Whether it is the right one, only its digest can tell.
///
/// # Errors
///
/// If the bytes aren't those of a packed document.
pub fn unpack(packed: &[u8]) -> Result<String, StoreError> {
    let mut unpacked = Vec::new();
    decompress(packed, &mut unpacked)?;
    String::from_utf8(unpacked).map_err(|error| damaged(&error))
}

/// As [`unpack`], into memory that is used again.
pub(crate) fn unpack_into<'u>(
    packed: &[u8],
    unpacked: &'u mut Vec<u8>,
) -> Result<&'u str, StoreError> {
    decompress(packed, unpacked)?;
    std::str::from_utf8(unpacked).map_err(|error| damaged(&error))
}

fn decompress(packed: &[u8], unpacked: &mut Vec<u8>) -> Result<(), StoreError> {
    let told = get_frame_content_size(packed);
    let length = told.ok().flatten().and_then(|told| told.try_into().ok());
    let length = length.filter(|length| *length <= MAX_LENGTH_BYTES);
    let length = length.ok_or_else(|| damaged(&"its length is invalid"))?;
    unpacked.clear();
    unpacked.reserve(length);
    let done = DECOMPRESSOR.with_borrow_mut(|decompressor| {
        let decompressor = match decompressor {
            Some(decompressor) => decompressor,
            None => decompressor.insert(Decompressor::with_prepared_dictionary(&DECODER)?),
        };
        decompressor.decompress_to_buffer(packed, unpacked)
    });
    done.map(drop).map_err(|error| damaged(&error))
}

fn damaged(error: &dyn fmt::Display) -> StoreError {
    StoreError::Damaged(format!("a packed document can't be read: {error}"))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};
    use vitrine_model::hexadecimal::Hexadecimal;

    use super::*;

    #[test]
    fn dictionary_is_frozen() {
        // Documents in stores can be read only with the dictionary that they were packed with: add another, keep this.
        let digest = Sha256::digest(DICTIONARY);
        let expected = "0cb15b78526a6f9a622b133029fa6b26a6017af8995145859ff3f94e19d5c620";
        assert_eq!(Hexadecimal(&digest).to_string(), expected);
    }

    #[test]
    fn packed_document_is_unpacked_as_it_was() {
        let sample = include_str!("../../../fixtures/catalog.ndjson");
        for document in sample.lines().chain(["", "{}", "ü", "no JSON"]) {
            let packed = PackedDocument::pack(document.as_bytes()).unwrap();
            assert_eq!(unpack(packed.as_bytes()).unwrap(), document);
        }
    }

    #[test]
    fn cut_or_changed_bytes_do_not_panic() {
        let document = r#"{"name":"One","code":"A","currency":"USD","payout_type":"gift_card"}"#;
        let packed = PackedDocument::pack(document.as_bytes()).unwrap();
        let bytes = packed.as_bytes();
        for end in 0..bytes.len() {
            assert!(unpack(&bytes[..end]).is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.to_vec();
                other[at] ^= 1 << bit;
                let _ = unpack(&other);
            }
        }
    }

    #[test]
    fn length_beyond_the_maximum_is_refused() {
        // A frame that says that it holds 4 GiB: magic number, one segment with a length of 8 bytes.
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
        frame.extend((4_u64 << 30).to_le_bytes());
        frame.extend([0x01, 0x00, 0x00]);
        assert!(unpack(&frame).is_err());
    }
}
