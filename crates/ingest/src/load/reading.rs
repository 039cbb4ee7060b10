//! Reads and checks inputs: records without faults go to a spool, findings to the report.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use vitrine_model::Invalid;
use vitrine_model::code::ProductCode;
use vitrine_store::Store;

use super::apply::{Mode, Retirement};
use super::checking::{Checkers, Outcome};
use super::first_places::FirstPlaces;
use super::known_records::{DigestPrefetch, KnownRecords};
use super::progress::Progress;
use super::read::columns::Stated;
use super::read::{self, Item, Record};
use super::records::Records;
use super::rejected::RejectedFile;
use super::report::{Finding, Place, Report, Severity, shown};
use super::spool::Spool;
use super::texts::{self, TextFiles};

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
    store: &'p Store,
    progress: &'p dyn Progress,
    /// Codes in the inputs.
    codes: FirstPlaces,
    skips: bool,
    rejected: Option<RejectedFile>,
    /// Codes of rejected records, with their places.
    rejected_codes: HashMap<String, Place>,
    spool: Spool,
    known: Arc<KnownRecords>,
    stated: Arc<Stated>,
    prefetch: DigestPrefetch,
    checkers: Checkers,
    /// First error of the spool or of rejected records; returned when the input has ended.
    failure: Option<anyhow::Error>,
}

impl<'p> Reading<'p> {
    pub(super) fn new(on_error: OnError, store: &'p Store, progress: &'p dyn Progress) -> Self {
        let (known, stated) = (Arc::default(), Arc::default());
        let (skips, path) = match on_error {
            OnError::Reject => (false, None),
            OnError::Skip { rejected } => (true, rejected),
        };
        Self {
            report: Report::default(),
            sheet: None,
            store,
            progress,
            codes: FirstPlaces::default(),
            skips,
            rejected: path.map(RejectedFile::new),
            rejected_codes: HashMap::new(),
            spool: Spool::new(),
            prefetch: DigestPrefetch::new(),
            checkers: Checkers::start(&known, &stated),
            known,
            stated,
            failure: None,
        }
    }

    /// Reads an input to its end.
    pub(super) fn read(&mut self, name: &str, bytes: impl Read) -> anyhow::Result<()> {
        let file: Arc<str> = name.into();
        let mut is_empty = true;
        let reader = BufReader::with_capacity(1 << 16, bytes);
        let sheet = self.sheet.clone();
        read::read(name, sheet.as_deref(), reader, &mut |item| {
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
                let due = self.checkers.push(record);
                due.into_iter().for_each(|outcome| self.settle(outcome));
            }
            Item::Unreadable {
                findings,
                is_record,
            } => {
                self.settle_all();
                self.take_unreadable(findings, is_record);
            }
        }
    }

    /// Adds an input, or a part of it, without a readable code.
    fn take_unreadable(&mut self, findings: Vec<Finding>, is_record: bool) {
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
        let prefetched = (self.prefetch).prefetch(self.report.records, self.store, &self.known);
        if let Err(error) = prefetched {
            self.fail(error);
        }
        self.progress.checked();
        let Outcome {
            record,
            code,
            written,
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
            self.reject(&findings, Some(&record.json));
        } else if let (Some(code), Some(written)) = (code, written)
            && (self.skips || !self.report.has_faults())
            && let Err(error) = written.and_then(|written| self.keep(code, written, record))
        {
            self.fail(error);
        }
        findings
            .into_iter()
            .for_each(|finding| self.report.add(finding));
    }

    /// Puts a record without faults into the spool.
    fn keep(&mut self, code: String, written: Vec<u8>, record: &Record) -> anyhow::Result<()> {
        // Another record of its code may still be rejected, and then this one is, too.
        let json = self.rejected.is_some().then(|| record.json.clone());
        Ok(self.spool.push(code, written, json)?)
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
    pub(super) fn finish(mut self) -> anyhow::Result<(Report, Option<Records>)> {
        // Each code read belongs to a record to load, or to a rejected one.
        let can_skip = self.skips && self.codes.len() > self.rejected_codes.len();
        if self.report.has_faults() && !can_skip {
            self.report.rejected = super::report::Rejected::default();
            return Ok((self.report, None));
        }
        let kept = self.rejected_codes.into_iter().map(|(code, place)| {
            let first = self.codes.get(code.as_str());
            let first = first.unwrap_or_else(|| place.clone());
            (code, [first, place])
        });
        let kept: HashMap<_, _> = kept.collect();
        let records = Records {
            count: self.spool.records(),
            spooled: self.spool.read()?,
            kept,
            rejected: self.rejected,
            known: self.known,
            stated: self.stated,
            codes: self.codes,
        };
        Ok((self.report, Some(records)))
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
