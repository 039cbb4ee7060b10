//! The served Markdown by digest: one large sorted table, overlaid by a small map of changes since the table was built.
//!
//! The table consists of two byte strings, which are the same in memory and in a snapshot file: the compressed texts one
//! after another, and a directory with the digest (32 bytes), the end of serving in milliseconds (8; the maximum number
//! for no end) and the end of the text (8) of each, little-endian, ascending by digest.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;

use super::Malformed;
use crate::content::{PackedMarkdown, TextDigest};

const ENTRY_BYTES: usize = 32 + 8 + 8;

/// Number that stands for no end.
const NO_END: i64 = i64::MAX;

/// A text, and the time until which it is served.
#[derive(Debug, Clone)]
pub struct ServedText {
    /// Compressed Markdown.
    pub markdown: PackedMarkdown,
    /// End of serving; `None` for texts of the live revision.
    pub served_until: Option<Timestamp>,
}

/// The texts of a snapshot. Clones share memory.
#[derive(Debug, Clone, Default)]
pub struct TextTable {
    directory: Bytes,
    markdown: Bytes,
    changed: Arc<HashMap<TextDigest, ServedText>>,
}

/// Builds a [`TextTable`] from texts in ascending order of their digests.
#[derive(Debug, Default)]
pub struct TextTableBuilder {
    directory: Vec<u8>,
    markdown: Vec<u8>,
}

impl TextTableBuilder {
    /// Appends a text.
    ///
    /// # Errors
    ///
    /// If its digest isn't above the previous one.
    pub fn push(&mut self, digest: &TextDigest, text: &ServedText) -> Result<(), Malformed> {
        let last = self.directory.last_chunk::<ENTRY_BYTES>();
        if last.is_some_and(|last| last[..32] >= digest.as_bytes()[..]) {
            return Err(Malformed);
        }
        let ServedText {
            markdown,
            served_until,
        } = text;
        self.markdown.extend_from_slice(markdown.as_bytes());
        let until = served_until.map_or(NO_END, Timestamp::as_millisecond);
        let end = u64::try_from(self.markdown.len()).unwrap_or(u64::MAX);
        self.directory.extend_from_slice(digest.as_bytes());
        self.directory.extend_from_slice(&until.to_le_bytes());
        self.directory.extend_from_slice(&end.to_le_bytes());
        Ok(())
    }

    /// Returns the finished table.
    #[must_use]
    pub fn finish(mut self) -> TextTable {
        self.directory.shrink_to_fit();
        self.markdown.shrink_to_fit();
        TextTable {
            directory: self.directory.into(),
            markdown: self.markdown.into(),
            changed: Arc::default(),
        }
    }
}

impl TextTable {
    /// Reads a table, validating its whole directory.
    ///
    /// # Errors
    ///
    /// If the directory is invalid or doesn't fit the texts.
    pub fn from_bytes(directory: Bytes, markdown: Bytes) -> Result<Self, Malformed> {
        let table = Self {
            directory,
            markdown,
            changed: Arc::default(),
        };
        let (entries, rest) = table.directory.as_chunks::<ENTRY_BYTES>();
        let ends = entries.last().map_or(0, end_of);
        let is_sound = rest.is_empty()
            && entries.is_sorted_by(|left, right| left[..32] < right[..32])
            && entries.is_sorted_by_key(end_of)
            && ends == table.markdown.len();
        is_sound.then_some(table).ok_or(Malformed)
    }

    /// Returns the bytes for [`from_bytes`](Self::from_bytes) of all texts that are served at `now`.
    #[must_use]
    pub fn to_bytes(&self, now: Timestamp) -> (Bytes, Bytes) {
        let whole = self.whole(now);
        (whole.directory, whole.markdown)
    }

    /// Returns the memory of the texts and their directory, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let changed = self.changed.values();
        self.directory.len()
            + self.markdown.len()
            + changed
                .map(|text| text.markdown.as_bytes().len() + ENTRY_BYTES)
                .sum::<usize>()
    }

    /// Returns the text with this digest, if it is served at `now`.
    #[must_use]
    pub fn get(&self, digest: &TextDigest, now: Timestamp) -> Option<PackedMarkdown> {
        let text = match self.changed.get(digest) {
            Some(text) => text.clone(),
            None => self.find(digest)?,
        };
        is_served(text.served_until, now).then_some(text.markdown)
    }

    fn find(&self, digest: &TextDigest) -> Option<ServedText> {
        let entries = self.entries();
        let at = entries
            .binary_search_by(|entry| entry[..32].cmp(&digest.as_bytes()[..]))
            .ok()?;
        Some(self.text(at))
    }

    /// Returns the texts that `before` serves at `now` and that this table serves for a shorter time or not at all: each
    /// until its end in `before`, those without an end until `until`.
    #[must_use]
    pub fn cut_short_since(
        &self,
        before: &Self,
        now: Timestamp,
        until: Timestamp,
    ) -> Vec<(TextDigest, ServedText)> {
        let base = before.entries().iter().enumerate().map(|(at, entry)| {
            let digest = entry.first_chunk().copied().unwrap_or_default();
            (TextDigest::from_bytes(digest), before.text(at))
        });
        let base = base.filter(|(digest, _)| !before.changed.contains_key(digest));
        let changed = before.changed.iter();
        let all = base.chain(changed.map(|(digest, text)| (*digest, text.clone())));
        let served = all.filter(|(_, text)| is_served(text.served_until, now));
        let cut_short = served.filter_map(|(digest, text)| {
            let end = text.served_until.unwrap_or(until);
            let kept = self.changed.get(&digest).cloned();
            let kept = kept.or_else(|| self.find(&digest));
            let is_kept = kept.is_some_and(|kept| kept.served_until.is_none_or(|kept| kept >= end));
            let text = ServedText {
                served_until: Some(end),
                ..text
            };
            (!is_kept).then_some((digest, text))
        });
        cut_short.collect()
    }

    /// Returns the table with these texts inserted or replaced.
    #[must_use]
    pub fn with(&self, texts: Vec<(TextDigest, ServedText)>, now: Timestamp) -> Self {
        if texts.is_empty() {
            return self.clone();
        }
        let mut changed = (*self.changed).clone();
        changed.extend(texts);
        let table = Self {
            changed: Arc::new(changed),
            ..self.clone()
        };
        // Each change copies the map; the table is rebuilt once the map has grown.
        if table.changed.len() > 1_024 + self.entries().len() / 8 {
            table.whole(now)
        } else {
            table
        }
    }

    /// Returns the table without texts whose serving ended by `now`; `None` if there are none.
    #[must_use]
    pub fn without_ended(&self, now: Timestamp) -> Option<Self> {
        let ended = |until: Option<Timestamp>| !is_served(until, now);
        let has_ended = self.entries().iter().any(|entry| ended(until(entry)))
            || self.changed.values().any(|text| ended(text.served_until));
        has_ended.then(|| self.whole(now))
    }

    /// Returns all texts that are served at `now`, in one table.
    fn whole(&self, now: Timestamp) -> Self {
        let has_ended = |entry| !is_served(until(entry), now);
        if self.changed.is_empty() && !self.entries().iter().any(has_ended) {
            return self.clone();
        }
        let entries = self.entries();
        let base = (0..entries.len()).map(|at| {
            let digest = entries[at].first_chunk().copied().unwrap_or_default();
            (TextDigest::from_bytes(digest), self.text(at))
        });
        let mut texts: Vec<(TextDigest, ServedText)> = base
            .filter(|(digest, _)| !self.changed.contains_key(digest))
            .collect();
        texts.extend(
            self.changed
                .iter()
                .map(|(digest, text)| (*digest, text.clone())),
        );
        texts.retain(|(_, text)| is_served(text.served_until, now));
        texts.sort_unstable_by(|left, right| left.0.as_bytes().cmp(right.0.as_bytes()));
        let mut builder = TextTableBuilder::default();
        for (digest, text) in &texts {
            // Sorted, and each is there once.
            let _ = builder.push(digest, text);
        }
        builder.finish()
    }

    fn entries(&self) -> &[[u8; ENTRY_BYTES]] {
        self.directory.as_chunks().0
    }

    fn text(&self, at: usize) -> ServedText {
        let entries = self.entries();
        let start = at
            .checked_sub(1)
            .map_or(0, |before| end_of(&entries[before]));
        let bytes = self.markdown.slice(start..end_of(&entries[at]));
        ServedText {
            markdown: PackedMarkdown::from(bytes),
            served_until: until(&entries[at]),
        }
    }
}

fn is_served(until: Option<Timestamp>, now: Timestamp) -> bool {
    until.is_none_or(|until| now < until)
}

fn until(entry: &[u8; ENTRY_BYTES]) -> Option<Timestamp> {
    let millisecond = entry[32..]
        .first_chunk()
        .map(|bytes| i64::from_le_bytes(*bytes));
    let millisecond = millisecond.filter(|millisecond| *millisecond != NO_END)?;
    Some(Timestamp::from_millisecond(millisecond).unwrap_or(Timestamp::MAX))
}

fn end_of(entry: &[u8; ENTRY_BYTES]) -> usize {
    let end = entry
        .last_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    usize::try_from(end).unwrap_or(usize::MAX)
}
