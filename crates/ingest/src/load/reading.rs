//! Reads and checks inputs: records without faults are staged, findings go to the report.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use vitrine_model::Invalid;
use vitrine_model::code::ProductCode;
use vitrine_store::Publication;

use super::apply::{Mode, Retirement};
use super::checking::{Checkers, Outcome, Together};
use super::first_places::FirstPlaces;
use super::json::Node;
use super::patch::Bases;
use super::progress::Progress;
use super::read::{self, Item, Record, Shape};
use super::records::Records;
use super::rejected::RejectedFile;
use super::report::{Finding, Place, Report, Severity, shown};
use super::staged::Staged;
use super::texts::{self, TextFiles};

/// Number of patches whose products are read together.
const MAX_FEW_PATCHES: usize = 64;

/// Maximum length of the patches of a load together, in bytes: they wait in memory.
const MAX_PATCH_BYTES: usize = 512 << 20;

/// Handling of a load with faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnError {
    /// Refuses the load.
    Reject,
    /// Loads the records without faults.
    Skip {
        /// File for rejected records, if they are written.
        rejected: Option<PathBuf>,
    },
}

/// Results of reading so far.
pub(super) struct Reading<'p> {
    pub(super) report: Report,
    /// Sheet to read of workbooks; by default the first.
    pub(super) sheet: Option<String>,
    progress: &'p dyn Progress,
    /// Codes in the inputs.
    codes: FirstPlaces,
    skips: bool,
    rejected: Option<RejectedFile>,
    /// Codes of rejected records, with their places.
    rejected_codes: HashMap<String, Place>,
    shape: Shape,
    /// Patches, which wait for the publish that finds what they stand on, each with its code, if that can be read.
    patches: Vec<(Option<ProductCode>, Item)>,
    /// Their length, in bytes.
    patch_bytes: usize,
    staged: Vec<Staged>,
    together: Arc<Together>,
    checkers: Checkers,
    /// First error of staging or of rejected records; returned when the input has ended.
    failure: Option<anyhow::Error>,
}

impl<'p> Reading<'p> {
    pub(super) fn new(on_error: OnError, shape: Shape, progress: &'p dyn Progress) -> Self {
        let together = Arc::default();
        let (skips, path) = match on_error {
            OnError::Reject => (false, None),
            OnError::Skip { rejected } => (true, rejected),
        };
        Self {
            report: Report::default(),
            sheet: None,
            progress,
            codes: FirstPlaces::default(),
            skips,
            rejected: path.map(RejectedFile::new),
            rejected_codes: HashMap::new(),
            shape,
            patches: Vec::new(),
            patch_bytes: 0,
            staged: Vec::new(),
            checkers: Checkers::new(&together),
            together,
            failure: None,
        }
    }

    /// Reads an input to its end.
    pub(super) fn read(&mut self, name: &str, bytes: impl Read) -> anyhow::Result<()> {
        let file: Arc<str> = name.into();
        let mut is_empty = true;
        let reader = BufReader::with_capacity(1 << 16, bytes);
        let sheet = self.sheet.clone();
        read::read(name, sheet.as_deref(), reader, self.shape, &mut |item| {
            is_empty = false;
            self.take(&file, item);
        })
        .with_context(|| format!("can't read {name}"))?;
        self.settle_all();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if is_empty {
            let message = "expected at least one product; an empty input never empties the catalog";
            let finding = Finding::fault(&Place::file(name), "empty", message);
            self.take_unreadable(vec![finding], false);
        }
        Ok(())
    }

    fn take(&mut self, file: &Arc<str>, item: Item) {
        match item {
            Item::Warning(finding) => {
                self.settle_all();
                self.report.add(finding);
            }
            Item::Record(mut record) => {
                // All records share one name.
                record.place.file = Arc::clone(file);
                match self.shape {
                    Shape::Whole => self.check(record),
                    Shape::Patch => {
                        let (node, _) = Node::parse(&record.json);
                        let code = node.member("code").and_then(Node::text);
                        let code = code.and_then(|code| code.trim().parse().ok());
                        self.wait(code, record.json.len(), Item::Record(record));
                    }
                }
            }
            Item::Row(row) => {
                let (code, length) = (row.code().parse().ok(), row.len_bytes());
                self.wait(code, length, Item::Row(row));
            }
            Item::Unreadable {
                findings,
                is_record,
            } => self.take_unreadable(findings, is_record),
        }
    }

    fn check(&mut self, record: Record) {
        let due = self.checkers.push(record);
        due.into_iter().for_each(|outcome| self.settle(outcome));
    }

    /// Keeps a patch until all inputs were read.
    fn wait(&mut self, code: Option<ProductCode>, length: usize, patch: Item) {
        self.patch_bytes += length;
        if self.patch_bytes > MAX_PATCH_BYTES {
            let message = format!(
                "patches can have {} MiB together; load them in parts",
                MAX_PATCH_BYTES >> 20
            );
            self.fail(anyhow::Error::msg(message));
            self.patches.clear();
            return;
        }
        self.patches.push((code, patch));
    }

    /// Checks the patches, on what is live where a publish begins.
    pub(super) fn check_patches(
        &mut self,
        publication: &mut dyn Publication,
    ) -> anyhow::Result<()> {
        let mut patches = std::mem::take(&mut self.patches).into_iter();
        let mut bases = Bases::default();
        loop {
            let few = patches.by_ref().take(MAX_FEW_PATCHES);
            let (codes, few): (Vec<_>, Vec<Item>) = few.unzip();
            if few.is_empty() {
                break;
            }
            for (patch, base) in few.into_iter().zip(bases.of(&codes, publication)?) {
                let item = match patch {
                    Item::Row(row) => row.record(self.shape, base.payout_type()),
                    other => other,
                };
                match item {
                    Item::Record(mut record) => {
                        record.set_base(base);
                        self.check(record);
                    }
                    Item::Unreadable {
                        findings,
                        is_record,
                    } => self.take_unreadable(findings, is_record),
                    Item::Row(_) | Item::Warning(_) => {}
                }
            }
        }
        self.settle_all();
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Adds an input, or a part of it, without a readable code.
    fn take_unreadable(&mut self, findings: Vec<Finding>, is_record: bool) {
        self.settle_all();
        self.report.rejected.keeps_all = true;
        if is_record {
            self.reject(&findings, None);
        }
        findings
            .into_iter()
            .for_each(|finding| self.report.add(finding));
    }

    /// Takes the outcomes of all records so far, so that whatever comes next is reported behind them.
    fn settle_all(&mut self) {
        let outcomes = self.checkers.finish();
        outcomes
            .into_iter()
            .for_each(|outcome| self.settle(outcome));
    }

    fn settle(&mut self, outcome: Outcome) {
        self.report.records += 1;
        self.progress.checked();
        let Outcome {
            record,
            code,
            staged,
            mut findings,
        } = outcome;
        let record = &record;
        // An invalid code was reported already, and can be long. It identifies no product.
        let code = code.filter(|code| code.parse::<ProductCode>().is_ok());
        if let Some(code) = &code {
            self.check_unique(code, record, &mut findings);
        }
        let is_faulty = findings
            .iter()
            .any(|found| found.severity == Severity::Fault);
        if is_faulty {
            match code {
                // Without skipping, nothing needs them.
                Some(code) if self.skips => {
                    self.rejected_codes.insert(code, record.place.clone());
                }
                Some(_) => {}
                None => self.report.rejected.keeps_all = true,
            }
            self.reject(&findings, record.whole_json());
        } else if let Some(staged) = staged
            && (self.skips || !self.report.has_faults())
        {
            match staged {
                Ok(staged) => self.keep(staged, record),
                Err(error) => self.fail(error),
            }
        }
        findings
            .into_iter()
            .for_each(|finding| self.report.add(finding));
    }

    /// Keeps a record without faults.
    fn keep(&mut self, mut staged: Staged, record: &Record) {
        // Another record of its code may still be rejected, and then this one is, too.
        if self.rejected.is_some()
            && let Some(json) = record.whole_json()
            && let Err(error) = staged.keep_json(json)
        {
            self.fail(error.into());
        }
        self.staged.push(staged);
    }

    fn check_unique(&mut self, code: &str, record: &Record, findings: &mut Vec<Finding>) {
        if let Some(other) = self.codes.in_other_case(code) {
            findings.push(differs_in_case(
                &record.place_of("/code"),
                code,
                other,
                "another one here",
            ));
        }
        if let Some(first) = self.codes.add(code, &record.place) {
            let place = record.place_of("/code");
            // One of the two may have another product's code by mistake. Retiring that product would be wrong.
            self.report.rejected.keeps_all = true;
            findings.push(duplicate(&place, code, &first));
        }
    }

    /// Adds a rejected record; without its text if that couldn't be read, or would load as JSON although nobody corrected it.
    fn reject(&mut self, findings: &[Finding], text: Option<&str>) {
        self.report.rejected.records += 1;
        let Some(file) = &mut self.rejected else {
            return;
        };
        let faults = findings
            .iter()
            .filter(|found| found.severity == Severity::Fault);
        let faults: Vec<Finding> = faults.cloned().collect();
        let has_thousands = (faults.iter()).any(|fault| fault.rule == "thousands_separator");
        let text = text.filter(|_| !has_thousands);
        if let Err(error) = file.add(&faults, text) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: anyhow::Error) {
        self.failure.get_or_insert(error);
    }

    /// Reports products that would be retired and loaded, or retired and given texts. Such a fault isn't skipped,
    /// because it's unclear what is meant.
    pub(super) fn check_retirements(
        &mut self,
        retirements: &[Retirement],
        texts: Option<&TextFiles>,
    ) {
        for Retirement { code, place } in retirements {
            let loaded = self.codes.get(code.as_str()).map(|first| first.to_string());
            let loaded =
                loaded.or_else(|| texts?.first(code).map(|path| path.display().to_string()));
            if let Some(loaded) = loaded {
                self.skips = false;
                let message = format!("expected no product here that is also loaded, at {loaded}");
                self.report.add(Finding {
                    code: Some(code.to_string()),
                    ..Finding::fault(place, "retired_and_loaded", &message)
                });
            }
        }
    }

    /// Scans the texts below a directory. Their faults aren't skipped: they are the operator's own files.
    pub(super) fn texts(&mut self, directory: &Path, mode: &Mode) -> anyhow::Result<TextFiles> {
        let before = self.report.fault_count();
        let texts = TextFiles::scan(directory, &mut self.report)?;
        let codes = texts
            .codes()
            .filter(|code| !self.codes.contains(code.as_str()));
        // In a merge, it may be live.
        for code in codes.filter(|_| *mode == Mode::Replace) {
            let expected = "the code of a product that is loaded";
            let invalid = Invalid::new("product_not_loaded", expected);
            let product = directory.join(code.as_str());
            self.report
                .add(texts::finding(&product, Some(code), invalid));
        }
        self.skips &= self.report.fault_count() == before;
        Ok(texts)
    }

    /// Ends reading. Returns the report, and the records unless faults prevent the load.
    pub(super) fn finish(mut self) -> (Report, Option<Records>) {
        // Each code read belongs to a record to load, or to a rejected one.
        let can_skip = self.skips && self.codes.len() > self.rejected_codes.len();
        if self.report.has_faults() && !can_skip {
            self.report.rejected = super::report::Rejected::default();
            return (self.report, None);
        }
        let kept = self.rejected_codes.into_iter().map(|(code, place)| {
            let first = self.codes.get(code.as_str());
            let first = first.unwrap_or_else(|| place.clone());
            (code, [first, place])
        });
        let kept: HashMap<_, _> = kept.collect();
        // Stores write each page of an index once then, and neighbours lie together in what is read later.
        (self.staged).sort_unstable_by(|one, other| one.code().cmp(other.code()));
        let records = Records {
            staged: self.staged,
            kept,
            rejected: self.rejected,
            together: self.together,
            codes: self.codes,
        };
        (self.report, Some(records))
    }
}

/// Returns the warning about a code that differs from `other` only in case.
pub(super) fn differs_in_case(place: &Place, code: &str, other: &str, of: &str) -> Finding {
    Finding {
        severity: Severity::Warning,
        code: Some(shown(code)),
        pointer: "/code".to_owned(),
        value: Some(shown(&format!("\"{code}\""))),
        ..Finding::fault(
            place,
            "code_differs_in_case",
            &format!(
                "differs from `{}`, {of}, only in case; are both meant?",
                shown(other)
            ),
        )
    }
}

pub(super) fn duplicate(place: &Place, code: &str, other: &Place) -> Finding {
    Finding {
        code: Some(shown(code)),
        pointer: "/code".to_owned(),
        value: Some(shown(&format!("\"{code}\""))),
        ..Finding::fault(
            place,
            "code_duplicate",
            &format!("expected each code once; this one is also at {other}"),
        )
    }
}
