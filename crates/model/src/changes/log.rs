//! A log: numbered states and the changes that led from each to the next, in segments whose sizes shrink towards the newest.
//! Appending merges small segments, so that there are few.

use std::sync::Arc;

use super::search::Cursor;
use super::segment::{Segment, SegmentBuilder};
use super::{StateId, Step};
use crate::selector::Selector;

/// Further id of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alias {
    pub(super) number: u64,
    pub(super) id: StateId,
}

/// States, each reached by a numbered step, and the changes of these steps. Clones share segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Log {
    /// Number of the oldest state, whose changes aren't recorded.
    pub(super) oldest: u64,
    /// States from the oldest to the newest; at least one.
    pub(super) steps: Vec<Step>,
    pub(super) aliases: Vec<Alias>,
    /// Changes of neighbouring steps, ascending.
    pub(super) segments: Vec<Arc<Segment>>,
}

impl Log {
    /// Returns a log of one state.
    pub(super) fn new(number: u64, base: Step) -> Self {
        Self {
            oldest: number,
            steps: vec![base],
            aliases: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// Returns the number of the newest state.
    pub(super) fn newest(&self) -> u64 {
        self.oldest + (self.steps.len() as u64).saturating_sub(1)
    }

    fn index(&self, number: u64) -> Option<usize> {
        let index = usize::try_from(number.checked_sub(self.oldest)?).ok()?;
        (index < self.steps.len()).then_some(index)
    }

    /// Returns the state with this number.
    pub(super) fn state(&self, number: u64) -> Option<&Step> {
        self.steps.get(self.index(number)?)
    }

    /// Returns the newest state.
    pub(super) fn newest_step(&self) -> Step {
        self.steps.last().copied().unwrap_or_default()
    }

    /// Returns the time at which the state of a moment began; that of the oldest state if it is later.
    pub(super) fn begin_at(&self, time: i64) -> i64 {
        let until = self.steps.partition_point(|step| step.at <= time);
        self.steps[until.saturating_sub(1)].at
    }

    /// Returns true if the state with this number has this id.
    pub(super) fn has(&self, number: u64, id: StateId) -> bool {
        self.state(number).is_some_and(|step| step.id == id)
            || self.aliases.contains(&Alias { number, id })
    }

    /// Returns the number of the state with this id, if the ids ascend.
    pub(super) fn find(&self, id: StateId) -> Option<u64> {
        let index = self.steps.binary_search_by_key(&id, |step| step.id);
        Some(self.oldest + index.ok()? as u64)
    }

    /// Returns the number of changes.
    pub(super) fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len()).sum()
    }

    /// Returns the memory of the log beyond its oldest state, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        let segments = self.segments.iter().map(|segment| segment.size_bytes());
        segments.sum::<usize>() + size_of_val(&self.steps[1..])
    }

    /// Appends the next steps and their changes. Changes of other steps are left out.
    pub(super) fn append(&mut self, steps: Vec<Step>, changes: SegmentBuilder) {
        let since = self.newest();
        self.steps.extend(steps);
        let segment = changes.finish(since, self.newest());
        if segment.len() == 0 {
            return;
        }
        let (mut length, mut size) = (segment.len(), segment.size_bytes());
        let mut kept = self.segments.len();
        while let Some(older) = self.segments[..kept].last() {
            size += older.size_bytes();
            if older.len() >= 2 * length || u32::try_from(size).is_err() {
                break;
            }
            length += older.len();
            kept -= 1;
        }
        let mut parts = self.segments.split_off(kept);
        parts.push(Arc::new(segment));
        self.segments.push(match &parts[..] {
            [only] => Arc::clone(only),
            parts => Arc::new(Segment::merged(parts, self.oldest)),
        });
    }

    /// Drops about a quarter of the oldest segment or of the states, at least one. Returns false if only one is left.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let later = self.steps.len() as u64 - 1;
        let quarter = self.segments.first().map(|segment| segment.quarter());
        if later > 0 {
            let by_states = self.oldest + 1 + later / 4;
            self.drop_until(quarter.map_or(by_states, |quarter| quarter.max(by_states)));
        }
        later > 0
    }

    /// Drops states that were replaced before `time`, unless they are less than a quarter.
    pub(super) fn drop_replaced_before(&mut self, time: i64) {
        let later = &self.steps[1..];
        let replaced = later.partition_point(|step| step.at < time);
        if replaced >= later.len() / 4 {
            self.drop_until(self.oldest + replaced as u64);
        }
    }

    /// Drops the changes up to the state with this number, which is the oldest then.
    pub(super) fn drop_until(&mut self, number: u64) {
        let Some(index) = self.index(number) else {
            return;
        };
        self.oldest = number;
        self.steps.drain(..index);
        self.steps.shrink_to_fit();
        self.aliases.retain(|alias| alias.number >= number);
        self.segments.retain(|segment| segment.last() > number);
        if let Some(segment) = self.segments.first_mut()
            && segment.first <= number
        {
            *segment = Arc::new(Segment::merged(std::slice::from_ref(segment), number));
        }
    }

    /// Returns cursors over the changes of steps from `since`, exclusive, to `until`, with codes above `after`.
    pub(super) fn cursors<'s, 'f>(
        &'s self,
        [since, until]: [u64; 2],
        after: &'f [u8],
        filter: &'f Selector,
    ) -> impl Iterator<Item = Cursor<'s, 'f>> {
        let concerned = move |segment: &&'s Arc<Segment>| {
            since < until && segment.last() > since && segment.first <= until
        };
        self.segments
            .iter()
            .filter(concerned)
            .map(move |segment| Cursor::new(segment, [since, until], after, filter))
    }

    /// Returns true if the parts fit each other.
    pub(super) fn is_sound(&self) -> bool {
        let Some(later) = self.steps.len().checked_sub(1) else {
            return false;
        };
        // Numbers of a store have 63 bits.
        let newest = self.oldest.checked_add(later as u64);
        let Some(newest) = newest.filter(|newest| i64::try_from(*newest).is_ok()) else {
            return false;
        };
        let is_known = |alias: &Alias| (self.oldest..=newest).contains(&alias.number);
        let mut last = self.oldest;
        let mut follows =
            |segment: &Arc<Segment>| segment.first > std::mem::replace(&mut last, segment.last());
        self.segments.iter().all(|segment| segment.is_sound())
            && self.segments.iter().all(&mut follows)
            && last <= newest
            && self.aliases.iter().all(is_known)
    }
}
