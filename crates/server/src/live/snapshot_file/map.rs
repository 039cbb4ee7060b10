//! Mapping a file into memory: the only `unsafe` code of this project.

#![expect(
    unsafe_code,
    reason = "a map can't be had without: the compiler can't know that nobody changes the file"
)]

use std::fs::File;
use std::io;

use bytes::Bytes;
use memmap2::Mmap;

/// Returns the bytes of `file`, which are read from disk when they are used.
///
/// # Errors
///
/// If the file can't be mapped.
pub(super) fn map(file: &File) -> io::Result<Bytes> {
    // SAFETY: a map must not change or shrink while it is read. Snapshot files are written under another
    // name, renamed, and never edited: a newer one takes the name and leaves this file, which lives as
    // long as the map, as it was. They lie in a directory of the server's own and can be written by its
    // user only. Should that user edit one all the same, bytes of answers change, which are never taken
    // for anything but bytes: text is checked where it is read as text.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
