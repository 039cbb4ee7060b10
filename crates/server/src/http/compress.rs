//! Bodies made small. Levels, and why they are what they are: `docs/decisions/0004-compression.md`.

use std::cell::RefCell;
use std::io;

use bytes::Bytes;

use super::encoding::Coding;

/// Shorter bodies go out as they are, where the client takes that: little would be saved.
pub const WORTH_COMPRESSING_BYTES: usize = 1000;

/// Level 2 takes less time than 1 on pages, which repeat themselves, and makes them no larger.
const ZSTD_LEVEL: i32 = 2;

/// A page comes out a quarter smaller than at libdeflate's fastest level, and is sent many times.
const GZIP_LEVEL: i32 = 4;

/// The first level at which brotli is worth its time: below it, zstd is smaller.
const BROTLI_QUALITY: i32 = 5;

/// As far back as brotli looks, as a power of two: a page is hardly longer than a mebibyte.
const BROTLI_WINDOW_BITS: i32 = 20;

/// What compresses on one thread. Making these anew would cost a small body as much as the work itself.
struct Compressors {
    zstd: zstd::bulk::Compressor<'static>,
    gzip: libdeflater::Compressor,
}

thread_local! {
    static COMPRESSORS: RefCell<Option<Compressors>> = const { RefCell::new(None) };
}

impl Compressors {
    fn new() -> io::Result<Self> {
        let gzip_level = libdeflater::CompressionLvl::new(GZIP_LEVEL);
        let gzip_level = gzip_level.map_err(|error| io::Error::other(format!("{error:?}")))?;
        Ok(Self {
            zstd: zstd::bulk::Compressor::new(ZSTD_LEVEL)?,
            gzip: libdeflater::Compressor::new(gzip_level),
        })
    }
}

/// Compresses a body.
///
/// # Errors
///
/// Where memory runs out: no bytes are too odd to be compressed.
pub fn compress(coding: Coding, plain: &[u8]) -> io::Result<Bytes> {
    let packed = COMPRESSORS.with_borrow_mut(|kept| {
        let compressors = match kept {
            Some(compressors) => compressors,
            None => kept.insert(Compressors::new()?),
        };
        match coding {
            Coding::Zstd => compressors.zstd.compress(plain),
            Coding::Gzip => gzip(&mut compressors.gzip, plain),
            Coding::Brotli => brotli(plain),
            Coding::Identity => Ok(plain.to_vec()),
        }
    })?;
    // The room for the worst case isn't kept.
    Ok(packed.into_boxed_slice().into())
}

fn gzip(compressor: &mut libdeflater::Compressor, plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = vec![0; compressor.gzip_compress_bound(plain.len())];
    let length = compressor
        .gzip_compress(plain, &mut packed)
        .map_err(io::Error::other)?;
    packed.truncate(length);
    Ok(packed)
}

fn brotli(plain: &[u8]) -> io::Result<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW_BITS,
        size_hint: plain.len(),
        ..Default::default()
    };
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &*plain, &mut packed, &parameters)?;
    Ok(packed)
}
