//! Building a segment from changes in any order.

use std::collections::HashMap;

use super::Step;
use super::segment::Segment;
use super::strings::Strings;

/// Builder of a segment from changes in any order.
#[derive(Debug, Default)]
pub(super) struct SegmentBuilder {
    steps: Vec<Step>,
    codes: Strings,
    changes: Vec<Change>,
    facts: Strings,
    numbers: FactsNumbers,
}

#[derive(Debug)]
struct Change {
    /// Index of the code.
    code: u32,
    /// Number of the step.
    number: u64,
    /// Numbers of the facts before and after.
    around: [u32; 2],
}

/// Numbers of facts, counted from one.
#[derive(Debug, Default)]
pub(super) struct FactsNumbers(HashMap<Box<[u8]>, u32>);

impl FactsNumbers {
    /// Returns the number of these facts, which are appended to `all` if they are new; `None` if they don't fit.
    pub(super) fn number(&mut self, facts: &[u8], all: &mut Strings) -> Option<u32> {
        if let Some(number) = self.0.get(facts) {
            return Some(*number);
        }
        let is_appended = all.push(facts);
        let number = u32::try_from(all.len()).ok().filter(|_| is_appended)?;
        self.0.insert(facts.into(), number);
        Some(number)
    }
}

impl SegmentBuilder {
    /// Adds the next step.
    pub(super) fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

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
            if let Some(facts) = facts {
                *number = self.numbers.number(facts, &mut self.facts)?;
            }
        }
        let index = u32::try_from(self.codes.len()).ok()?;
        self.codes.push(code).then_some(())?;
        self.changes.push(Change {
            code: index,
            number,
            around: numbers,
        });
        Some(())
    }

    /// Returns the segment whose first step has the number `first`. Changes of other steps are left out.
    pub(super) fn finish(mut self, first: u64) -> Segment {
        let count = self.steps.len() as u64;
        let is_within = |number: u64| number.checked_sub(first).is_some_and(|at| at < count);
        self.changes.retain(|change| is_within(change.number));
        let key = |change: &Change| (self.codes.get(change.code as usize), change.number);
        self.changes
            .sort_unstable_by(|one, other| key(one).cmp(&key(other)));
        let mut segment = Segment {
            first,
            steps: self.steps,
            facts: self.facts,
            ..Segment::default()
        };
        for joined in self.changes.chunk_by(|one, other| key(one) == key(other)) {
            let around = joined.iter().fold([0; 2], |[before, after], change| {
                [before.max(change.around[0]), after.max(change.around[1])]
            });
            let (code, number) = key(&joined[0]);
            segment.push(code, number, around);
        }
        segment.seal()
    }
}
