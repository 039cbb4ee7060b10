//! A segment: the changes of some neighbouring steps, immutable, sorted by code. Journals share segments.

use std::collections::HashMap;
use std::ops::Range;

use super::Step;

/// Changes of neighbouring steps. All parts but `steps`, `codes` and the facts have an element for each change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// Number of the first step.
    pub(super) first: u64,
    pub(super) steps: Vec<Step>,
    /// Codes, concatenated.
    pub(super) codes: Vec<u8>,
    /// End of the code in `codes`.
    pub(super) code_ends: Vec<u32>,
    /// Index of the step.
    pub(super) at: Vec<u32>,
    /// Number of the facts before the step, counted from one; zero if the product wasn't there.
    pub(super) before: Vec<u32>,
    /// Number of the facts after the step, likewise.
    pub(super) after: Vec<u32>,
    /// Changes in order of their steps, as indexes into the parts above.
    pub(super) by_step: Vec<u32>,
    /// Facts, concatenated.
    pub(super) facts: Vec<u8>,
    /// End of each facts in `facts`.
    pub(super) facts_ends: Vec<u32>,
}

impl Segment {
    /// Returns the number of changes.
    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    /// Returns the number of the last step.
    pub(super) fn last(&self) -> u64 {
        self.first + (self.steps.len() as u64).saturating_sub(1)
    }

    /// Returns the step with this number.
    pub(super) fn step(&self, number: u64) -> Option<&Step> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.steps.get(index)
    }

    /// Returns the code of a change.
    pub(super) fn code(&self, change: usize) -> &[u8] {
        slice(&self.codes, &self.code_ends, change)
    }

    /// Iterates over the facts of a product around a change, as far as the product was there.
    pub(super) fn facts_around(&self, change: usize) -> impl Iterator<Item = &[u8]> {
        let number = |numbers: &[u32]| numbers.get(change).copied().unwrap_or_default() as usize;
        let present = [number(&self.before), number(&self.after)].into_iter();
        present
            .filter(|number| *number > 0)
            .map(|number| slice(&self.facts, &self.facts_ends, number - 1))
    }

    /// Returns the number of the step of a change.
    pub(super) fn number(&self, change: usize) -> u64 {
        self.first + u64::from(self.at.get(change).copied().unwrap_or_default())
    }

    /// Returns the first change whose code is above `code`.
    pub(super) fn first_above(&self, code: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.code(middle) <= code {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Returns the changes of steps from `since`, exclusive, to `until`, as a range of `by_step`.
    pub(super) fn between(&self, since: u64, until: u64) -> Range<usize> {
        let count = |number: u64| {
            let is_within = |change: &u32| self.number(*change as usize) <= number;
            self.by_step.partition_point(is_within)
        };
        count(since)..count(until)
    }

    /// Returns the memory of the segment, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let numbers = [
            &self.code_ends,
            &self.at,
            &self.before,
            &self.after,
            &self.by_step,
            &self.facts_ends,
        ];
        let numbers: usize = numbers.map(Vec::len).iter().sum();
        size_of::<Self>()
            + numbers * size_of::<u32>()
            + self.codes.len()
            + self.facts.len()
            + size_of_val(&self.steps[..])
    }
}

/// Returns an element of concatenated byte strings.
fn slice<'b>(bytes: &'b [u8], ends: &[u32], index: usize) -> &'b [u8] {
    let end = |index: usize| ends.get(index).copied().unwrap_or_default() as usize;
    let start = index.checked_sub(1).map_or(0, end);
    bytes.get(start..end(index)).unwrap_or_default()
}

/// Builder of a segment from changes in any order.
#[derive(Debug, Default)]
pub(super) struct SegmentBuilder {
    steps: Vec<Step>,
    codes: Vec<u8>,
    changes: Vec<Change>,
    facts: Vec<u8>,
    facts_ends: Vec<u32>,
    numbers: HashMap<Vec<u8>, u32>,
}

#[derive(Debug)]
struct Change {
    code: Range<usize>,
    number: u64,
    before: u32,
    after: u32,
}

impl SegmentBuilder {
    /// Adds the next step.
    pub(super) fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Adds a change of a product by the step with this number. Changes of one product by one step are joined.
    pub(super) fn change(
        &mut self,
        number: u64,
        code: &[u8],
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) {
        let start = self.codes.len();
        self.codes.extend_from_slice(code);
        let (before, after) = (self.facts(before), self.facts(after));
        self.changes.push(Change {
            code: start..self.codes.len(),
            number,
            before,
            after,
        });
    }

    /// Adds all changes and steps of a segment that follows those that were added; changes up to step `since` are left out.
    pub(super) fn segment(&mut self, segment: &Segment, since: u64) {
        let kept = (segment.first..).zip(&segment.steps);
        self.steps.extend(
            kept.filter(|(number, _)| *number > since)
                .map(|(_, step)| *step),
        );
        for change in 0..segment.len() {
            if segment.number(change) > since {
                let facts = |numbers: &[u32]| {
                    let number = numbers.get(change).copied().unwrap_or_default() as usize;
                    Some(slice(
                        &segment.facts,
                        &segment.facts_ends,
                        number.checked_sub(1)?,
                    ))
                };
                let (before, after) = (facts(&segment.before), facts(&segment.after));
                self.change(segment.number(change), segment.code(change), before, after);
            }
        }
    }

    fn facts(&mut self, facts: Option<&[u8]>) -> u32 {
        let Some(facts) = facts else {
            return 0;
        };
        if let Some(number) = self.numbers.get(facts) {
            return *number;
        }
        self.facts.extend_from_slice(facts);
        self.facts_ends.push(small(self.facts.len()));
        let number = small(self.facts_ends.len());
        self.numbers.insert(facts.to_vec(), number);
        number
    }

    /// Returns the segment whose first step has the number `first`. Changes of other steps are left out.
    pub(super) fn finish(mut self, first: u64) -> Segment {
        let numbers = first..first + self.steps.len() as u64;
        self.changes
            .retain(|change| numbers.contains(&change.number));
        let codes = &self.codes;
        // Stable and fast for sorted parts, such as two segments.
        self.changes.sort_by(|one, other| {
            let key = |change: &Change| (&codes[change.code.clone()], change.number);
            key(one).cmp(&key(other))
        });
        let mut segment = Segment {
            first,
            steps: self.steps,
            facts: self.facts,
            facts_ends: self.facts_ends,
            ..Segment::default()
        };
        let mut last: Option<&Change> = None;
        for change in &self.changes {
            let code = &codes[change.code.clone()];
            if let Some(last) = last
                && (last.number, &codes[last.code.clone()]) == (change.number, code)
                && let (Some(before), Some(after)) =
                    (segment.before.last_mut(), segment.after.last_mut())
            {
                *before = (*before).max(change.before);
                *after = (*after).max(change.after);
                continue;
            }
            last = Some(change);
            segment.codes.extend_from_slice(code);
            segment.code_ends.push(small(segment.codes.len()));
            segment
                .at
                .push(u32::try_from(change.number - first).unwrap_or(u32::MAX));
            segment.before.push(change.before);
            segment.after.push(change.after);
        }
        segment.by_step = (0..small(segment.len())).collect();
        segment
            .by_step
            .sort_by_key(|change| segment.at[*change as usize]);
        segment.shrink();
        segment
    }
}

impl Segment {
    fn shrink(&mut self) {
        self.codes.shrink_to_fit();
        for numbers in [
            &mut self.code_ends,
            &mut self.at,
            &mut self.before,
            &mut self.after,
            &mut self.by_step,
            &mut self.facts_ends,
        ] {
            numbers.shrink_to_fit();
        }
        self.facts.shrink_to_fit();
        self.steps.shrink_to_fit();
    }
}

/// Converts a length; a journal has fewer bytes than 32 bits can count.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
