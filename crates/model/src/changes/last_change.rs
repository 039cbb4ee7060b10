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
