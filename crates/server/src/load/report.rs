//! What a load found and did: for people as text, for programs as JSON.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::Serialize;
use vitrine_model::revision::Revision;
use vitrine_store::record::PublishedCounts;

use super::plan::Plan;

/// How many examples of each warning are shown.
const WARNING_EXAMPLES: usize = 3;

/// The longest value that is shown, in characters.
const MOST_SHOWN_CHARACTERS: usize = 120;

/// Where something was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The input's name.
    pub file: String,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The position in an array, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// The row of a spreadsheet, from 1; not the line, where cells have line breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// The column of a table: its name, or where it has none, its letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
}

impl Place {
    /// An input as a whole.
    #[must_use]
    pub fn file(name: &str) -> Self {
        Self {
            file: name.to_owned(),
            line: None,
            index: None,
            row: None,
            column: None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        if let Some(index) = self.index {
            write!(out, "[{index}]")?;
        }
        if let Some(row) = self.row.filter(|row| Some(*row) != self.line) {
            write!(out, " (row {row})")?;
        }
        if let Some(column) = &self.column {
            write!(out, ", column {column}")?;
        }
        Ok(())
    }
}

/// Whether a finding stops the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does.
    Fault,
    /// It doesn't.
    Warning,
}

/// Something found in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Fault or warning.
    #[serde(skip)]
    pub severity: Severity,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// The product's code, where it could be read.
    pub code: Option<String>,
    /// Where in the record: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What stands there, as JSON, shortened.
    pub value: Option<String>,
    /// The rule that it breaks.
    pub rule: &'static str,
    /// What is right instead.
    pub message: String,
}

impl Finding {
    /// A fault at `place` as a whole.
    #[must_use]
    pub fn fault(place: &Place, rule: &'static str, message: &str) -> Self {
        Self {
            severity: Severity::Fault,
            place: place.clone(),
            code: None,
            pointer: String::new(),
            value: None,
            rule,
            message: message.to_owned(),
        }
    }
}

/// A value as a report shows it.
#[must_use]
pub fn shown(value: &str) -> String {
    match value.char_indices().nth(MOST_SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}… ({} bytes)", &value[..end], value.len()),
        None => value.to_owned(),
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.place)?;
        if let Some(code) = &self.code {
            write!(out, "  {code}")?;
        }
        if !self.pointer.is_empty() {
            write!(out, "  {}", self.pointer)?;
        }
        if let Some(value) = &self.value {
            write!(out, "  {value}")?;
        }
        Ok(())
    }
}

/// Warnings of one rule.
#[derive(Debug, Default, Serialize)]
pub struct WarningGroup {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<Finding>,
}

/// What a publish did, for programs.
#[must_use]
pub fn counts_json(counts: &PublishedCounts) -> serde_json::Value {
    let PublishedCounts {
        created,
        changed,
        retired,
        unchanged,
    } = counts;
    serde_json::json!({
        "created": created,
        "changed": changed,
        "retired": retired,
        "unchanged": unchanged,
    })
}

/// What a load without faults came to.
#[derive(Debug)]
pub enum Outcome {
    /// A revision.
    Published(Revision),
    /// Nothing: the catalog is as the inputs have it.
    Unchanged,
    /// Nothing, on purpose: this is what would be done.
    Planned,
}

/// What a load without faults did or would do.
#[derive(Debug)]
pub struct Applied {
    /// What it came to.
    pub outcome: Outcome,
    /// What differs.
    pub plan: Plan,
}

/// What a load found and did.
#[derive(Debug, Default)]
pub struct Report {
    /// How many records were read.
    pub records: u64,
    /// Every fault, in the order of the inputs.
    pub faults: Vec<Finding>,
    /// The warnings by rule.
    pub warnings: BTreeMap<&'static str, WarningGroup>,
    /// What was applied; `None` where faults were found.
    pub applied: Option<Applied>,
}

impl Report {
    /// Takes a finding.
    pub fn add(&mut self, finding: Finding) {
        match finding.severity {
            Severity::Fault => self.faults.push(finding),
            Severity::Warning => {
                let group = self.warnings.entry(finding.rule).or_default();
                group.count += 1;
                if group.examples.len() < WARNING_EXAMPLES {
                    group.examples.push(finding);
                }
            }
        }
    }

    /// Whether anything stops the load.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// The report for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, out: &mut String) -> fmt::Result {
        for (rule, group) in &self.warnings {
            let times = if group.count == 1 { "time" } else { "times" };
            writeln!(out, "warning: {rule}, {} {times}, for example", group.count)?;
            for example in &group.examples {
                writeln!(out, "  {example}\n      {}", example.message)?;
            }
        }
        for fault in &self.faults {
            writeln!(
                out,
                "fault: {fault}\n      {}: {}",
                fault.rule, fault.message
            )?;
        }
        match &self.applied {
            Some(Applied { outcome, plan }) => {
                let counts = plan.counts();
                match outcome {
                    Outcome::Published(revision) => write!(out, "revision {}: ", revision.number)?,
                    Outcome::Planned => {
                        plan.write_text(out)?;
                        write!(out, "dry run, nothing was changed: ")?;
                    }
                    Outcome::Unchanged => {
                        let unchanged = counts.unchanged;
                        return writeln!(
                            out,
                            "nothing to do: the catalog has these {unchanged} products already"
                        );
                    }
                }
                writeln!(out, "{counts}")
            }
            None => {
                let faults = self.faults.len();
                let plural = if faults == 1 { "" } else { "s" };
                writeln!(
                    out,
                    "{faults} fault{plural} in {} records; nothing was changed",
                    self.records
                )
            }
        }
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let (revision, is_applied, plan) = match &self.applied {
            Some(Applied { outcome, plan }) => match outcome {
                Outcome::Published(revision) => (Some(revision), true, Some(plan)),
                Outcome::Unchanged => (None, true, Some(plan)),
                Outcome::Planned => (None, false, Some(plan)),
            },
            None => (None, false, None),
        };
        let counts = plan.map(Plan::counts).unwrap_or_default();
        // Of what was done, the numbers are enough; what isn't done yet is to be looked at.
        let plan = plan.filter(|_| !is_applied);
        serde_json::json!({
            "applied": is_applied,
            "records": self.records,
            "revision": revision.map(|revision| serde_json::json!({
                "number": revision.number,
                "id": revision.id,
                "created_at": revision.created_at,
            })),
            "counts": counts_json(&counts),
            "plan": plan,
            "faults": self.faults,
            "warnings": self.warnings,
        })
    }
}
