//! Size of a file under each coding and level, and time for it: the figures of
//! `docs/decisions/0006-compression.md`.
//!
//!     cargo run --release --example compression -- page.json

use std::io;
use std::time::{Duration, Instant};

/// Number of turns of each level.
const ROUNDS: usize = 15;

fn main() -> io::Result<()> {
    let Some(file) = std::env::args_os().nth(1) else {
        return Err(io::Error::other("expected a file to compress"));
    };
    let plain = std::fs::read(file)?;
    println!("{} bytes; least and median of {ROUNDS} rounds", plain.len());
    for level in 1..=5 {
        let mut compressor = zstd::bulk::Compressor::new(level)?;
        measure(&format!("zstd {level}"), || {
            Ok(compressor.compress(&plain)?.len())
        })?;
    }
    for level in 1..=6 {
        let level_of = libdeflater::CompressionLvl::new(level);
        let level_of = level_of.map_err(|error| io::Error::other(format!("{error:?}")))?;
        let mut compressor = libdeflater::Compressor::new(level_of);
        measure(&format!("gzip {level}"), || {
            let mut packed = vec![0; compressor.gzip_compress_bound(plain.len())];
            compressor
                .gzip_compress(&plain, &mut packed)
                .map_err(io::Error::other)
        })?;
    }
    for quality in 1..=5 {
        let parameters = brotli::enc::BrotliEncoderParams {
            quality,
            lgwin: 20,
            size_hint: plain.len(),
            ..Default::default()
        };
        measure(&format!("br {quality}"), || {
            let mut packed = Vec::new();
            brotli::BrotliCompress(&mut &*plain, &mut packed, &parameters)?;
            Ok(packed.len())
        })?;
    }
    Ok(())
}

fn measure(what: &str, mut compress: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    let mut times = Vec::with_capacity(ROUNDS);
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        bytes = compress()?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
    let (least, median) = (milliseconds(&times[0]), milliseconds(&times[ROUNDS / 2]));
    println!("{what:8} {least:8.3} ms {median:8.3} ms {bytes:8} bytes");
    Ok(())
}
