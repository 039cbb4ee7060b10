//! Checks and stages records on all cores, while more are read. Results come in the order in which the records were read.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::check::{self, Checked};
use super::read::Record;
use super::read::columns::Stated;
use super::report::Finding;
use super::staged::{BroughtTexts, Staged};

/// Maximum number of records that are checked together.
const MAX_BATCH_RECORDS: usize = 1_024;

/// Length of records from which on no more are checked together, in bytes: read into memory they may take many times their
/// length.
const MAX_BATCH_BYTES: usize = 2 << 20;

/// A record with the result of its check.
pub(super) struct Outcome {
    pub(super) record: Record,
    /// Code of the product, if it can be read, valid or not.
    pub(super) code: Option<String>,
    /// The record as it waits for the publish, if it has no faults.
    pub(super) staged: Option<anyhow::Result<Staged>>,
    pub(super) findings: Vec<Finding>,
}

/// Fields and texts of all records of a load.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Fields that any of them has.
    pub(super) stated: Stated,
    pub(super) texts: BroughtTexts,
}

impl Outcome {
    /// Checks a record, and stages it if it has no faults.
    fn of(record: Record, together: &Together) -> Self {
        let mut findings = Vec::new();
        let Checked {
            code,
            record: checked,
        } = check::check_with(&record, &mut findings, &together.stated);
        Self {
            record,
            code,
            staged: checked.map(|checked| Staged::new(&checked, &together.texts)),
            findings,
        }
    }
}

/// Records to check. One batch is checked while the next one is read.
pub(super) struct Checkers {
    together: Arc<Together>,
    batch: Vec<Record>,
    batch_bytes: usize,
    checking: Option<JoinHandle<Vec<Outcome>>>,
}

impl Checkers {
    pub(super) fn new(together: &Arc<Together>) -> Self {
        Self {
            together: Arc::clone(together),
            batch: Vec::new(),
            batch_bytes: 0,
            checking: None,
        }
    }

    /// Adds a record. Returns outcomes that are due: of earlier records, or of none.
    pub(super) fn push(&mut self, record: Record) -> Vec<Outcome> {
        self.batch_bytes += record.len_bytes();
        self.batch.push(record);
        match self.batch.len() == MAX_BATCH_RECORDS || self.batch_bytes > MAX_BATCH_BYTES {
            true => self.hand_over(),
            false => Vec::new(),
        }
    }

    /// Returns the outcomes of all records that were added.
    pub(super) fn finish(&mut self) -> Vec<Outcome> {
        let mut outcomes = self.hand_over();
        outcomes.extend(self.wait());
        outcomes
    }

    /// Begins to check the batch. Returns the outcomes of the one before.
    fn hand_over(&mut self) -> Vec<Outcome> {
        let outcomes = self.wait();
        if !self.batch.is_empty() {
            self.batch_bytes = 0;
            let batch = std::mem::take(&mut self.batch).into_par_iter();
            let together = Arc::clone(&self.together);
            let check = move || batch.map(|record| Outcome::of(record, &together)).collect();
            self.checking = Some(thread::spawn(check));
        }
        outcomes
    }

    fn wait(&mut self) -> Vec<Outcome> {
        match self.checking.take().map(JoinHandle::join) {
            None => Vec::new(),
            Some(Ok(outcomes)) => outcomes,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::Place;

    #[test]
    fn outcomes_come_in_the_order_of_records() {
        let json = |number: usize| match number % 900 {
            450 => format!(
                "{{\"code\": \"P{number}\", \"name\": \"{}\"}}",
                "x".repeat(MAX_BATCH_BYTES)
            ),
            _ => format!("{{\"code\": \"P{number}\"}}"),
        };
        let records = 3_000;
        let together = Arc::default();
        let mut checkers = Checkers::new(&together);
        let mut outcomes = Vec::new();
        for number in 0..records {
            outcomes.extend(checkers.push(Record::new(Place::file("a"), json(number))));
        }
        outcomes.extend(checkers.finish());
        assert!(checkers.finish().is_empty());
        assert_eq!(outcomes.len(), records);
        for (number, outcome) in outcomes.iter().enumerate() {
            let record = Record::new(Place::file("a"), json(number));
            let expected = Outcome::of(record, &together);
            assert_eq!(outcome.code, Some(format!("P{number}")));
            assert!(outcome.staged.is_none());
            assert_eq!(outcome.findings, expected.findings);
        }
    }
}
