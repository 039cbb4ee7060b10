//! A log: the changes of numbered steps, in segments whose sizes shrink towards the newest. Appending merges small
//! segments, so that there are few.

use std::sync::Arc;

use super::cursor::Cursor;
use super::segment::Segment;
use super::{StateId, Step};
use crate::selector::Selector;

/// Changes of numbered steps, each of which leads to a state. Clones share segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Log {
    /// Number of the oldest state, whose changes aren't recorded.
    pub(super) oldest: u64,
    /// The oldest state.
    pub(super) base: Step,
    /// Further ids of states, by their numbers.
    pub(super) aliases: Vec<(u64, StateId)>,
    /// Neighbouring segments, ascending.
    pub(super) segments: Vec<Arc<Segment>>,
}

impl Log {
    /// Returns a log of one state.
    pub(super) fn new(number: u64, base: Step) -> Self {
        Self {
            oldest: number,
            base,
            aliases: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// Returns the number of the newest state.
    pub(super) fn newest(&self) -> u64 {
        let newest = self.segments.last();
        newest.map_or(self.oldest, |segment| segment.last())
    }

    /// Returns the state with this number.
    pub(super) fn state(&self, number: u64) -> Option<&Step> {
        if number == self.oldest {
            return Some(&self.base);
        }
        let is_older = |segment: &Arc<Segment>| segment.last() < number;
        let index = self.segments.partition_point(is_older);
        self.segments.get(index)?.step(number)
    }

    /// Returns the newest state.
    pub(super) fn newest_step(&self) -> Step {
        self.state(self.newest()).copied().unwrap_or_default()
    }

    /// Returns the time at which the state of a moment began; that of the oldest state if it is later.
    pub(super) fn begin_at(&self, time: i64) -> i64 {
        let newest_first = self.segments.iter().rev();
        let mut begin = newest_first.filter_map(|segment| {
            let until = segment.steps.partition_point(|step| step.at <= time);
            Some(segment.steps[until.checked_sub(1)?].at)
        });
        begin.next().unwrap_or(self.base.at)
    }

    /// Returns true if the state with this number has this id.
    pub(super) fn has(&self, number: u64, id: StateId) -> bool {
        self.state(number).is_some_and(|step| step.id == id) || self.aliases.contains(&(number, id))
    }

    /// Returns the number of the state with this id, if the ids ascend.
    pub(super) fn find(&self, id: StateId) -> Option<u64> {
        if id == self.base.id {
            return Some(self.oldest);
        }
        let is_older =
            |segment: &Arc<Segment>| segment.steps.last().is_some_and(|last| last.id < id);
        let segment = self.segments.get(self.segments.partition_point(is_older))?;
        let index = segment.steps.binary_search_by_key(&id, |step| step.id);
        Some(segment.first + index.ok()? as u64)
    }

    /// Returns the number of changes.
    pub(super) fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len()).sum()
    }

    /// Returns the memory of the log, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        let segments = self.segments.iter().map(|segment| segment.size_bytes());
        segments.sum()
    }

    /// Appends the changes of the next steps.
    pub(super) fn append(&mut self, segment: Segment) {
        if segment.steps.is_empty() {
            return;
        }
        let (mut weight, mut size) = (segment.weight(), segment.size_bytes());
        let mut kept = self.segments.len();
        while let Some(index) = kept.checked_sub(1) {
            let older = &self.segments[index];
            (weight, size) = match older.weight() < 2 * weight {
                true => (weight + older.weight(), size + older.size_bytes()),
                false => break,
            };
            if u32::try_from(size).is_err() {
                break;
            }
            kept = index;
        }
        let mut parts = self.segments.split_off(kept);
        parts.push(Arc::new(segment));
        self.segments.push(match &parts[..] {
            [only] => Arc::clone(only),
            parts => Arc::new(Segment::merged(parts, self.oldest)),
        });
    }

    /// Drops about a quarter of the oldest segment, at least one step. Returns false if only one state is left.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let segment = self.segments.first();
        let quarter = segment.map(|segment| segment.quarter());
        quarter
            .inspect(|quarter| self.drop_until(*quarter))
            .is_some()
    }

    /// Drops states that were replaced before `time`, unless they are less than a quarter of the oldest segment's.
    pub(super) fn drop_replaced_before(&mut self, time: i64) {
        while let Some(segment) = self.segments.first() {
            let count = segment.steps.len();
            let replaced = segment.steps.partition_point(|step| step.at < time);
            if replaced == 0 || replaced < count / 4 {
                return;
            }
            self.drop_until(segment.first + replaced as u64 - 1);
            if replaced < count {
                return;
            }
        }
    }

    /// Drops the changes up to the state with this number, which is the oldest then.
    pub(super) fn drop_until(&mut self, number: u64) {
        let Some(base) = self.state(number).copied() else {
            return;
        };
        (self.oldest, self.base) = (number, base);
        self.aliases.retain(|(alias, _)| *alias >= number);
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
}
