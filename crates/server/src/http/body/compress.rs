//! Bodies made small. Levels, and why they are what they are: `docs/decisions/0004-compression.md`.

use std::cell::RefCell;
use std::io;

use bytes::Bytes;

use crate::http::request::encoding::Coding;

/// Shorter bodies go out as they are, where the client takes that: little would be saved.
pub const WORTH_COMPRESSING_BYTES: usize = 1000;

/// Longer bodies go out plain: compressing takes twice their length of memory on each core.
pub const MAX_COMPRESSED_BYTES: usize = 8 << 20;

/// Level 2 takes less time than 1 on pages, which repeat themselves, and makes them no larger.
const ZSTD_LEVEL: i32 = 2;

/// libdeflate's fastest level, for who asks first.
const QUICK_GZIP_LEVEL: i32 = 1;

/// A page comes out a quarter smaller than at the fastest level, for all who ask again.
const THOROUGH_GZIP_LEVEL: i32 = 6;

/// The first level at which brotli is worth its time: below it, zstd is smaller.
const BROTLI_QUALITY: i32 = 5;

/// As far back as brotli looks, as a power of two: a page is hardly longer than a mebibyte.
const BROTLI_WINDOW_BITS: i32 = 20;

/// How much time may go into making a body small. Only gzip makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Somebody waits for it.
    Quick,
    /// It will be sent more than once, or is short.
    Thorough,
}

/// What compresses on one thread. Making these anew would cost a small body as much as the work itself.
struct Compressors {
    /// Where bodies are compressed to. What is made of one is kept, and mustn't hold apart what could be one stretch of
    /// memory again.
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

/// At least so much room. It takes memory only as far as it was written to.
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
/// Where memory runs out: no bytes are too odd to be compressed.
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

/// Makes a gzip body of ours smaller that was made quickly.
///
/// # Errors
///
/// Where it isn't such a body.
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
