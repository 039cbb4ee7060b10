//! `vitrine texts load`: puts Markdown files on live products.

use std::path::PathBuf;

use clap::Args;
use vitrine_ingest::load::apply::Intent;
use vitrine_ingest::load::texts::{self, TextLoadSettings};
use vitrine_store::IfMissing;

use crate::cli::load::{operator, print_report};
use crate::cli::plain_text::PlainText;
use crate::cli::{Outcome, OutputArgs, PlanArgs, StoreArgs};

const EXAMPLES: &str = "\
Examples:
  vitrine texts load --dry-run texts/
  vitrine texts load --note 'new terms' texts/

Files:
  texts/BREWBOX-DE/description.md
  texts/BREWBOX-DE/terms_consumer.md";

/// Put Markdown files on live products, in one transaction.
///
/// The directory contains one for each product, named by its code, with a file for each text: description.md,
/// disclaimer.md, refund_policy.md, reissuance_policy.md, terms_buyer.md, terms_consumer.md,
/// redemption_instructions.md. Texts without a file stay as they are. If there is any fault, all faults are
/// reported and nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Load {
    #[command(flatten)]
    output: OutputArgs,
    /// Show what would change, field by field, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    plan: PlanArgs,
    /// Note for the history.
    #[arg(long, value_name = "TEXT", value_parser = PlainText)]
    note: Option<String>,
    /// The directory; what is hidden in it is left out.
    directory: PathBuf,
}

impl Load {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let settings = TextLoadSettings {
            intent: match self.dry_run {
                true => Intent::DryRun,
                false => Intent::Apply,
            },
            by: operator(),
            note: self.note.clone(),
        };
        let store = store.open(IfMissing::Refuse)?;
        let report = texts::load(&store, &self.directory, settings)?;
        print_report(&report, self.output, self.plan)
    }
}
