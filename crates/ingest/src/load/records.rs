//! Records to load, on their way from the spool to the store.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};

use vitrine_model::code::ProductCode;

use super::check::{self, CheckedRecord};
use super::read::{Record, Table};
use super::reading::duplicate;
use super::rejected::{Original, RejectedFiles};
use super::report::{Place, Report};
use super::spool::SpooledRow;
use super::spooled::Spooled;

/// Maximum number of records read ahead of the store's writes.
const READ_AHEAD: usize = 256;

/// Records to load.
pub(super) struct Records {
    /// Number of records, including those rejected later.
    pub(super) count: u64,
    pub(super) spooled: Spooled,
    /// Codes whose live version stays, because one of their records was rejected; with the places of the first record
    /// and of the rejected one.
    pub(super) kept: HashMap<String, [Place; 2]>,
    pub(super) rejected: Option<RejectedFiles>,
    /// Tables of the rows in the spool.
    pub(super) tables: Vec<Arc<Table>>,
}

impl Records {
    /// Returns the codes whose live version stays.
    pub(super) fn kept(&self) -> impl Iterator<Item = &str> {
        self.kept.keys().map(String::as_str)
    }

    /// Returns true if the live version of a product stays.
    pub(super) fn keeps(&self, code: &ProductCode) -> bool {
        self.kept.contains_key(code.as_str())
    }

    /// Calls `put` with a few records at a time. A record whose code has a rejected record as well is rejected, too:
    /// it's unknown which of them is right.
    ///
    /// Another thread decompresses and checks the records while the store writes.
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
                    // The receiver is gone if `put` failed.
                    if sender.send(spooled.and_then(read_back)).is_err() {
                        break;
                    }
                }
            });
            // Waits for one record, then takes those that are queued.
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

    /// Syncs the rejected records to disk. Call it before a commit, so that nothing is lost.
    pub(super) fn finish(&mut self, report: &mut Report) -> anyhow::Result<()> {
        if let Some(files) = self.rejected.take() {
            report.rejected.files = files.finish()?;
        }
        Ok(())
    }
}

/// Reads a record back that was checked before.
fn read_back(
    (json, row): (String, Option<SpooledRow>),
) -> anyhow::Result<(String, Option<SpooledRow>, CheckedRecord)> {
    let record = Record::new(Place::file(""), json);
    match check::check_again(&record) {
        Some(checked) => Ok((record.json, row, checked)),
        None => anyhow::bail!("a record changed while it waited in a temporary file"),
    }
}
