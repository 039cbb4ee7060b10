//! Compression of bodies. `docs/decisions/0006-compression.md` explains the choice of levels.

use std::cell::RefCell;
use std::io;

use bytes::Bytes;

use crate::http::request::encoding::Coding;

/// Minimum length of a body that is worth compressing, in bytes. Shorter ones are sent plain, if the client accepts
/// that.
pub const WORTH_COMPRESSING_BYTES: usize = 1000;

/// Maximum length of a body that is compressed, in bytes: compressing takes twice its length of memory on each core.
pub const MAX_COMPRESSED_BYTES: usize = 8 << 20;

/// Level of zstd: on pages, which repeat themselves, it takes less time than level 1 and makes them no larger.
const ZSTD_LEVEL: i32 = 2;

/// Level of gzip for the first request: libdeflate's fastest.
const QUICK_GZIP_LEVEL: i32 = 1;

/// Level of gzip for later requests: pages are a quarter smaller than at the fastest level.
const THOROUGH_GZIP_LEVEL: i32 = 6;

/// Level of brotli: the first that is smaller than zstd.
const BROTLI_QUALITY: i32 = 5;

/// Window of brotli, as a power of two: most pages are shorter than a mebibyte.
const BROTLI_WINDOW_BITS: i32 = 20;

/// Effort of compressing; it matters only for gzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// For a body that a request waits for.
    Quick,
    /// For a body that will be sent more than once, or is short.
    Thorough,
}

/// Compressors of one thread. Creating them takes as long as compressing a short body.
struct Compressors {
    /// Output buffer. Results are copied out of it, so that cached ones don't fragment memory.
    room: Vec<u8>,
    zstd: zstd::bulk::Compressor<'static>,
    quick_gzip: libdeflater::Compressor,
    thorough_gzip: libdeflater::Compressor,
}

thread_local! {
    static COMPRESSORS: RefCell<Option<Compressors>> = const { RefCell::new(None) };
}

impl Compressors {
    fn new() -> io::Result<Self> {
        let gzip = |level| {
            let level = libdeflater::CompressionLvl::new(level);
            let level = level.map_err(|error| io::Error::other(format!("{error:?}")))?;
            io::Result::Ok(libdeflater::Compressor::new(level))
        };
        Ok(Self {
            room: Vec::new(),
            zstd: zstd::bulk::Compressor::new(ZSTD_LEVEL)?,
            quick_gzip: gzip(QUICK_GZIP_LEVEL)?,
            thorough_gzip: gzip(THOROUGH_GZIP_LEVEL)?,
        })
    }

    fn zstd(&mut self, plain: &[u8]) -> io::Result<Bytes> {
        let room = room(&mut self.room, zstd::zstd_safe::compress_bound(plain.len()));
        let length = self.zstd.compress_to_buffer(plain, room)?;
        Ok(Bytes::copy_from_slice(&room[..length]))
    }

    fn gzip(&mut self, effort: Effort, plain: &[u8]) -> io::Result<Bytes> {
        let compressor = match effort {
            Effort::Quick => &mut self.quick_gzip,
            Effort::Thorough => &mut self.thorough_gzip,
        };
        let room = room(&mut self.room, compressor.gzip_compress_bound(plain.len()));
        let length = compressor
            .gzip_compress(plain, room)
            .map_err(io::Error::other)?;
        Ok(Bytes::copy_from_slice(&room[..length]))
    }
}

/// Returns a buffer of at least this length. The system allocates only pages that are written to.
fn room(kept: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if kept.len() < bytes {
        *kept = vec![0; bytes];
    }
    kept
}

/// Compresses a body.
///
/// # Errors
///
/// If memory runs out; any bytes can be compressed.
pub fn compress(coding: Coding, effort: Effort, plain: &[u8]) -> io::Result<Bytes> {
    COMPRESSORS.with_borrow_mut(|kept| {
        let compressors = match kept {
            Some(compressors) => compressors,
            None => kept.insert(Compressors::new()?),
        };
        match (coding, effort) {
            (Coding::Zstd, _) => compressors.zstd(plain),
            (Coding::Gzip, _) => compressors.gzip(effort, plain),
            (Coding::Brotli, _) => brotli(plain),
            (Coding::Identity, _) => Ok(plain.to_vec().into()),
        }
    })
}

/// Recompresses a gzip body with more effort.
///
/// # Errors
///
/// If it isn't a gzip body.
pub fn gzip_thoroughly(quick: &[u8]) -> io::Result<Bytes> {
    // The length of the content is at the end (RFC 1952, section 2.3.1).
    let length = quick
        .last_chunk()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let mut plain = vec![0; usize::try_from(length).unwrap_or(0)];
    libdeflater::Decompressor::new()
        .gzip_decompress(quick, &mut plain)
        .map_err(io::Error::other)?;
    compress(Coding::Gzip, Effort::Thorough, &plain)
}

fn brotli(plain: &[u8]) -> io::Result<Bytes> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW_BITS,
        size_hint: plain.len(),
        ..Default::default()
    };
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &*plain, &mut packed, &parameters)?;
    // Drops the spare capacity.
    Ok(packed.into_boxed_slice().into())
}
