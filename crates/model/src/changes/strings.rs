//! Many byte strings in one.

/// Byte strings, concatenated; shorter than 4 GiB together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Strings {
    pub(super) bytes: Vec<u8>,
    /// End of each string in `bytes`.
    pub(super) ends: Vec<u32>,
}

impl Strings {
    /// Returns the number of strings.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the string with this index; an empty one if there is none.
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let end = |index: usize| self.ends.get(index).map_or(0, |end| *end as usize);
        let start = index.checked_sub(1).map_or(0, end);
        self.bytes.get(start..end(index)).unwrap_or_default()
    }

    /// Appends a string. Returns false if it doesn't fit.
    pub(super) fn push(&mut self, string: &[u8]) -> bool {
        let end = u32::try_from(self.bytes.len() + string.len());
        if let Ok(end) = end {
            self.bytes.extend_from_slice(string);
            self.ends.push(end);
        }
        end.is_ok()
    }

    /// Returns true if each string is a part of the bytes, and each byte of a string.
    pub(super) fn is_sound(&self) -> bool {
        let end = self.ends.last().map_or(0, |end| *end as usize);
        end == self.bytes.len() && self.ends.is_sorted()
    }

    /// Returns the memory, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&self.ends[..])
    }

    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
