//! Journals as bytes, for a file: fields in order, each list behind its length in eight bytes. Numbers are little-endian.

use std::sync::Arc;

use super::log::Log;
use super::segment::Segment;
use super::strings::Strings;
use super::{Journal, StateId, Step};
use crate::snapshot::Malformed;

impl Journal {
    /// Returns the bytes for [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes() + 1024);
        for log in [&self.revisions, &self.texts] {
            write_number(&mut out, log.oldest);
            write_step(&mut out, &log.base);
            write_number(&mut out, log.aliases.len() as u64);
            for (number, id) in &log.aliases {
                write_number(&mut out, *number);
                out.extend(id.as_bytes());
            }
            write_number(&mut out, log.segments.len() as u64);
            for segment in &log.segments {
                write_segment(&mut out, segment);
            }
        }
        out
    }

    /// Reads a journal. The bytes should be checked by a checksum; this checks that no access can fail.
    ///
    /// # Errors
    ///
    /// If the bytes aren't those of a journal.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let (revisions, texts) = (reader.log()?, reader.log()?);
        match reader.0.is_empty() {
            true => Ok(Self { revisions, texts }),
            false => Err(Malformed),
        }
    }
}

fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

fn write_step(out: &mut Vec<u8>, step: &Step) {
    out.extend(step.id.as_bytes());
    out.extend(step.at.to_le_bytes());
}

fn write_segment(out: &mut Vec<u8>, segment: &Segment) {
    write_number(out, segment.first);
    write_number(out, segment.steps.len() as u64);
    segment.steps.iter().for_each(|step| write_step(out, step));
    for strings in [&segment.codes, &segment.facts] {
        write_number(out, strings.bytes.len() as u64);
        out.extend(&strings.bytes);
        write_numbers(out, &strings.ends);
    }
    for numbers in [&segment.at, &segment.before, &segment.after] {
        write_numbers(out, numbers);
    }
}

fn write_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    write_number(out, numbers.len() as u64);
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    fn id(&mut self) -> Result<StateId, Malformed> {
        self.array().map(StateId::from_bytes)
    }

    fn step(&mut self) -> Result<Step, Malformed> {
        Ok(Step {
            id: self.id()?,
            at: i64::from_le_bytes(self.array()?),
        })
    }

    /// Reads the items of a list; its length is read first.
    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let length = self.number()?;
        (0..length).map(|_| item(self)).collect()
    }

    fn bytes(&mut self, length: u64) -> Result<&'b [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn numbers(&mut self) -> Result<Vec<u32>, Malformed> {
        let length = self.number()?.checked_mul(4).ok_or(Malformed)?;
        let (numbers, _) = self.bytes(length)?.as_chunks();
        Ok(numbers.iter().copied().map(u32::from_le_bytes).collect())
    }

    fn strings(&mut self) -> Result<Strings, Malformed> {
        let length = self.number()?;
        Ok(Strings {
            bytes: self.bytes(length)?.to_vec(),
            ends: self.numbers()?,
        })
    }

    fn log(&mut self) -> Result<Log, Malformed> {
        let log = Log {
            oldest: self.number()?,
            base: self.step()?,
            aliases: self.list(|reader| Ok((reader.number()?, reader.id()?)))?,
            segments: self.list(|reader| reader.segment().map(Arc::new))?,
        };
        let mut last = log.oldest;
        for segment in &log.segments {
            if last.checked_add(1) != Some(segment.first) {
                return Err(Malformed);
            }
            last = segment.last();
        }
        let is_known = |(number, _): &(u64, StateId)| (log.oldest..=last).contains(number);
        // Numbers of a store have 63 bits.
        let is_sound = i64::try_from(last).is_ok() && log.aliases.iter().all(is_known);
        is_sound.then_some(log).ok_or(Malformed)
    }

    fn segment(&mut self) -> Result<Segment, Malformed> {
        let segment = Segment {
            first: self.number()?,
            steps: self.list(Self::step)?,
            codes: self.strings()?,
            facts: self.strings()?,
            at: self.numbers()?,
            before: self.numbers()?,
            after: self.numbers()?,
            ..Segment::default()
        };
        let segment = segment.is_sound().then(|| segment.seal());
        segment.ok_or(Malformed)
    }
}
