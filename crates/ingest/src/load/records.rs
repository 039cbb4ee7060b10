//! The records that can be loaded, on their way from the spool to the store.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};

use vitrine_model::code::ProductCode;

use super::check::{self, CheckedRecord};
use super::read::{Record, Table};
use super::reading::duplicate;
use super::rejected::{Original, RejectedFiles};
use super::report::{Place, Report};
use super::spool::{Spooled, SpooledRow};

/// Maximum number of records that are read ahead of the store's writes.
const READ_AHEAD: usize = 256;

/// The records that can be loaded.
pub(super) struct Records {
    /// Maximum number of records.
    pub(super) count: u64,
    pub(super) spooled: Spooled,
    /// Products whose live version stays, since a record of them was rejected: the places of the first
    /// record and of a rejected one.
    pub(super) kept: HashMap<String, [Place; 2]>,
    pub(super) rejected: Option<RejectedFiles>,
    /// The tables of rows that wait in the spool.
    pub(super) tables: Vec<Arc<Table>>,
}

impl Records {
    /// The products whose live version stays.
    pub(super) fn kept(&self) -> impl Iterator<Item = &str> {
        self.kept.keys().map(String::as_str)
    }

    /// Returns true if the live version of a product stays.
    pub(super) fn keeps(&self, code: &ProductCode) -> bool {
        self.kept.contains_key(code.as_str())
    }

    /// Gives the records to `put`, some at a time. One whose code stands again in a record that was rejected is
    /// rejected as well: which of them is right can't be told.
    ///
    /// The records are unpacked and read on a thread of their own, while the store writes.
    pub(super) fn each_few(
        &mut self,
        report: &mut Report,
        mut put: impl FnMut(&[CheckedRecord], &mut Report) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Self {
            spooled,
            kept,
            rejected,
            tables,
            ..
        } = self;
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(READ_AHEAD);
            scope.spawn(move || {
                for spooled in spooled {
                    // Nobody receives any more where putting failed.
                    if sender.send(spooled.and_then(read_back)).is_err() {
                        break;
                    }
                }
            });
            // Waits for one record, and takes those with it that are there already.
            while let Ok(first) = receiver.recv() {
                let mut few = Vec::new();
                for record in std::iter::once(first).chain(receiver.try_iter().take(READ_AHEAD)) {
                    let (json, row, record) = record?;
                    let code = record.product.code.as_str();
                    let Some([first, other]) = kept.get(code) else {
                        few.push(record);
                        continue;
                    };
                    let finding = duplicate(first, code, other);
                    report.rejected.records += 1;
                    if let Some(file) = rejected {
                        let original = match &row {
                            Some(row) => Original::Row(&tables[row.table], &row.line),
                            None => Original::Text(&json),
                        };
                        file.add(std::slice::from_ref(&finding), original)?;
                    }
                    report.add(finding);
                }
                put(&few, report)?;
            }
            Ok(())
        })
    }

    /// Puts what was rejected onto the disk; to be called before anything is committed, so that nothing
    /// is lost.
    pub(super) fn finish(&mut self, report: &mut Report) -> anyhow::Result<()> {
        if let Some(files) = self.rejected.take() {
            report.rejected.files = files.finish()?;
        }
        Ok(())
    }
}

/// A record that was found good before.
fn read_back(
    (json, row): (String, Option<SpooledRow>),
) -> anyhow::Result<(String, Option<SpooledRow>, CheckedRecord)> {
    let record = Record::new(Place::file(""), json);
    match check::check(&record, &mut Vec::new()).record {
        Some(checked) => Ok((record.json, row, checked)),
        None => anyhow::bail!("a record changed while it waited in a temporary file"),
    }
}
