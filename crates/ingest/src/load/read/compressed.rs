//! Compressed inputs, detected by their first bytes and decompressed while they are read.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::broken;

/// Maximum decompressed length of an input, in bytes.
const MAX_UNPACKED_BYTES: u64 = 64 << 30;

const BUFFER_BYTES: usize = 64 << 10;

/// Returns the input, decompressed if it is gzip (any number of members) or zstd (any number of frames).
///
/// Reading fails with `Broken` if the input is truncated, damaged, or too long when decompressed.
///
/// # Errors
///
/// If the input can't be read.
pub(super) fn unpacked<'i>(input: impl BufRead + 'i) -> io::Result<Box<dyn BufRead + 'i>> {
    unpacked_up_to(MAX_UNPACKED_BYTES, input)
}

fn unpacked_up_to<'i>(
    most: u64,
    mut input: impl BufRead + 'i,
) -> io::Result<Box<dyn BufRead + 'i>> {
    let mut magic = Vec::new();
    (&mut input).take(4).read_to_end(&mut magic)?;
    let unpacks: (&'static str, Box<dyn Read + 'i>) = match magic.as_slice() {
        [0x1f, 0x8b, ..] => {
            let input = Cursor::new(magic).chain(input);
            ("gzip", Box::new(MultiGzDecoder::new(input)))
        }
        // The second is a skippable frame, before one with data.
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
            let input = Cursor::new(magic).chain(input);
            let decoder = zstd::stream::read::Decoder::with_buffer(input)?;
            ("zstd", Box::new(decoder))
        }
        _ => return Ok(Box::new(Cursor::new(magic).chain(input))),
    };
    let (format, input) = unpacks;
    let guarded = Guarded {
        format,
        input,
        most,
        left: most,
    };
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, guarded)))
}

/// Reader that distinguishes a damaged stream from a disk error, and stops at the maximum length.
struct Guarded<R> {
    format: &'static str,
    input: R,
    most: u64,
    left: u64,
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer).map_err(|error| {
            // System errors are about the file, decoder errors about its content.
            if error.raw_os_error().is_some() {
                return error;
            }
            let format = self.format;
            let message = match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    format!("expected a complete {format} stream; this one is truncated")
                }
                _ => format!("expected a valid {format} stream; this one is damaged: {error}"),
            };
            broken("compression", message)
        })?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let most = self.most;
            broken(
                "input_too_large",
                format!("expected an input that decompresses to at most {most} bytes"),
            )
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Broken;
    use super::*;
    use std::io::Write as _;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn read(most: u64, packed: &[u8]) -> Result<usize, &'static str> {
        let mut input = unpacked_up_to(most, packed).map_err(|_| "unreadable")?;
        let mut out = Vec::new();
        let read = input.read_to_end(&mut out);
        read.map_err(|error| error.downcast::<Broken>().expect("a broken stream").rule)
    }

    #[test]
    fn oversized_decompressed_input_is_refused() {
        let bytes = vec![b'\n'; 100_000];
        let two_members = [gzip(&bytes), gzip(&bytes)].concat();
        let frame = zstd::encode_all(bytes.as_slice(), 1).expect("memory");
        for packed in [two_members, [frame.as_slice(), &frame].concat()] {
            assert_eq!(read(200_000, &packed), Ok(200_000));
            assert_eq!(read(199_999, &packed), Err("input_too_large"));
        }
    }

    #[test]
    fn short_plain_inputs_are_not_decompressed() {
        for bytes in [&b""[..], b"{", b"{}", b"\x28\xb5\x2f"] {
            assert_eq!(read(1, bytes), Ok(bytes.len()));
        }
    }
}
