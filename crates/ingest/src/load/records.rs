//! Records to load.

use std::collections::HashMap;
use std::sync::Arc;

use vitrine_model::code::ProductCode;

use super::apply::Mode;
use super::checking::Together;
use super::first_places::FirstPlaces;
use super::reading::duplicate;
use super::rejected::RejectedFile;
use super::report::{Place, Report};
use super::staged::Staged;

/// Records to load.
pub(super) struct Records {
    /// Records without faults, sorted by code, including those rejected later.
    pub(super) staged: Vec<Staged>,
    /// Codes whose live version stays, because one of their records was rejected; with the places of the first record
    /// and of the rejected one.
    pub(super) kept: HashMap<String, [Place; 2]>,
    pub(super) rejected: Option<RejectedFile>,
    pub(super) together: Arc<Together>,
    /// Codes in the inputs.
    pub(super) codes: FirstPlaces,
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

    /// Takes the records, sorted by code. A record whose code has a rejected record as well is rejected, too: it's unknown
    /// which of them is right.
    pub(super) fn take(&mut self, report: &mut Report) -> anyhow::Result<Vec<Staged>> {
        let staged = std::mem::take(&mut self.staged);
        if self.kept.is_empty() {
            return Ok(staged);
        }
        let mut taken = Vec::with_capacity(staged.len());
        for record in staged {
            let Some([first, other]) = self.kept.get(record.code().as_str()) else {
                taken.push(record);
                continue;
            };
            let finding = duplicate(first, record.code().as_str(), other);
            report.rejected.records += 1;
            if let Some(file) = &mut self.rejected {
                file.add(std::slice::from_ref(&finding), record.json()?.as_deref())?;
            }
            report.add(finding);
        }
        Ok(taken)
    }

    /// Syncs the rejected records to disk. Call it before a commit, so that nothing is lost.
    pub(super) fn finish(&mut self, mode: &Mode, report: &mut Report) -> anyhow::Result<()> {
        if let Some(file) = self.rejected.take() {
            report.rejected.file = file.finish()?;
            report.rejected.mode = match mode {
                Mode::Patch { .. } => "patch",
                Mode::Replace | Mode::Merge { .. } => "merge",
            };
        }
        Ok(())
    }
}
