//! Journals as bytes, for a file: fields in order, each list behind its length in eight bytes. Numbers are little-endian.

use std::sync::Arc;

use super::log::{Alias, Log};
use super::segment::{Segment, Strings};
use super::{Journal, StateId, Step};
use crate::snapshot::Malformed;

impl Journal {
    /// Returns the bytes for [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes() + 1024);
        self.write(&mut out);
        out
    }

    /// Reads a journal. The bytes should be checked by a checksum; this checks that no access can fail.
    ///
    /// # Errors
    ///
    /// If the bytes aren't those of a journal.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, Malformed> {
        let journal = Self::read(&mut bytes).filter(|_| bytes.is_empty());
        let is_sound = |journal: &Self| journal.revisions.is_sound() && journal.texts.is_sound();
        journal.filter(is_sound).ok_or(Malformed)
    }
}

/// A value as bytes.
trait Encode: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! encode_numbers {
    ($($number:ty)*) => {
        $(impl Encode for $number {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let (number, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*number))
            }
        })*
    };
}

encode_numbers! { u8 u32 u64 i64 }

macro_rules! encode_fields {
    ($($value:ty { $($field:tt)* })*) => {
        $(impl Encode for $value {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)*
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Encode::read(bytes)?,)* })
            }
        })*
    };
}

encode_fields! {
    Journal { revisions texts }
    Log { oldest steps aliases segments }
    Step { id at }
    Alias { number id }
    StateId { 0 }
    Strings { bytes ends }
}

impl Encode for Arc<Segment> {
    fn write(&self, out: &mut Vec<u8>) {
        self.first.write(out);
        self.codes.write(out);
        self.facts.write(out);
        self.at.write(out);
        self.around.write(out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let segment = Segment {
            first: Encode::read(bytes)?,
            codes: Encode::read(bytes)?,
            facts: Encode::read(bytes)?,
            at: Encode::read(bytes)?,
            around: Encode::read(bytes)?,
            ..Segment::default()
        };
        Some(Self::new(segment.seal()))
    }
}

impl<T: Encode + Copy + Default, const LENGTH: usize> Encode for [T; LENGTH] {
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|item| item.write(out));
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let mut items = [T::default(); LENGTH];
        for item in &mut items {
            *item = T::read(bytes)?;
        }
        Some(items)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        self.iter().for_each(|item| item.write(out));
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let length = u64::read(bytes)?;
        (0..length).map(|_| T::read(bytes)).collect()
    }
}
