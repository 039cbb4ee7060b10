//! Hexadecimal digits of bytes, written and read.

use std::fmt;

/// Displays bytes as two lower-case hexadecimal digits each.
#[derive(Debug, Clone, Copy)]
pub struct Hexadecimal<'b>(pub &'b [u8]);

impl fmt::Display for Hexadecimal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// Reads digits that [`Hexadecimal`] wrote; `None` if they are too few, too many, or other characters.
#[must_use]
pub fn read<const LENGTH: usize>(digits: &str) -> Option<[u8; LENGTH]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; LENGTH];
    if digits.len() != 2 * LENGTH {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Some(bytes)
}
