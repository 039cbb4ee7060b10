//! `vitrine texts fetch`: fetches texts at outside addresses into the store.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use vitrine_ingest::fetch::{self, FetchSettings, Reach};
use vitrine_ingest::load::apply::Intent;
use vitrine_store::IfMissing;

use crate::cli::load::operator;
use crate::cli::plain_text::PlainText;
use crate::cli::progress::FetchBar;
use crate::cli::{Outcome, OutputArgs, PlanArgs, StoreArgs, output, print, print_json};

const EXAMPLES: &str = "\
Examples:
  vitrine texts fetch
  vitrine texts fetch --dry-run
  vitrine texts fetch --note 'nightly' --json";

/// Fetch texts from the outside addresses that live products name, so that clients get them as Markdown and HTML
/// too.
///
/// Texts fetched before are requested again, and replaced if they changed. All are published as one revision;
/// addresses that fail are reported and don't stop the others. A host that doesn't answer 3 times in a row is given
/// up. Loaded texts are left alone. Exit code 4 if some addresses failed, 1 if all did.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Fetch {
    #[command(flatten)]
    output: OutputArgs,
    /// Fetch from private networks too, and use the environment's proxy.
    #[arg(long)]
    allow_private: bool,
    /// Maximum number of addresses fetched at once; at most 2 of one host.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    concurrency: u8,
    /// Timeout of one text in seconds, including retries and redirects.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Fetch, show what would change, field by field, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    plan: PlanArgs,
    /// Note for the history.
    #[arg(long, value_name = "TEXT", value_parser = PlainText)]
    note: Option<String>,
}

impl Fetch {
    pub(super) fn run(&self, store: &StoreArgs) -> anyhow::Result<Outcome> {
        let settings = FetchSettings {
            intent: match self.dry_run {
                true => Intent::DryRun,
                false => Intent::Apply,
            },
            reach: match self.allow_private {
                true => Reach::Anywhere,
                false => Reach::Public,
            },
            max_concurrent: usize::from(self.concurrency),
            patience: Duration::from_secs(self.timeout),
            by: operator(),
            note: self.note.clone(),
        };
        let store = store.open(IfMissing::Refuse)?;
        let report = fetch::fetch(&store, &settings, &FetchBar::new())?;
        let outcome = match (report.addresses.failed, report.addresses.asked) {
            (0, _) => Outcome::Done,
            (failed, asked) if failed == asked => Outcome::Faulty,
            _ => Outcome::Partial,
        };
        match (self.output.json, outcome) {
            (true, _) => print_json(&report.into_json())?,
            (false, Outcome::Faulty) => {
                let mut out = output::stderr();
                let text = report.into_text(out.listing(self.plan.all));
                out.write_all(text.as_bytes())?;
            }
            (false, _) => {
                print(&report.into_text(output::stdout().listing(self.plan.all)))?;
            }
        }
        Ok(outcome)
    }
}
