//! Archive (ZIP) of a workbook, checked before `calamine` opens it: each entry is inflated once, so that no entry is
//! longer than it says, and nothing that `calamine` keeps takes much memory.
//!
//! Only archives are accepted that all readers understand alike: no comment, no ZIP64, no second name of an entry.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::ops::RangeInclusive;

use flate2::bufread::DeflateDecoder;

use super::markup::{Budget, Markup, is_unread};
use super::{MAX_WORKBOOK_BYTES, broken};

/// Maximum length of all its entries together, in bytes.
const MAX_UNPACKED_BYTES: u64 = 512 << 20;

/// Maximum length of the directory of entries, in bytes.
const MAX_DIRECTORY_BYTES: u32 = 1 << 20;

/// Extra field with another name of an entry.
const OTHER_NAME: u16 = 0x7075;

/// Entry of an archive.
pub(super) struct Part {
    pub(super) name: String,
    /// Positions of its bytes in the file.
    pub(super) bytes: RangeInclusive<u64>,
    pub(super) markup: Markup,
}

/// Copies a workbook to a temporary file without a name.
pub(super) fn spool(mut input: impl Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    let copied = io::copy(&mut (&mut input).take(MAX_WORKBOOK_BYTES + 1), &mut file)?;
    match copied > MAX_WORKBOOK_BYTES {
        true => Err(too_large(
            "expected a workbook of at most 64 MiB; load larger ones as CSV",
        )),
        false => Ok(file),
    }
}

/// Returns the entries of an archive once all of them are checked.
pub(super) fn checked(file: &File, mut entries: Vec<Entry>) -> io::Result<Vec<Part>> {
    let (mut left, mut budget) = (MAX_UNPACKED_BYTES, Budget::default());
    for entry in &mut entries {
        check(file, entry, &mut left, &mut budget)?;
    }
    Ok(entries.into_iter().map(|entry| entry.part).collect())
}

/// Entry that isn't checked yet.
pub(super) struct Entry {
    pub(super) part: Part,
    is_deflated: bool,
}

/// Reads the directory at the end of an archive.
pub(super) fn entries(mut file: &File) -> io::Result<Vec<Entry>> {
    let length = file.seek(SeekFrom::End(0))?;
    let end = length.checked_sub(22).ok_or_else(damaged)?;
    let end_record = bytes(file, end, 22)?;
    let (count, size) = (short(&end_record, 10)?, long(&end_record, 12)?);
    let start = long(&end_record, 16)?;
    let is_plain = end_record.starts_with(b"PK\x05\x06")
        && end_record.ends_with(&[0, 0])
        && u64::from(start) + u64::from(size) == end
        && size <= MAX_DIRECTORY_BYTES;
    if !is_plain {
        return Err(damaged());
    }
    let directory = bytes(file, start.into(), u64::from(size))?;
    let mut rest = &directory[..];
    let mut entries = Vec::new();
    for _ in 0..count {
        if !rest.starts_with(b"PK\x01\x02") {
            return Err(damaged());
        }
        let [name, extra, comment] = [28, 30, 32].map(|at| short(rest, at).map(usize::from));
        let name_end = 46 + name?;
        let extra_end = name_end + extra?;
        let (head, after) = rest
            .split_at_checked(extra_end + comment?)
            .ok_or_else(damaged)?;
        let has_other_name = extra_fields(&head[name_end..extra_end]).any(|id| id == OTHER_NAME);
        let (flags, method) = (short(head, 8)?, short(head, 10)?);
        if has_other_name || flags & 1 != 0 || ![0, 8].contains(&method) {
            return Err(damaged());
        }
        let offset = u64::from(long(head, 42)?);
        let local = bytes(file, offset, 30)?;
        let data = offset + 30 + u64::from(short(&local, 26)?) + u64::from(short(&local, 28)?);
        // A length of ZIP64 is in a field that needn't be read: deflated bytes have an end of their own.
        let data_end = data
            .saturating_add(long(head, 20)?.into())
            .min(start.into());
        entries.push(Entry {
            part: Part {
                name: String::from_utf8_lossy(&head[46..name_end]).to_ascii_lowercase(),
                bytes: data..=data_end,
                markup: Markup::default(),
            },
            is_deflated: method == 8,
        });
        rest = after;
    }
    Ok(entries)
}

/// Returns the ids of extra fields.
fn extra_fields(mut fields: &[u8]) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let (id, length) = (short(fields, 0).ok()?, short(fields, 2).ok()?);
        fields = fields.get(4 + usize::from(length)..).unwrap_or_default();
        Some(id)
    })
}

/// Inflates an entry, and checks its markup.
fn check(
    mut file: &File,
    entry: &mut Entry,
    left: &mut u64,
    budget: &mut Budget,
) -> io::Result<()> {
    let Entry { part, is_deflated } = entry;
    file.seek(SeekFrom::Start(*part.bytes.start()))?;
    let packed = part.bytes.end().saturating_sub(*part.bytes.start());
    let packed = BufReader::new(file.take(packed));
    let mut unpacked: Box<dyn Read + '_> = match is_deflated {
        true => Box::new(DeflateDecoder::new(packed)),
        false => Box::new(packed),
    };
    let is_xml = part.name.ends_with(".xml") || part.name.ends_with(".rels");
    let is_markup = is_xml && !is_unread(&part.name);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = unpacked.read(&mut buffer).map_err(|error| {
            let is_damaged = error.raw_os_error().is_none();
            if is_damaged { damaged() } else { error }
        })?;
        *left = left.checked_sub(read as u64).ok_or_else(|| {
            too_large(
                "expected a workbook that unpacks to at most 512 MiB; load larger ones as CSV",
            )
        })?;
        if is_markup {
            part.markup.read(&buffer[..read], budget)?;
        }
        if read == 0 {
            return Ok(());
        }
    }
}

fn bytes(mut file: &File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(damaged()),
    }
}

fn short(bytes: &[u8], at: usize) -> io::Result<u16> {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found
        .map(|bytes| u16::from_le_bytes(*bytes))
        .ok_or_else(damaged)
}

fn long(bytes: &[u8], at: usize) -> io::Result<u32> {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found
        .map(|bytes| u32::from_le_bytes(*bytes))
        .ok_or_else(damaged)
}

fn too_large(message: &str) -> io::Error {
    broken("input_too_large", message.to_owned())
}

/// Returns the error of an archive that isn't plain.
pub(super) fn damaged() -> io::Error {
    let message = "expected a workbook (XLSX); this one is damaged, or another archive: open it in a spreadsheet and \
                   save it as XLSX again";
    broken("workbook", message.to_owned())
}
