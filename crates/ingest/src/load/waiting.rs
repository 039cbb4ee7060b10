//! A record without faults, as it waits in the spool.

use anyhow::Context as _;
use vitrine_model::code::ProductCode;
use vitrine_store::prepared::{RecordDigest, VersionId};

use super::check;
use super::known_records::Known;
use super::read::Record;
use super::rendered::{Packer, RenderedRecord};
use super::report::Place;

/// A record that waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitingRecord {
    /// Rendered, with the digest by which it will be known.
    Rendered(RenderedRecord, Option<RecordDigest>),
    /// Known to lead to the live product.
    Known(KnownRecord),
}

/// A record that is known to lead to the live product, with its JSON in case that another product becomes live meanwhile.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KnownRecord {
    pub(super) code: ProductCode,
    pub(super) digest: RecordDigest,
    /// Version that was live.
    pub(super) version: VersionId,
    pub(super) json: String,
}

const RENDERED: u8 = 0;
const RENDERED_WITH_DIGEST: u8 = 1;
const KNOWN: u8 = 2;

/// Writes a rendered record, to be [read](WaitingRecord::read).
pub(super) fn write_rendered(record: &RenderedRecord, digest: Option<RecordDigest>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(record.product.document.len() + 256);
    match digest {
        None => bytes.push(RENDERED),
        Some(digest) => {
            bytes.push(RENDERED_WITH_DIGEST);
            bytes.extend(digest.0);
        }
    }
    record.write(&mut bytes);
    bytes
}

/// Writes a known record, to be [read](WaitingRecord::read).
pub(super) fn write_known(known: Known<'_>, json: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(json.len() + 25);
    bytes.push(KNOWN);
    bytes.extend(known.digest.0);
    bytes.extend(known.version.0.to_le_bytes());
    bytes.extend(json.as_bytes());
    bytes
}

impl WaitingRecord {
    /// Reads a record that was written.
    ///
    /// # Errors
    ///
    /// If the bytes are damaged.
    pub(super) fn read(code: &str, bytes: &[u8]) -> anyhow::Result<Self> {
        let damaged = "a record changed while it waited in a temporary file";
        let (form, rest) = bytes.split_first().context(damaged)?;
        if *form == RENDERED {
            return Ok(Self::Rendered(RenderedRecord::read(code, rest)?, None));
        }
        let (digest, rest) = rest.split_first_chunk().context(damaged)?;
        let digest = RecordDigest(*digest);
        match *form {
            RENDERED_WITH_DIGEST => {
                let record = RenderedRecord::read(code, rest)?;
                Ok(Self::Rendered(record, Some(digest)))
            }
            KNOWN => {
                let (version, json) = rest.split_first_chunk().context(damaged)?;
                Ok(Self::Known(KnownRecord {
                    code: code.parse().context(damaged)?,
                    digest,
                    version: VersionId(i64::from_le_bytes(*version)),
                    json: String::from_utf8(json.to_vec()).context(damaged)?,
                }))
            }
            _ => anyhow::bail!(damaged),
        }
    }
}

impl KnownRecord {
    /// Renders the record after all.
    ///
    /// # Errors
    ///
    /// If it has a fault, which it hadn't when it was loaded.
    pub(super) fn render(self, packer: &mut Packer) -> anyhow::Result<RenderedRecord> {
        // Findings are in the report already.
        let record = Record::new(Place::file(""), self.json);
        let checked = check::check(&record, &mut Vec::new()).record;
        let checked = checked.with_context(|| format!("the record of {} has faults", self.code))?;
        RenderedRecord::new(&checked, packer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::known_records::Warnings;

    #[test]
    fn written_records_are_read_back() {
        let json = include_str!("../../../../fixtures/catalog.ndjson")
            .lines()
            .next()
            .unwrap();
        let digest = RecordDigest(*b"0123456789abcdef");
        let code = "CODE-1".parse().unwrap();
        let version = VersionId(1 << 40);
        let known = Known {
            code: &code,
            version,
            digest,
            warnings: Warnings::None,
        };
        let written = write_known(known, json);
        let WaitingRecord::Known(known) = WaitingRecord::read("CODE-1", &written).unwrap() else {
            panic!("another form");
        };
        let expected = KnownRecord {
            code: code.clone(),
            digest,
            version,
            json: json.to_owned(),
        };
        assert_eq!(known, expected);
        let rendered = known.render(&mut Packer::default()).unwrap();
        let code = rendered.product.code.to_string();
        for digest in [None, Some(digest)] {
            let written = write_rendered(&rendered, digest);
            let read = WaitingRecord::read(&code, &written).unwrap();
            assert_eq!(read, WaitingRecord::Rendered(rendered.clone(), digest));
        }
        for damaged in [&[][..], &[3], &[KNOWN, 1], &[9; 40]] {
            WaitingRecord::read("CODE-1", damaged).unwrap_err();
        }
    }
}
