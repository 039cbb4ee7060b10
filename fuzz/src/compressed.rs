//! Compressed inputs of loads (gzip, zstd): decompressed, they give the same items; truncated or damaged, they give a
//! fault.

use std::io::{BufReader, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use vitrine_ingest::load::read::{Item, Shape, read, read_plain};
use vitrine_ingest::load::report::Severity;

use crate::load::Pieces;

/// Damage to compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    None,
    /// Truncated at this position.
    Cut(usize),
    /// This byte is changed.
    Flip(usize, u8),
}

/// Checks an input. The first byte selects what the rest is: compressed bytes, or bytes to be compressed here, in
/// several members and with damage. The second is the size of reads.
pub fn check(bytes: &[u8]) {
    let [how, pieces, bytes @ ..] = bytes else {
        return;
    };
    if how & 1 == 0 {
        // Short, because it may decompress to a lot.
        let packed = &bytes[..bytes.len().min(1_024)];
        assert_eq!(items(packed, None), items(packed, Some(*pieces)));
        return;
    }
    let [place, value, plain @ ..] = bytes else {
        return;
    };
    let cut = plain.len() * usize::from(how >> 4) / 16;
    let parts = [&plain[..cut], &plain[cut..]];
    let pack = if how & 2 == 0 { gzip } else { zstd };
    let packed = parts.map(pack).concat();
    let place = packed.len() * usize::from(*place) / 256;
    let damage = match how >> 2 & 3 {
        0 | 1 => Damage::None,
        2 => Damage::Cut(place),
        _ => Damage::Flip(place, *value),
    };
    let mut expected = Vec::new();
    read_plain("input", plain, Shape::Whole, &mut |item| {
        expected.push(item);
    })
    .expect("memory");
    let damaged = damaged(packed, damage);
    let found = items(&damaged, Some(*pieces));
    if found == expected {
        return;
    }
    assert_ne!(damage, Damage::None, "{found:?} for {expected:?}");
    // Some bytes of a header have no meaning; all other damage must be reported. An empty input is reported by the load
    // itself.
    let is_fault = |item: &Item| match item {
        Item::Unreadable { findings, .. } => findings
            .iter()
            .any(|found| found.severity == Severity::Fault),
        _ => false,
    };
    let is_told = found.iter().any(is_fault) || damaged.is_empty();
    let whole_part = damage == Damage::Cut(pack(parts[0]).len());
    assert!(
        is_told || whole_part,
        "{damage:?}: {found:?} for {expected:?}"
    );
}

fn items(packed: &[u8], pieces: Option<u8>) -> Vec<Item> {
    let mut items = Vec::new();
    let sink = &mut |item| items.push(item);
    match pieces {
        None => read("input", None, packed, Shape::Whole, sink),
        Some(most) => {
            let reader = BufReader::with_capacity(usize::from(most) + 1, Pieces::new(packed, most));
            read("input", None, reader, Shape::Whole, sink)
        }
    }
    .expect("memory");
    items
}

fn damaged(mut packed: Vec<u8>, damage: Damage) -> Vec<u8> {
    match damage {
        Damage::None => {}
        Damage::Cut(place) => packed.truncate(place),
        Damage::Flip(place, value) => {
            if let Some(byte) = packed.get_mut(place) {
                *byte = value;
            }
        }
    }
    packed
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).expect("memory");
    encoder.finish().expect("memory")
}

/// Compresses with a checksum, without which damage can't be detected.
fn zstd(plain: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory");
    encoder.include_checksum(true).expect("a parameter");
    encoder.write_all(plain).expect("memory");
    encoder.finish().expect("memory")
}
