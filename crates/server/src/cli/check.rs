//! `vitrine check`: checks the integrity of the store.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use vitrine_ingest::escape::single_line;
use vitrine_ingest::overrides::unreadable as overrides;
use vitrine_store::check::{Problem, Severity};

use super::{Outcome, OutputArgs, StoreArgs, print, print_json};

const EXAMPLES: &str = "\
Examples:
  vitrine check
  vitrine check --json --store sqlite:/var/lib/vitrine/vitrine.db

Exit codes:
  0  no faults; there may be warnings
  1  faults, or the store can't be read";

/// Check the store: its file, its rows, its digests. Servers and loads keep running.
///
/// Everything is read: each text is decompressed, each product compared with its digest. Each problem is reported
/// with its rule, place and remedy. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Check {
    #[command(flatten)]
    output: OutputArgs,
}

impl Check {
    pub(super) fn run(&self, store: &StoreArgs) -> Result<Outcome> {
        let store = store.open_to_check()?;
        let mut problems = store.check()?;
        problems.extend(overrides::problems(&store));
        let is_fault = |problem: &&Problem| problem.severity == Severity::Fault;
        let faults = problems.iter().filter(is_fault).count();
        if self.output.json {
            let problems: Vec<_> = problems.iter().map(to_json).collect();
            print_json(&json!({"clean": faults == 0, "problems": problems}))?;
        } else {
            print(&to_text(&problems, faults))?;
        }
        Ok(match faults {
            0 => Outcome::Done,
            _ => Outcome::Faulty,
        })
    }
}

fn to_json(problem: &Problem) -> serde_json::Value {
    json!({
        "rule": problem.rule,
        "severity": problem.severity.as_str(),
        "place": problem.place,
        "what": problem.what,
        "advice": problem.advice,
    })
}

fn to_text(problems: &[Problem], faults: usize) -> String {
    let mut text = String::new();
    for problem in problems {
        let severity = problem.severity.as_str();
        let Problem {
            rule,
            place,
            what,
            advice,
            ..
        } = problem;
        text.push_str(&format!(
            "{severity} {rule}: {}: {}\n    → {advice}\n",
            single_line(place),
            single_line(what)
        ));
    }
    let warnings = problems.len() - faults;
    text.push_str(&match (faults, warnings) {
        (0, 0) => "the store has no faults\n".to_owned(),
        (0, _) => format!("the store has no faults; warnings: {warnings}\n"),
        _ => format!("the store is damaged; faults: {faults}, warnings: {warnings}\n"),
    });
    text
}
