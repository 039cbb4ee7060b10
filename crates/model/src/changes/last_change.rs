//! The newest revision that changed a product, as far as a journal goes back.

use jiff::Timestamp;

use super::log::Log;
use super::segment::Segment;
use super::{Journal, Step};

/// A revision that changed a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastChange {
    /// Number of the revision.
    pub revision: u64,
    /// Time of the revision.
    pub at: Timestamp,
}

impl LastChange {
    fn new(revision: u64, step: Step) -> Self {
        Self {
            revision,
            at: Timestamp::from_millisecond(step.at).unwrap_or_default(),
        }
    }
}

/// Reader of the newest changes of products, in ascending order of their codes.
#[derive(Debug)]
pub struct LastChanges<'j> {
    log: &'j Log,
    /// Segments, newest first, each with the first change whose code wasn't passed yet.
    segments: Vec<(&'j Segment, usize)>,
}

impl LastChanges<'_> {
    /// Returns the newest recorded change of a product; `None` if none is recorded. Codes must ascend from call to call.
    pub fn find(&mut self, code: &str) -> Option<LastChange> {
        let code = code.as_bytes();
        let log = self.log;
        self.segments.iter_mut().find_map(|(segment, passed)| {
            *passed = segment.skip(*passed, |other| other < code);
            let end = segment.skip(*passed, |other| other <= code);
            let newest = end.checked_sub(1).filter(|newest| newest >= passed)?;
            let revision = segment.number(newest);
            Some(LastChange::new(revision, *log.state(revision)?))
        })
    }
}

impl Journal {
    /// Returns a reader of the newest changes of products by revisions.
    #[must_use]
    pub fn last_changes(&self) -> LastChanges<'_> {
        let newest_first = self.revisions.segments.iter().rev();
        LastChanges {
            log: &self.revisions,
            segments: newest_first.map(|segment| (&**segment, 0)).collect(),
        }
    }

    /// Returns the oldest known revision: products without a recorded change are as it had them.
    #[must_use]
    pub fn oldest_revision(&self) -> LastChange {
        LastChange::new(self.revisions.oldest, self.revisions.steps[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{JournalUpdate, StateId};
    use crate::facts::Facts;
    use crate::revision::Revision;

    #[test]
    fn last_change_is_the_newest_of_all_segments() {
        let revision = |number: u64| Revision {
            number,
            id: format!("r{number}"),
            created_at: Timestamp::from_millisecond(number as i64 * 1_000).unwrap(),
        };
        let facts = Facts {
            is_orderable: true,
            currency: "SEK".parse().unwrap(),
            payout_type: "gift_card",
            countries: &[],
            categories: &[],
        };
        let mut update = JournalUpdate::default();
        (1..=3).for_each(|number| update.revision(&revision(number), None));
        update.began(2, "A", &facts);
        update.began(2, "B", &facts);
        update.ended(3, "B", &facts);
        update.began(3, "B", &facts);
        let journal = update.into_journal(StateId::default()).unwrap();
        let mut update = JournalUpdate::default();
        (3..=4).for_each(|number| update.revision(&revision(number), None));
        update.began(4, "C", &facts);
        update.ended(4, "A", &facts);
        update.began(4, "A", &facts);
        let journal = update.extend(&journal, StateId::default()).unwrap();
        let mut changes = journal.last_changes();
        let found = ["A", "AA", "B", "C", "D"].map(|code| changes.find(code));
        let revisions = found.map(|found| found.map(|change| change.revision));
        assert_eq!(revisions, [Some(4), None, Some(3), Some(4), None]);
        let times = found.map(|found| found.map(|change| change.at.as_millisecond()));
        assert_eq!(times[2], Some(3_000));
        assert_eq!(journal.oldest_revision().revision, 1);
        assert_eq!(journal.last_changes().find("B").unwrap().revision, 3);
    }
}
