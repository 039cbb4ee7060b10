//! `vitrine rollback`: makes an old revision live again.

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use vitrine_ingest::load::report::Report;
use vitrine_ingest::overrides::rollback::{self, RolledBack};
use vitrine_store::audit::{AuditAction, AuditContext};
use vitrine_store::record::{Availability, PublishedRevision};
use vitrine_store::{IfMissing, Store};

use super::confirm::ConfirmArgs;
use super::history::revision_json;
use super::load::{operator, print_report};
use super::plain_text::PlainText;
use super::revision_arg::RevisionArg;
use super::{Outcome, OutputArgs, PlanArgs, StoreArgs, print, print_json};

const EXAMPLES: &str = "\
Examples:
  vitrine rollback 12 --dry-run
  vitrine rollback 12
  vitrine rollback 12 --yes --note 'prices of the last load were wrong'";

/// Make an old revision live again, as a new revision; nothing is rewritten.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Rollback {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Show what clients would see change, field by field, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    plan: PlanArgs,
    /// Note for the history.
    #[arg(long, value_name = "TEXT", value_parser = PlainText)]
    note: Option<String>,
    /// The revision.
    revision: u64,
}

impl Rollback {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let store = store.open(IfMissing::Refuse)?;
        // Checked before the confirmation.
        RevisionArg::Number(self.revision).find(&store)?;
        if self.dry_run {
            return self.show_plan(&store);
        }
        self.confirm.confirm(&format!(
            "this replaces the live catalog with revision {}; `--dry-run` shows what would change",
            self.revision
        ))?;
        let context = AuditContext {
            by: operator(),
            note: self.note.clone(),
            action: AuditAction::RollBack,
            confirmation: None,
        };
        let done = rollback::roll_back(&store, self.revision, &context)?;
        match (done, self.output.json) {
            (RolledBack::Missing, _) => bail!("there is no revision {}", self.revision),
            (RolledBack::Published(revision, counts, note), true) => {
                let published = PublishedRevision {
                    revision,
                    counts,
                    note,
                    availability: Availability::Readable,
                };
                print_json(&revision_json(&published))?;
            }
            (RolledBack::Unchanged, true) => print_json(&Value::Null)?,
            (RolledBack::Published(revision, counts, _), false) => {
                print(&format!("revision {}: {counts}\n", revision.number))?;
            }
            (RolledBack::Unchanged, false) => {
                print("nothing to do: this catalog is live already\n")?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Prints the plan, as that of a load.
    fn show_plan(&self, store: &Store) -> anyhow::Result<Outcome> {
        let plan = rollback::plan(store, self.revision)?;
        let plan = plan.with_context(|| format!("there is no revision {}", self.revision))?;
        print_report(&Report::planned(plan), self.output, self.plan)
    }
}
