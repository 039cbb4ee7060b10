//! Hexadecimal digits of bytes, written and read.

use std::fmt;

/// Displays bytes as two lower-case hexadecimal digits each.
#[derive(Debug, Clone, Copy)]
pub struct Hexadecimal<'b>(pub &'b [u8]);

impl fmt::Display for Hexadecimal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the machinery of `write!`: a load writes millions of digests.
        for bytes in self.0.chunks(CHUNK) {
            let mut digits = [0; 2 * CHUNK];
            for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
                pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            }
            let digits = std::str::from_utf8(&digits[..2 * bytes.len()]);
            out.write_str(digits.map_err(|_| fmt::Error)?)?;
        }
        Ok(())
    }
}

/// Number of bytes written at once: as many as a SHA-256 has.
const CHUNK: usize = 32;

fn digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        _ => b'a' + value - 10,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_are_written_and_read() {
        let bytes: [u8; 70] = std::array::from_fn(|index| (index as u8).wrapping_mul(37));
        for length in [0, 1, 31, 32, 33, 64, 70] {
            let expected: String = (bytes[..length].iter())
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(Hexadecimal(&bytes[..length]).to_string(), expected);
        }
        assert_eq!(read(&Hexadecimal(&bytes).to_string()), Some(bytes));
        for other in ["", "0", "0g", "0G", "0A", "000"] {
            assert_eq!(read::<1>(other), None, "{other}");
        }
    }
}
