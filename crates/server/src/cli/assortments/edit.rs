//! `vitrine assortments set`, `rollback` and `remove`: edits, and what they would change
//! (docs/contract/assortments.md#edits).

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use vitrine_ingest::assortments::{self, Fault, MAX_BYTES};
use vitrine_ingest::escape::single_line;
use vitrine_ingest::load::guard::Allowance;
use vitrine_model::assortment::{Rules, check_name};
use vitrine_model::snapshot::Snapshot;
use vitrine_store::assortment::AssortmentVersion;
use vitrine_store::{IfMissing, Store};

use super::change::{live_catalog, refusal};
use super::to_json;
use crate::assortments::{
    Change, live_version, new_version, removal, rollback_note, rules_at, stored_rules, unknown,
    without_mark,
};
use crate::cli::load::operator;
use crate::cli::plain_text::PlainText;
use crate::cli::{
    Outcome, OutputArgs, PlanArgs, StoreArgs, exit_with_usage_error, output, print, print_json,
};

const SET_EXAMPLES: &str = "\
Examples:
  vitrine assortments set nordic nordic.json --dry-run
  vitrine assortments set nordic nordic.json --note 'contract of 2026'
  vitrine assortments set nordic nordic.json --allow retire=60%";

const ROLLBACK_EXAMPLES: &str = "\
Examples:
  vitrine assortments rollback nordic 3 --note 'the last edit was wrong'";

const REMOVE_EXAMPLES: &str = "\
Examples:
  vitrine assortments remove nordic";

/// Options of all edits.
#[derive(Debug, Args)]
struct EditArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    plan: PlanArgs,
    /// Note for the history.
    #[arg(long, value_name = "TEXT", value_parser = PlainText)]
    note: Option<String>,
    /// Raise the limit of the guard: `retire=PERCENT%` of the products that the assortment shows may go (20% otherwise).
    #[arg(long, value_name = "NAME=PERCENT%")]
    allow: Vec<Allowance>,
}

/// Create an assortment, or replace its rules. Servers follow within a second.
///
/// All faults of the rules are reported together, and nothing is changed then. Names that no product has are warnings.
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(in crate::cli) struct SetRules {
    #[command(flatten)]
    edit: EditArgs,
    /// The assortment: up to 64 letters, digits, `-`, `_` and `.`.
    name: String,
    /// File of its rules, in JSON; `-` is standard input.
    file: PathBuf,
    /// Print the products gained and lost, and the discounts; change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Make the rules of an old version live again, as a new version.
#[derive(Debug, Args)]
#[command(after_help = ROLLBACK_EXAMPLES)]
pub(in crate::cli) struct Rollback {
    #[command(flatten)]
    edit: EditArgs,
    /// The assortment.
    name: String,
    /// The version.
    version: u32,
}

/// Remove an assortment that no key uses. Its history stays.
#[derive(Debug, Args)]
#[command(after_help = REMOVE_EXAMPLES)]
pub(in crate::cli) struct Remove {
    #[command(flatten)]
    output: OutputArgs,
    /// Note for the history.
    #[arg(long, value_name = "TEXT", value_parser = PlainText)]
    note: Option<String>,
    /// The assortment.
    name: String,
}

impl SetRules {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        if self.dry_run {
            return self.plan(store);
        }
        let name = checked_name(&self.name);
        let Some(rules) = read_rules(&self.file)? else {
            return Ok(Outcome::Refused);
        };
        let store = store.open(IfMissing::Create)?;
        self.edit.apply(&store, name, &rules, None)
    }

    /// Says what the rules would change.
    pub(super) fn plan(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let name = checked_name(&self.name);
        let Some(rules) = read_rules(&self.file)? else {
            return Ok(Outcome::Refused);
        };
        self.edit
            .plan(&*store.open(IfMissing::Refuse)?, name, &rules)
    }
}

impl Rollback {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let (store, name) = (store.open(IfMissing::Refuse)?, checked_name(&self.name));
        let stored = rules_at(&store, name, Some(self.version))?;
        let rules = stored_rules(&stored)
            .with_context(|| format!("version {} of `{name}` can't be used", self.version))?;
        let note = rollback_note(self.version);
        self.edit.apply(&store, name, &rules, Some(note))
    }
}

impl Remove {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let (store, name) = (store.open(IfMissing::Refuse)?, checked_name(&self.name));
        let live = live_version(&store, name)?.ok_or_else(|| unknown(name))?;
        let removed = store.set_assortment(
            &removal(name, operator(), self.note.clone()),
            Some(&live.id),
        )?;
        match self.output.json {
            true => print_json(&to_json(&removed))?,
            false => print(&format!("removed {name}\n"))?,
        }
        Ok(Outcome::Done)
    }
}

impl EditArgs {
    /// Says what rules would change, and what the guard would say to them.
    fn plan(&self, store: &Store, name: &str, rules: &Rules) -> anyhow::Result<Outcome> {
        let (before, catalog) = (live_version(store, name)?, live_catalog(store)?);
        let Some(change) = checked_change(name, before.as_ref(), &catalog, rules)? else {
            return Ok(Outcome::Refused);
        };
        match self.output.json {
            true => print_json(&change.to_json())?,
            false => print(&change.to_text(output::stdout().listing(self.plan.all)))?,
        }
        if let Some(exceeded) = change.exceeded(&self.allow) {
            write!(output::stderr(), "{}", refusal(&exceeded))?;
        }
        Ok(Outcome::Done)
    }

    /// Makes rules live, unless the guard refuses that.
    fn apply(
        &self,
        store: &Store,
        name: &str,
        rules: &Rules,
        default_note: Option<String>,
    ) -> anyhow::Result<Outcome> {
        let (before, catalog) = (live_version(store, name)?, live_catalog(store)?);
        let Some(change) = checked_change(name, before.as_ref(), &catalog, rules)? else {
            return Ok(Outcome::Refused);
        };
        if let Some(exceeded) = change.exceeded(&self.allow) {
            match self.output.json {
                true => print_json(&json!({"refused": exceeded, "change": change.to_json()}))?,
                false => write!(output::stderr(), "{}", refusal(&exceeded))?,
            }
            return Ok(Outcome::Refused);
        }
        let note = self.note.clone().or(default_note);
        let new = new_version(name, rules, operator(), note);
        if before
            .as_ref()
            .is_some_and(|before| before.rules == new.rules)
        {
            let live = before.as_ref().map(to_json).unwrap_or_default();
            match self.output.json {
                true => print_json(&json!({"live": live, "change": change.to_json()}))?,
                false => print("nothing to do: these rules are live already\n")?,
            }
            return Ok(Outcome::Done);
        }
        let set = store.set_assortment(&new, before.as_ref().map(|before| &*before.id))?;
        match self.output.json {
            true => print_json(&json!({"live": to_json(&set), "change": change.to_json()}))?,
            false => {
                print(&change.to_text(output::stdout().listing(self.plan.all)))?;
                print(&format!("version {} of {name}\n", set.number))?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// Returns the change to rules; prints its warnings to standard error, or its faults if it has any.
fn checked_change<'s>(
    name: &str,
    before: Option<&AssortmentVersion>,
    catalog: &'s Arc<Snapshot>,
    rules: &Rules,
) -> anyhow::Result<Option<Change<'s>>> {
    match Change::of(catalog, live_rules(before)?, rules) {
        Ok(change) => {
            change.print_warnings()?;
            Ok(Some(change))
        }
        Err(faults) => {
            refuse(name, &faults)?;
            Ok(None)
        }
    }
}

/// Returns the name; ends the program if it can't be one.
fn checked_name(name: &str) -> &str {
    if let Err(invalid) = check_name(name) {
        exit_with_usage_error(&format!("the name of an assortment: expected {invalid}"));
    }
    name
}

/// Returns the rules of the live version; none, with a warning, if they can't be read: its keys are shown nothing.
fn live_rules(version: Option<&AssortmentVersion>) -> anyhow::Result<Option<Rules>> {
    let stored = version.and_then(|version| version.rules.as_deref());
    match stored.map(stored_rules).transpose() {
        Ok(rules) => Ok(rules),
        Err(error) => {
            writeln!(
                output::stderr(),
                "vitrine: warning: the live version can't be used: {error}"
            )?;
            Ok(None)
        }
    }
}

/// Reads rules from a file; prints its faults to standard error if it has any.
fn read_rules(path: &Path) -> anyhow::Result<Option<Rules>> {
    let shown = path.display();
    let text = read(path).with_context(|| format!("can't read {shown}"))?;
    match assortments::parse(without_mark(&text)) {
        Ok(rules) => Ok(Some(rules)),
        Err(faults) => {
            refuse(&shown.to_string(), &faults)?;
            Ok(None)
        }
    }
}

/// Prints faults to standard error.
fn refuse(place: &str, faults: &[Fault]) -> anyhow::Result<Outcome> {
    let mut err = output::stderr();
    for fault in faults {
        writeln!(err, "{place}: {}", single_line(&fault.to_string()))?;
    }
    let plural = if faults.len() == 1 { "" } else { "s" };
    writeln!(err, "{} fault{plural}; nothing was changed", faults.len())?;
    Ok(Outcome::Refused)
}

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let input: Box<dyn std::io::Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(path)?),
    };
    let mut text = String::new();
    let read = input.take(MAX_BYTES as u64 + 1).read_to_string(&mut text)?;
    match read > MAX_BYTES {
        true => Err(std::io::Error::other(format!(
            "it is longer than {MAX_BYTES} bytes"
        ))),
        false => Ok(text),
    }
}
