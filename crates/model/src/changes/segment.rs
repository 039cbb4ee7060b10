//! A segment: the changes of some neighbouring steps, immutable, in arrays sorted by code. Journals share segments.

use std::collections::HashMap;
use std::sync::Arc;

use crate::code::ProductCode;

/// Number of neighbouring changes of which a segment knows the last step.
const GROUP: usize = 256;

/// Changes of neighbouring steps, ascending by code and step. `codes`, `at` and `around` have an element for each change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// Number of the first step.
    pub(super) first: u64,
    pub(super) codes: Strings,
    /// Numbers of the steps after the first one.
    pub(super) at: Vec<u32>,
    /// Numbers of the facts before and after the step, counted from one; zero if the product wasn't there. Both are zero if
    /// only a text of the product changed.
    pub(super) around: Vec<[u32; 2]>,
    /// Facts, each once.
    pub(super) facts: Strings,
    /// Maximum of `at` in each group of changes: most of a large segment's are older than what a client asks for.
    pub(super) maxima: Vec<u32>,
}

impl Segment {
    /// Returns the number of changes.
    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    /// Returns the number of the last step.
    pub(super) fn last(&self) -> u64 {
        self.first + u64::from(self.maxima.iter().copied().max().unwrap_or_default())
    }

    /// Returns the number of the step of a change.
    pub(super) fn number(&self, change: usize) -> u64 {
        self.first + u64::from(self.at.get(change).copied().unwrap_or_default())
    }

    /// Returns the first change from `start` on by a step whose index isn't below `step`.
    pub(super) fn next_since(&self, start: usize, step: u32) -> Option<usize> {
        let next = |numbers: &[u32]| numbers.iter().position(|number| *number >= step);
        let group = start / GROUP + 1;
        let end = self.len().min(group * GROUP);
        if let Some(offset) = next(self.at.get(start..end)?) {
            return Some(start + offset);
        }
        let start = (group + next(self.maxima.get(group..)?)?) * GROUP;
        Some(start + next(self.at.get(start..)?)?)
    }

    /// Returns the first change from `start` on whose code isn't before the wanted ones.
    pub(super) fn skip(&self, start: usize, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut step) = (start, 1);
        while low + step <= self.len() && is_before(self.codes.get(low + step - 1)) {
            (low, step) = (low + step, step * 2);
        }
        let mut high = self.len().min(low + step - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            match is_before(self.codes.get(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Returns the number of a step; up to it are about a quarter of the changes.
    pub(super) fn quarter(&self) -> u64 {
        let mut at = self.at.clone();
        let quarter = at.len() / 4;
        match at.is_empty() {
            true => self.first,
            false => self.first + u64::from(*at.select_nth_unstable(quarter).1),
        }
    }

    /// Returns the memory of the segment, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&self.at[..])
            + size_of_val(&self.around[..])
            + size_of_val(&self.maxima[..])
            + self.codes.size_bytes()
            + self.facts.size_bytes()
    }

    /// Returns the changes of segments by steps after `since`. Together they must be shorter than 4 GiB.
    pub(super) fn merged(parts: &[Arc<Self>], since: u64) -> Self {
        let mut builder = SegmentBuilder::default();
        for part in parts {
            for (change, around) in part.around.iter().enumerate() {
                let facts = |number: u32| Some(part.facts.get(number.checked_sub(1)? as usize));
                let (code, number) = (part.codes.get(change), part.number(change));
                if number > since {
                    builder.change(number, code, around.map(facts));
                }
            }
        }
        builder.finish(since, u64::MAX)
    }

    /// Returns the segment after its last change.
    pub(super) fn seal(mut self) -> Self {
        for strings in [&mut self.codes, &mut self.facts] {
            strings.bytes.shrink_to_fit();
            strings.ends.shrink_to_fit();
        }
        self.at.shrink_to_fit();
        self.around.shrink_to_fit();
        let maximum = |group: &[u32]| group.iter().copied().max().unwrap_or_default();
        self.maxima = self.at.chunks(GROUP).map(maximum).collect();
        self
    }

    /// Returns true if the parts fit each other, the codes are codes, and the changes are in order.
    pub(super) fn is_sound(&self) -> bool {
        let count = self.len();
        let is_code = |change: usize| {
            let text = std::str::from_utf8(self.codes.get(change));
            text.is_ok_and(|code| ProductCode::check(code).is_ok())
        };
        let key = |change: usize| (self.codes.get(change), self.at[change]);
        let has_facts = |number: &u32| *number as usize <= self.facts.ends.len();
        count > 0
            // Numbers of a store have 63 bits.
            && i64::try_from(self.first).is_ok()
            && [self.codes.ends.len(), self.around.len()] == [count; 2]
            && self.codes.is_sound()
            && self.facts.is_sound()
            && self.around.iter().flatten().all(has_facts)
            && (0..count).all(is_code)
            && (1..count).all(|change| key(change - 1) < key(change))
    }
}

/// Byte strings, concatenated; shorter than 4 GiB together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Strings {
    pub(super) bytes: Vec<u8>,
    /// End of each string in `bytes`.
    pub(super) ends: Vec<u32>,
}

impl Strings {
    /// Returns the string with this index; an empty one if there is none.
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let end = |index: usize| self.ends.get(index).map_or(0, |end| *end as usize);
        let start = index.checked_sub(1).map_or(0, end);
        self.bytes.get(start..end(index)).unwrap_or_default()
    }

    /// Appends a string; returns the number of strings, or `None` if it doesn't fit.
    fn push(&mut self, string: &[u8]) -> Option<u32> {
        let end = u32::try_from(self.bytes.len() + string.len()).ok()?;
        self.bytes.extend_from_slice(string);
        self.ends.push(end);
        u32::try_from(self.ends.len()).ok()
    }

    /// Returns true if each string is a part of the bytes, and each byte of a string.
    fn is_sound(&self) -> bool {
        let end = self.ends.last().map_or(0, |end| *end as usize);
        end == self.bytes.len() && self.ends.is_sorted()
    }

    fn size_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&self.ends[..])
    }
}

/// Builder of a segment from changes in any order.
#[derive(Debug, Default)]
pub(super) struct SegmentBuilder {
    codes: Strings,
    changes: Vec<Change>,
    facts: Strings,
    /// Numbers of the facts, counted from one.
    numbers: HashMap<Box<[u8]>, u32>,
}

#[derive(Debug)]
struct Change {
    /// Number of the code, counted from one.
    code: u32,
    /// Number of the step.
    number: u64,
    /// Numbers of the facts before and after.
    around: [u32; 2],
}

impl SegmentBuilder {
    /// Adds a change of a product by the step with this number, with the facts before and after as far as they are known.
    /// Changes of one product by one step are joined. Returns `None` if it doesn't fit.
    pub(super) fn change(
        &mut self,
        number: u64,
        code: &[u8],
        around: [Option<&[u8]>; 2],
    ) -> Option<()> {
        let mut numbers = [0; 2];
        for (number, facts) in numbers.iter_mut().zip(around) {
            *number = match facts {
                None => 0,
                Some(facts) => self.number(facts)?,
            };
        }
        self.changes.push(Change {
            code: self.codes.push(code)?,
            number,
            around: numbers,
        });
        Some(())
    }

    fn number(&mut self, facts: &[u8]) -> Option<u32> {
        if let Some(number) = self.numbers.get(facts) {
            return Some(*number);
        }
        let number = self.facts.push(facts)?;
        self.numbers.insert(facts.into(), number);
        Some(number)
    }

    /// Returns the changes by steps after `since`, up to `until`.
    pub(super) fn finish(mut self, since: u64, until: u64) -> Segment {
        (self.changes).retain(|change| since < change.number && change.number <= until);
        let code = |change: &Change| self.codes.get(change.code as usize - 1);
        let key = |change: &Change| (code(change), change.number);
        // Fast for changes of sorted parts.
        self.changes.sort_by(|one, other| key(one).cmp(&key(other)));
        let mut segment = Segment {
            first: (self.changes.iter().map(|change| change.number).min()).unwrap_or_default(),
            facts: self.facts,
            ..Segment::default()
        };
        for joined in self.changes.chunk_by(|one, other| key(one) == key(other)) {
            let around = joined.iter().fold([0; 2], |[before, after], change| {
                [before.max(change.around[0]), after.max(change.around[1])]
            });
            // They fit here, too.
            let (code, number) = key(&joined[0]);
            segment.codes.push(code);
            segment.around.push(around);
            let at = u32::try_from(number - segment.first);
            segment.at.push(at.unwrap_or(u32::MAX));
        }
        segment.seal()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn next_change_is_the_one_that_a_linear_search_finds(
            at in prop::collection::vec(prop_oneof![99 => 0..4_u32, 1 => any::<u32>()], 0..1_500),
            step in prop_oneof![0..6_u32, any::<u32>()],
        ) {
            let segment = Segment { at, ..Segment::default() }.seal();
            for start in 0..segment.len() + 20 {
                let mut rest = segment.at.iter().skip(start);
                let linear = rest.position(|number| *number >= step).map(|offset| start + offset);
                prop_assert_eq!(segment.next_since(start, step), linear);
            }
        }
    }
}
