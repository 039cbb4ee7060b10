//! Checks and renders records on all cores. Results come in the order in which the records were read.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use super::check::{self, Checked};
use super::known_records::{KnownRecords, RecordHash, Warnings};
use super::read::Record;
use super::read::columns::Stated;
use super::rendered::{Packer, RenderedRecord};
use super::report::Finding;
use super::waiting::{write_known, write_rendered};

/// Maximum number of records that are handed over together.
const MAX_BATCH_RECORDS: usize = 64;

/// Maximum length of what is handed over together, in bytes. A longer record is checked by itself: read into memory it may take
/// many times its length.
const MAX_BATCH_BYTES: usize = 256 << 10;

/// A record with the result of its check.
pub(super) struct Outcome {
    pub(super) record: Record,
    /// Code of the product, if it can be read, valid or not.
    pub(super) code: Option<String>,
    /// The record as it waits in the spool, if it has no faults.
    pub(super) written: Option<anyhow::Result<Vec<u8>>>,
    pub(super) findings: Vec<Finding>,
}

impl Outcome {
    /// Checks a record, and renders it if it has no faults. One that is known is checked only if it had warnings.
    pub(super) fn of(
        record: Record,
        (known, stated): (&KnownRecords, &Stated),
        packer: &mut Packer,
    ) -> Self {
        // The JSON of a row doesn't tell all that the check looks at.
        let hash = (!record.is_row()).then(|| RecordHash::of(&record.json));
        let known = hash.and_then(|hash| known.find(hash));
        if let Some(known) = known
            && known.warnings == Warnings::None
        {
            stated.add_known(&record.json);
            return Self {
                code: Some(known.code.to_string()),
                written: Some(Ok(write_known(known, &record.json))),
                findings: Vec::new(),
                record,
            };
        }
        let mut findings = Vec::new();
        let Checked {
            code,
            record: checked,
        } = check::check_with(&record, &mut findings, stated);
        let warnings = match findings.is_empty() {
            true => Warnings::None,
            false => Warnings::Some,
        };
        let written = checked.map(|checked| match known {
            Some(known) => Ok(write_known(known, &record.json)),
            None => {
                let rendered = RenderedRecord::new(&checked, packer)?;
                let digest = hash.map(|hash| hash.digest(warnings));
                Ok(write_rendered(&rendered, digest))
            }
        });
        Self {
            record,
            code,
            written,
            findings,
        }
    }
}

/// Records to check, and the place for their outcomes.
struct Job {
    records: Vec<Record>,
    outcomes: mpsc::SyncSender<Vec<Outcome>>,
}

/// Threads that check records. They end when this is dropped.
pub(super) struct Checkers {
    jobs: mpsc::Sender<Job>,
    threads: usize,
    known: Arc<KnownRecords>,
    stated: Arc<Stated>,
    batch: Vec<Record>,
    batch_bytes: usize,
    /// Outcomes to come, in the order of their records.
    coming: VecDeque<mpsc::Receiver<Vec<Outcome>>>,
}

impl Checkers {
    pub(super) fn start(known: &Arc<KnownRecords>, stated: &Arc<Stated>) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let (jobs, waiting) = mpsc::channel::<Job>();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let waiting = Arc::clone(&waiting);
            let (known, stated) = (Arc::clone(known), Arc::clone(stated));
            thread::spawn(move || {
                let mut packer = Packer::default();
                loop {
                    let job = waiting
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .recv();
                    let Ok(Job { records, outcomes }) = job else {
                        break;
                    };
                    let records = records.into_iter();
                    let found =
                        records.map(|record| Outcome::of(record, (&known, &stated), &mut packer));
                    // Nobody waits for it after a failure.
                    let _ = outcomes.send(found.collect());
                }
            });
        }
        Self {
            jobs,
            threads,
            known: Arc::clone(known),
            stated: Arc::clone(stated),
            batch: Vec::new(),
            batch_bytes: 0,
            coming: VecDeque::new(),
        }
    }

    /// Adds a record. Returns outcomes that are due: of earlier records, or of none.
    pub(super) fn push(&mut self, record: Record) -> Vec<Outcome> {
        if record.json.len() > MAX_BATCH_BYTES {
            let mut outcomes = self.finish();
            let context = (&*self.known, &*self.stated);
            let outcome = Outcome::of(record, context, &mut Packer::default());
            outcomes.push(outcome);
            return outcomes;
        }
        self.batch_bytes += record.json.len();
        self.batch.push(record);
        if self.batch.len() == MAX_BATCH_RECORDS || self.batch_bytes > MAX_BATCH_BYTES {
            self.hand_over();
        }
        match self.coming.len() > self.threads + 1 {
            true => self.next(),
            false => Vec::new(),
        }
    }

    /// Returns the outcomes of all records that were added.
    pub(super) fn finish(&mut self) -> Vec<Outcome> {
        self.hand_over();
        let mut outcomes = Vec::new();
        while !self.coming.is_empty() {
            outcomes.extend(self.next());
        }
        outcomes
    }

    fn hand_over(&mut self) {
        self.batch_bytes = 0;
        if self.batch.is_empty() {
            return;
        }
        let (outcomes, coming) = mpsc::sync_channel(1);
        let records = std::mem::take(&mut self.batch);
        let job = Job { records, outcomes };
        match self.jobs.send(job) {
            Ok(()) => self.coming.push_back(coming),
            // All threads panicked.
            Err(mpsc::SendError(_)) => panic!("a check panicked"),
        }
    }

    fn next(&mut self) -> Vec<Outcome> {
        let Some(next) = self.coming.pop_front() else {
            return Vec::new();
        };
        match next.recv() {
            Ok(outcomes) => outcomes,
            Err(mpsc::RecvError) => panic!("a check panicked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::Place;

    #[test]
    fn outcomes_come_in_the_order_of_records() {
        let json = |number: usize| match number % 500 {
            // By itself, since it is long.
            250 => format!(
                "{{\"code\": \"P{number}\", \"name\": \"{}\"}}",
                "x".repeat(MAX_BATCH_BYTES)
            ),
            _ => format!("{{\"code\": \"P{number}\"}}"),
        };
        let records = 2_000;
        let known = Arc::default();
        let stated = Arc::default();
        let mut checkers = Checkers::start(&known, &stated);
        let mut outcomes = Vec::new();
        for number in 0..records {
            outcomes.extend(checkers.push(Record::new(Place::file("a"), json(number))));
        }
        outcomes.extend(checkers.finish());
        assert!(checkers.finish().is_empty());
        assert_eq!(outcomes.len(), records);
        for (number, outcome) in outcomes.iter().enumerate() {
            let record = Record::new(Place::file("a"), json(number));
            let expected = Outcome::of(record, (&known, &stated), &mut Packer::default());
            assert_eq!(outcome.code, Some(format!("P{number}")));
            assert!(outcome.written.is_none());
            assert_eq!(outcome.findings, expected.findings);
        }
    }
}
