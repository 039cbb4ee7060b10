//! Compression of bodies. `docs/decisions/0004-compression.md` gives the reasons for the levels.

use std::cell::RefCell;
use std::io;

use bytes::Bytes;

use crate::http::request::encoding::Coding;

/// Minimum length of a body that is compressed, in bytes: less would save little. Shorter ones are sent plain, if the
/// client accepts that.
pub const WORTH_COMPRESSING_BYTES: usize = 1000;

/// Maximum length of a body that is compressed, in bytes: compressing takes twice its length of memory on each core.
pub const MAX_COMPRESSED_BYTES: usize = 8 << 20;

/// Level 2 takes less time than 1 on pages, which repeat themselves, and makes them no larger.
const ZSTD_LEVEL: i32 = 2;

/// libdeflate's fastest level, for the first request.
const QUICK_GZIP_LEVEL: i32 = 1;

/// Level for later requests: a page is a quarter smaller than at the fastest level.
const THOROUGH_GZIP_LEVEL: i32 = 6;

/// The first level at which brotli is worth its time: below it, zstd is smaller.
const BROTLI_QUALITY: i32 = 5;

/// As far back as brotli looks, as a power of two: a page is hardly longer than a mebibyte.
const BROTLI_WINDOW_BITS: i32 = 20;

/// Effort of compressing. Only gzip makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A client waits for it.
    Quick,
    /// It will be sent more than once, or is short.
    Thorough,
}

/// Compressors of one thread. Creating them costs as much as compressing a small body.
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

/// Returns a buffer of at least this length. It takes memory only as far as it was written to.
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
/// If memory runs out: all bytes can be compressed.
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

/// Compresses a gzip body again that was compressed quickly.
///
/// # Errors
///
/// If it isn't such a body.
pub fn gzip_thoroughly(quick: &[u8]) -> io::Result<Bytes> {
    // How long the content is stands at the end (RFC 1952, 2.3.1).
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
    // The room that grew beyond it isn't kept.
    Ok(packed.into_boxed_slice().into())
}
