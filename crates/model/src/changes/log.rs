//! A log: the changes of numbered steps, in segments whose sizes shrink towards the newest. Appending merges small
//! segments, so that a read of recent steps visits few changes, and there are few segments.

use std::sync::Arc;

use super::segment::{Segment, SegmentBuilder};
use super::{StateId, Step};

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
        self.segments
            .last()
            .map_or(self.oldest, |segment| segment.last())
    }

    /// Returns the state with this number.
    pub(super) fn state(&self, number: u64) -> Option<&Step> {
        if number == self.oldest {
            return Some(&self.base);
        }
        let index = self
            .segments
            .partition_point(|segment| segment.last() < number);
        self.segments.get(index)?.step(number)
    }

    /// Returns true if the state with this number has this id.
    pub(super) fn has(&self, number: u64, id: StateId) -> bool {
        self.state(number).is_some_and(|step| step.id == id) || self.aliases.contains(&(number, id))
    }

    /// Returns the number of the newest state with this id.
    pub(super) fn find(&self, id: StateId) -> Option<u64> {
        let mut newest_first = (self.oldest..=self.newest()).rev();
        newest_first.find(|number| self.has(*number, id))
    }

    /// Returns the number of changes.
    pub(super) fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len()).sum()
    }

    /// Returns the memory of the log, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.bytes()).sum()
    }

    /// Appends the changes of the next steps.
    pub(super) fn append(&mut self, segment: Segment) {
        if segment.steps.is_empty() {
            return;
        }
        self.segments.push(Arc::new(segment));
        while let [.., older, newer] = &self.segments[..]
            && weight(older) < 2 * weight(newer)
        {
            let mut merged = SegmentBuilder::default();
            merged.segment(older, self.oldest);
            merged.segment(newer, self.oldest);
            let merged = Arc::new(merged.finish(older.first));
            self.segments.truncate(self.segments.len() - 2);
            self.segments.push(merged);
        }
    }

    /// Drops about a quarter of the oldest segment, at least one step. Returns false if only one state is left.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let Some(segment) = self.segments.first().map(Arc::clone) else {
            return false;
        };
        let quarter = segment.by_step.get(segment.len() / 4);
        let by_changes = quarter.map_or(0, |change| segment.number(*change as usize));
        let by_steps = segment.first + segment.steps.len() as u64 / 4;
        self.drop_until(by_changes.max(by_steps).min(segment.last()));
        true
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
            let mut rest = SegmentBuilder::default();
            rest.segment(segment, number);
            *segment = Arc::new(rest.finish(number + 1));
        }
    }

    /// Returns cursors over the changes of steps from `since`, exclusive, to `until`, with codes above `after`.
    pub(super) fn cursors(
        &self,
        since: u64,
        until: u64,
        after: &[u8],
    ) -> impl Iterator<Item = Cursor<'_>> {
        let concerned =
            move |segment: &&Arc<Segment>| segment.last() > since && segment.first <= until;
        self.segments
            .iter()
            .filter(concerned)
            .map(move |segment| Cursor::new(segment, since, until, after))
    }
}

/// Returns the size of a segment for merging.
fn weight(segment: &Segment) -> usize {
    segment.len() + segment.steps.len()
}

/// Minimum ratio of all changes of a segment to those of the wanted steps, from which these are sorted instead of all
/// being visited.
const SPARSE: usize = 8;

/// Iterates over changes of a segment in ascending order of codes.
pub(super) struct Cursor<'s> {
    pub(super) segment: &'s Segment,
    since: u64,
    until: u64,
    rest: Rest,
}

/// Changes that are left.
enum Rest {
    /// All from this one on that are of the wanted steps.
    From(usize),
    /// These, the next one last.
    Listed(Vec<u32>),
}

impl<'s> Cursor<'s> {
    fn new(segment: &'s Segment, since: u64, until: u64, after: &[u8]) -> Self {
        let first = match after.is_empty() {
            true => 0,
            false => segment.first_above(after),
        };
        let wanted = segment.between(since, until);
        let rest = match wanted.len() * SPARSE < segment.len() {
            false => Rest::From(first),
            true => {
                let wanted = segment.by_step[wanted].iter().copied();
                let mut listed: Vec<u32> =
                    wanted.filter(|change| *change as usize >= first).collect();
                listed.sort_unstable_by(|one, other| other.cmp(one));
                Rest::Listed(listed)
            }
        };
        let mut cursor = Self {
            segment,
            since,
            until,
            rest,
        };
        cursor.skip_unwanted();
        cursor
    }

    /// Returns the next change.
    pub(super) fn peek(&self) -> Option<usize> {
        match &self.rest {
            Rest::From(change) => (*change < self.segment.len()).then_some(*change),
            Rest::Listed(listed) => listed.last().map(|change| *change as usize),
        }
    }

    pub(super) fn advance(&mut self) {
        match &mut self.rest {
            Rest::From(change) => *change += 1,
            Rest::Listed(listed) => drop(listed.pop()),
        }
        self.skip_unwanted();
    }

    fn skip_unwanted(&mut self) {
        if let Rest::From(change) = &mut self.rest {
            let (segment, wanted) = (self.segment, self.since + 1..=self.until);
            while *change < segment.len() && !wanted.contains(&segment.number(*change)) {
                *change += 1;
            }
        }
    }
}
