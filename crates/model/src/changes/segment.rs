//! A segment: the changes of some neighbouring steps, immutable, sorted by code. Journals share segments.

use std::sync::Arc;

use super::Step;
use super::builder::FactsNumbers;
use super::maxima::Maxima;
use super::strings::Strings;
use crate::code::ProductCode;

/// Changes of neighbouring steps, ascending by code and step. `codes`, `at`, `before` and `after` have an element for each
/// change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// Number of the first step.
    pub(super) first: u64,
    pub(super) steps: Vec<Step>,
    pub(super) codes: Strings,
    /// Index of the step.
    pub(super) at: Vec<u32>,
    /// Number of the facts before the step, counted from one; zero if the product wasn't there.
    pub(super) before: Vec<u32>,
    /// Number of the facts after the step, likewise. Both are zero if only a text of the product changed.
    pub(super) after: Vec<u32>,
    /// Facts, each once.
    pub(super) facts: Strings,
    /// Maxima of `at`.
    pub(super) maxima: Maxima,
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

    /// Returns the number of the step of a change.
    pub(super) fn number(&self, change: usize) -> u64 {
        self.first + u64::from(self.at.get(change).copied().unwrap_or_default())
    }

    /// Returns the numbers of the facts around a change.
    pub(super) fn facts_around(&self, change: usize) -> [u32; 2] {
        [&self.before, &self.after].map(|numbers| numbers.get(change).copied().unwrap_or_default())
    }

    /// Returns the first change from `start` on by a step whose index isn't below `step`.
    pub(super) fn next_since(&self, start: usize, step: u32) -> Option<usize> {
        match *self.at.get(start)? >= step {
            true => Some(start),
            false => self.maxima.next(&self.at, start, step),
        }
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

    /// Returns the number of a step; up to it are about a quarter of the changes or of the steps.
    pub(super) fn quarter(&self) -> u64 {
        let mut at = self.at.clone();
        let quarter = at.len() / 4;
        let by_changes = match at.is_empty() {
            true => 0,
            false => *at.select_nth_unstable(quarter).1,
        };
        let by_steps = self.steps.len() / 4;
        self.first + u64::from(by_changes).max(by_steps as u64)
    }

    /// Returns the memory of the segment, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        let numbers = self.at.len() + self.before.len() + self.after.len();
        size_of::<Self>()
            + numbers * size_of::<u32>()
            + self.codes.size_bytes()
            + self.facts.size_bytes()
            + self.maxima.size_bytes()
            + size_of_val(&self.steps[..])
    }

    /// Returns the size for merging.
    pub(super) fn weight(&self) -> usize {
        self.len() + self.steps.len()
    }

    /// Returns the changes of neighbouring segments by steps after `since`.
    pub(super) fn merged(parts: &[Arc<Self>], since: u64) -> Self {
        let mut merged = Self {
            first: parts.first().map_or(0, |part| part.first),
            ..Self::default()
        };
        merged.first = merged.first.max(since.saturating_add(1));
        let mut order = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        for (index, part) in parts.iter().enumerate() {
            let steps = (part.first..=part.last()).zip(&part.steps);
            let steps = steps.filter(|(number, _)| *number > since);
            merged.steps.extend(steps.map(|(_, step)| *step));
            let kept = (0..part.len()).filter(|change| part.number(*change) > since);
            order.extend(kept.map(|change| (index, change)));
        }
        // Stable, and fast for sorted parts; the steps of a part follow those of the part before it.
        order.sort_by_key(|(part, change)| parts[*part].codes.get(*change));
        let mut numbers = FactsNumbers::default();
        let unknown = |part: &Arc<Self>| vec![0; part.facts.len()];
        let mut renumbered: Vec<Vec<u32>> = parts.iter().map(unknown).collect();
        for (index, change) in order {
            let part = &parts[index];
            let around = part.facts_around(change).map(|number| {
                let Some(facts) = number.checked_sub(1).map(|number| number as usize) else {
                    return 0;
                };
                let known = &mut renumbered[index][facts];
                if *known == 0 {
                    let facts = part.facts.get(facts);
                    *known = numbers.number(facts, &mut merged.facts).unwrap_or_default();
                }
                *known
            });
            merged.push(part.codes.get(change), part.number(change), around);
        }
        merged.seal()
    }

    /// Appends a change by the step with this number.
    pub(super) fn push(&mut self, code: &[u8], number: u64, [before, after]: [u32; 2]) {
        self.codes.push(code);
        self.at
            .push(u32::try_from(number - self.first).unwrap_or(u32::MAX));
        self.before.push(before);
        self.after.push(after);
    }

    /// Returns the segment after its last change.
    pub(super) fn seal(mut self) -> Self {
        self.steps.shrink_to_fit();
        self.codes.shrink();
        self.facts.shrink();
        for numbers in [&mut self.at, &mut self.before, &mut self.after] {
            numbers.shrink_to_fit();
        }
        self.maxima = Maxima::of(&self.at);
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
        let has_step = |at: &u32| (*at as usize) < self.steps.len();
        let has_facts = |number: &u32| *number as usize <= self.facts.len();
        let end = self.first.checked_add(self.steps.len() as u64);
        let lengths = [self.codes.len(), self.before.len(), self.after.len()];
        !self.steps.is_empty()
            && end.is_some()
            && lengths == [count; 3]
            && self.codes.is_sound()
            && self.facts.is_sound()
            && self.at.iter().all(has_step)
            && self.before.iter().chain(&self.after).all(has_facts)
            && (0..count).all(is_code)
            && (1..count).all(|change| key(change - 1) < key(change))
    }
}
