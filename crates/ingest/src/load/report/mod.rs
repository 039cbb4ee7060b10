//! Report of a load, its findings and changes: for people as text, for programs as JSON.
//!
//! - `finding`: one fault or warning
//! - `group`: findings of one rule together

mod finding;
mod group;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

use serde_json::{Value, json};
use vitrine_model::revision::Revision;
use vitrine_store::Ineffective;
use vitrine_store::record::PublishedCounts;

pub use finding::{Finding, MAX_SHOWN_CHARACTERS, Place, Severity, shown, shown_pointer};
pub use group::Group;

use super::guard::Exceeded;
use super::plan::{Listing, Plan};
use crate::escape::single_line;

/// Maximum number of examples of each warning.
const WARNING_EXAMPLES: usize = 3;

/// Maximum number of examples of each fault.
const FAULT_EXAMPLES: usize = 10;

/// Maximum number of faults that the JSON lists one by one.
const MAX_LISTED_FAULTS: usize = 10_000;

/// Returns the counts of a publish, for programs.
#[must_use]
pub fn counts_json(counts: &PublishedCounts) -> Value {
    let PublishedCounts {
        created,
        changed,
        retired,
        unchanged,
    } = counts;
    json!({
        "created": created,
        "changed": changed,
        "retired": retired,
        "unchanged": unchanged,
    })
}

/// Returns a new revision, for programs.
#[must_use]
pub fn revision_json(revision: &Revision) -> Value {
    json!({
        "number": revision.number,
        "id": revision.id,
        "created_at": revision.created_at,
    })
}

/// Outcome of a load without faults, or with faults that were skipped.
#[derive(Debug)]
pub enum Outcome {
    /// A revision was published.
    Published(Revision),
    /// Nothing changed: the live catalog equals the input.
    Unchanged,
    /// Nothing was applied, because this was a dry run.
    Planned,
    /// Nothing was applied, because the guard refused.
    Refused,
}

/// Changes that a load made or would make, and its outcome.
#[derive(Debug)]
pub struct Applied {
    /// Outcome of the load.
    pub outcome: Outcome,
    /// Difference between the live catalog and the inputs.
    pub plan: Plan,
    /// Limits of the guard that are exceeded.
    pub exceeded: Vec<Exceeded>,
    /// Changes that clients don't see until an override ends.
    pub ineffective: Vec<Ineffective>,
}

/// Rejected records, if faults are skipped.
#[derive(Debug, Default)]
pub struct Rejected {
    /// Number of records.
    pub records: u64,
    /// File with the records and the reasons, if one was written.
    pub file: Option<PathBuf>,
    /// Mode by which the file is to be loaded, once it is corrected.
    pub mode: &'static str,
    /// True if nothing was retired, because some records have no readable code, or the same one.
    pub keeps_all: bool,
}

/// Verdict on a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was applied, or would be.
    Done,
    /// A part was applied; the rest was rejected.
    Partial,
    /// Nothing was applied.
    Refused,
}

/// Findings and changes of a load.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of records read.
    pub records: u64,
    /// Rejected records.
    pub rejected: Rejected,
    /// Applied changes; `None` if faults prevented them.
    pub applied: Option<Applied>,
    groups: BTreeMap<(Severity, &'static str), Group>,
    faults: Vec<Finding>,
    fault_count: u64,
}

impl Report {
    /// Returns a report of changes that are only planned.
    #[must_use]
    pub fn planned(plan: Plan) -> Self {
        let applied = Applied {
            outcome: Outcome::Planned,
            plan,
            exceeded: Vec::new(),
            ineffective: Vec::new(),
        };
        Self {
            applied: Some(applied),
            ..Self::default()
        }
    }

    /// Returns a report without findings.
    #[must_use]
    pub fn of(records: u64, applied: Option<Applied>) -> Self {
        Self {
            records,
            applied,
            ..Self::default()
        }
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        let group = self.groups.entry((finding.severity, finding.rule));
        let group = group.or_default();
        match finding.severity {
            Severity::Warning => group.add(finding, WARNING_EXAMPLES),
            Severity::Fault => {
                self.fault_count += 1;
                if self.faults.len() < MAX_LISTED_FAULTS {
                    self.faults.push(finding.clone());
                }
                group.add(finding, FAULT_EXAMPLES);
            }
        }
    }

    /// Returns the number of faults found.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.fault_count
    }

    /// Returns true if any fault was found.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        self.fault_count > 0
    }

    /// Returns the verdict on the load.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match &self.applied {
            None => Verdict::Refused,
            Some(applied) if !applied.exceeded.is_empty() => Verdict::Refused,
            Some(_) if self.has_faults() => Verdict::Partial,
            Some(_) => Verdict::Done,
        }
    }

    /// Describes the effect on the catalog, as context for a later error.
    #[must_use]
    pub fn describe_outcome(&self) -> String {
        match self.applied.as_ref().map(|applied| &applied.outcome) {
            Some(Outcome::Published(revision)) => {
                format!("the load was applied, revision {}", revision.number)
            }
            _ => "nothing was changed".to_owned(),
        }
    }

    /// Returns the report for people: refusals of the guard, then findings, then the verdict.
    #[must_use]
    pub fn to_text(&self, listing: Listing) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_text(&mut text, listing);
        text
    }

    fn write_text(&self, out: &mut String, listing: Listing) -> fmt::Result {
        for exceeded in self.applied.iter().flat_map(|applied| &applied.exceeded) {
            writeln!(out, "{exceeded}")?;
        }
        let mut findings = String::new();
        for ((severity, rule), group) in &self.groups {
            match severity {
                Severity::Fault => group.write_text(&format!("fault: {rule}"), &mut findings)?,
                Severity::Warning => group.write_lines(rule, &mut findings)?,
            }
        }
        let shown = findings.lines().take(listing.most_lines());
        shown.clone().try_for_each(|line| writeln!(out, "{line}"))?;
        match findings.lines().count() - shown.count() {
            0 => {}
            more => writeln!(
                out,
                "… and {more} more lines of faults and warnings, which --all shows"
            )?,
        }
        let Some(applied) = &self.applied else {
            let (faults, plural) = (self.fault_count, plural(self.fault_count));
            return writeln!(
                out,
                "{faults} fault{plural} in {} records; nothing was changed",
                self.records
            );
        };
        applied.write_text(out, listing)?;
        self.rejected.write_text(out)
    }

    /// Returns the report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let applied = self.applied.as_ref();
        let revision = applied.and_then(|applied| match &applied.outcome {
            Outcome::Published(revision) => Some(revision),
            _ => None,
        });
        let is_applied = applied.is_some_and(Applied::is_done);
        let counts = applied.map(|applied| applied.plan.counts());
        // An applied plan is given in numbers; one that wasn't applied, in detail.
        let plan = applied.filter(|_| !is_applied);
        let groups = |wanted| -> BTreeMap<&str, &Group> {
            let of = self
                .groups
                .iter()
                .filter(|((severity, _), _)| *severity == wanted);
            of.map(|((_, rule), group)| (*rule, group)).collect()
        };
        let Rejected {
            records,
            file,
            keeps_all,
            mode: _,
        } = &self.rejected;
        json!({
            "applied": is_applied,
            "records": self.records,
            "revision": revision.map(revision_json),
            "counts": counts_json(&counts.unwrap_or_default()),
            "plan": plan.and_then(|applied| applied.plan.fields()),
            "ineffective_changes": applied.map_or(&[][..], |applied| &applied.ineffective)
                .iter()
                .map(|one| json!({"override": one.override_number, "changes": one.changes}))
                .collect::<Vec<_>>(),
            "guard": applied.map_or(&[][..], |applied| &applied.exceeded),
            "rejected": {"records": records, "file": file, "keeps_all": keeps_all},
            "fault_count": self.fault_count,
            "faults": self.faults,
            "faults_by_rule": groups(Severity::Fault),
            "warnings": groups(Severity::Warning),
        })
    }
}

impl Applied {
    /// Returns true if the live catalog now equals the input.
    fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Published(_) | Outcome::Unchanged)
    }

    fn write_text(&self, out: &mut String, listing: Listing) -> fmt::Result {
        let counts = self.plan.counts();
        if matches!(self.outcome, Outcome::Planned) {
            self.plan.write_text(out, listing)?;
        }
        for Ineffective {
            override_number,
            changes,
        } in &self.ineffective
        {
            let (plural, have) = match changes {
                1 => ("", "has"),
                _ => ("s", "have"),
            };
            writeln!(
                out,
                "{changes} change{plural} {have} no effect until override {override_number} ends"
            )?;
        }
        match &self.outcome {
            Outcome::Published(revision) => writeln!(out, "revision {}: {counts}", revision.number),
            Outcome::Planned if self.exceeded.is_empty() => {
                writeln!(out, "dry run, nothing was changed: {counts}")
            }
            Outcome::Planned => writeln!(
                out,
                "dry run, nothing was changed, and the guard would refuse this: {counts}"
            ),
            Outcome::Refused => writeln!(
                out,
                "refused by the guard, nothing was changed; this would be: {counts}"
            ),
            Outcome::Unchanged if counts.unchanged == 0 => writeln!(out, "nothing to do"),
            Outcome::Unchanged => {
                let unchanged = counts.unchanged;
                writeln!(
                    out,
                    "nothing to do: the catalog already has these {unchanged} products"
                )
            }
        }
    }
}

impl Rejected {
    fn write_text(&self, out: &mut String) -> fmt::Result {
        if self.records > 0 {
            let (records, plural) = (self.records, plural(self.records));
            write!(out, "{records} record{plural} rejected")?;
            if let Some(file) = &self.file {
                let file = file.display().to_string();
                let file = single_line(&file);
                write!(
                    out,
                    ", with the reasons in {file}: correct them and load that with --mode {}",
                    self.mode
                )?;
            }
            out.push('\n');
        }
        if self.keeps_all {
            out.push_str(
                "nothing was retired: some records have no readable code, or the same one\n",
            );
        }
        Ok(())
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_cut_on_terminals_with_faults_first() {
        let mut report = Report::default();
        let place = Place::file("feed.csv");
        for number in 0..40 {
            report.add(Finding {
                severity: Severity::Warning,
                pointer: format!("/field_{number:02}"),
                rule: "unknown_field",
                ..Finding::fault(&place, "json", "ignored")
            });
        }
        report.add(Finding::fault(&place, "json", "expected JSON"));
        let whole = report.to_text(Listing::Complete);
        let lines: Vec<&str> = whole.lines().collect();
        assert_eq!((lines.len(), lines[0]), (44, "fault: json, 1 time"));
        assert_eq!(
            lines[3],
            "warning: unknown field field_00 (ignored, first at feed.csv)"
        );
        let shown = report.to_text(Listing::Summary);
        let (kept, rest) = shown.split_at(lines[..20].join("\n").len() + 1);
        assert!(whole.starts_with(kept), "{shown}");
        let more = "… and 23 more lines of faults and warnings, which --all shows\n";
        assert!(rest.starts_with(more), "{rest}");
    }
}
