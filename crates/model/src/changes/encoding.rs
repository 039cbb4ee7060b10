//! Journals as bytes, for a file: fields in order, each list behind its length in eight bytes. Numbers are little-endian.

use std::sync::Arc;

use super::log::Log;
use super::segment::Segment;
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
    let Segment {
        first,
        steps,
        codes,
        code_ends,
        at,
        before,
        after,
        by_step,
        facts,
        facts_ends,
    } = segment;
    write_number(out, *first);
    write_number(out, steps.len() as u64);
    steps.iter().for_each(|step| write_step(out, step));
    for bytes in [codes, facts] {
        write_number(out, bytes.len() as u64);
        out.extend(bytes);
    }
    for numbers in [code_ends, at, before, after, by_step, facts_ends] {
        write_number(out, numbers.len() as u64);
        numbers
            .iter()
            .for_each(|number| out.extend(number.to_le_bytes()));
    }
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

    fn bytes(&mut self) -> Result<&'b [u8], Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn numbers(&mut self) -> Result<Vec<u32>, Malformed> {
        self.list(|reader| reader.array().map(u32::from_le_bytes))
    }

    fn log(&mut self) -> Result<Log, Malformed> {
        let log = Log {
            oldest: self.number()?,
            base: self.step()?,
            aliases: self.list(|reader| Ok((reader.number()?, reader.id()?)))?,
            segments: self.list(|reader| reader.segment().map(Arc::new))?,
        };
        let mut next = log.oldest.checked_add(1).ok_or(Malformed)?;
        for segment in &log.segments {
            let follows = segment.first == next && !segment.steps.is_empty();
            next = segment
                .last()
                .checked_add(1)
                .filter(|_| follows)
                .ok_or(Malformed)?;
        }
        Ok(log)
    }

    fn segment(&mut self) -> Result<Segment, Malformed> {
        let first = self.number()?;
        let steps = self.list(Self::step)?;
        let (codes, facts) = (self.bytes()?.to_vec(), self.bytes()?.to_vec());
        let segment = Segment {
            first,
            steps,
            codes,
            facts,
            code_ends: self.numbers()?,
            at: self.numbers()?,
            before: self.numbers()?,
            after: self.numbers()?,
            by_step: self.numbers()?,
            facts_ends: self.numbers()?,
        };
        let count = segment.len();
        let lists = [
            &segment.code_ends,
            &segment.before,
            &segment.after,
            &segment.by_step,
        ];
        let is_whole = lists.iter().all(|list| list.len() == count)
            && segment
                .by_step
                .iter()
                .all(|change| (*change as usize) < count)
            && segment
                .first
                .checked_add(segment.steps.len() as u64)
                .is_some();
        is_whole.then_some(segment).ok_or(Malformed)
    }
}
