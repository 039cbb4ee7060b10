//! Bytes around the products of a page: those of a list, or of the changes feed.

use std::ops::Range;

use bytes::Bytes;

use super::PAGE_START;

/// Bytes before, between and behind the runs of a page.
#[derive(Clone)]
pub(crate) enum Glue {
    /// Those of a list, with the bytes behind the products. There is at least one run.
    List(Bytes),
    /// Concatenated, with the end of each.
    Each(Bytes, Box<[u32]>),
}

impl Glue {
    /// Returns the bytes before the run with this index, or behind the last of `runs`.
    pub(super) fn part(&self, index: usize, runs: usize) -> &[u8] {
        match self {
            Self::List(_) if index == 0 => PAGE_START,
            Self::List(end) if index == runs => end,
            Self::List(_) => b",",
            Self::Each(text, ends) => text.get(range(ends, index)).unwrap_or_default(),
        }
    }

    /// Returns the same as a reference to where it lies.
    pub(super) fn shared(&self, index: usize, runs: usize) -> Bytes {
        match self {
            Self::List(_) if index == 0 => Bytes::from_static(PAGE_START),
            Self::List(end) if index == runs => end.clone(),
            Self::List(_) => Bytes::from_static(b","),
            Self::Each(text, ends) => text.slice(range(ends, index)),
        }
    }
}

/// Returns the range of an element in a concatenation.
fn range(ends: &[u32], index: usize) -> Range<usize> {
    let end = |index: usize| ends.get(index).copied().unwrap_or_default() as usize;
    index.checked_sub(1).map_or(0, end)..end(index)
}
