//! A set of slots of a block: 256 bits in four words.

use std::ops::Range;

/// A set of products of a block, by their slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BitSet256([u64; 4]);

impl BitSet256 {
    /// Number of possible members: 0 to 255.
    pub const CAPACITY: usize = 256;

    /// Length of a set in a block's directory, in bytes.
    pub(super) const ENCODED_BYTES: usize = 32;

    /// Returns the set of all numbers below `end`.
    #[must_use]
    pub fn below(end: usize) -> Self {
        let word = |index: usize| match end.saturating_sub(index * 64) {
            bits if bits < 64 => (1 << bits) - 1,
            _ => u64::MAX,
        };
        Self(std::array::from_fn(word))
    }

    /// Inserts a member.
    pub fn insert(&mut self, offset: usize) {
        self.0[offset / 64] |= 1 << (offset % 64);
    }

    /// Returns true if the number is a member.
    #[must_use]
    pub fn contains(self, offset: usize) -> bool {
        let word = self.0.get(offset / 64).copied().unwrap_or_default();
        word >> (offset % 64) & 1 == 1
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }

    /// Returns the number of members.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the intersection.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// Returns the union.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Returns the members that aren't in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Returns the first member at or after `offset`.
    pub(crate) fn next_member(self, offset: usize) -> Option<usize> {
        let rest = self.without(Self::below(offset));
        let word = rest.0.iter().position(|word| *word != 0)?;
        Some(word * 64 + rest.0[word].trailing_zeros() as usize)
    }

    /// Returns the last member.
    pub(super) fn last(self) -> Option<usize> {
        let word = self.0.iter().rposition(|word| *word != 0)?;
        Some(word * 64 + 63 - self.0[word].leading_zeros() as usize)
    }

    /// Iterates over the members, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        Iter {
            words: self.0,
            word: 0,
        }
    }

    /// Iterates over the runs of consecutive members, ascending.
    pub(crate) fn runs(self) -> impl Iterator<Item = Range<usize>> {
        // A run ends at a member whose successor isn't in the set.
        let next = |word: usize| self.0.get(word + 1).map_or(0, |next| next << 63);
        let lasts = Self(std::array::from_fn(|word| {
            self.0[word] & !(self.0[word] >> 1 | next(word))
        }));
        let starts = self.starts().iter();
        starts
            .zip(lasts.iter())
            .map(|(start, last)| start..last + 1)
    }

    /// Returns the number of runs of consecutive members.
    pub(super) fn run_count(self) -> usize {
        self.starts().len()
    }

    /// Returns the members whose predecessor isn't in the set.
    fn starts(self) -> Self {
        let before = |word: usize| word.checked_sub(1).map_or(0, |before| self.0[before] >> 63);
        Self(std::array::from_fn(|word| {
            self.0[word] & !(self.0[word] << 1 | before(word))
        }))
    }

    /// Returns the first `max` members.
    pub(super) fn first_members(self, max: usize) -> Self {
        let mut left = max;
        Self(self.0.map(|word| {
            let count = word.count_ones() as usize;
            let mut rest = word;
            if left >= count {
                left -= count;
                return word;
            }
            for _ in 0..std::mem::take(&mut left) {
                rest &= rest - 1;
            }
            word ^ rest
        }))
    }

    /// Returns the last `max` members.
    pub(super) fn last_members(self, max: usize) -> Self {
        let left_out = self.len().saturating_sub(max);
        self.without(self.first_members(left_out))
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        for word in self.0 {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads what [`encode`](Self::encode) wrote; missing bytes count as zeros.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        Self(std::array::from_fn(|word| {
            words
                .get(word)
                .map_or(0, |bytes| u64::from_le_bytes(*bytes))
        }))
    }
}

/// Iterator over the members of a set, ascending.
struct Iter {
    words: [u64; 4],
    word: usize,
}

impl Iterator for Iter {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while let Some(rest) = self.words.get_mut(self.word) {
            if *rest != 0 {
                let bit = rest.trailing_zeros() as usize;
                *rest &= *rest - 1;
                return Some(self.word * 64 + bit);
            }
            self.word += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bit_sets_behave_like_tree_sets(
            some in prop::collection::btree_set(0..256_usize, 0..256),
            from in 0..=256_usize,
            most in 0..300_usize,
        ) {
            let mut members = BitSet256::default();
            some.iter().for_each(|offset| members.insert(*offset));
            prop_assert_eq!(members.len(), some.len());
            prop_assert_eq!(members.iter().collect::<BTreeSet<_>>(), some.clone());
            prop_assert_eq!(members.next_member(from), some.range(from..).next().copied());
            prop_assert_eq!(members.last(), some.last().copied());
            let first: Vec<_> = some.iter().copied().take(most).collect();
            prop_assert_eq!(members.first_members(most).iter().collect::<Vec<_>>(), first);
            let last: Vec<_> = some.iter().copied().skip(some.len().saturating_sub(most)).collect();
            prop_assert_eq!(members.last_members(most).iter().collect::<Vec<_>>(), last);
            prop_assert_eq!(members.runs().flatten().collect::<BTreeSet<_>>(), some);
            prop_assert_eq!(members.runs().count(), members.run_count());
            prop_assert!(members.runs().is_sorted_by(|left, right| left.end < right.start));
            let mut encoded = Vec::new();
            members.encode(&mut encoded);
            prop_assert_eq!(BitSet256::decode(&encoded), members);
        }
    }
}
